"""What every fit does before its noise is drawn: names are checked and the budget is charged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from privasso._text import is_unicode
from privasso._version import __version__
from privasso.fit._classes import OBSERVED, Classes
from privasso.fit._uses import note_use
from privasso.ledger import Ledger
from privasso.privacy import Guarantee


def account(
    labels: np.ndarray | bytes, guarantee: Guarantee, ledger: Ledger | None, what: str
) -> None:
    """Charge the ledger, or without one remember that these labels were used.

    Labels that are elsewhere are known by a checksum.
    """
    if ledger is None:
        note_use(labels, guarantee)
    else:
        ledger.charge(guarantee, what)


def fit_in_words(shape: tuple[int, int], target: str | None, seeded: bool) -> str:
    """Say what is fitted, for a ledger.

    >>> fit_in_words((10, 2), "price", seeded=True)[:56]
    "fit of 'price' on 10 rows and 2 columns, fixed seed, pri"
    """
    of = "" if target is None else f" of {target!r}"
    seed = ", fixed seed" if seeded else ""
    return f"fit{of} on {shape[0]} rows and {shape[1]} columns{seed}, privasso {__version__}"


def check_run(
    rng: np.random.Generator | None,
    seeded: bool,
    feature_names: tuple[str, ...] | None,
    target: str | None,
) -> None:
    """Refuse a generator that the plan does not state, and names that no file could hold."""
    if (rng is not None) != seeded:
        raise ValueError(f"pass rng exactly if the plan is seeded; here seeded={seeded}")
    check_names(feature_names, target)


def check_names(feature_names: tuple[str, ...] | None, target: str | None) -> None:
    """Refuse names that no file could hold, before the budget is spent on what they belong to."""
    names = feature_names or ()
    for name in (*names, *(() if target is None else (target,))):
        if not is_unicode(name):
            raise ValueError(
                f"the name {name!r} holds half a character (a lone surrogate) and could not be "
                "saved; rename the column"
            )
    if len(set(names)) != len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise ValueError(f"two columns have the name {twice!r}; rename one of them")


def with_classes(guarantee: Guarantee, classes: Classes | None) -> Guarantee:
    """Return the statement, which says so if the classes were taken from the labels.

    >>> import privasso as pv
    >>> terms = pv.privacy.Terms(fit_intercept=True, seeded=False, n_rows=100)
    >>> statement = pv.LabelDP(1.0, 1e-6, y_bounds=(0, 1)).guarantee(terms)
    >>> with_classes(statement, Classes.seen([3, 8])).assumptions[-1][:41]
    'which two values the labels take is publi'
    """
    if classes is None or not classes.observed:
        return guarantee
    return replace(guarantee, assumptions=(*guarantee.assumptions, OBSERVED))
