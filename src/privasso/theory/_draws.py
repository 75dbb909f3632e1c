"""State evolution for columns of any covariance: the averages, by simulation of a smaller LASSO.

Rows of F are N(0, C/N). In the slope q and the square e of the clipped residuals (`_system`) the
minimiser behaves, with a ridge of matrix Q, as

    x̂ = argmin ½xᵀ(αqC + Q)x − (αq Cx⁰ + √(αe) h − η)ᵀx + λ‖x‖₁,    h ~ N(0, C),

a LASSO in Gram form of size N without rows, and over the supports T

    R = q²E = q²σ_ξ² + q² E‖C^½(x̂ − x⁰)‖²/N,    S = qV = q E tr[C_TT (αqC_TT + Q_TT)⁻¹]/N.

Without a ridge z = αq x̂ is found instead, and S = ρ̂/α: nothing diverges at the edge of stability,
q → 0. For a diagonal C these are the averages of `_system`. They self-average, so a few draws of
(x⁰, h, η) are enough. The draws are kept while (e, q) changes, so that R and S are functions of
(e, q), and every solve starts from the last one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import ndtri

from privasso._blas import one_thread, product
from privasso.model import GivenCovariance, Model
from privasso.noise import Covariance, Diagonal, MatrixPower, NoiseDesign
from privasso.solvers import GramLasso
from privasso.theory._points import out_of_range
from privasso.theory._system import FloatArray

#: What the noise of a prediction for given columns may be.
ColumnNoise = NoiseDesign | MatrixPower | Covariance

#: Accuracy of the inner minimisers, relative to λ.
_TOL = 1e-6


@dataclass(frozen=True, eq=False)
class Averages:
    """R, S and ρ̂ at one (e, q), in each draw."""

    R: FloatArray
    S: FloatArray
    rho_hat: FloatArray

    @property
    def means(self) -> tuple[float, float]:
        """R and S, which are finite; an error says so where they are not."""
        R, S = float(np.mean(self.R)), float(np.mean(self.S))
        if not (math.isfinite(R) and math.isfinite(S)):
            raise out_of_range("columns")
        return R, S

    @property
    def covariance(self) -> FloatArray:
        """Covariance of the errors of log R and −S."""
        return np.cov(np.vstack([self.R / np.mean(self.R), -self.S])) / self.R.size


class NotSolvedError(Exception):
    """An inner problem has no minimiser: C is singular, and the noise lies outside its range."""


class Draws:
    """Common random numbers (x⁰, h, η) for given columns, and the minimisers they lead to.

    The model has a covariance matrix; `eta` is noise at hand, the same in all draws.
    """

    def __init__(
        self,
        model: Model,
        lam: float,
        noise: ColumnNoise,
        n_draws: int,
        rng: np.random.Generator,
        eta: FloatArray | None = None,
        kappa: float = math.inf,
        ridge: FloatArray | None = None,
    ) -> None:
        C = given(model)
        self.alpha, self.lam, self.model = model.alpha, lam, model
        self.kappa, self.ridge = kappa, ridge
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

    @property
    def is_linear(self) -> bool:
        """Whether nothing is clipped and there is no ridge."""
        return self.kappa == math.inf and self.ridge is None

    def averages(self, e: float, q: float) -> Averages:
        """R, S and ρ̂ at (e, q); `z` holds the minimisers afterwards."""
        N = self.v.size
        z = self.minimise(e, q)
        active = np.count_nonzero(z, axis=0) / N
        if self.ridge is None:
            w, S = z / self.alpha - q * self.x0, active / self.alpha
        else:
            H = self.alpha * q * self.C + self.ridge
            w = q * (z - self.x0)
            S = q * np.array([_response(self.C, H, np.flatnonzero(x)) for x in z.T]) / N
        spread = np.einsum("ik,ik->k", w, product(self.C, w)) / N
        return Averages(self.model.sigma_xi**2 * q * q + spread, S, active)

    def field(self, e: float, q: float) -> FloatArray:
        """The linear terms but for the noise."""
        return self.alpha * q * self.Cx0 + np.sqrt(self.alpha * e) * self.h

    def minimise(self, e: float, q: float) -> FloatArray:
        """The minimisers z, or x̂ with a ridge, at (e, q), from where the last call ended."""
        B = self.field(e, q) - self.eta
        if self.ridge is None:
            self.z, solved = self._lasso.minimise(B, self.lam, self.z, tol=_TOL)
        else:
            lasso = GramLasso(self.alpha * q * self.C + self.ridge)
            self.z, solved = lasso.minimise(B, self.lam, self.z)
        if not solved.all():
            self.z = None
            raise NotSolvedError
        return self.z


def _response(C: FloatArray, H: FloatArray, T: NDArray[np.intp]) -> float:
    """tr[C_TT (H_TT)⁻¹]."""
    if T.size == 0:
        return 0.0
    at = np.ix_(T, T)
    with one_thread():
        return float(np.trace(cho_solve(cho_factor(H[at]), C[at])))


def given(model: Model) -> GivenCovariance:
    """The covariance matrix of a model that has one."""
    return model.covariance


def signals(rho: float, N: int, n_draws: int, rng: np.random.Generator) -> FloatArray:
    """Bernoulli–Gaussian vectors whose nonzero entries are a stratified normal sample.

    Each entry has its exact law; the number and the sizes of the nonzero ones vary less from draw
    to draw than those of independent entries do, which makes the averages more accurate.
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


def covariance_of(noise: ColumnNoise, C: GivenCovariance) -> Covariance:
    """Σ on the columns of C."""
    if isinstance(noise, Covariance):
        return noise
    return noise.covariance(C.covariance if isinstance(noise, MatrixPower) else C.diagonal)


def noise_level(noise: ColumnNoise) -> float:
    """Root of the mean variance."""
    if isinstance(noise, Covariance):
        return float(np.sqrt(np.mean(noise.diagonal)))
    return noise.sigma


def own_variances(noise: ColumnNoise, C: GivenCovariance) -> FloatArray | None:
    """Variances of independent noise, or None for noise that is correlated over the columns."""
    if isinstance(noise, MatrixPower):
        if noise.gamma == 0.0:
            return np.full(C.n_columns, noise.mean_power)
        return None if not C.is_diagonal else np.sum(noise.root(C.covariance) ** 2, axis=1)
    if isinstance(noise, Covariance):
        return noise.diagonal if isinstance(noise, Diagonal) else None
    return noise.variances(C.diagonal)
