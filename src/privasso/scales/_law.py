"""What every law of the column scale can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privasso._validation import array_shape, generator, integer, real_array, real_float

FloatArray = NDArray[np.float64]


class ScaleLaw(ABC):
    """Law of the scale s > 0 of a column; v = s² is the quantity that the theory averages over.

    In the model, column i of the data is s_i times a column of unit scale. A law answers four
    questions: draw s, invert its distribution function, average a function of v, and take a
    moment of v. The public methods check their arguments and call the methods with a leading
    underscore; a new law writes `_quantile`, `_quadrature`, `_moment` and
    `inverse_mean_is_finite`, and overrides `_draw` only when there is something better than
    inverting the distribution function.

    Examples
    --------
    >>> import privasso as pv
    >>> law = pv.Uniform(0.0, 1.0)
    >>> isinstance(law, pv.ScaleLaw), round(law.moment(1), 6)  # E[v] = E[s²]
    (True, 0.333333)
    """

    def draw(
        self,
        size: SupportsIndex | Sequence[SupportsIndex],
        rng: int | np.random.Generator | None = None,
    ) -> FloatArray:
        """Draw independent scales s (not their squares).

        Parameters
        ----------
        size : int or sequence of int
            Shape of the result.
        rng : None, int or numpy.random.Generator
            Source of randomness; None takes entropy from the operating system.

        Examples
        --------
        >>> from privasso import Uniform
        >>> Uniform(2.0, 3.0).draw((2, 3), rng=0).shape
        (2, 3)
        """
        return self._draw(array_shape("size", size), generator(rng))

    def quantile(self, p: ArrayLike) -> FloatArray:
        """Inverse distribution function of s: the smallest s with P(scale <= s) >= p.

        Parameters
        ----------
        p : array_like
            Probabilities in [0, 1], of any shape; the result has the same shape.

        Examples
        --------
        >>> from privasso import Uniform
        >>> Uniform(1.0, 3.0).quantile([0.0, 0.5, 1.0])
        array([1., 2., 3.])
        """
        p = real_array("p", p)
        if np.min(p) < 0.0 or np.max(p) > 1.0:
            raise ValueError("p must lie between 0 and 1")
        return self._quantile(p)

    def quantiles(self, n: SupportsIndex) -> FloatArray:
        """Return the n scales at probabilities (k + ½)/n, k = 0, ..., n-1, in increasing order.

        They stand for a typical set of n columns, without random fluctuations.

        Examples
        --------
        >>> from privasso import Uniform
        >>> Uniform().quantiles(4)
        array([0.125, 0.375, 0.625, 0.875])
        """
        count = integer("n", n, minimum=1)
        return self._quantile((np.arange(count) + 0.5) / count)

    def quadrature(self, n: SupportsIndex = 200) -> tuple[FloatArray, FloatArray]:
        """Nodes v and weights w with E[f(v)] = Σ w f(v) up to an error that vanishes fast in n.

        The weights are positive and sum to 1. The error falls faster than any power of n when f
        is smooth on the support of the law, its ends included.

        Parameters
        ----------
        n : int
            Number of nodes. Laws with finitely many values return those instead, whatever n is.

        Examples
        --------
        >>> from privasso import Uniform
        >>> v, w = Uniform().quadrature(20)
        >>> round(float(w @ v), 12)  # E[s²] = 1/3
        0.333333333333
        """
        return self._quadrature(integer("n", n, minimum=1))

    def tail_quadrature(self, n: SupportsIndex = 128) -> tuple[FloatArray, FloatArray]:
        """Nodes v and weights w as in `quadrature`, crowded towards the smallest scales.

        A double-exponential rule in the probability p, with nodes down to p = 1e-100: for
        functions that change at very small v, where `quadrature` has no node. It resolves 1 − p
        only to 1e-16, too coarse for the upper tail of a law without a largest scale.

        Parameters
        ----------
        n : int
            Number of nodes.

        Examples
        --------
        >>> from privasso import Uniform
        >>> v, w = Uniform().tail_quadrature(128)
        >>> round(float(w @ v), 12), bool(v[0] < 1e-200)
        (0.333333333333, True)
        """
        t = np.linspace(-5.0, 3.0, integer("n", n, minimum=1))
        x = 0.5 * np.pi * np.sinh(t)
        p = 1.0 / (1.0 + np.exp(-2.0 * x))
        w = p / (1.0 + np.exp(2.0 * x)) * np.cosh(t)
        return self._quantile(p) ** 2, w / np.sum(w)

    def moment(self, k: float) -> float:
        """E[v**k] for any real k; inf when the integral diverges or exceeds the largest float.

        Examples
        --------
        >>> from privasso import Uniform
        >>> Uniform().moment(2), Uniform().moment(-1)
        (0.2, inf)
        """
        k = real_float("k", k)
        try:
            return self._moment(k)
        except OverflowError:
            return float("inf")

    @property
    @abstractmethod
    def inverse_mean_is_finite(self) -> bool:
        """Whether E[1/v] is finite.

        Noise of equal variance on every column is amplified by 1/v in the estimate, so its
        contribution to the prediction error is an average of 1/v. When that average is infinite,
        so is the error in the limit of many columns, and at a finite size it depends on the
        smallest column. State evolution then needs a number of columns, or the noise must vanish
        with v (see `PowerLaw` with gamma > 0).
        """

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        # random() is in [0, 1); its complement keeps a scale of exactly zero out.
        return self._quantile(1.0 - rng.random(shape))

    @abstractmethod
    def _quantile(self, p: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _quadrature(self, n: int) -> tuple[FloatArray, FloatArray]: ...

    @abstractmethod
    def _moment(self, k: float) -> float: ...
