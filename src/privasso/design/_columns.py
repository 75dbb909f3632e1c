"""Columns that stand for all of them while a design is searched, and families of noise profiles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privasso.noise import NoiseDesign, PowerLaw, Tabulated
from privasso.scales import Constant, Empirical, ScaleLaw
from privasso.theory import with_scale_error

FloatArray = NDArray[np.float64]

#: Nodes of a law without small columns: enough for 1e-5 in E and OnAveKL, which moves an optimum by
#: far less than matters. The numbers that are reported come from `state_evolution`.
_NODES = 48
#: Nodes of a law with scales down to zero.
_TAIL_NODES = 128
#: More columns than this are merged in bins of equal width in log v...
_MANY = 160
#: ...except for so many of the smallest and of the largest, each of which may matter by itself.
_ENDS = 16
#: Nodes of the error of a scale, and their range in standard deviations.
_ERROR_NODES = (19, 7.0)


class SearchColumns(NamedTuple):
    """Squared scales v, weights w that sum to 1, and log v̂ of the scales that the noise sees."""

    v: FloatArray
    w: FloatArray
    log_seen: FloatArray


@lru_cache(maxsize=32)
def search_columns(
    scales: ScaleLaw, n_features: int | None, scale_error: float = 0.0
) -> SearchColumns:
    """Columns to search a design on, for so many features or for the limit of many.

    With an error τ of the scales the noise sees v̂ = v e^(τZ), Z standard normal, in place of v.
    """
    v, w = _columns(scales, n_features)
    order = np.argsort(v)
    v, w = v[order], w[order]
    if scale_error == 0.0:
        return SearchColumns(v, w, np.log(v))
    v, w, seen = with_scale_error(v, w, scale_error, *_ERROR_NODES)
    return SearchColumns(v, w, np.log(seen))


def _columns(scales: ScaleLaw, n_features: int | None) -> tuple[FloatArray, FloatArray]:
    if n_features is not None:
        v = scales.quantiles(n_features) ** 2
        return _merged(v, np.full(v.size, 1.0 / v.size))
    if isinstance(scales, (Empirical, Constant)):
        return _merged(*scales.quadrature(1))
    if scales.quantile([0.0])[0] == 0.0 and np.isfinite(scales.quantile([1.0])[0]):
        # There are columns down to v = 0, and they may carry much of the noise.
        return scales.tail_quadrature(_TAIL_NODES)
    return scales.quadrature(_NODES)


def _merged(v: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Columns in increasing order of v, merged in bins if there are many."""
    if v.size <= _MANY:
        return v, w
    x = np.log(v)
    middle = slice(_ENDS, v.size - _ENDS)
    edges = np.linspace(x[_ENDS], x[-_ENDS - 1], _MANY - 2 * _ENDS + 1)
    bins = np.clip(np.searchsorted(edges, x[middle], side="right") - 1, 0, edges.size - 2)
    weight: FloatArray = np.bincount(bins, w[middle]).astype(np.float64)
    mean = np.bincount(bins, w[middle] * x[middle])
    mean, weight = mean[weight > 0.0] / weight[weight > 0.0], weight[weight > 0.0]
    return (
        np.concatenate([v[:_ENDS], np.exp(mean), v[-_ENDS:]]),
        np.concatenate([w[:_ENDS], weight, w[-_ENDS:]]),
    )


FAMILIES = ("power", "free")
#: Fraction of the columns below each knot of the free family.
_KNOTS = (0.003, 0.03, 0.12, 0.3, 0.5, 0.7, 0.88, 0.97, 0.997)


@dataclass(frozen=True, eq=False)
class Family:
    """log σ_η²(v) = const + Σ_j θ_j B_j(log v), with B_1 = log v − centre.

    Without knots there is B_1 alone: a power of v, with the exponent θ_1. With K knots the
    profile is any natural cubic spline in log v, which is a power of v beyond the outer knots;
    the constant aside it has K − 1 parameters, and θ_1 alone is again a power.
    """

    centre: float
    knots: FloatArray
    mix: FloatArray
    """Combinations of the curved members of the spline basis."""
    line: FloatArray
    """Straight lines in log v − centre to subtract from them, as columns (offset, slope)."""

    @property
    def size(self) -> int:
        """Number of parameters."""
        return 1 + self.mix.shape[1]

    def basis(self, log_v: FloatArray) -> FloatArray:
        """B, one column per parameter."""
        x = (log_v - self.centre)[:, None]
        if self.size == 1:
            return x
        lines = np.hstack([np.ones_like(x), x]) @ self.line
        return np.hstack([x, _curved(log_v, self.knots) @ self.mix - lines])

    @property
    def low_exponent(self) -> FloatArray:
        """Coefficients of θ in the power of v that the profile follows towards v = 0."""
        if self.size == 1:
            return np.ones(1)
        below, knot = self.basis(self.knots[0] - np.array([1.0, 0.0]))
        return knot - below

    def noise(self, sigma: float, theta: FloatArray) -> NoiseDesign:
        """Return the noise design with these parameters."""
        if self.size == 1:
            return PowerLaw(sigma, float(theta[0]))
        # A table interpolates by the same natural cubic spline, so its nodes are the knots.
        return Tabulated(sigma, tuple(self.knots), tuple(self.basis(self.knots) @ theta))

    @staticmethod
    def powers(centre: float = 0.0) -> Family:
        """Return the family without knots."""
        return Family(centre, np.zeros(0), np.zeros((0, 0)), np.zeros((2, 0)))


def free_family(columns: SearchColumns) -> Family:
    """Return the family of all smooth profiles, with knots at quantiles of the columns."""
    x, w = columns.log_seen, columns.w
    centre = float(w @ x)
    order = np.argsort(x)
    below = np.cumsum(w[order]) - 0.5 * w[order]
    knots = np.interp(_KNOTS, below, x[order])
    # Few distinct scales need few knots: no two closer than a hundredth of the range.
    apart = 0.01 * (knots[-1] - knots[0])
    kept = [knots[0]]
    for knot in knots[1:]:
        if knot - kept[-1] > max(apart, 1e-6):
            kept.append(knot)
    knots = np.array(kept)
    if knots.size < 3:
        return Family.powers(centre)
    # Curved directions made orthonormal over the columns and free of any straight part, so that
    # all parameters act with comparable strength.
    curved = _curved(x, knots)
    root = np.sqrt(w)[:, None]
    straight = root * np.stack([np.ones_like(x), x - centre], axis=1)
    line = np.linalg.lstsq(straight, root * curved, rcond=None)[0]
    _, sizes, vt = np.linalg.svd(root * curved - straight @ line, full_matrices=False)
    useful = sizes > 1e-6 * sizes[0]
    mix = vt[useful].T / sizes[useful]
    return Family(centre, knots, mix, line @ mix)


def _curved(x: FloatArray, knots: FloatArray) -> FloatArray:
    """The curved members of the basis of natural cubic splines, K − 2 of them."""
    k = knots / (knots[-1] - knots[0])
    x = x / (knots[-1] - knots[0])

    def part(j: int) -> FloatArray:
        last = np.maximum(x - k[-1], 0.0) ** 3
        return (np.maximum(x - k[j], 0.0) ** 3 - last) / (k[-1] - k[j])

    end = part(k.size - 2)
    return np.stack([part(j) - end for j in range(k.size - 2)], axis=1)
