"""Sparse linear data with Gaussian columns of random scale."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from privasso._validation import generator, integer, nonnegative_float, positive_float
from privasso.scales import ScaleLaw, Uniform

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
    """

    F: FloatArray
    y: FloatArray
    x0: FloatArray
    v: FloatArray

    def __repr__(self) -> str:
        rows, columns = self.F.shape
        return f"Sample(<{rows} rows, {columns} columns>)"


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
        Law of s.

    Examples
    --------
    >>> from privasso import LogNormal, Model
    >>> model = Model(alpha=0.5, rho=0.1, sigma_xi=0.1, scales=LogNormal(0.0, 0.5))
    >>> model.sample(n_features=100, rng=0)
    Sample(<50 rows, 100 columns>)
    """

    alpha: float = 0.5
    rho: float = 0.1
    sigma_xi: float = 0.1
    scales: ScaleLaw = field(default_factory=Uniform)

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", positive_float("alpha", self.alpha))
        rho = positive_float("rho", self.rho)
        if rho > 1.0:
            raise ValueError(f"rho is a fraction and must not exceed 1, not {rho!r}")
        object.__setattr__(self, "rho", rho)
        object.__setattr__(self, "sigma_xi", nonnegative_float("sigma_xi", self.sigma_xi))
        if not isinstance(self.scales, ScaleLaw):
            raise ValueError(
                "scales must be a law of the column scale, such as Uniform(), LogNormal() or "
                f"Empirical(values), not an object of type {type(self.scales).__name__}"
            )

    def sample(
        self, n_features: SupportsIndex, rng: int | np.random.Generator | None = None
    ) -> Sample:
        """Draw a data set with N = n_features columns and M = round(alpha·N) rows.

        Parameters
        ----------
        n_features : int
            Number of columns N, such that M is at least 1.
        rng : None, int or numpy.random.Generator
            Source of randomness; None takes entropy from the operating system.

        Examples
        --------
        >>> from privasso import Model
        >>> s = Model(alpha=0.5).sample(n_features=1000, rng=0)
        >>> s.F.shape, s.y.shape, s.x0.shape, s.v.shape
        ((500, 1000), (500,), (1000,), (1000,))
        """
        N = integer("n_features", n_features, minimum=1)
        M = round(self.alpha * N)
        if M < 1:
            raise ValueError(
                f"alpha={self.alpha!r} with n_features={N} gives no rows; "
                f"use at least {math.floor(0.5 / self.alpha) + 1} features"
            )
        rng = generator(rng)
        s = self.scales.draw(N, rng)
        x0 = np.where(rng.random(N) < self.rho, rng.standard_normal(N), 0.0)
        # Scaled in place: F is the one large array, and a temporary would double the memory.
        F = rng.standard_normal((M, N))
        F *= s / math.sqrt(N)
        y = F @ x0 + self.sigma_xi * rng.standard_normal(M)
        return Sample(F=F, y=y, x0=x0, v=s * s)
