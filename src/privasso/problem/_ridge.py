"""The quadratic penalty ½xᵀQx, and the norm in which it measures gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import nullcontext
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from privasso._blas import threads_for
from privasso._validation import real_array
from privasso.noise import Covariance, Diagonal
from privasso.operators import Enclosed, Operator, as_operator, two_product

_UNIT = 2.0**-53
#: Columns from which on it matters how many threads BLAS uses.
_LARGE = 500


class DualNorm:
    """The norm of K⁻¹ = SXᵀXS, S = diag(K)^(−½) and X the inverse of the Cholesky factor of SKS.

    SKS has a unit diagonal, so that the scales of the columns do not matter. The norm is raised by
    bounds on the rounding of the factor, of its inverse and of the product.

    `K` (n, n): symmetric. `uncertainty` (n,): the true matrix differs from K by at most
    √(uncertainty_i · uncertainty_j) in entry (i, j).

    Raises `ValueError` if K is not positive definite, or too close to singular for double
    precision.
    """

    def __init__(self, K: np.ndarray, uncertainty: np.ndarray | None = None) -> None:
        from scipy.linalg import solve_triangular

        n = len(K)
        diagonal = np.diag(K)
        if not np.all((diagonal > 0) & np.isfinite(diagonal)):
            raise ValueError("the matrix is not positive definite")
        self._scale = np.sqrt(diagonal)
        unit = K / self._scale / self._scale[:, None]
        try:
            with threads_for(n**3 / 3) if n > _LARGE else nullcontext():
                L = np.linalg.cholesky(unit)
                self._X = solve_triangular(L, np.eye(n), lower=True)
        except np.linalg.LinAlgError:
            raise ValueError("the matrix is not positive definite") from None
        #: 1/`size`² is at most the smallest eigenvalue of SKS.
        self.size = float(np.linalg.norm(self._X)) * (1 + 1e-6)
        # Scaling moves each entry by at most 4u, and the factor reproduces the matrix to γ_{n+1}.
        lost = 1.1 * _UNIT * n * (n + 8)
        if uncertainty is not None:
            lost += float(np.sum(uncertainty / diagonal)) * (1 + 1e-6)
        lost *= self.size**2
        if not lost < 0.5:
            raise ValueError("the matrix is too close to singular for double precision")
        self.inflation = 1.0 / float(np.sqrt(1.0 - lost))

    def __call__(self, v: np.ndarray, error: np.ndarray) -> float:
        """Upper bound of ‖a‖_{K⁻¹} over all a within `error` of v, entry by entry."""
        n = v.size
        v, error = v / self._scale, error / self._scale
        spread = np.abs(self._X)
        gamma = 1.1 * (n + 8) * _UNIT
        # |computed Xv − exact| ≤ γ|X||L||X||v| from the inverse, and γ|X||v| from the product.
        rounding = gamma * (2.0 + float(np.sqrt(n)) * self.size) * norm(spread @ np.abs(v))
        total = norm(self._X @ v) + norm(spread @ error) + rounding
        return total * self.inflation * (1 + 8 * gamma)


def norm(v: np.ndarray) -> float:
    """‖v‖₂ without overflow or underflow of the squares."""
    largest = float(np.max(np.abs(v), initial=0.0))
    if largest == 0.0 or not np.isfinite(largest):
        return largest
    return largest * float(np.linalg.norm(v / largest))


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


def as_ridge(ridge: ArrayLike | Covariance | Ridge, n: int) -> Ridge:
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
