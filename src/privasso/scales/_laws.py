"""Laws of the column scale: by formula, and of given values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, roots_legendre

from privasso._text import word_and_numbers
from privasso._validation import (
    LARGEST,
    SMALLEST,
    nonnegative_float,
    positive_float,
    real_array,
    real_float,
    squarable,
)
from privasso.scales._law import FloatArray, ScaleLaw


@dataclass(frozen=True)
class Constant(ScaleLaw):
    """s = value for every column: the homogeneous case.

    Parameters
    ----------
    value : float
        The common scale, above zero.

    Examples
    --------
    >>> from privasso import Constant
    >>> Constant(2.0).quadrature(100)
    (array([4.]), array([1.]))
    """

    value: float = 1.0

    def __post_init__(self) -> None:
        value = squarable("value", positive_float("value", self.value))
        object.__setattr__(self, "value", value)

    @property
    def inverse_mean_is_finite(self) -> bool:
        """Always true: E[1/v] = value**-2."""
        return True

    def _quantile(self, p: FloatArray) -> FloatArray:
        return np.full(p.shape, self.value)

    def _quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        return np.array([self.value * self.value]), np.array([1.0])

    def _moment(self, k: float) -> float:
        return self.value ** (2.0 * k)


@dataclass(frozen=True)
class Uniform(ScaleLaw):
    """s uniform on (low, high], with 0 <= low < high.

    With low = 0 there are columns of arbitrarily small scale and E[v**k] = E[s**(2k)] diverges
    for k <= -1/2; in particular E[1/v] is infinite.

    Parameters
    ----------
    low, high : float
        Ends of the interval of s (not of v).

    Examples
    --------
    >>> from privasso import Uniform
    >>> law = Uniform(1.0, 2.0)
    >>> law.moment(-1)  # E[1/s²] = 1/(low·high)
    0.5
    >>> law.inverse_mean_is_finite, Uniform().inverse_mean_is_finite
    (True, False)
    """

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        low = squarable("low", nonnegative_float("low", self.low))
        high = squarable("high", positive_float("high", self.high))
        if high <= low:
            raise ValueError(
                f"high must exceed low, not low={low!r} and high={high!r}; "
                "use Constant for a single value"
            )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def inverse_mean_is_finite(self) -> bool:
        """Whether E[1/v] = 1/(low·high) is finite, that is whether low > 0."""
        return self.low > 0.0

    def _quantile(self, p: FloatArray) -> FloatArray:
        # A convex combination is exact at both ends; clipping absorbs a last-digit excess.
        return np.clip(self.low * (1.0 - p) + self.high * p, self.low, self.high)

    def _quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        p, weights = _gauss_legendre(n)
        s = self.low * (1.0 - p) + self.high * p
        return s * s, weights.copy()

    def _moment(self, k: float) -> float:
        # E[v**k] = (high**p - low**p) / (p (high - low)) with p = 2k + 1. Near p = 0 and near
        # high = low the difference cancels, so it is written as an expm1 of p·log(low/high);
        # factoring out the larger of the two powers keeps that exponent negative.
        low, high, p = self.low, self.high, 2.0 * k + 1.0
        if low == 0.0:
            return high ** (2.0 * k) / p if p > 0.0 else math.inf
        width = high - low
        log_ratio = (
            math.log1p(-width / high) if 2.0 * low > high else math.log(low) - math.log(high)
        )
        if p == 0.0:
            return -log_ratio / width
        anchor = high if p > 0.0 else low
        return anchor ** (2.0 * k) * (anchor / width) * -math.expm1(abs(p) * log_ratio) / abs(p)


@lru_cache(maxsize=16)
def _gauss_legendre(n: int) -> tuple[FloatArray, FloatArray]:
    """Gauss–Legendre nodes on (0, 1) and weights that sum to 1, read-only because shared."""
    x, weights = roots_legendre(n)
    p = 0.5 * (1.0 + x)
    weights = weights / np.sum(weights)
    p.flags.writeable = weights.flags.writeable = False
    return p, weights


# Farthest node of the quadrature in standard deviations: exp(-37²/2) is still a normal float.
_FARTHEST = 37.0
# Half-width that cuts off less than 1e-16 of the Gaussian mass.
_BULK = 8.5
# The weight of v**k sits 2kσ from the centre; moments up to this |k| lose nothing to truncation.
_HIGHEST_MOMENT = 3.0


@dataclass(frozen=True)
class LogNormal(ScaleLaw):
    """log s ~ N(mu, sigma²), so that E[v**k] = exp(2kμ + 2k²σ²) is finite for every k.

    Parameters
    ----------
    mu, sigma : float
        Mean and standard deviation of log s (not of log v, which has twice both). sigma = 0
        puts all mass at exp(mu).

    Examples
    --------
    >>> from privasso import LogNormal
    >>> LogNormal(mu=0.0, sigma=0.5).moment(1)  # exp(½)
    1.6487212707001282
    >>> LogNormal().inverse_mean_is_finite
    True
    """

    mu: float = 0.0
    sigma: float = 0.5

    def __post_init__(self) -> None:
        mu, sigma = real_float("mu", self.mu), nonnegative_float("sigma", self.sigma)
        if 2.0 * (abs(mu) + _FARTHEST * sigma) > 690.0:
            raise ValueError(
                f"mu={mu!r} and sigma={sigma!r} put v = s² outside the range of a float; "
                "keep |mu| + 37·sigma below 345 (both are on the log scale)"
            )
        object.__setattr__(self, "mu", mu)
        object.__setattr__(self, "sigma", sigma)

    @property
    def inverse_mean_is_finite(self) -> bool:
        """Always true: E[1/v] = exp(-2μ + 2σ²)."""
        return True

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        return rng.lognormal(self.mu, self.sigma, shape)

    def _quantile(self, p: FloatArray) -> FloatArray:
        if self.sigma == 0.0:  # 0·ndtri(0) would be NaN
            return np.full(p.shape, math.exp(self.mu))
        return np.exp(self.mu + self.sigma * ndtri(p))

    def _quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        # Midpoint rule in z = (log s - mu)/sigma on [-T, T]. On the whole line its error for a
        # Gaussian times exp(cz) is exp(-2π²/h²) with step h = 2T/n, and the truncation costs
        # about exp(-T²/2); T² = πn balances the two. Beyond the width where truncation no longer
        # matters, more nodes make the step smaller instead, which is what functions with a
        # narrow strip of analyticity need, such as exp(-1/v). Gauss–Hermite is no alternative:
        # its outer weights underflow to zero from n ≈ 380 and most of its nodes are wasted.
        enough = min(_BULK + 2.0 * _HIGHEST_MOMENT * self.sigma, _FARTHEST)
        half_width = min(math.sqrt(math.pi * n), enough)
        z = half_width * (2.0 * np.arange(n) + 1.0 - n) / n
        weights = np.exp(-0.5 * z * z)
        return np.exp(2.0 * (self.mu + self.sigma * z)), weights / np.sum(weights)

    def _moment(self, k: float) -> float:
        return math.exp(2.0 * k * self.mu + 2.0 * (k * self.sigma) ** 2)


_LAWS: dict[str, tuple[type[ScaleLaw], int]] = {
    "uniform": (Uniform, 2),
    "lognormal": (LogNormal, 2),
    "constant": (Constant, 1),
}
#: Words that `law_from_name` knows.
LAW_NAMES = tuple(_LAWS)


def law_from_name(name: str, text: str) -> ScaleLaw:
    """Return the law that a text such as ``uniform`` or ``lognormal:0,0.5`` stands for.

    `name`: what the caller calls the argument; it opens every error message. `text`:
    uniform[:LOW,HIGH], lognormal[:MU,SIGMA] or constant[:VALUE].
    """
    if text.lower() in _LAWS:
        return _LAWS[text.lower()][0]()
    word, numbers = word_and_numbers(name, text, {word: n for word, (_, n) in _LAWS.items()})
    return _LAWS[word][0](*numbers)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Empirical(ScaleLaw):
    """s equal to each of the given values with the same probability.

    Two such laws are equal when they hold the same values, in whatever order they were given.

    Parameters
    ----------
    values : array_like
        Scales s > 0 (not their squares), one per column. They are copied, sorted and kept
        read-only in the attribute of the same name.

    Examples
    --------
    >>> from privasso import Empirical
    >>> law = Empirical([3.0, 1.0, 2.0])
    >>> law
    Empirical(<3 values from 1 to 3>)
    >>> law.quantile([0.0, 0.5])
    array([1., 2.])
    >>> law == Empirical([1.0, 2.0, 3.0])
    True
    """

    values: FloatArray

    def __init__(self, values: ArrayLike) -> None:
        array = np.sort(real_array("values", values, ndim=1))
        if array[0] <= 0.0:
            raise ValueError(
                "values must be positive scales; drop the columns that are zero everywhere"
            )
        if array[0] < SMALLEST or array[-1] > LARGEST:
            raise ValueError(
                f"values must lie in {SMALLEST:g}...{LARGEST:g}, where their squares keep full "
                "precision; change the units"
            )
        array.flags.writeable = False
        object.__setattr__(self, "values", array)

    def __repr__(self) -> str:
        low, high = self.values[0], self.values[-1]
        return f"Empirical(<{self.values.size} values from {low:g} to {high:g}>)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Empirical):
            return NotImplemented
        return np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        return hash((Empirical, self.values.tobytes()))

    def __reduce__(self) -> tuple[object, ...]:
        # Through the constructor, since a copied or unpickled array would be writable again.
        return Empirical, (self.values,)

    @property
    def inverse_mean_is_finite(self) -> bool:
        """Always true: the values are finitely many and none is zero."""
        return True

    def _quantile(self, p: FloatArray) -> FloatArray:
        n = self.values.size
        # Compared with the steps of the distribution function as floats: rounding p·n up would
        # skip a value whenever the product lands just above an integer.
        return self.values[np.searchsorted(np.arange(1, n + 1) / n, p, side="left")]

    def _quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        size = self.values.size
        return self.values**2, np.full(size, 1.0 / size)

    def _moment(self, k: float) -> float:
        with np.errstate(over="ignore"):
            return float(np.mean(self.values ** (2.0 * k)))
