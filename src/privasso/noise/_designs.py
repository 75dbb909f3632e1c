"""Noise designs: profiles that are normalised, by formula, table or fitted to rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Self, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privasso._validation import nonnegative_float, real_array, real_float, squarable
from privasso.noise._covariance import Diagonal

if TYPE_CHECKING:
    from scipy.interpolate import CubicSpline

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


@dataclass(frozen=True)
class PowerLaw(NoiseDesign):
    """σ_η²(v) = σ² v**γ / mean(v**γ).

    γ = 0 treats all columns alike and γ = 2 is the Gram-based design; values in between are
    often better than both.

    Parameters
    ----------
    sigma : float
        Root of the mean variance, zero or more.
    gamma : float
        Exponent of v = s². A negative one needs every v above zero.

    Examples
    --------
    >>> from privasso import PowerLaw
    >>> PowerLaw(sigma=1.0, gamma=1.0).variances([1.0, 3.0])
    array([0.5, 1.5])
    """

    gamma: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "gamma", real_float("gamma", self.gamma))

    def in_words(self) -> str:
        """Name the power of v."""
        return "the same on all columns" if self.gamma == 0.0 else f"variance ∝ v^{self.gamma:g}"

    def log_profile(self, v: FloatArray) -> FloatArray:
        """Return γ log v."""
        if self.gamma == 0.0:
            return np.zeros_like(v)  # also where v = 0
        if self.gamma < 0.0 and np.min(v) == 0.0:
            raise ValueError(
                f"v has a zero, which gamma={self.gamma!r} < 0 would give infinite variance; "
                "drop the zero columns or choose gamma >= 0"
            )
        with np.errstate(divide="ignore"):
            return self.gamma * np.log(v)


@dataclass(frozen=True)
class Isotropic(PowerLaw):
    """The same variance σ² on every column, whatever its scale.

    Parameters
    ----------
    sigma : float
        Standard deviation, zero or more.

    Examples
    --------
    >>> from privasso import Isotropic
    >>> Isotropic(2.0).variances([0.0, 1.0, 100.0])
    array([4., 4., 4.])
    """

    gamma: float = field(default=0.0, init=False, repr=False)


@dataclass(frozen=True)
class Gram(PowerLaw):
    """σ_η²(v) = σ² v² / mean(v²): the Gram-based design.

    The noise enters the estimate multiplied by the inverse Gram matrix, whose diagonal is
    proportional to 1/v. A deviation proportional to v cancels that factor, so every coefficient
    receives noise of the same size.

    Parameters
    ----------
    sigma : float
        Root of the mean variance, zero or more.

    Examples
    --------
    >>> from privasso import Gram
    >>> Gram(1.0).variances([1.0, 1.0, 2.0])
    array([0.5, 0.5, 2. ])
    """

    gamma: float = field(default=2.0, init=False, repr=False)


#: Most nodes a table may have; a file with more is taken for corrupt or hostile.
MAX_NODES = 10_000
#: Nodes must be further apart than this, or slopes lose their digits.
_CLOSEST = 1e-9
#: Larger logarithms are refused: no data have such scales.
_LARGEST = 1e4


@dataclass(frozen=True, repr=False)
class Tabulated(NoiseDesign):
    """log σ_η²(v) interpolated between nodes in log v, up to the factor that sigma fixes.

    The curve through the nodes is the natural cubic spline, which is smooth, so that averages over
    the scales converge fast; where neighbouring values differ much, it may overshoot them. Beyond
    the ends the profile continues as the power of v that it has there, so that every column has a
    sensible variance. A column with v = 0 gets the limit: no noise where that power is positive,
    and an error where it is negative.

    Parameters
    ----------
    sigma : float
        Root of the mean variance, zero or more.
    log_v : array_like of shape (K,)
        Nodes: natural logarithms of squared scales, increasing.
    log_profile_at : array_like of shape (K,)
        Logarithm of the profile at the nodes.

    Examples
    --------
    Two nodes make a power law, here σ_η² ∝ √v:

    >>> import numpy as np
    >>> from privasso import Tabulated
    >>> design = Tabulated(1.0, np.log([1.0, 100.0]), np.log([1.0, 10.0]))
    >>> design
    Tabulated(sigma=1.0, <2 nodes, v from 1 to 100>)
    >>> design.variances([1.0, 4.0, 9.0]).round(6)
    array([0.5, 1. , 1.5])
    """

    log_v: tuple[float, ...]
    log_profile_at: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        nodes = real_array("log_v", self.log_v, ndim=1)
        values = real_array("log_profile_at", self.log_profile_at, shape=nodes.shape)
        if nodes.size > MAX_NODES:
            raise ValueError(f"log_v must have at most {MAX_NODES} nodes, not {nodes.size}")
        if nodes.size > 1 and np.min(np.diff(nodes)) < _CLOSEST:
            raise ValueError("log_v must increase, by more than rounding, from node to node")
        if np.max(np.abs(nodes)) > _LARGEST or np.max(np.abs(values)) > _LARGEST:
            raise ValueError(
                f"log_v and log_profile_at hold logarithms, at most {_LARGEST:g} in size; "
                "were the numbers themselves passed?"
            )
        # Tuples make the design hashable, which keeps its quadrature from being built twice.
        object.__setattr__(self, "log_v", tuple(nodes.tolist()))
        object.__setattr__(self, "log_profile_at", tuple(values.tolist()))

    def in_words(self) -> str:
        """Say that the variance follows a table."""
        return "variance a function of v given by a table"

    def log_profile(self, v: FloatArray) -> FloatArray:
        """Return the interpolated logarithm."""
        nodes, values, slopes, curve = _interpolant(self.log_v, self.log_profile_at)
        v = np.asarray(v, dtype=np.float64)
        zero = v == 0.0
        if zero.any() and slopes[0] < 0.0:
            raise ValueError(
                "v has a zero, which this table, rising towards small v, would give infinite "
                "variance; drop the zero columns"
            )
        with np.errstate(divide="ignore"):
            x = np.log(v)
        inside = np.clip(x, nodes[0], nodes[-1])
        out = values[0] + np.zeros_like(x) if curve is None else curve(inside)
        with np.errstate(invalid="ignore"):
            below = slopes[0] * np.minimum(x - nodes[0], 0.0) if slopes[0] != 0.0 else 0.0
            above = slopes[1] * np.maximum(x - nodes[-1], 0.0)
        return out + below + above

    def __repr__(self) -> str:
        low, high = np.exp(self.log_v[0]), np.exp(self.log_v[-1])
        count = len(self.log_v)
        span = f"v from {low:g} to {high:g}" if count > 1 else f"v = {low:g}"
        nodes = "nodes" if count > 1 else "node"
        return f"Tabulated(sigma={self.sigma!r}, <{count} {nodes}, {span}>)"


@lru_cache(maxsize=64)
def _interpolant(
    log_v: tuple[float, ...], log_profile_at: tuple[float, ...]
) -> tuple[FloatArray, FloatArray, FloatArray, CubicSpline | None]:
    """Nodes, values, slopes at both ends, and the curve between (None for a single node)."""
    from scipy.interpolate import CubicSpline  # slow to import, and seldom needed

    nodes, values = np.array(log_v), np.array(log_profile_at)
    if nodes.size == 1:
        return nodes, values, np.zeros(2), None
    curve = CubicSpline(nodes, values, bc_type="natural")
    slopes = curve.derivative()(nodes[[0, -1]])
    return nodes, values, slopes, curve


@dataclass(frozen=True)
class Shaped:
    """Noise whose covariance, not only its variances, is fitted to public covariates.

    Unlike a `NoiseDesign` it is no function of the scales of single columns: the covariance that
    adds the least noise at a given privacy depends on all rows together, see `optimal_shape`. Rows
    that are large in units of the noise would set its level for all others, so they are shrunk
    together with their labels.

    Parameters
    ----------
    sigma : float
        Root of the mean variance over the columns; privacy sets it.
    shrink : float
        Part of the rows, the largest ones, that are shrunk to the size of the largest of the
        others; 0 shrinks none.

    Examples
    --------
    >>> from privasso import Shaped
    >>> Shaped(shrink=0.5).in_words()
    'shaped by the covariates, the longest 50 % of the rows shrunk'
    """

    sigma: float = 1.0
    shrink: float = 0.75

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "sigma", squarable("sigma", nonnegative_float("sigma", self.sigma))
        )
        object.__setattr__(self, "shrink", real_float("shrink", self.shrink))
        if not 0.0 <= self.shrink < 1.0:
            raise ValueError(
                f"shrink is a part of the rows, at least 0 and below 1, not {self.shrink}"
            )

    def in_words(self) -> str:
        """Say what the noise is like."""
        words = "shaped by the covariates"
        if self.shrink == 0.0:
            return words
        return f"{words}, the longest {100.0 * self.shrink:.3g} % of the rows shrunk"

    def with_sigma(self, sigma: float) -> Shaped:
        """Return the same noise at another level."""
        return replace(self, sigma=sigma)
