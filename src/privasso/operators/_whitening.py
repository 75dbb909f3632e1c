"""Rows in units of a noise, each by itself: Σ^(−½)(x − mean) does not depend on the other rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit

from privasso.noise import Covariance

#: Entries that are worked on at a time; they stay in cache.
_BLOCK = 1 << 16
#: Rows for which an entry of the matrix is read once.
_TILE = 8


@dataclass(frozen=True, eq=False)
class Whitening:
    """x ↦ Σ^(−½)(x − mean) over the live columns, the same to the last bit in every block of rows.

    Attributes
    ----------
    mean : ndarray of shape (N,)
        Of all columns.
    live : ndarray of int
        The columns of Σ.
    matrix : ndarray of shape (number of live columns, rank) or (number of live columns,)
        The transpose of Σ^(−½), or its diagonal for independent noise.
    """

    mean: np.ndarray = field(repr=False)
    live: np.ndarray = field(repr=False)
    matrix: np.ndarray = field(repr=False)

    @staticmethod
    def of(covariance: Covariance, mean: np.ndarray, live: np.ndarray) -> Whitening:
        """That of a covariance over the live columns, which are given by a mask."""
        matrix = np.ascontiguousarray(covariance.whitener.T)
        return Whitening(mean, np.flatnonzero(live), matrix)

    @property
    def rank(self) -> int:
        """Entries of a whitened row."""
        return self.matrix.shape[-1]

    def rows(self, X: Any) -> Iterator[tuple[slice, np.ndarray]]:
        """Whitened rows, some at a time; X may have further columns, and be sparse."""
        n = self.mean.size
        step = max(1, _BLOCK // max(n, 1))
        for start in range(0, X.shape[0], step):
            span = slice(start, min(start + step, X.shape[0]))
            part = X[span]
            part = part.toarray() if sp.issparse(part) else part
            centred = np.asarray(part[:, :n], dtype=np.float64) - self.mean
            if self.live.size < n:
                centred = centred[:, self.live]
            if self.matrix.ndim == 1:
                yield span, centred * self.matrix
                continue
            white = np.zeros((len(centred), self.rank))
            _multiply(np.ascontiguousarray(centred), self.matrix, white)
            yield span, white


@njit(cache=True, nogil=True)
def _multiply(rows, matrix, out):  # pragma: no cover
    """Add rows·matrix to `out`; each entry is summed in the order of the columns."""
    m, n = rows.shape
    for first in range(0, m, _TILE):
        last = min(first + _TILE, m)
        j = 0
        while j + 4 <= n:
            a, b, c, d = matrix[j], matrix[j + 1], matrix[j + 2], matrix[j + 3]
            for i in range(first, last):
                w, x, y, z = rows[i, j], rows[i, j + 1], rows[i, j + 2], rows[i, j + 3]
                to = out[i]
                for k in range(to.size):
                    to[k] = (((to[k] + w * a[k]) + x * b[k]) + y * c[k]) + z * d[k]
            j += 4
        while j < n:
            a = matrix[j]
            for i in range(first, last):
                w, to = rows[i, j], out[i]
                for k in range(to.size):
                    to[k] += w * a[k]
            j += 1
