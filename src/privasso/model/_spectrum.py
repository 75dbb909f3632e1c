"""The spectrum of AᵀA, for covariates F = A diag(s) with eigenvectors in random directions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privasso._validation import (
    integer,
    nonnegative_float,
    positive_float,
    probability,
    real_array,
)

FloatArray = NDArray[np.float64]

#: Nodes from which the quantiles of the Marchenko–Pastur law are interpolated.
_FINE = 20_000
#: Eigenvalues below this part of the largest count as zero.
_ZERO = 1e-12


class Spectrum(ABC):
    """The eigenvalues of AᵀA, up to a factor that makes their mean over the N columns M/N.

    With that factor the squared norms of the columns of F = A diag(s) are s²M/N on average, as for
    independent entries of variance s²/N, so a spectrum says nothing about the scales. A matrix of M
    rows and N columns has K = min(M, N) eigenvalues that may differ from zero, and N − K zeros.
    """

    def values(self, n_rows: SupportsIndex, n_columns: SupportsIndex) -> FloatArray:
        """The K eigenvalues for a matrix of this shape, of sum M, in decreasing order."""
        M, N = integer("n_rows", n_rows, minimum=1), integer("n_columns", n_columns, minimum=1)
        d = np.sort(self._values(M, N))[::-1]
        return d * (M / np.sum(d))

    def rule(self, alpha: float, n: SupportsIndex = 128) -> tuple[FloatArray, FloatArray]:
        """Nodes d and weights w for the limit of many columns: E[f(d)] = Σ w f(d) + (1 − Σw) f(0).

        The weights sum to min(α, 1) and the mean Σ wd is α = M/N.
        """
        alpha = positive_float("alpha", alpha)
        d, w = self._rule(alpha, integer("n", n, minimum=1))
        w = w * (min(alpha, 1.0) / np.sum(w))
        return d * (alpha / (w @ d)), w

    @abstractmethod
    def _values(self, M: int, N: int) -> FloatArray:
        """K eigenvalues up to a factor."""

    @abstractmethod
    def _rule(self, alpha: float, n: int) -> tuple[FloatArray, FloatArray]:
        """Nodes and weights, each up to a factor."""


@dataclass(frozen=True)
class MarchenkoPastur(Spectrum):
    """The spectrum of independent entries: density √((b−d)(d−a))/(2πd), a, b = (1 ∓ √α)².

    Examples
    --------
    >>> MarchenkoPastur().values(3, 6).round(3)
    array([1.846, 0.857, 0.297])
    """

    def _values(self, M: int, N: int) -> FloatArray:
        alpha, K = M / N, min(M, N)
        x = (np.arange(_FINE) + 0.5) / _FINE
        d, w = _marchenko_pastur(alpha, x, np.ones(_FINE))
        below = (np.cumsum(w) - 0.5 * w) / np.sum(w)
        return np.interp((np.arange(K) + 0.5) / K, below, d)

    def _rule(self, alpha: float, n: int) -> tuple[FloatArray, FloatArray]:
        x, w = _legendre(n)
        return _marchenko_pastur(alpha, 0.5 * (1.0 + x), w)


def _marchenko_pastur(alpha: float, x: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Turn a rule for (0, 1) into one for the law, up to a factor of the weights.

    d = a + 4√α sin²(t/2), in which the density becomes sin²t/d. For α close to 1 it has a layer of
    width √a at t = 0, which t = c sinh resolves.
    """
    root = math.sqrt(alpha)
    layer = max(abs(1.0 - root), 1e-6) / math.sqrt(root)
    reach = math.asinh(math.pi / layer)
    t = layer * np.sinh(reach * x)
    d = (1.0 - root) ** 2 + 4.0 * root * np.sin(0.5 * t) ** 2
    return d, w * np.cosh(reach * x) * np.sin(t) ** 2 / d


@lru_cache(maxsize=8)
def _legendre(n: int) -> tuple[FloatArray, FloatArray]:
    return np.polynomial.legendre.leggauss(n)


@dataclass(frozen=True)
class Orthogonal(Spectrum):
    """Equal eigenvalues: A has orthogonal rows if M ≤ N, and orthogonal columns if M ≥ N.

    Examples
    --------
    >>> Orthogonal().values(3, 6)
    array([1., 1., 1.])
    """

    def _values(self, M: int, N: int) -> FloatArray:
        return np.ones(min(M, N))

    def _rule(self, alpha: float, n: int) -> tuple[FloatArray, FloatArray]:
        return np.ones(1), np.ones(1)


