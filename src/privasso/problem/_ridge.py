"""The quadratic penalty ½xᵀQx, and the norm in which it measures gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np

from privasso._blas import threads_for
from privasso._validation import real_array
from privasso.noise import Covariance, Diagonal
from privasso.operators import Enclosed, Operator, as_operator

_UNIT = 2.0**-53


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
        """Upper bound of ‖a‖ = √(aᵀQ⁻¹a) over all a with |a − v| ≤ error, entry by entry."""

    @property
    def size(self) -> int:
        """Number of columns."""
        return self.diagonal.size


class DiagonalRidge(Ridge):
    """Q = diag(d).

    Examples
    --------
    >>> import numpy as np
    >>> ridge = DiagonalRidge(np.array([4.0, 1.0]))
    >>> round(ridge.dual_norm(np.array([2.0, 0.0]), np.zeros(2)), 12)
    1.0
    """

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
        value = self._d * x
        return Enclosed(value, np.zeros_like(value), _UNIT * np.abs(value) + 2.0**-1070)

    def submatrix(self, take: np.ndarray) -> np.ndarray:
        return np.diag(self._d[take])

    def dual_norm(self, v: np.ndarray, error: np.ndarray) -> float:
        size = (np.abs(v) + error) / np.sqrt(self._d)
        return _norm(size) * (1 + 4 * (v.size + 8) * _UNIT)


class FullRidge(Ridge):
    """Q given as a whole.

    The norm needs Q⁻¹ = SXᵀXS with S = diag(Q)^(−½) and X the inverse of the Cholesky factor of
    SQS, which does not depend on the scales of the columns. Bounds on the rounding of the factor
    and of its inverse are part of `dual_norm`.

    Examples
    --------
    >>> import numpy as np
    >>> ridge = FullRidge(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> round(ridge.dual_norm(np.array([1.0, -1.0]), np.zeros(2)) ** 2, 12)
    2.0
    """

    def __init__(self, Q: np.ndarray) -> None:
        if Q.shape[0] != Q.shape[1] or not np.array_equal(Q, Q.T):
            raise ValueError("ridge must be a symmetric matrix; use (Q + Q.T) / 2")
        if not np.all(np.diag(Q) > 0):
            raise ValueError("ridge must be positive definite")
        self._Q = np.ascontiguousarray(Q)
        self._op: Operator = as_operator(self._Q)
        self._scale = np.sqrt(np.diag(Q))

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
    def _inverse(self) -> tuple[np.ndarray, float, float]:
        """X, the factor by which rounding of the factorisation may raise a norm, and ‖X‖."""
        from scipy.linalg import solve_triangular

        n = self.size
        correlation = self._Q / self._scale / self._scale[:, None]
        try:
            with threads_for(n**3 / 3):
                L = np.linalg.cholesky(correlation)
                X = solve_triangular(L, np.eye(n), lower=True)
        except np.linalg.LinAlgError:
            raise ValueError("ridge must be positive definite") from None
        size = float(np.linalg.norm(X))  # 1/size² is at most the smallest eigenvalue
        # Scaling moves each entry by at most 4u, the factor reproduces the matrix to γ_{n+1}.
        lost = 1.1 * _UNIT * n * (n + 6) * size**2
        if lost > 0.5:
            raise ValueError(
                "ridge is too close to singular for double precision; add a multiple of its "
                "diagonal to it"
            )
        return X, 1.0 / np.sqrt(1.0 - lost), size

    def dual_norm(self, v: np.ndarray, error: np.ndarray) -> float:
        X, inflation, size = self._inverse
        n = v.size
        v, error = v / self._scale, error / self._scale
        spread = np.abs(X)
        gamma = 1.1 * (n + 8) * _UNIT
        # |computed Xv − exact| ≤ γ|X||L||X||v| from the inverse, and γ|X||v| from the product.
        rounding = gamma * (2.0 + np.sqrt(n) * size) * _norm(spread @ np.abs(v))
        total = _norm(X @ v) + _norm(spread @ error) + rounding
        return total * inflation * (1 + 8 * gamma)


def as_ridge(ridge: Any, n: int) -> Ridge:
    """Q from a number (times the identity), a diagonal, a matrix or a `Covariance`.

    >>> import numpy as np
    >>> as_ridge(0.5, 2).diagonal, as_ridge(Diagonal([1.0, 2.0]), 2).diagonal
    (array([0.5, 0.5]), array([1., 2.]))
    """
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


def _norm(v: np.ndarray) -> float:
    """‖v‖₂ without overflow or underflow of the squares."""
    largest = float(np.max(v, initial=0.0))
    largest = max(largest, -float(np.min(v, initial=0.0)))
    if largest == 0.0 or not np.isfinite(largest):
        return largest
    return largest * float(np.linalg.norm(v / largest))
