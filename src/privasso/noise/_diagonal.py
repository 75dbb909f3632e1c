"""Independent noise on each column."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privasso.noise._covariance import Covariance, FloatArray


class Diagonal(Covariance):
    """Σ = diag(variances): independent noise on each column. A variance may be zero."""

    def __init__(self, variances: ArrayLike) -> None:
        self._d: FloatArray = np.asarray(variances, dtype=np.float64)
        if self._d.ndim != 1 or not np.all((self._d >= 0.0) & np.isfinite(self._d)):
            raise ValueError("variances must be a vector of finite numbers, zero or more")

    @property
    def size(self) -> int:
        return self._d.size

    @property
    def diagonal(self) -> FloatArray:
        return self._d

    @property
    def precisions(self) -> FloatArray:
        with np.errstate(divide="ignore"):
            return 1.0 / self._d

    def matrix(self) -> FloatArray:
        return np.diag(self._d)

    def scaled(self, factor: float) -> Diagonal:
        return Diagonal(factor * self._d)

    def restricted(self, take: NDArray[np.intp]) -> Diagonal:
        return Diagonal(self._d[take])

    def embedded(self, live: NDArray[np.bool_]) -> Diagonal:
        everywhere = np.zeros(live.size)
        everywhere[live] = self._d
        return Diagonal(everywhere)

    def colour(self, z: FloatArray) -> FloatArray:
        return (z.T * self.sigma).T

    def whiten(self, a: FloatArray) -> FloatArray:
        return _divided(a, self.sigma)

    @property
    def whitener(self) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.where(self._d > 0.0, 1.0 / self.sigma, 0.0)

    def row_norms(self, F: FloatArray) -> FloatArray:
        if np.all(self._d > 0.0):
            return np.sqrt((F * F) @ (1.0 / self._d))
        return super().row_norms(F)

    def propagated(self, J: FloatArray) -> FloatArray:
        return (J * J) @ self._d

    def trace(self, W: FloatArray | None = None) -> float:
        return float(np.sum(self._d) if W is None else np.diag(W) @ self._d)

    def trace_of_square(self, J: FloatArray) -> float:
        return float(self._d @ (J * J) @ self._d)


def _divided(a: FloatArray, sigma: FloatArray) -> FloatArray:
    """A with row i divided by σ_i; 0/0 is 0, and other numbers divided by 0 are infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        out = (a.T / sigma).T
    return np.where(a == 0.0, 0.0, out)
