"""Comparison of two designs at equal leakage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

FloatArray = NDArray[np.float64]

#: Designs are compared from the least leakage that both reach to this multiple of it.
RANGE = 100.0
#: Number of leakages in that range, evenly spaced in the logarithm.
LEVELS = 200
#: Relative difference of E below which two designs count as equal.
TIE = 0.01


@dataclass(frozen=True)
class Frontier:
    """Error against leakage, for noise up to the level of least leakage.

    More noise than that raises both the error and the leakage.
    """

    leakage: FloatArray
    E: FloatArray

    @property
    def least(self) -> float:
        """The smallest leakage that any noise level reaches."""
        return float(self.leakage[0])

    def error(self, leakage: FloatArray) -> FloatArray:
        """Return E at a leakage, interpolated in logarithms between the rows of the table."""
        return np.exp(np.interp(np.log(leakage), np.log(self.leakage), np.log(self.E)))


def frontier(curve: pl.DataFrame, measure: str) -> Frontier:
    """Return the frontier of one curve of a trade-off table; `measure` is the leakage column."""
    curve = curve.filter(curve["status"] == "stable").sort("sigma")
    leakage, E = curve[measure].to_numpy(), curve["E"].to_numpy()
    last = int(np.argmin(leakage))
    order = np.argsort(leakage[: last + 1])
    return Frontier(leakage[: last + 1][order], E[: last + 1][order])


@dataclass(frozen=True)
class Comparison:
    """Design `a` against design `b` for one law and λ, at equal leakage."""

    wins: float
    """Share of the leakages at which `a` has the smaller error, by more than `TIE`."""
    losses: float
    """Share of the leakages at which `b` has the smaller error, by more than `TIE`."""
    worst: float
    """Largest ratio of the error of `a` to that of `b`."""
    best: float
    """Smallest ratio of the error of `a` to that of `b`."""
    reach: float
    """Least leakage of `a` over that of `b`; below 1, `a` reaches a smaller leakage."""
    tie: float = TIE
    """Relative difference up to which the two count as equal."""

    @property
    def word(self) -> str:
        """One of "better", "equal", "worse", "mixed" for `a`; differences up to `tie` are ties."""
        ahead = self.wins > 0.0 or self.reach < 1.0 - self.tie
        behind = self.losses > 0.0 or self.reach > 1.0 + self.tie
        if ahead:
            return "mixed" if behind else "better"
        return "worse" if behind else "equal"


def compare(
    table: pl.DataFrame, law: str, lam: float, measure: str, a: str, b: str, tie: float = TIE
) -> Comparison:
    """Compare designs `a` and `b` of a trade-off table at equal leakage."""
    first, second = (
        frontier(table.filter(law=law, lam=lam, design=design), measure) for design in (a, b)
    )
    low = max(first.least, second.least)
    levels = np.geomspace(low, RANGE * low, LEVELS)
    ratio = first.error(levels) / second.error(levels)
    return Comparison(
        wins=float(np.mean(ratio < 1.0 - tie)),
        losses=float(np.mean(ratio > 1.0 + tie)),
        worst=float(ratio.max()),
        best=float(ratio.min()),
        reach=first.least / second.least,
        tie=tie,
    )
