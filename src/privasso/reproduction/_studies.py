"""All figures of the reproduction, in their order, and how they are chosen by name."""

from __future__ import annotations

from collections.abc import Sequence

from privasso.reproduction._fig1 import FIG1
from privasso.reproduction._fig2 import FIG2
from privasso.reproduction._fig3 import FIG3
from privasso.reproduction._fig4 import FIG4
from privasso.reproduction._fig5 import FIG5
from privasso.reproduction._kkt import KKT
from privasso.reproduction._leakage import LEAKAGE
from privasso.reproduction._map import MAP
from privasso.reproduction._study import Study
from privasso.reproduction._tail import TAIL

STUDIES = {study.name: study for study in (FIG1, FIG2, FIG3, FIG4, FIG5, MAP, KKT, LEAKAGE, TAIL)}


def chosen(names: Sequence[str]) -> list[Study]:
    """Return the named figures in the order of the paper; all of them when none is named.

    Examples
    --------
    >>> [study.name for study in chosen(["map", "fig3"])]
    ['fig3', 'map']
    """
    for name in names:
        if name not in STUDIES:
            raise ValueError(f"there is no figure {name!r}; choose from {', '.join(STUDIES)}")
    return [study for name, study in STUDIES.items() if not names or name in names]
