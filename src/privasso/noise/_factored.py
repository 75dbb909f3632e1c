"""Noise that is correlated over the columns: a root of its covariance, or the whole matrix.

Noise whose covariance is a power of the covariance of the columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privasso._blas import one_thread
from privasso._validation import nonnegative_float, real_array, real_float, squarable
from privasso.noise._covariance import Covariance, FloatArray


class Factored(Covariance):
    """Σ = RRᵀ for a root R of shape (N, K) whose columns are linearly independent.

    With K < N the noise lies in a subspace. A vector outside it has an infinite norm, because the
    noise does not hide it.

    Examples
    --------
    >>> import numpy as np
    >>> from privasso.noise import Factored
    >>> noise = Factored(np.array([[1.0], [2.0]]))
    >>> noise.matrix()
    array([[1., 2.],
           [2., 4.]])
    >>> noise.row_norms(np.array([[2.0, 4.0], [1.0, 0.0]])).round(12)
    array([ 2., inf])
    """

    #: Part of a vector outside the range of R that counts as rounding.
    _OUTSIDE = 1e-8

    def __init__(self, root: ArrayLike) -> None:
        self._root: FloatArray = real_array("root", root, ndim=2)
        # Rows are brought to one size first: columns of the data may differ by many orders.
        size = np.sqrt(np.einsum("ij,ij->i", self._root, self._root))
        self._size: FloatArray = np.where(size > 0.0, size, 1.0)
        n, k = self._root.shape
        unit = self._root / self._size[:, None]
        self._triangular = n == k and not np.triu(unit, 1).any()
        with one_thread():
            self._basis, self._triangle = (None, unit) if self._triangular else np.linalg.qr(unit)
        pivots = np.abs(np.diag(self._triangle))
        if k > n or not np.min(pivots) > n * np.finfo(np.float64).eps * np.max(pivots):
            raise ValueError("root must have linearly independent columns, no more than rows")

    @property
    def whitener(self) -> FloatArray:
        """The left inverse of R: one product with it whitens many rows at once."""
        return self._whitener

    @cached_property
    def _whitener(self) -> FloatArray:
        from scipy.linalg import solve_triangular

        right = np.eye(self.size) if self._basis is None else self._basis.T
        with one_thread():
            found = solve_triangular(self._triangle, right, lower=self._triangular)
        return found / self._size

    @cached_property
    def triangular(self) -> Factored:
        """The same Σ with its lower triangular root, where it has full rank."""
        if self._triangular or self.rank < self.size:
            return self
        with one_thread():
            upper = np.asarray(np.linalg.qr((self._root / self._size[:, None]).T, mode="r"))
        return Factored(self._size[:, None] * (upper.T * np.sign(np.diag(upper))))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Factored:
        """Return the symmetric positive definite Σ given as a whole; R is its Cholesky factor.

        Examples
        --------
        >>> import numpy as np
        >>> from privasso.noise import Factored
        >>> noise = Factored.from_matrix([[2.0, 1.0], [1.0, 2.0]])
        >>> noise.row_norms(np.array([[1.0, -1.0]])).round(12) ** 2
        array([2.])
        """
        full = real_array("matrix", matrix, ndim=2)
        if full.shape[0] != full.shape[1] or not np.allclose(full, full.T, rtol=1e-10, atol=0.0):
            raise ValueError("matrix must be square and symmetric")
        try:
            return cls(np.linalg.cholesky(full))
        except np.linalg.LinAlgError:
            raise ValueError("matrix must be positive definite") from None

    @property
    def root(self) -> FloatArray:
        """R."""
        return self._root

    @property
    def size(self) -> int:
        return self._root.shape[0]

    @property
    def rank(self) -> int:
        return self._root.shape[1]

    @property
    def diagonal(self) -> FloatArray:
        return np.einsum("ij,ij->i", self._root, self._root)

    @property
    def precisions(self) -> FloatArray:
        white = self.whiten(np.eye(self.size))
        return np.einsum("ij,ij->j", white, white)

    def matrix(self) -> FloatArray:
        return self._root @ self._root.T

    def scaled(self, factor: float) -> Factored:
        if not factor > 0.0:
            return Factored(np.sqrt(factor) * self._root)
        other = object.__new__(Factored)
        other._root, other._size = np.sqrt(factor) * self._root, np.sqrt(factor) * self._size
        other._basis, other._triangle = self._basis, self._triangle
        other._triangular = self._triangular
        if "_whitener" in self.__dict__:
            other._whitener = self.whitener / np.sqrt(factor)
        return other

    def restricted(self, take: NDArray[np.intp]) -> Factored:
        part = self._root[take]
        return Factored.from_matrix(part @ part.T) if take.size < self.rank else Factored(part)

    def embedded(self, live: NDArray[np.bool_]) -> Factored:
        if live.all():
            return self
        root = np.zeros((live.size, self.rank))
        root[live] = self._root
        return Factored(root)

    def colour(self, z: FloatArray) -> FloatArray:
        return self._root @ z

    def whiten(self, a: FloatArray) -> FloatArray:
        out = self.whitener @ a
        if self.rank == self.size:
            return out
        assert self._basis is not None
        a = (a.T / self._size).T
        inside = self._basis.T @ a
        outside = np.sum(a * a, axis=0) - np.sum(inside * inside, axis=0)
        far = outside > self._OUTSIDE * np.sum(a * a, axis=0)
        return np.where(far, np.inf, out)

    def row_norms(self, F: FloatArray) -> FloatArray:
        """With a triangular root where there is one, which takes half of the multiplications."""
        if self.rank < self.size:
            return super().row_norms(F)
        from scipy.linalg import get_blas_funcs

        (times_triangle,) = get_blas_funcs(("trmm",), dtype=np.float64)
        white = times_triangle(1.0, self.triangular._inverse, F.T, lower=1)
        return np.sqrt(np.einsum("ij,ij->j", white, white))

    @cached_property
    def _inverse(self) -> FloatArray:
        return np.asfortranarray(self.whitener)

    def propagated(self, J: FloatArray) -> FloatArray:
        spread = J @ self._root
        return np.einsum("ij,ij->i", spread, spread)

    def trace(self, W: FloatArray | None = None) -> float:
        return float(np.sum(self._root * (self._root if W is None else W @ self._root)))

    def trace_of_square(self, J: FloatArray) -> float:
        inner = self._root.T @ J @ self._root
        return float(np.sum(inner * inner))


#: Eigenvalues of C below this part of the largest count as zero.
_ZERO = 1e-10


@dataclass(frozen=True)
class MatrixPower:
    """η ~ N(0, Σ) with Σ ∝ C^γ for columns of covariance C, and mean variance sigma².

    For independent columns it is the `PowerLaw` of the same γ. γ = 1 is the noise that independent
    noise on the labels makes of Fᵀy on average, γ = 2 (the full Gram matrix) that of noise on the
    coefficients, η = FᵀFu, and γ = 0 is isotropic.

    Parameters
    ----------
    sigma : float
        Root of the mean variance over the columns, zero or more.
    gamma : float
        γ. If it is negative, C must have full rank.

    Examples
    --------
    >>> from privasso.noise import MatrixPower
    >>> MatrixPower(1.0, gamma=2.0).covariance([[1.0, 1.0], [1.0, 2.0]]).matrix() * 7 / 2
    array([[2., 3.],
           [3., 5.]])
    """

    sigma: float
    gamma: float = 2.0

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "sigma", squarable("sigma", nonnegative_float("sigma", self.sigma))
        )
        object.__setattr__(self, "gamma", real_float("gamma", self.gamma))

    @property
    def mean_power(self) -> float:
        """The mean variance, sigma²."""
        return self.sigma * self.sigma

    def in_words(self) -> str:
        """Say how the noise depends on the columns."""
        return f"covariance ∝ C^{self.gamma:g}"

    def with_sigma(self, sigma: float) -> MatrixPower:
        """Return the same noise at another level."""
        return replace(self, sigma=sigma)

    def root(self, C: ArrayLike) -> FloatArray:
        """A matrix R with Σ = RRᵀ, of N rows and as many columns as the rank.

        Examples
        --------
        >>> import numpy as np
        >>> from privasso.noise import MatrixPower
        >>> MatrixPower(5.0, gamma=2.0).root(np.diag([1.0, 7.0]))
        array([[1., 0.],
               [0., 7.]])
        """
        C = real_array("C", C, ndim=2)
        if self.gamma == 2.0:
            R = C.copy()
        elif self.gamma == 0.0:
            R = np.eye(C.shape[0])
        else:
            with one_thread():
                d, Q = np.linalg.eigh(C)
            keep = d > _ZERO * d[-1]
            if self.gamma < 0.0 and not keep.all():
                raise ValueError(
                    f"C has no full rank, so C^{self.gamma:g} does not exist; use a gamma of 0 or "
                    "more"
                )
            R = Q[:, keep] * d[keep] ** (0.5 * self.gamma)
        mean = float(np.einsum("ij,ij->", R, R)) / C.shape[0]
        return R * (self.sigma / np.sqrt(mean))

    def covariance(self, C: ArrayLike) -> Factored:
        """The law of the noise over columns of covariance C."""
        if self.sigma == 0.0:
            raise ValueError("noise of level zero has no covariance matrix of full rank")
        return Factored(self.root(C))
