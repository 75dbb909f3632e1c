"""Predictions of state evolution as tables, and the comparison of two designs at equal leakage."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

import privasso as pv
from privasso.paper._figure import LOOKS, model, named

FloatArray = NDArray[np.float64]

#: Designs are compared from the least leakage that both reach to this multiple of it.
RANGE = 100.0
#: Number of leakages in that range, evenly spaced in the logarithm.
LEVELS = 200
#: Relative difference of E below which two designs count as equal.
TIE = 0.01


def infinite_limit(law: str, design: str) -> bool:
    """Whether E grows without bound with the number of columns, because of the small ones."""
    fp = pv.state_evolution(model(law), 1.0, LOOKS[design].noise.with_sigma(0.1))
    return fp.status is pv.theory.FixedPointStatus.INFINITE_ERROR


def noise_curves(
    laws: Iterable[str],
    designs: Iterable[str],
    lams: Iterable[float],
    sigmas: ArrayLike | None,
    *,
    n_features: int | None,
    points: int = 100,
) -> pl.DataFrame:
    """State evolution against the noise level, one row per point.

    Without `sigmas`, each curve runs from 0.001 to 0.999 of its critical noise level: a quarter of
    the points below 0.1 of it. With `n_features` None it is the limit of infinitely many columns.
    """
    few = points // 4
    low = np.geomspace(1e-3, 0.1, few, endpoint=False)
    fractions = np.concatenate([low, np.geomspace(0.1, 0.999, points - few)])
    parts = []
    for law, design, lam in product(laws, designs, lams):
        noise, levels = LOOKS[design].noise, sigmas
        if levels is None:
            levels = pv.critical_noise(model(law), lam, noise, n_features=n_features) * fractions
        curve = pv.tradeoff(model(law), lam, noise, levels, n_features=n_features)
        parts.append(_named(curve, law, design, n_features))
    return pl.concat(parts)


def grid(
    laws: Iterable[str],
    designs: Iterable[str],
    lams: ArrayLike,
    sigmas: ArrayLike,
    *,
    n_features: int | None,
) -> pl.DataFrame:
    """State evolution at every pair of λ and σ_η, one row per pair."""
    parts = []
    for law, design in product(laws, designs):
        noise = LOOKS[design].noise
        rows = pv.phase_diagram(model(law), lams, noise, sigmas, n_features=n_features)
        parts.append(_named(rows, law, design, n_features))
    return pl.concat(parts)


def _named(curve: pl.DataFrame, law: str, design: str, n_features: int | None) -> pl.DataFrame:
    count = pl.lit(n_features, dtype=pl.Int64)
    return named(curve, "law design n_features", law=law, design=design, n_features=count)


def frontier(curve: pl.DataFrame, measure: str) -> tuple[FloatArray, FloatArray]:
    """Leakage and E of a trade-off, up to the noise of least leakage; more noise raises both.

    The least leakage comes first.
    """
    curve = curve.filter(curve["status"] == "stable").sort("sigma")
    last = int(np.argmin(curve[measure].to_numpy()))
    leakage, E = (curve[name].to_numpy()[: last + 1] for name in (measure, "E"))
    order = np.argsort(leakage)
    return leakage[order], E[order]


def error_at(level: ArrayLike, leakage: FloatArray, E: FloatArray) -> FloatArray:
    """E of a frontier at a leakage, interpolated in logarithms."""
    return np.exp(np.interp(np.log(level), np.log(leakage), np.log(E)))


@dataclass(frozen=True)
class Comparison:
    """Design `a` against design `b` for one law and λ, at equal leakage."""

    ratio: FloatArray
    """Error of `a` over that of `b`, from the least leakage that both reach upwards."""
    reach: float
    """Least leakage of `a` over that of `b`; below 1, `a` reaches a smaller leakage."""
    tie: float
    """Relative difference up to which the two count as equal."""

    @property
    def best(self) -> float:
        """Smallest ratio of the errors."""
        return float(self.ratio.min())

    @property
    def worst(self) -> float:
        """Largest ratio of the errors."""
        return float(self.ratio.max())

    @property
    def word(self) -> str:
        """One of "better", "equal", "worse", "mixed" for `a`; differences up to `tie` are ties."""
        ahead = min(self.best, self.reach) < 1.0 - self.tie
        behind = max(self.worst, self.reach) > 1.0 + self.tie
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
    low = max(first[0][0], second[0][0])
    levels = np.geomspace(low, RANGE * low, LEVELS)
    ratio = error_at(levels, *first) / error_at(levels, *second)
    return Comparison(ratio, float(first[0][0] / second[0][0]), tie)


def slope(x: ArrayLike, y: ArrayLike) -> float:
    """Exponent of the power law that fits the points best, by least squares in logarithms."""
    return float(np.polyfit(np.log(np.asarray(x)), np.log(np.asarray(y)), 1)[0])
