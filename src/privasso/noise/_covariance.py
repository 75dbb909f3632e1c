"""The law of the noise over given columns, η ~ N(0, Σ), for any form of Σ."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

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
