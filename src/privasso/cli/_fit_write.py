"""What `privasso fit` returns after its files are written, and the table of a path."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privasso.fit import CoefficientPath
    from privasso.report import FitFacts


@dataclass(frozen=True, eq=False)
class FitResult:
    """What a fit did: its facts and the files it wrote."""

    facts: FitFacts
    files: dict[str, Path]
    ledger: str | None = None
    """What was spent and what is left, in words."""


def path_columns(path: CoefficientPath, facts: FitFacts) -> dict[str, object]:
    """The columns of the table of --path-out."""
    return {
        "lam": path.lams,
        "status": [str(status.value) for status in path.status],
        "intercept": path.intercept,
        **{f"coef:{name}": path.coef[k] for k, name in enumerate(facts.names)},
    }
