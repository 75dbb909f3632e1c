"""Covariances of the noise of all columns: what every form can do, and independent noise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privasso._validation import generator, integer

FloatArray = NDArray[np.float64]


class Covariance(ABC):
    """Σ, the covariance of the noise vector η, through the few products that callers need.

    A noise design applied to columns gives a `Diagonal` one (`NoiseDesign.covariance`);
    `Factored` holds noise that is correlated over the columns. Callers use the methods below,
    whichever form it has.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> sigma = pv.Gram(0.1).covariance(np.array([1.0, 4.0]))
    >>> isinstance(sigma, Covariance), sigma.size
    (True, 2)
    """

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of columns."""

    @property
    @abstractmethod
    def diagonal(self) -> FloatArray:
        """Variances Σ_ii."""

    @property
    @abstractmethod
    def precisions(self) -> FloatArray:
        """(Σ⁻¹)_ii; infinite for a column without noise."""

    @abstractmethod
    def matrix(self) -> FloatArray:
        """Σ as an array of shape (N, N)."""

    @abstractmethod
    def scaled(self, factor: float) -> Covariance:
        """Return factor·Σ."""

    @abstractmethod
    def restricted(self, take: NDArray[np.intp]) -> Covariance:
        """Return the covariance of the entries `take` (indices) of η."""

    @abstractmethod
    def embedded(self, live: NDArray[np.bool_]) -> Covariance:
        """Return Σ on the columns where `live` holds, and no noise on the others."""

    @abstractmethod
    def colour(self, z: FloatArray) -> FloatArray:
        """Σ^½ z: turns independent standard normal numbers into noise, column by column."""

    @abstractmethod
    def whiten(self, a: FloatArray) -> FloatArray:
        """Σ^(−½) a for a vector or for the columns of a matrix: ‖Σ^(−½) a‖² = aᵀΣ⁻¹a."""

    @property
    @abstractmethod
    def whitener(self) -> FloatArray:
        """Σ^(−½), of shape (rank, N); its diagonal, of shape (N,), for independent noise.

        What noise does not cover is left out: a column without noise becomes zero.
        """

    @abstractmethod
    def propagated(self, J: FloatArray) -> FloatArray:
        """diag(JΣJᵀ): variances of Jη."""

    @abstractmethod
    def trace(self, W: FloatArray | None = None) -> float:
        """tr(WΣ), or tr Σ."""

    @abstractmethod
    def trace_of_square(self, J: FloatArray) -> float:
        """tr(ΣJΣJ) for a symmetric J."""

    @property
    def rank(self) -> int:
        """Number of standard normal numbers that a draw takes."""
        return self.size

    @property
    def sigma(self) -> FloatArray:
        """Standard deviations √Σ_ii."""
        return np.sqrt(self.diagonal)

    def quadratic(self, x: FloatArray) -> float:
        """xᵀΣx: variance of the noise in ηᵀx."""
        return float(self.propagated(x[None, :])[0])

    def row_norms(self, F: FloatArray) -> FloatArray:
        """‖f_μ‖_{Σ⁻¹} = √(f_μᵀΣ⁻¹f_μ) for each row f_μ of F: its size in units of the noise."""
        white = self.whiten(F.T)
        return np.sqrt(np.einsum("ij,ij->j", white, white))

    def draw(
        self,
        rng: int | np.random.Generator | None = None,
        size: SupportsIndex | None = None,
    ) -> FloatArray:
        """Draw η, of shape (N,), or `size` of them as columns.

        Examples
        --------
        >>> from privasso.noise import Diagonal
        >>> Diagonal([1.0, 4.0]).draw(rng=0, size=3).shape
        (2, 3)
        """
        rng = generator(rng)
        if size is None:
            return self.colour(rng.standard_normal(self.rank))
        return self.colour(rng.standard_normal((self.rank, integer("size", size, minimum=0))))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(<{self.size} columns>)"


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
