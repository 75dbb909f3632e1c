"""State evolution for columns of any covariance: the averages, by simulation of a smaller LASSO.

Rows of F are N(0, C/N). In u = 1/(1+V) and e = E/(1+V)² the minimiser behaves as x̂ = z/(αu),

    z = argmin ½zᵀCz − bᵀz + λ‖z‖₁,     b = αu Cx⁰ + √(αe) h − η,    h ~ N(0, C),

a LASSO in Gram form of size N without rows. Nothing diverges at the edge of stability, V → ∞.
One iteration maps (E, V) to

    E⁺u² = R(e, u) = σ_ξ²u² + E‖C^½(z/α − u x⁰)‖²/N,    ρ̂ = E‖z‖₀/N,    V⁺ = (1+V) ρ̂/α.

The averages self-average, so a few draws of (x⁰, h, η) are enough. The draws are kept while (e, u)
changes, so that R and ρ̂ are functions of (e, u), and every solve starts from the last one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privasso._blas import product
from privasso.model import GivenCovariance, Model
from privasso.noise import Covariance, MatrixPower, NoiseDesign
from privasso.solvers import GramLasso

FloatArray = NDArray[np.float64]
#: What the noise of a prediction for given columns may be.
ColumnNoise = NoiseDesign | MatrixPower | Covariance

#: Accuracy of the inner minimisers, relative to λ.
_TOL = 1e-6


@dataclass(frozen=True, eq=False)
class Averages:
    """R and ρ̂ at one (e, u), in each draw; exact averages have one "draw" and no error."""

    R: FloatArray
    rho_hat: FloatArray
    exact: bool = False

    @property
    def means(self) -> tuple[float, float]:
        """R and ρ̂, which are finite.

        Raises
        ------
        ValueError
            Where they leave the range of double precision.
        """
        R, rho_hat = float(np.mean(self.R)), float(np.mean(self.rho_hat))
        if not (math.isfinite(R) and math.isfinite(rho_hat)):
            raise ValueError(
                "the averages over the columns leave the range of double precision; choose scales, "
                "λ and noise nearer to one"
            )
        return R, rho_hat

    def covariance(self, alpha: float) -> FloatArray:
        """Covariance of the errors of log R and −ρ̂/α; zero for exact averages."""
        if self.exact:
            return np.zeros((2, 2))
        both = np.vstack([self.R / np.mean(self.R), -self.rho_hat / alpha])
        return np.cov(both) / self.R.size


class System(Protocol):
    """Anything that state evolution can average over."""

    alpha: float

    def averages(self, e: float, u: float) -> Averages:
        """R and ρ̂ at (e, u)."""
        ...


class NotSolvedError(Exception):
    """An inner problem has no minimiser: C is singular, and the noise lies outside its range."""


class Draws:
    """Common random numbers (x⁰, h, η) for given columns, and the minimisers they lead to.

    Parameters
    ----------
    model : Model
        With a covariance matrix.
    lam : float
    noise : NoiseDesign, MatrixPower or Covariance
    n_draws : int
    rng : numpy.random.Generator
    eta : ndarray of shape (N,), optional
        Noise at hand, the same in all draws.
    """

    def __init__(
        self,
        model: Model,
        lam: float,
        noise: ColumnNoise,
        n_draws: int,
        rng: np.random.Generator,
        eta: FloatArray | None = None,
    ) -> None:
        C = given(model)
        self.alpha, self.lam, self.model = model.alpha, lam, model
        self.C: FloatArray = C.covariance
        self.v: FloatArray = C.diagonal
        N = C.n_columns
        self.x0 = signals(model.rho, N, n_draws, rng)
        self.h = product(C.root, rng.standard_normal((C.rank, n_draws)))
        self.eta: FloatArray = (
            _noise_draws(C, noise, n_draws, rng)
            if eta is None
            else np.repeat(eta[:, None], n_draws, axis=1)
        )
        self.Cx0 = product(self.C, self.x0)
        self._lasso = GramLasso(self.C, C.rank)
        self.z: FloatArray | None = None

    def averages(self, e: float, u: float) -> Averages:
        """R and ρ̂ at (e, u); `z` holds the minimisers afterwards."""
        N = self.v.size
        z = self.minimise(e, u)
        w = z / self.alpha - u * self.x0
        spread = np.einsum("ik,ik->k", w, product(self.C, w)) / N
        R = self.model.sigma_xi**2 * u * u + spread
        return Averages(R, np.count_nonzero(z, axis=0) / N)

    def field(self, e: float, u: float) -> FloatArray:
        """The linear terms b + η: what a coefficient sees but for the noise."""
        return self.alpha * u * self.Cx0 + np.sqrt(self.alpha * e) * self.h

    def minimise(self, e: float, u: float) -> FloatArray:
        """The minimisers z at (e, u), from where the last call ended."""
        B = self.field(e, u) - self.eta
        self.z, solved = self._lasso.minimise(B, self.lam, self.z, tol=_TOL)
        if not solved.all():
            self.z = None
            raise NotSolvedError
        return self.z

    def with_level(self, factor: float) -> None:
        """Multiply the noise by a factor, in place."""
        self.eta = self.eta * factor


def given(model: Model) -> GivenCovariance:
    """The covariance matrix of a model that has one."""
    assert isinstance(model.covariance, GivenCovariance)
    return model.covariance


def signals(rho: float, N: int, n_draws: int, rng: np.random.Generator) -> FloatArray:
    """Bernoulli–Gaussian vectors whose nonzero entries are a stratified normal sample.

    Each entry has its exact law; the number and the sizes of the nonzero ones vary less from draw
    to draw than those of independent entries do, which makes the averages more accurate.

    Examples
    --------
    >>> x = signals(0.1, 1000, 2, np.random.default_rng(0))
    >>> np.count_nonzero(x, axis=0), bool(abs((x**2).sum(axis=0) - 100).max() < 8)
    (array([100, 100]), True)
    """
    x = np.zeros((N, n_draws))
    for k in range(n_draws):
        count = int(np.floor(rho * N + rng.random()))
        p = (np.arange(count) + rng.random(count)) / max(count, 1)
        x[rng.choice(N, count, replace=False), k] = rng.permutation(ndtri(p))
    return x


def _noise_draws(
    C: GivenCovariance, noise: ColumnNoise, n_draws: int, rng: np.random.Generator
) -> FloatArray:
    if isinstance(noise, Covariance):
        return noise.draw(rng, n_draws)
    if isinstance(noise, MatrixPower):
        root = noise.root(C.covariance)
        return product(root, rng.standard_normal((root.shape[1], n_draws)))
    return noise.draw(C.diagonal, rng, n_draws)
