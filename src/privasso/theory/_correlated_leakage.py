"""What a release from correlated columns leaks: the Fisher information Ī, and the overlap.

The law of the released x has the density of `log_density`. Its score in c = Fᵀ(y − Fx) is
s_i = ∂ log q_i/∂c_i for independent noise. A shift of c by any t leaves a density, so by Bartlett's
identities E[s_i s_j] = 0 for i ≠ j and E[s_i²] = −E[∂s_i/∂c_i]. Hence A = Σ f_i s_i for a new row
f ~ N(0, C/N) has the variance

    Ī = Σ_i C_ii E[−∂²log q_i/∂c_i²]/N,

and the rest of the derivation for independent columns (`_attack`) holds with P = E·Ī/(1+V)².
For noise of any covariance Σ the density has no closed form, but x is a function of η, so its
information about a shift is at most Σ⁻¹, and Ī ≤ tr(CΣ⁻¹)/N.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privasso._blas import product
from privasso.model import GivenCovariance, Model
from privasso.noise import Covariance, Diagonal, MatrixPower
from privasso.theory._density import log_mass
from privasso.theory._draws import ColumnNoise, Draws

FloatArray = NDArray[np.float64]

_STEPS = 30
_LOG_2PI = float(np.log(2.0 * np.pi))


def information(draws: Draws, e: float, u: float, variances: FloatArray) -> FloatArray:
    """Ī in each draw, at the fixed point (e, u); infinite if an active column has no noise."""
    z = draws.minimise(e, u)
    c = draws.field(e, u) - product(draws.C, z)
    on = z != 0.0
    if np.any(on & (variances == 0.0)[:, None]):
        return np.full(z.shape[1], np.inf)
    sigma = np.sqrt(variances)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        curvature = np.where(on, 1.0 / sigma**2, _curvature(c, draws.lam, sigma))
    curvature = np.where(sigma > 0.0, curvature, 0.0)
    return draws.v @ curvature / draws.v.size


def _curvature(c: FloatArray, lam: float, sigma: FloatArray) -> FloatArray:
    """−∂²/∂c² of log[Φ((c+λ)/σ) − Φ((c−λ)/σ)].

    Examples
    --------
    >>> c, h = np.array([0.3, 0.9, 1.4]), 1e-4
    >>> f = lambda c: log_mass((1.0 - np.abs(c)) / 0.2, (1.0 + np.abs(c)) / 0.2)
    >>> by_differences = -(f(c + h) - 2.0 * f(c) + f(c - h)) / h**2
    >>> bool(np.allclose(_curvature(c, 1.0, np.full(3, 0.2)), by_differences, atol=1e-5))
    True
    """
    a, b = (lam - np.abs(c)) / sigma, (lam + np.abs(c)) / sigma
    mass = log_mass(a.ravel(), b.ravel()).reshape(a.shape)
    # Densities over the mass, at the near and at the far end of the interval.
    near = np.exp(-0.5 * (a * a + _LOG_2PI) - mass)
    far = np.exp(-0.5 * (b * b + _LOG_2PI) - mass)
    return ((near - far) ** 2 + a * near + b * far) / sigma**2


def information_bound(C: GivenCovariance, noise: ColumnNoise) -> float:
    """tr(CΣ⁻¹)/N, infinite where the noise leaves a direction of the rows without cover."""
    if noise_level(noise, C) == 0.0:
        return float("inf")
    if isinstance(noise, MatrixPower):
        noise = noise.covariance(C.covariance)
    elif not isinstance(noise, Covariance):
        noise = noise.covariance(C.diagonal)
    white = noise.whiten(C.root)
    return float(np.sum(white * white)) / C.n_columns


def noise_level(noise: ColumnNoise, C: GivenCovariance) -> float:
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


def replica_overlap(
    model: Model,
    lam: float,
    noise: ColumnNoise,
    e: float,
    u: float,
    n_draws: int,
    rng: np.random.Generator,
) -> float:
    """C/E: correlation of the residuals of two releases from the same data (see `_overlap`)."""
    pair = [Draws(model, lam, noise, n_draws, rng) for _ in range(2)]
    shared = pair[0].C, pair[0].x0, pair[0].Cx0
    common = Draws(model, lam, noise, n_draws, rng).h
    own = [one.h for one in pair]
    for one in pair:
        one.C, one.x0, one.Cx0 = shared
    kappa = model.sigma_xi**2 * u * u / e
    history: list[float] = []
    for _ in range(_STEPS):
        errors = []
        for one, h in zip(pair, own, strict=True):
            one.h = np.sqrt(kappa) * common + np.sqrt(1.0 - kappa) * h
            errors.append(one.minimise(e, u) / model.alpha - u * one.x0)
        cross = np.einsum("ik,ik->k", errors[0], product(shared[0], errors[1])) / shared[0].shape[0]
        new = (model.sigma_xi**2 * u * u + float(np.mean(cross))) / e
        new = min(max(new, 0.0), 1.0)
        error = float(np.std(cross) / e / np.sqrt(n_draws))
        history.append(new)
        if abs(new - kappa) <= max(0.1 * error, 1e-4):
            return new
        if len(history) % 3 == 0:  # Aitken's extrapolation of the last three
            a, b, c = history[-3:]
            bend = c - 2.0 * b + a
            guess = a - (b - a) ** 2 / bend if abs(bend) > 1e-12 else c
            new = guess if 0.0 <= guess <= 1.0 and abs(guess - c) < 0.3 else c
        kappa = new
    return kappa
