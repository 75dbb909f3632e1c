"""Sums of residuals over rows, the same for any cut and order of the rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numba import njit

from privasso.blocks import Sums
from privasso.privacy._label_level import Level
from privasso.solvers import Prepare

#: Entries of rows that are worked on at a time.
_BLOCK = 1 << 18
#: A sum is kept in two parts, so that no number of blocks overflows.
_HALF = 32


@dataclass(frozen=True, eq=False)
class ResidualPass:
    """The sum of clipped residuals of fitted rows, as a function that can be sent to the data.

    Attributes
    ----------
    level : Level
        How residuals become integers.
    prepare : callable or None
        Turns records into rows and labels; None where they are that already.
    """

    level: Level
    prepare: Prepare | None = field(default=None)

    def __call__(self, chunks: Iterable[tuple[np.ndarray, np.ndarray]], u: np.ndarray) -> Sums:
        """Return the sum over these chunks for coefficients u, the intercept last."""
        total, step = np.zeros(2, dtype=np.int64), max(1, _BLOCK // u.size)
        for X, y in chunks:
            for start in range(0, len(y), step):
                stop = min(start + step, len(y))
                if self.prepare is None:
                    G, labels = X[start:stop], y[start:stop]
                else:
                    G, labels = self.prepare(X, y, start, stop)
                total += halves(self.level.total(full_residuals(G, labels, u)))
        return {"total": total}


def halves(total: int) -> np.ndarray:
    """A large integer in two parts, which can be added up separately.

    >>> whole(halves(-(2**70)) + halves(5)) == 5 - 2**70
    True
    """
    return np.array([total & ((1 << _HALF) - 1), total >> _HALF], dtype=np.int64)


def whole(parts: np.ndarray) -> int:
    """The integer from sums of its parts."""
    low, high = parts.tolist()
    return low + (high << _HALF)


def ordered_residuals(
    X: np.ndarray, y: np.ndarray, coef: np.ndarray, intercept: float
) -> np.ndarray:
    """Residuals y − X @ coef − intercept, the same to the last bit for a row in any block.

    >>> ordered_residuals(np.eye(2), np.ones(2), np.array([0.5, 2.0]), 0.25)
    array([ 0.25, -1.25])
    """
    residuals = np.array(y, dtype=np.float64)
    _subtract(X, coef, residuals)
    residuals -= intercept
    return residuals


def full_residuals(G: np.ndarray, labels: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Residuals of records before their rows and labels were shrunk; NaN for empty records.

    The last entry of a row is the factor by which it was shrunk, because it was 1.

    Examples
    --------
    >>> full_residuals(np.array([[1.0, 1.0], [0.5, 0.25]]), np.ones(2), np.array([0.5, 0.0]))
    array([0.5, 3. ])
    """
    residuals = np.array(labels, dtype=np.float64)
    _subtract(G, u, residuals)
    factor = G[:, -1]
    return np.divide(residuals, factor, out=np.full(residuals.size, np.nan), where=factor > 0.0)


@njit(nogil=True, cache=True)
def _subtract(G, u, residuals):  # pragma: no cover
    """Subtract each product in the order of the columns, whatever the storage."""
    for j in range(u.size):
        for i in range(residuals.size):
            residuals[i] -= G[i, j] * u[j]
