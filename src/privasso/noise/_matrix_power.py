"""Noise whose covariance is a power of the covariance of the columns."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privasso._blas import one_thread
from privasso._validation import nonnegative_float, real_array, real_float, squarable
from privasso.noise._factored import Factored

FloatArray = NDArray[np.float64]

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