@dataclass(frozen=True)
class TwoLevel(Spectrum):
    """Eigenvalues of two sizes: a fraction of them is `ratio` times as large as the others.

    Parameters
    ----------
    ratio : float
        Quotient of the two values, positive.
    fraction : float
        Part of the K eigenvalues that is multiplied by it, between 0 and 1.

    Examples
    --------
    >>> TwoLevel(ratio=10.0, fraction=0.5).values(4, 4).round(3)
    array([1.818, 1.818, 0.182, 0.182])
    """

    ratio: float = 10.0
    fraction: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "ratio", positive_float("ratio", self.ratio))
        object.__setattr__(self, "fraction", probability("fraction", self.fraction))

    def _values(self, M: int, N: int) -> FloatArray:
        K = min(M, N)
        return np.where(np.arange(K) < round(self.fraction * K), self.ratio, 1.0)

    def _rule(self, alpha: float, n: int) -> tuple[FloatArray, FloatArray]:
        return np.array([self.ratio, 1.0]), np.array([self.fraction, 1.0 - self.fraction])


@dataclass(frozen=True)
class PowerSpectrum(Spectrum):
    """Eigenvalues in proportion to k^(−p), k = 1, ..., K.

    For p ≥ 1 a few of them carry most of the sum, and their share depends on K: there is no limit
    of many columns, and predictions are made for a given number of them.

    Parameters
    ----------
    exponent : float
        p, zero or more.

    Examples
    --------
    >>> PowerSpectrum(1.0).values(3, 6).round(3)
    array([1.636, 0.818, 0.545])
    """

    exponent: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "exponent", nonnegative_float("exponent", self.exponent))

    def _values(self, M: int, N: int) -> FloatArray:
        return np.arange(1.0, min(M, N) + 1.0) ** -self.exponent

    def _rule(self, alpha: float, n: int) -> tuple[FloatArray, FloatArray]:
        raise ValueError(
            "the eigenvalues of a PowerSpectrum depend on how many there are; pass n_features"
        )


@dataclass(frozen=True, eq=False, repr=False, init=False)
class EmpiricalSpectrum(Spectrum):
    """Given eigenvalues, such as those of a real matrix.

    Parameters
    ----------
    eigenvalues : array_like of shape (K,)
        Zero or more, and not all zero. Values below 1e-12 of the largest count as zero.

    Examples
    --------
    >>> import numpy as np
    >>> from privasso.model import EmpiricalSpectrum
    >>> F = np.random.default_rng(0).standard_normal((30, 50))
    >>> EmpiricalSpectrum.of(F)
    EmpiricalSpectrum(<30 eigenvalues>)
    """

    eigenvalues: FloatArray

    def __init__(self, eigenvalues: ArrayLike) -> None:
        d = np.sort(real_array("eigenvalues", eigenvalues, ndim=1))[::-1]
        if d[-1] < 0.0 or d[0] <= 0.0:
            raise ValueError("eigenvalues must be zero or more, and not all zero")
        d = np.where(d < _ZERO * d[0], 0.0, d)
        d.flags.writeable = False
        object.__setattr__(self, "eigenvalues", d)

    @classmethod
    def of(cls, F: ArrayLike) -> EmpiricalSpectrum:
        """The spectrum of AᵀA for A = F with columns scaled to equal norms; zero columns left out.

        The prediction from it is right as far as the eigenvectors of AᵀA have no preferred
        directions, which correlated neighbours, blocks or factors contradict.
        """
        F = real_array("F", F, ndim=2)
        norms = np.sqrt(np.einsum("ij,ij->j", F, F))
        if not np.any(norms):
            raise ValueError("F must have a column that is not zero")
        A = F[:, norms > 0.0] / norms[norms > 0.0]
        return cls(np.linalg.svd(A, compute_uv=False) ** 2)

    def __repr__(self) -> str:
        return f"EmpiricalSpectrum(<{self.eigenvalues.size} eigenvalues>)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EmpiricalSpectrum):
            return NotImplemented
        return np.array_equal(self.eigenvalues, other.eigenvalues)

    def __hash__(self) -> int:
        return hash(self.eigenvalues.tobytes())

    def _values(self, M: int, N: int) -> FloatArray:
        K, size = min(M, N), self.eigenvalues.size
        return self.eigenvalues[(np.arange(K) * 2 + 1) * size // (2 * K)]

    def _rule(self, alpha: float, n: int) -> tuple[FloatArray, FloatArray]:
        return self.eigenvalues, np.ones(self.eigenvalues.size)
