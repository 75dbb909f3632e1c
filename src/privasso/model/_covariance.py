"""How the columns of F are correlated: rows are N(0, C/N), and each value here makes a C."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privasso._blas import one_thread
from privasso._text import word_and_numbers
from privasso._validation import integer, real_array, real_float
from privasso.model._spectrum import PowerSpectrum, Spectrum, TwoLevel

FloatArray = NDArray[np.float64]

#: Eigenvalues below this part of the largest count as zero.
_ZERO = 1e-10


class ColumnCovariance(ABC):
    """The law of one row of F, N(0, C/N), up to the scales of the columns.

    A correlation (`AutoRegressive`, `Blocks`, `Factors`, `RandomEigenvectors`) is for any number
    of columns, and the `Model` multiplies it with its scales: C = diag(s) R diag(s). A
    `GivenCovariance` is the whole C of given columns.
    """

    @property
    def n_columns(self) -> int | None:
        """The number of columns, or None if it is for any number of them."""
        return None

    @abstractmethod
    def matrix(self, n: int, rng: np.random.Generator) -> FloatArray:
        """A matrix of shape (n, n) with a diagonal of mean 1, or the given one."""


@dataclass(frozen=True)
class AutoRegressive(ColumnCovariance):
    """Neighbours are correlated, and less so with their distance: R_ij = r^|i−j|.

    Parameters
    ----------
    correlation : float
        r, between −1 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from privasso.model import AutoRegressive
    >>> AutoRegressive(0.5).matrix(3, np.random.default_rng())
    array([[1.  , 0.5 , 0.25],
           [0.5 , 1.  , 0.5 ],
           [0.25, 0.5 , 1.  ]])
    """

    correlation: float = 0.5

    def __post_init__(self) -> None:
        r = real_float("correlation", self.correlation)
        if not -1.0 < r < 1.0:
            raise ValueError(f"correlation must lie between -1 and 1, not {r!r}")
        object.__setattr__(self, "correlation", r)

    def matrix(self, n: int, rng: np.random.Generator) -> FloatArray:
        powers: FloatArray = np.float64(self.correlation) ** np.arange(n, dtype=np.float64)
        i = np.arange(n)
        return powers[np.abs(i[:, None] - i)]


@dataclass(frozen=True)
class Blocks(ColumnCovariance):
    """Groups of neighbouring columns, such as linked genes: R_ij = r within a group, else 0.

    Parameters
    ----------
    size : int
        Columns in a group; the last group may have fewer.
    correlation : float
        r, at least 0 and below 1.

    Examples
    --------
    >>> import numpy as np
    >>> from privasso.model import Blocks
    >>> Blocks(2, 0.5).matrix(3, np.random.default_rng())
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0. ],
           [0. , 0. , 1. ]])
    """

    size: int = 10
    correlation: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", integer("size", self.size, minimum=1))
        object.__setattr__(self, "correlation", _share("correlation", self.correlation))

    def matrix(self, n: int, rng: np.random.Generator) -> FloatArray:
        group = np.arange(n) // self.size
        R = np.where(group[:, None] == group, self.correlation, 0.0)
        np.fill_diagonal(R, 1.0)
        return R


@dataclass(frozen=True)
class Factors(ColumnCovariance):
    """A few common factors: R = (1−w) I + w ΛΛᵀ, the rows of Λ being random unit vectors.

    Parameters
    ----------
    number : int
        Number of factors.
    share : float
        w, the part of the variance of a column that the factors explain, at least 0 and below 1.

    Examples
    --------
    >>> import numpy as np
    >>> from privasso.model import Factors
    >>> R = Factors(3, share=0.4).matrix(50, np.random.default_rng(0))
    >>> bool(np.allclose(np.diag(R), 1.0)), int(np.sum(np.linalg.eigvalsh(R) > 0.6 + 1e-9))
    (True, 3)
    """

    number: int = 3
    share: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "number", integer("number", self.number, minimum=1))
        object.__setattr__(self, "share", _share("share", self.share))

    def matrix(self, n: int, rng: np.random.Generator) -> FloatArray:
        loadings = rng.standard_normal((n, self.number))
        loadings *= np.sqrt(self.share) / np.linalg.norm(loadings, axis=1)[:, None]
        R = loadings @ loadings.T
        np.fill_diagonal(R, 1.0)
        return R


@dataclass(frozen=True)
class RandomEigenvectors(ColumnCovariance):
    """Given eigenvalues of mean 1, and eigenvectors in uniformly random directions.

    The diagonal is close to 1 for many columns, but not equal to it.

    Parameters
    ----------
    spectrum : Spectrum
        The eigenvalues, such as ``PowerSpectrum(1.0)`` or ``TwoLevel(10.0)``.

    Examples
    --------
    >>> import numpy as np
    >>> from privasso.model import RandomEigenvectors, TwoLevel
    >>> R = RandomEigenvectors(TwoLevel(3.0)).matrix(4, np.random.default_rng(0))
    >>> np.linalg.eigvalsh(R).round(12)
    array([0.5, 0.5, 1.5, 1.5])
    """

    spectrum: Spectrum = field(default_factory=TwoLevel)

    def __post_init__(self) -> None:
        if not isinstance(self.spectrum, Spectrum):
            raise ValueError(
                "spectrum must be a Spectrum, such as TwoLevel(ratio) or PowerSpectrum(exponent), "
                f"not an object of type {type(self.spectrum).__name__}"
            )

    def matrix(self, n: int, rng: np.random.Generator) -> FloatArray:
        with one_thread():
            Q, R = np.linalg.qr(rng.standard_normal((n, n)))
            Q *= np.sign(np.diag(R))
            C = (Q * self.spectrum.values(n, n)) @ Q.T
        return 0.5 * (C + C.T)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class GivenCovariance(ColumnCovariance):
    """The covariance of given columns; its diagonal plays v.

    Parameters
    ----------
    covariance : array_like of shape (N, N)
        C, symmetric, positive semidefinite, with a positive diagonal. It is copied.

    Examples
    --------
    >>> from privasso.model import GivenCovariance
    >>> C = GivenCovariance([[1.0, 0.5], [0.5, 4.0]])
    >>> C, C.diagonal
    (GivenCovariance(<2 columns>), array([1., 4.]))
    """

    covariance: FloatArray
    _TOLERANCE: ClassVar[float] = 1e-9

    def __init__(self, covariance: ArrayLike) -> None:
        C = np.array(real_array("covariance", covariance, ndim=2))
        if C.shape[0] != C.shape[1]:
            raise ValueError(f"covariance must be square, not of shape {C.shape}")
        d = np.diag(C)
        if not np.min(d) > 0.0:
            raise ValueError("covariance must have a positive diagonal; drop constant columns")
        size = np.sqrt(d)
        asymmetry = np.max(np.abs(C - C.T) / np.outer(size, size))
        if asymmetry > self._TOLERANCE:
            raise ValueError("covariance must be symmetric")
        C = 0.5 * (C + C.T)
        C.flags.writeable = False
        object.__setattr__(self, "covariance", C)
        _ = self.root  # which raises an error if C is not positive semidefinite

    @classmethod
    def of(cls, covariates: ArrayLike, shrink: float | None = None) -> GivenCovariance:
        """N times the covariance of public covariates, estimated from their rows.

        Correlations estimated from few rows are too large, so they are multiplied by 1 − shrink.
        The default is Ledoit and Wolf's estimate of the best factor for columns at unit variance.

        Parameters
        ----------
        covariates : array_like of shape (M, N)
            Public rows, in the units of the data that will be fitted.
        shrink : float, optional
            From 0, the sample covariance, to 1, independent columns.

        Examples
        --------
        >>> import numpy as np
        >>> from privasso.model import GivenCovariance
        >>> X = np.random.default_rng(0).standard_normal((4000, 3))
        >>> X[:, 2] += X[:, 1]
        >>> (GivenCovariance.of(X).covariance / 3).round(1) + 0.0
        array([[1., 0., 0.],
               [0., 1., 1.],
               [0., 1., 2.]])
        """
        X = real_array("covariates", covariates, ndim=2)
        M, N = X.shape
        if M < 2:
            raise ValueError("covariates must have two rows or more")
        X = X - X.mean(axis=0)
        scale = np.sqrt(np.mean(X * X, axis=0))
        if not np.min(scale) > 0.0:
            raise ValueError("a column of the covariates is constant; drop it")
        X /= scale
        R = X.T @ X / M
        if shrink is None:
            from sklearn.covariance import ledoit_wolf_shrinkage

            shrink = float(ledoit_wolf_shrinkage(X, assume_centered=True))
        elif not 0.0 <= real_float("shrink", shrink) <= 1.0:
            raise ValueError(f"shrink must lie between 0 and 1, not {shrink!r}")
        R *= 1.0 - shrink
        np.fill_diagonal(R, 1.0)
        return cls(N * R * np.outer(scale, scale))

    def __repr__(self) -> str:
        return f"GivenCovariance(<{self.covariance.shape[0]} columns>)"

    def __reduce__(self) -> tuple[object, ...]:
        return GivenCovariance, (self.covariance,)

    @property
    def n_columns(self) -> int:
        return self.covariance.shape[0]

    @property
    def diagonal(self) -> FloatArray:
        """The squared scales v."""
        return np.diag(self.covariance).copy()

    @cached_property
    def is_diagonal(self) -> bool:
        """Whether the columns are independent."""
        off = self.covariance.copy()
        np.fill_diagonal(off, 0.0)
        return not off.any()

    @cached_property
    def root(self) -> FloatArray:
        """A matrix L of shape (N, rank) with C = LLᵀ."""
        size = np.sqrt(np.diag(self.covariance))
        unit = self.covariance / np.outer(size, size)
        with one_thread():
            try:
                L = np.asarray(np.linalg.cholesky(unit), dtype=np.float64)
                if np.min(np.diag(L)) ** 2 > _ZERO:
                    return L * size[:, None]
            except np.linalg.LinAlgError:
                pass
            d, Q = np.linalg.eigh(unit)
        if d[0] < -1e-8 * d[-1]:
            raise ValueError(
                "covariance must be positive semidefinite; its smallest eigenvalue, of columns at "
                f"unit variance, is {d[0]:.3g}"
            )
        keep = d > _ZERO * d[-1]
        return size[:, None] * Q[:, keep] * np.sqrt(d[keep])

    @property
    def rank(self) -> int:
        """Rank of C, and of F with as many rows."""
        return self.root.shape[1]

    def matrix(self, n: int, rng: np.random.Generator) -> FloatArray:
        return self.covariance


def _share(name: str, value: float) -> float:
    number = real_float(name, value)
    if not 0.0 <= number < 1.0:
        raise ValueError(f"{name} must be at least 0 and below 1, not {number!r}")
    return number


_KINDS: dict[str, tuple[int, Callable[..., ColumnCovariance]]] = {
    "ar": (1, lambda r: AutoRegressive(r)),
    "blocks": (2, lambda size, r: Blocks(_whole(size), r)),
    "factors": (2, lambda number, share: Factors(_whole(number), share)),
    "power": (1, lambda p: RandomEigenvectors(PowerSpectrum(p))),
    "levels": (2, lambda ratio, part: RandomEigenvectors(TwoLevel(ratio, part))),
}
#: Words that `covariance_from_name` knows.
COVARIANCE_NAMES = tuple(_KINDS)


def covariance_from_name(name: str, text: str) -> ColumnCovariance:
    """Return the correlation that a text such as ``ar:0.8`` or ``blocks:10,0.5`` stands for.

    `name`: what the caller calls the argument; it opens every error message. `text`: ar:R,
    blocks:SIZE,R, factors:NUMBER,SHARE, or random eigenvectors with eigenvalues k^(−P) (power:P) or
    of two sizes (levels:RATIO,FRACTION).
    """
    word, numbers = word_and_numbers(name, text, {word: n for word, (n, _) in _KINDS.items()})
    try:
        return _KINDS[word][1](*numbers)
    except ValueError as error:
        raise ValueError(f"{name} {text!r}: {error}") from None


def _whole(number: float) -> int:
    if not number.is_integer():
        raise ValueError(f"{number:g} must be a whole number")
    return int(number)
