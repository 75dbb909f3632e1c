"""Sparse linear data with Gaussian columns of random scale, independent or correlated."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, SupportsIndex, cast

import numpy as np
from numpy.typing import NDArray

from privasso._blas import product
from privasso._validation import generator, integer, nonnegative_float, positive_float
from privasso.model._covariance import ColumnCovariance, GivenCovariance
from privasso.model._spectrum import MarchenkoPastur, Spectrum
from privasso.scales import Empirical, ScaleLaw, Uniform

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Sample:
    """One data set drawn from a `Model`; its repr shows only the shape.

    Attributes
    ----------
    F : ndarray of shape (M, N)
        Covariates, in C order.
    y : ndarray of shape (M,)
        Responses.
    x0 : ndarray of shape (N,)
        True coefficients.
    v : ndarray of shape (N,)
        Squared scales s² drawn from the law. N/M times the squared norms of the columns of F
        estimate them.

    Examples
    --------
    >>> import privasso as pv
    >>> sample = pv.Model(alpha=0.5).sample(200, rng=0)
    >>> sample.F.shape, sample.y.shape, sample.x0.shape, sample.v.shape
    ((100, 200), (100,), (200,), (200,))
    """

    F: FloatArray
    y: FloatArray
    x0: FloatArray
    v: FloatArray

    def __repr__(self) -> str:
        rows, columns = self.F.shape
        return f"Sample(<{rows} rows, {columns} columns>)"


#: Stands for a law of the scales until the other settings say which.
_NONE = cast(ScaleLaw, None)


@dataclass(frozen=True)
class Model:
    """y = F x⁰ + ξ with F_μi = s_i F̃_μi, F̃_μi ~ N(0, 1/N), ξ_μ ~ N(0, σ_ξ²).

    Coefficients are Bernoulli–Gaussian: zero with probability 1-ρ, otherwise N(0, 1). The scales
    s_i are independent draws from their law.

    Parameters
    ----------
    alpha : float
        Rows per column, M/N.
    rho : float
        Fraction of nonzero coefficients, in (0, 1].
    sigma_xi : float
        Standard deviation of the label noise, zero or more.
    scales : ScaleLaw
        Law of s; `Uniform` if not given. Not with a matrix as covariance, whose diagonal is v.
    covariance : array_like of shape (N, N) or ColumnCovariance, optional
        Correlated columns: rows of F are N(0, C/N). A matrix is C itself, its diagonal plays v, and
        the model has N columns. A correlation R, such as ``model.AutoRegressive(0.8)``, is for any
        number of columns, and C = diag(s) R diag(s). Independent columns if not given.

    Examples
    --------
    >>> from privasso import LogNormal, Model
    >>> model = Model(alpha=0.5, rho=0.1, sigma_xi=0.1, scales=LogNormal(0.0, 0.5))
    >>> model.sample(n_features=100, rng=0)
    Sample(<50 rows, 100 columns>)
    >>> Model(covariance=[[1.0, 0.5], [0.5, 4.0]]).scales.moment(1.0)
    2.5
    """

    alpha: float = 0.5
    rho: float = 0.1
    sigma_xi: float = 0.1
    scales: ScaleLaw = _NONE
    covariance: Any = None  # a ColumnCovariance or None; an array is turned into one

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", positive_float("alpha", self.alpha))
        rho = positive_float("rho", self.rho)
        if rho > 1.0:
            raise ValueError(f"rho is a fraction and must not exceed 1, not {rho!r}")
        object.__setattr__(self, "rho", rho)
        object.__setattr__(self, "sigma_xi", nonnegative_float("sigma_xi", self.sigma_xi))
        self._set_columns()

    def _set_columns(self) -> None:
        """Check scales and covariance, which may be an array at first, and set their defaults."""
        C = self.covariance
        if C is not None and not isinstance(C, ColumnCovariance):
            C = GivenCovariance(C)
            object.__setattr__(self, "covariance", C)
        scales: ScaleLaw | None = self.scales
        if isinstance(C, GivenCovariance):
            own = Empirical(np.sqrt(C.diagonal))
            if scales is not None and scales != own:
                raise ValueError(
                    "the diagonal of a covariance matrix gives the scales; leave scales out"
                )
            scales = own
        if scales is None:
            scales = Uniform()
        object.__setattr__(self, "scales", scales)
        if not isinstance(scales, ScaleLaw):
            raise ValueError(
                "scales must be a law of the column scale, such as Uniform(), LogNormal() or "
                f"Empirical(values), not an object of type {type(scales).__name__}"
            )

    def __repr__(self) -> str:
        columns = "" if self.covariance is None else f", covariance={self.covariance!r}"
        return (
            f"Model(alpha={self.alpha!r}, rho={self.rho!r}, sigma_xi={self.sigma_xi!r}, "
            f"scales={self.scales!r}{columns})"
        )

    def realised(
        self,
        n_features: SupportsIndex | None = None,
        rng: int | np.random.Generator | None = None,
        *,
        draw_scales: bool = False,
    ) -> Model:
        """The same model with the covariance matrix of N given columns.

        The scales are the N quantiles of their law in random order, or with `draw_scales` N draws
        from it, and random directions of a correlation are drawn once. Data sets sampled from the
        result share all of that.

        Examples
        --------
        >>> from privasso import Constant, Model
        >>> from privasso.model import AutoRegressive
        >>> Model(scales=Constant(), covariance=AutoRegressive(0.8)).realised(100, rng=0)
        Model(alpha=0.5, rho=0.1, sigma_xi=0.1, scales=Empirical(<100 values from 1 to 1>), covariance=GivenCovariance(<100 columns>))
        """  # noqa: E501
        N = self._count(n_features)
        if isinstance(self.covariance, GivenCovariance):
            return self
        rng = generator(rng)
        s = self.scales.draw(N, rng) if draw_scales else rng.permutation(self.scales.quantiles(N))
        R = np.eye(N) if self.covariance is None else self.covariance.matrix(N, rng)
        C = GivenCovariance(R * np.outer(s, s))
        return replace(self, scales=None, covariance=C)

    def _count(self, n_features: SupportsIndex | None) -> int:
        """N, which a given covariance fixes."""
        fixed = None if self.covariance is None else self.covariance.n_columns
        if n_features is None:
            if fixed is None:
                raise ValueError("n_features must be given; only a covariance matrix fixes it")
            return fixed
        N = integer("n_features", n_features, minimum=1)
        if fixed is not None and fixed != N:
            raise ValueError(f"the covariance is for {fixed} columns, so n_features cannot be {N}")
        return N

    def sample(
        self,
        n_features: SupportsIndex | None = None,
        rng: int | np.random.Generator | None = None,
    ) -> Sample:
        """Draw a data set with N = n_features columns and M = round(alpha·N) rows.

        Parameters
        ----------
        n_features : int
            Number of columns N, such that M is at least 1. It may be left out with a covariance
            matrix.
        rng : None, int or numpy.random.Generator
            Source of randomness; None takes entropy from the operating system.

        Examples
        --------
        >>> from privasso import Model
        >>> s = Model(alpha=0.5).sample(n_features=1000, rng=0)
        >>> s.F.shape, s.y.shape, s.x0.shape, s.v.shape
        ((500, 1000), (500,), (1000,), (1000,))
        """
        N = self._count(n_features)
        M = round(self.alpha * N)
        if M < 1:
            raise ValueError(
                f"alpha={self.alpha!r} with n_features={N} gives no rows; "
                f"use at least {math.floor(0.5 / self.alpha) + 1} features"
            )
        rng = generator(rng)
        if self.covariance is not None:
            C = self.realised(N, rng, draw_scales=True).covariance
            s = np.sqrt(C.diagonal)
        else:
            C, s = None, self.scales.draw(N, rng)
        x0 = np.where(rng.random(N) < self.rho, rng.standard_normal(N), 0.0)
        if C is not None:
            F = product(rng.standard_normal((M, C.rank)), C.root.T / math.sqrt(N))
        else:
            # Scaled in place: F is the one large array, and a temporary would double the memory.
            F = rng.standard_normal((M, N))
            F *= s / math.sqrt(N)
        y = F @ x0 + self.sigma_xi * rng.standard_normal(M)
        return Sample(F=F, y=y, x0=x0, v=s * s)


FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class RotatedModel:
    """y = F x⁰ + ξ with F = A diag(s), A = U D^½ Vᵀ, U and V uniform among orthogonal matrices.

    D holds the eigenvalues of AᵀA, so F is a right-rotationally invariant matrix with rescaled
    columns. Coefficients, label noise and scales are those of `Model`, which is the case of the
    Marchenko–Pastur spectrum. Only `state_evolution` makes predictions for a `RotatedModel`.

    Parameters
    ----------
    alpha, rho, sigma_xi, scales
        As in `Model`.
    spectrum : Spectrum
        The eigenvalues of AᵀA. Their mean over the columns is made α, so that s keeps its meaning.

    Examples
    --------
    >>> from privasso.model import Orthogonal, RotatedModel
    >>> s = RotatedModel(alpha=0.5, spectrum=Orthogonal()).sample(n_features=100, rng=0)
    >>> A = s.F / s.v**0.5
    >>> bool(abs(A @ A.T - np.eye(50)).max() < 1e-9)
    True
    """

    alpha: float = 0.5
    rho: float = 0.1
    sigma_xi: float = 0.1
    scales: ScaleLaw = field(default_factory=Uniform)
    spectrum: Spectrum = field(default_factory=MarchenkoPastur)

    def __post_init__(self) -> None:
        plain = self.independent()
        for name in ("alpha", "rho", "sigma_xi"):
            object.__setattr__(self, name, getattr(plain, name))
        if not isinstance(self.spectrum, Spectrum):
            raise ValueError(
                "spectrum must be a Spectrum, such as Orthogonal() or TwoLevel(ratio), not an "
                f"object of type {type(self.spectrum).__name__}"
            )

    def independent(self) -> Model:
        """The model of independent entries with the same sizes, signal, noise and scales."""
        return Model(self.alpha, self.rho, self.sigma_xi, self.scales)

    def sample(
        self, n_features: SupportsIndex, rng: int | np.random.Generator | None = None
    ) -> Sample:
        """Draw a data set with N = n_features columns and M = round(alpha·N) rows.

        It takes two factorisations of random matrices of the size of F.

        Examples
        --------
        >>> from privasso.model import RotatedModel, TwoLevel
        >>> RotatedModel(alpha=1.5, spectrum=TwoLevel(100.0)).sample(40, rng=0)
        Sample(<60 rows, 40 columns>)
        """
        N = integer("n_features", n_features, minimum=1)
        M = round(self.alpha * N)
        if M < 1:
            raise ValueError(f"alpha={self.alpha!r} with n_features={N} gives no rows; use more")
        rng = generator(rng)
        s = self.scales.draw(N, rng)
        x0 = np.where(rng.random(N) < self.rho, rng.standard_normal(N), 0.0)
        d = self.spectrum.values(M, N)
        left, right = uniform_frame(M, d.size, rng), uniform_frame(N, d.size, rng)
        F = (left * np.sqrt(d)) @ right.T
        F *= s
        y = F @ x0 + self.sigma_xi * rng.standard_normal(M)
        return Sample(F=F, y=y, x0=x0, v=s * s)


def uniform_frame(n: int, k: int, rng: np.random.Generator) -> FloatArray:
    """K orthonormal vectors of length n in uniformly random directions, as columns."""
    Q, R = np.linalg.qr(rng.standard_normal((n, k)))
    # Without the signs of R the law would depend on how the factorisation chooses them.
    return Q * np.sign(np.diag(R))
