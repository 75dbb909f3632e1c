"""The quadratic penalty ½xᵀQx, and the norm in which it measures gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np

from privasso._validation import real_array
from privasso.noise import Covariance, Diagonal
from privasso.operators import Enclosed, Operator, as_operator, two_product
from privasso.problem._dual_norm import DualNorm, norm

_UNIT = 2.0**-53
#: More than rounding makes of a sum of squares.
_SLACK = 1 + 1e-6


class Ridge(ABC):
    """A symmetric positive definite matrix Q over the columns of F."""

    @property
    @abstractmethod
    def diagonal(self) -> np.ndarray:
        """Q_ii."""

    @abstractmethod
    def matvec(self, x: np.ndarray) -> np.ndarray:
        """Qx."""

    @abstractmethod
    def matvec_enclosed(self, x: np.ndarray) -> Enclosed:
        """Qx with a bound on its rounding error."""

    @abstractmethod
    def submatrix(self, take: np.ndarray) -> np.ndarray:
        """Q[take][:, take] as an array of its own."""

    @abstractmethod
    def dual_norm(self, v: np.ndarray, error: np.ndarray) -> float:
        """Upper bound of ‖a‖ = √(aᵀQ⁻¹a) over all a within `error` of v, entry by entry."""

    @abstractmethod
    def reach(self, squares: np.ndarray) -> float:
        """Upper bound of ‖Fδ‖/‖δ‖_Q over all δ, given the squared column norms of F."""

    @property
    def size(self) -> int:
        """Number of columns."""
        return self.diagonal.size


class DiagonalRidge(Ridge):
    """Q = diag(d)."""

    def __init__(self, d: np.ndarray) -> None:
        if not np.all((d > 0) & np.isfinite(d)):
            raise ValueError("ridge must be positive for every column")
        self._d = d

    @property
    def diagonal(self) -> np.ndarray:
        return self._d

    def matvec(self, x: np.ndarray) -> np.ndarray:
        return self._d * x

    def matvec_enclosed(self, x: np.ndarray) -> Enclosed:
        value, low = two_product(self._d, x)
        return Enclosed(value, low, np.full_like(value, 2.0**-1060))

    def submatrix(self, take: np.ndarray) -> np.ndarray:
        return np.diag(self._d[take])

    def dual_norm(self, v: np.ndarray, error: np.ndarray) -> float:
        size = (np.abs(v) + error) / np.sqrt(self._d)
        return norm(size) * (1 + 4 * (v.size + 8) * _UNIT)

    def reach(self, squares: np.ndarray) -> float:
        return float(np.sqrt(np.sum(squares / self._d))) * _SLACK


class FullRidge(Ridge):
    """Q given as a whole."""

    def __init__(self, Q: np.ndarray) -> None:
        if Q.shape[0] != Q.shape[1] or not np.array_equal(Q, Q.T):
            raise ValueError("ridge must be a symmetric matrix; use (Q + Q.T) / 2")
        if not np.all(np.diag(Q) > 0):
            raise ValueError("ridge must be positive definite")
        self._Q = np.ascontiguousarray(Q)
        self._op: Operator = as_operator(self._Q)

    @property
    def diagonal(self) -> np.ndarray:
        return np.diag(self._Q)

    def matvec(self, x: np.ndarray) -> np.ndarray:
        support = np.flatnonzero(x)
        if support.size < x.size // 2:
            return x[support] @ self._Q[support]
        return self._Q @ x

    def matvec_enclosed(self, x: np.ndarray) -> Enclosed:
        return self._op.matvec_enclosed(x)

    def submatrix(self, take: np.ndarray) -> np.ndarray:
        return self._Q[np.ix_(take, take)]

    @cached_property
    def _norm(self) -> DualNorm:
        try:
            return DualNorm(self._Q)
        except ValueError as error:
            raise ValueError(
                "ridge must be positive definite, with eigenvalues well above rounding; add a "
                "multiple of its diagonal to it"
            ) from error

    def dual_norm(self, v: np.ndarray, error: np.ndarray) -> float:
        return self._norm(v, error)

    def reach(self, squares: np.ndarray) -> float:
        inverse = (self._norm.size * self._norm.inflation) ** 2
        return float(np.sqrt(np.sum(squares / self.diagonal) * inverse)) * _SLACK


def as_ridge(ridge: Any, n: int) -> Ridge:
    """Q from a number (times the identity), a diagonal, a matrix or a `Covariance`."""
    if not isinstance(ridge, Ridge):
        if isinstance(ridge, Diagonal):
            ridge = ridge.diagonal
        elif isinstance(ridge, Covariance):
            full = ridge.matrix()
            ridge = (full + full.T) / 2
        array = real_array("ridge", ridge)
        if array.ndim == 0:
            array = np.full(n, float(array))
        ridge = DiagonalRidge(array) if array.ndim == 1 else FullRidge(array)
    if ridge.size != n:
        raise ValueError(f"ridge has {ridge.size} columns, F has {n}")
    return ridge
