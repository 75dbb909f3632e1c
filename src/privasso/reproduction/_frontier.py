"""Two designs compared at equal leakage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privasso.reproduction._looks import part

if TYPE_CHECKING:
    import polars as pl

FloatArray = NDArray[np.float64]

#: Leakages compared: from the least that both designs reach to this multiple of it.
RANGE = 100.0
#: Levels of leakage compared, evenly spaced in the logarithm.
LEVELS = 200
#: Relative difference of E below which two designs count as equal.
TIE = 0.01


@dataclass(frozen=True)
class Frontier:
    """The useful part of a trade-off: noise up to the level of least leakage.

    More noise than that raises error and leakage alike.
    """

    leakage: FloatArray
    E: FloatArray

    @property
    def least(self) -> float:
        """The smallest leakage that any noise level reaches."""
        return float(self.leakage[0])

    def error(self, leakage: FloatArray) -> FloatArray:
        """E at a leakage, interpolated between the levels of the table in logarithms."""
        return np.exp(np.interp(np.log(leakage), np.log(self.leakage), np.log(self.E)))


def frontier(curve: pl.DataFrame, measure: str) -> Frontier:
    """Take the frontier from one curve of a trade-off table; `measure` names the leakage."""
    curve = curve.filter(curve["status"] == "stable").sort("sigma")
    leakage, E = curve[measure].to_numpy(), curve["E"].to_numpy()
    last = int(np.argmin(leakage))
    order = np.argsort(leakage[: last + 1])
    return Frontier(leakage[: last + 1][order], E[: last + 1][order])


@dataclass(frozen=True)
class Comparison:
    """A design `a` against `b` on one law and λ, at equal leakage."""

    wins: float
    """Share of the leakages at which a has the smaller error."""
    losses: float
    """Share at which b has."""
    worst: float
    """Largest E of a over that of b."""
    best: float
    """Smallest E of a over that of b."""
    reach: float
    """Least leakage of a over that of b; below 1, a reaches further."""

    @property
    def word(self) -> str:
        """Say "better", "equal", "worse" or "mixed" of a, counting differences beyond `TIE`."""
        ahead = self.wins > 0.0 or self.reach < 1.0 - TIE
        behind = self.losses > 0.0 or self.reach > 1.0 + TIE
        if ahead:
            return "mixed" if behind else "better"
        return "worse" if behind else "equal"


def compare(table: pl.DataFrame, law: str, lam: float, measure: str, a: str, b: str) -> Comparison:
    """Compare designs a and b of a trade-off table at equal leakage."""
    first, second = (
        frontier(part(table, law=law, lam=lam, design=design), measure) for design in (a, b)
    )
    low = max(first.least, second.least)
    levels = np.geomspace(low, RANGE * low, LEVELS)
    ratio = first.error(levels) / second.error(levels)
    return Comparison(
        wins=float(np.mean(ratio < 1.0 - TIE)),
        losses=float(np.mean(ratio > 1.0 + TIE)),
        worst=float(ratio.max()),
        best=float(ratio.min()),
        reach=first.least / second.least,
    )
