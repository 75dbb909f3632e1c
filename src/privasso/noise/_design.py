"""The base class of noise designs, which normalises their profiles and draws from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Self, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privasso._validation import nonnegative_float, real_array, squarable
from privasso.noise._covariance import Diagonal

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class NoiseDesign(ABC):
    """Gaussian noise η_i ~ N(0, σ_η²(v_i)) whose variance averages to sigma² over the columns.

    A design is a profile, a function of v up to a factor, and the level sigma fixes the factor.
    A new design is a frozen dataclass with one method, `log_profile`.

    Parameters
    ----------
    sigma : float
        Root of the mean variance, zero or more.

    Examples
    --------
    A design without noise on the columns below a cut:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from privasso import NoiseDesign
    >>> @dataclass(frozen=True)
    ... class Cut(NoiseDesign):
    ...     at: float
    ...
    ...     def log_profile(self, v):
    ...         return np.where(v >= self.at, 0.0, -np.inf)
    >>> Cut(sigma=1.0, at=2.0).variances([1.0, 2.0, 3.0, 0.5])
    array([0., 2., 2., 0.])
    """

    sigma: float

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "sigma", squarable("sigma", nonnegative_float("sigma", self.sigma))
        )

    @abstractmethod
    def log_profile(self, v: FloatArray) -> FloatArray:
        """Logarithm of a function proportional to σ_η²(v); -inf where there is no noise.

        Logarithms, so that no power of a scale overflows before it is normalised.
        """

    def in_words(self) -> str:
        """Say how the variance depends on the column, v being its squared scale.

        Examples
        --------
        >>> from privasso import Gram, Isotropic
        >>> Gram(1.0).in_words(), Isotropic(1.0).in_words()
        ('variance ∝ v^2', 'the same on all columns')
        """
        return "variance a function of v"

    @property
    def mean_power(self) -> float:
        """The mean variance, sigma²."""
        return self.sigma * self.sigma

    def variances(self, v: ArrayLike, weights: ArrayLike | None = None) -> FloatArray:
        """Variances σ_η²(v) whose mean over v, weighted if weights are given, is sigma².

        Parameters
        ----------
        v : array_like of shape (N,)
            Squared scales, zero or more: those of the columns, or the nodes of a quadrature.
        weights : array_like of shape (N,), optional
            Weights of the mean, zero or more; only their ratios matter. Equal if not given.

        Examples
        --------
        >>> from privasso import Gram
        >>> Gram(sigma=1.0).variances([1.0, 2.0, 3.0]) * 14 / 3
        array([1., 4., 9.])
        """
        v = real_array("v", v, ndim=1)
        if np.min(v) < 0.0:
            raise ValueError("v must hold squared scales, zero or more; it has a negative entry")
        w = np.ones_like(v) if weights is None else _relative_weights(weights, v.size)
        log_profile = self.log_profile(v)
        if self.sigma == 0.0:
            return np.zeros_like(v)

        # Divided by the largest profile that counts, the mean is at most 1 and at least the
        # weight of that entry, so it can neither overflow nor vanish.
        counted = w >= np.finfo(np.float64).tiny
        w, log_counted = w[counted], log_profile[counted]
        reference = np.max(log_counted)
        if reference == -np.inf:
            raise ValueError(
                "this design puts no noise on any of the given columns, so the mean cannot be "
                f"sigma² = {self.mean_power:g}; is every v zero?"
            )
        mean = np.sum(w * np.exp(log_counted - reference)) / np.sum(w)
        with np.errstate(over="ignore"):  # inf only where the variance itself exceeds all floats
            return self.mean_power * np.exp(log_profile - reference - np.log(mean))

    def covariance(self, v: ArrayLike) -> Diagonal:
        """Return the law of the noise over columns of squared scales v.

        Examples
        --------
        >>> from privasso import Gram
        >>> Gram(1.0).covariance([1.0, 1.0, 2.0]).diagonal
        array([0.5, 0.5, 2. ])
        """
        return Diagonal(self.variances(v))

    def draw(
        self,
        v: ArrayLike,
        rng: int | np.random.Generator | None = None,
        size: SupportsIndex | None = None,
    ) -> FloatArray:
        """Draw the noise vector η, or several of them as columns.

        Parameters
        ----------
        v : array_like of shape (N,)
            Squared scales of the columns.
        rng : None, int or numpy.random.Generator
            Source of randomness; None takes entropy from the operating system. A fixed seed
            makes the noise predictable and gives no privacy.
        size : int, optional
            Number of independent vectors.

        Returns
        -------
        ndarray of shape (N,), or (N, size) when size is given

        Examples
        --------
        >>> from privasso import Isotropic
        >>> Isotropic(0.1).draw([1.0, 4.0, 9.0], rng=0, size=5).shape
        (3, 5)
        """
        return self.covariance(v).draw(rng, size)

    def with_sigma(self, sigma: float) -> Self:
        """Return the same design at another level.

        Examples
        --------
        >>> from privasso import PowerLaw
        >>> PowerLaw(sigma=1.0, gamma=0.5).with_sigma(2.0)
        PowerLaw(sigma=2.0, gamma=0.5)
        """
        return replace(self, sigma=sigma)


def _relative_weights(weights: ArrayLike, size: int) -> FloatArray:
    """Return weights divided by the largest."""
    w = real_array("weights", weights, shape=(size,))
    if np.min(w) < 0.0 or np.max(w) == 0.0:
        raise ValueError("weights must be zero or more, and not all zero")
    return w / np.max(w)
