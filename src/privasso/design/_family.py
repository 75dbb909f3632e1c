"""Families of noise profiles: log σ_η²(v) as a linear function of a few parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privasso.design._columns import SearchColumns
from privasso.noise import NoiseDesign, PowerLaw, Tabulated

FloatArray = NDArray[np.float64]

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
