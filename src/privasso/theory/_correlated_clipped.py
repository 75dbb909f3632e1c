"""State evolution of the clipped-residual LASSO with a ridge, for columns of any covariance.

With q and g² = E[ψ²], the mean slope and the mean square of the clipped residuals at (E, V)
(`clipped_moments`), the minimiser behaves as

    x̂ = argmin ½xᵀ(αqC + Q)x − (αq Cx⁰ + √(αg²) h − η)ᵀx + λ‖x‖₁,    h ~ N(0, C),

and E = σ_ξ² + E‖C^½(x̂ − x⁰)‖²/N, V = E tr[C_SS (αqC_SS + Q_SS)⁻¹]/N over the supports S. For a
diagonal C this is the recursion of `_clipped_recursion`, and without clipping and ridge that of
`_draws`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from privasso._blas import one_thread, product
from privasso.model import Model
from privasso.noise import Covariance, MatrixPower, NoiseDesign
from privasso.solvers import GramLasso
from privasso.theory._clipped import clipped_moments
from privasso.theory._correlated_point import CorrelatedPoint
from privasso.theory._draws import ColumnNoise, Draws, NotSolvedError, given
from privasso.theory._fixed_point import FixedPointStatus, StandardErrors

FloatArray = NDArray[np.float64]

_STEPS = 60
#: What may be missing at the end, in standard errors; steps of the differences.
_SHARE, _DIFFERENCE = 0.1, 0.05


def ridge_matrix(ridge: float | ColumnNoise, C: FloatArray) -> FloatArray:
    """Q over columns of covariance C."""
    if isinstance(ridge, MatrixPower):
        root = ridge.root(C)
        return root @ root.T
    if isinstance(ridge, Covariance):
        return ridge.matrix()
    if isinstance(ridge, NoiseDesign):
        return np.diag(ridge.variances(np.diag(C)))
    return float(ridge) * np.eye(C.shape[0])


class ClippedDraws(Draws):
    """Common random numbers, and the map of (E, V) to the averages in each draw."""

    def __init__(
        self,
        model: Model,
        lam: float,
        noise: ColumnNoise,
        kappa: float,
        Q: FloatArray,
        n_draws: int,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(model, lam, noise, n_draws, rng)
        self.kappa, self.Q = kappa, Q
        self.x: FloatArray | None = None

    def step(self, E: float, V: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """E, V and ρ̂ after one iteration, in each draw."""
        q, square = (float(part) for part in clipped_moments(self.kappa, E, V))
        H = self.alpha * q * self.C + self.Q
        B = self.alpha * q * self.Cx0 + math.sqrt(self.alpha * square) * self.h - self.eta
        self.x, solved = GramLasso(H).minimise(B, self.lam, self.x)
        if not solved.all():
            raise NotSolvedError
        d = self.x - self.x0
        N = self.v.size
        error = self.model.sigma_xi**2 + np.einsum("ik,ik->k", d, product(self.C, d)) / N
        response = np.array([_response(self.C, H, np.flatnonzero(x)) for x in self.x.T]) / N
        return error, response, np.count_nonzero(self.x, axis=0) / N


def _response(C: FloatArray, H: FloatArray, S: NDArray[np.intp]) -> float:
    """tr[C_SS (H_SS)⁻¹]."""
    if S.size == 0:
        return 0.0
    at = np.ix_(S, S)
    with one_thread():
        return float(np.trace(cho_solve(cho_factor(H[at]), C[at])))


def correlated_clipped(
    model: Model,
    lam: float,
    noise: ColumnNoise,
    kappa: float,
    ridge: float | ColumnNoise,
    n_draws: int,
    rng: np.random.Generator,
) -> CorrelatedPoint:
    """The fixed point for a model with a covariance matrix; the arguments have been checked."""
    C = given(model)
    Q = ridge_matrix(ridge, C.covariance)
    draws = ClippedDraws(model, lam, noise, kappa, Q, n_draws, rng)
    E = model.sigma_xi**2 + 0.5 * model.rho * float(np.mean(C.diagonal))
    V, path = 0.3, []

    def step(E: float, V: float) -> tuple[FloatArray, FloatArray]:
        """(log E, V) of the next iterate in each draw, and ρ̂."""
        error, response, active = draws.step(E, V)
        path.append((float(error.mean()), float(response.mean()), float(active.mean())))
        return np.vstack([error / error.mean(), response]), active

    both, active = step(E, V)
    for _ in range(_STEPS):
        new_E, new_V, _ = path[-1]
        miss = np.array([math.log(new_E / E), new_V - V])
        error = np.sqrt(np.diag(np.cov(both)) / n_draws)
        E, V = new_E, new_V
        both, active = step(E, V)
        if np.all(np.abs(miss) <= np.maximum(_SHARE * error, 1e-6)):
            break
    here = np.array([math.log(path[-1][0]), path[-1][1]])
    J = np.empty((2, 2))
    for k, (e, v) in enumerate(((E * math.exp(_DIFFERENCE), V), (E, V * (1.0 + _DIFFERENCE)))):
        step(e, v)
        moved = np.array([math.log(path[-1][0]), path[-1][1]])
        J[:, k] = (moved - here) / (_DIFFERENCE * (1.0 if k == 0 else max(V, 1e-9)))
    inverse = np.linalg.inv(np.eye(2) - J)
    S = inverse @ (np.cov(both) / n_draws) @ inverse.T
    E, V, rho_hat = math.exp(here[0]), float(here[1]), float(active.mean())
    return CorrelatedPoint(
        status=FixedPointStatus.STABLE, E=E, V=V, rho_hat=rho_hat, model=model, lam=lam,
        noise=noise, kappa=kappa, ridge=ridge,  # pyright: ignore[reportArgumentType]
        n_draws=n_draws,
        standard_errors=StandardErrors(
            E=E * math.sqrt(S[0, 0]), V=math.sqrt(S[1, 1]),
            rho_hat=float(active.std(ddof=1)) / math.sqrt(n_draws),
            stability=math.sqrt(S[1, 1]) / (1.0 + V) ** 2, onavekl=math.nan,
        ),
        _path=np.array(path),
    )  # fmt: skip
