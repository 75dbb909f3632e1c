"""Leading principal components of public covariates."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from privasso._blas import one_thread
from privasso._types import Matrix
from privasso.programs import column_blocks

#: A column with less than this part of its mean as deviation holds nothing but rounding.
_CONSTANT = 1e-6
#: Largest entry of a column in units of its scale.
_LARGEST = 4.0
#: Directions beyond those that are wanted, and products with the covariates, that make the
#: leading ones accurate.
_BEYOND, _TIMES = 20, 4


@dataclass(frozen=True, eq=False)
class PrincipalComponents:
    """Scores and directions of standardised columns Z, the largest first.

    - `mean`, `scale` (N,): of the columns; the scale of a constant column is infinite.
    - `directions` (N, D): weights of the standardised columns in each score.
    - `scores` (M, D): Z times the directions: mean zero, mean square one, uncorrelated.
    - `shares` (D,): part of the variance of all standardised columns that lies along each.
    - `rank`: largest number of components that there can be.
    """

    mean: np.ndarray = field(repr=False)
    scale: np.ndarray = field(repr=False)
    directions: np.ndarray = field(repr=False)
    scores: np.ndarray = field(repr=False)
    shares: np.ndarray = field(repr=False)
    rank: int

    @classmethod
    def of(cls, X: Matrix, most: int) -> PrincipalComponents:
        """Find at most so many components, by subspace iteration from a fixed start.

        They need not be accurate to many digits: what is done with them depends on the covariates
        alone, whatever they are.
        """
        Z, mean, scale = standardised(X)
        m, n = Z.shape
        live = int(np.isfinite(scale).sum())
        rank = min(m - 1, live)
        wanted = min(most, rank)
        with one_thread():
            width = min(wanted + _BEYOND, m, n)
            basis = np.random.default_rng(0).standard_normal((n, width)).astype(np.float32)
            for _ in range(_TIMES):
                basis = np.linalg.qr(Z.T @ np.linalg.qr(Z @ basis)[0])[0]
            left, sizes, right = np.linalg.svd((Z @ basis).astype(np.float64), full_matrices=False)
        kept = min(wanted, int(np.sum(sizes > 1e-4 * sizes[0]))) if live else 0
        directions = basis.astype(np.float64) @ right[:kept].T * (np.sqrt(m) / sizes[:kept])
        shares = sizes[:kept] ** 2 / max(float(np.sum(Z**2, dtype=np.float64)), 1e-300)
        return cls(mean, scale, directions, np.sqrt(m) * left[:, :kept], shares, rank)

    @property
    def count(self) -> int:
        """Number of components."""
        return self.shares.size

    def first(self, count: int) -> PrincipalComponents:
        """The first so many of them."""
        return replace(
            self,
            directions=self.directions[:, :count],
            scores=self.scores[:, :count],
            shares=self.shares[:count],
        )

    def coefficients(self, weights: np.ndarray) -> np.ndarray:
        """Coefficients of the columns that predict the same as weights of the scores.

        They predict what differs from the mean.
        """
        return (self.directions @ weights) / self.scale


def standardised(X: Matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centred columns in single precision, their means, and the scales they are divided by.

    The scale is the deviation, or a quarter of the largest entry if that is more, so that levels
    and words that are rare do not count as much as others. A constant column becomes zeros, and
    its scale infinite.
    """
    m, n = X.shape
    Z, mean, scale = np.empty((m, n), dtype=np.float32), np.empty(n), np.empty(n)
    for span, block in column_blocks(X):
        middle = block.mean(axis=0)
        block -= middle
        size = np.sqrt(np.mean(block**2, axis=0))
        size = np.maximum(size, np.max(np.abs(block), axis=0) / _LARGEST)
        size = np.where(size > _CONSTANT * np.abs(middle), size, np.inf)
        Z[:, span], mean[span], scale[span] = block / size, middle, size
    return Z, mean, scale
