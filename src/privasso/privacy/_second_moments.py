"""The matrix Σ h hᵀ of bounded rows, in integers, with Gaussian noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from privasso.queries import ROUNDING, BitSource, noise_deviation, noisy_integers

#: Rows are rounded to integers with entries up to about 2^17.
_BITS = 17
#: Rows per block: products of a block are sums of integers below 2^53.
_BLOCK = 1 << 15
#: More rows would not fit 64 bits.
_MOST_ROWS = 1 << 27


@dataclass(frozen=True, eq=False)
class SecondMoments:
    """Noisy Σ_μ h_μ h_μᵀ; the guarantee covers it.

    Attributes
    ----------
    matrix : ndarray of shape (d, d)
        Symmetric; it need not be positive.
    sigma : float
        Standard deviation of the noise on the diagonal; √½ times that elsewhere.
    n_rows : int
        Number of rows.

    Examples
    --------
    >>> SecondMoments(np.eye(2), sigma=0.1, n_rows=100).n_rows
    100
    """

    matrix: np.ndarray = field(repr=False)
    sigma: float
    n_rows: int

    @classmethod
    def release(cls, H: np.ndarray, radius: float, mu: float, bits: BitSource) -> SecondMoments:
        """Sum with noise, such that one row changes the matrix by μ deviations at most.

        A row adds h hᵀ, whose Frobenius norm is ‖h‖² ≤ R². The entries above the diagonal count
        twice in that norm, so that √½ of the noise is enough for them. Rows are rounded to
        integers, which makes them longer by √d/2 at most.

        Parameters
        ----------
        H : ndarray of shape (M, d)
            Rows, none longer than the radius, which must be certain.
        radius : float
            R.
        mu : float
            Sensitivity in deviations of the noise.
        bits : BitSource
            Source of the noise.

        Examples
        --------
        >>> from privasso.queries import bit_source
        >>> H = np.random.default_rng(0).uniform(-1.0, 1.0, (50_000, 2))
        >>> found = SecondMoments.release(H, 1.5, 0.5, bit_source(np.random.default_rng(1)))
        >>> bool(np.abs(found.matrix - H.T @ H).max() < 4 * found.sigma), round(found.sigma, 2)
        (True, 4.5)
        """
        m, d = H.shape
        if m >= _MOST_ROWS:
            raise ValueError(f"at most {_MOST_ROWS - 1} rows can be summed without rounding")
        unit = _BITS - math.ceil(math.log2(radius))
        longest = (math.ldexp(radius, unit) + 0.5 * math.sqrt(d)) * ROUNDING
        deviation = noise_deviation(longest**2, mu)
        exact = integer_products(H, unit)
        above = np.triu_indices(d, 1)
        noisy = np.zeros((d, d))
        noisy[above] = noisy_integers(
            exact[above], noise_deviation(longest**2 / math.sqrt(2.0), mu), 2 * unit, bits
        )
        noisy += noisy.T
        np.fill_diagonal(noisy, noisy_integers(np.diag(exact), deviation, 2 * unit, bits))
        return cls(noisy, math.ldexp(deviation, -2 * unit), m)

    @property
    def spread(self) -> float:
        """The size of the largest eigenvalue of the noise alone, σ√(2d)."""
        return self.sigma * math.sqrt(2.0 * len(self.matrix))


def integer_products(H: np.ndarray, unit: int) -> np.ndarray:
    """KᵀK of the integers K = rint(2^unit H), exactly.

    Examples
    --------
    >>> integer_products(np.array([[0.5, 1.0], [0.25, -1.0]]), 2).tolist()
    [[5, 4], [4, 32]]
    """
    total = np.zeros((H.shape[1],) * 2, dtype=np.int64)
    for start in range(0, H.shape[0], _BLOCK):
        K = np.rint(np.ldexp(H[start : start + _BLOCK], unit))
        # Sums of integers below 2^53 are exact in any order.
        total += (K.T @ K).astype(np.int64)
    return total
