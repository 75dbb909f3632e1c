"""State evolution for given columns of any covariance, at one point."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privasso._validation import generator, integer, real_array
from privasso.model import GivenCovariance, Model
from privasso.noise import Covariance, MatrixPower, NoiseDesign
from privasso.theory._columns import GivenColumns
from privasso.theory._correlated_leakage import information, own_variances
from privasso.theory._correlated_point import CorrelatedPoint, leak_error, propagated
from privasso.theory._draws import ColumnNoise, Draws, NotSolvedError, System, given
from privasso.theory._fixed_point import FixedPointStatus, StandardErrors
from privasso.theory._nodes import Nodes
from privasso.theory._onavekl import component_wise
from privasso.theory._search import Root, find_root

FloatArray = NDArray[np.float64]

#: Columns of a correlation that is for any number of them, unless n_features says otherwise.
USUAL_COLUMNS = 1000


def given_columns(
    model: Model, noise: ColumnNoise, n_features: int | None, rng: np.random.Generator
) -> Model:
    """The model with a covariance matrix; raises an error unless the noise is for its columns."""
    if model.covariance.n_columns is None and n_features is None:
        n_features = USUAL_COLUMNS
    model = model.realised(n_features, rng)
    _check_noise(noise, given(model).n_columns)
    return model


def correlated_state_evolution(
    model: Model,
    lam: float,
    noise: ColumnNoise,
    n_features: int | None,
    draws: int,
    rng: int | np.random.Generator | None,
    eta: FloatArray | None,
    start: tuple[float, float] | None = None,
) -> CorrelatedPoint:
    """The fixed point for a model with a covariance; λ has been checked."""
    rng = generator(rng)
    model = given_columns(model, noise, n_features, rng)
    C = given(model)
    if eta is not None:
        eta = real_array("eta", eta, shape=(C.n_columns,))
    variances = own_variances(noise, C)
    system: GivenColumns | Draws
    if C.is_diagonal and (variances is not None or eta is not None):
        own = variances if eta is None and variances is not None else np.zeros(C.n_columns)
        draws = 0
        system = GivenColumns(
            model.alpha, model.rho, model.sigma_xi**2, lam, C.diagonal, own, eta
        )  # fmt: skip
    else:
        draws = integer("draws", draws, minimum=2)
        system = Draws(model, lam, noise, draws, rng, eta)
    e, u = _start(model, C) if start is None else start
    try:
        root = find_root(system, e, u)
    except NotSolvedError:
        root = None
    seed = int(rng.integers(2**63))
    point = {
        "model": model, "lam": lam, "noise": noise, "_system": system,
        "n_draws": draws, "_seed": seed,
    }  # fmt: skip
    if root is None:
        rho_hat = _runaway(system)
        return CorrelatedPoint(
            status=FixedPointStatus.UNSTABLE, E=math.inf, V=math.inf, rho_hat=rho_hat,
            _component_wise=math.nan, _information=np.empty(0), **point,
        )  # fmt: skip
    E, V = root.e / root.u**2, 1.0 / root.u - 1.0
    rho_hat = model.alpha * (1.0 - root.u)
    info, P = _leakage(system, root, lam, model, variances, eta)
    return CorrelatedPoint(
        status=FixedPointStatus.STABLE, E=E, V=V, rho_hat=rho_hat,
        standard_errors=_errors(root, E, V, model.alpha, info, P),
        _component_wise=P, _information=info, _root=root, **point,
    )  # fmt: skip


def _leakage(
    system: GivenColumns | Draws,
    root: Root,
    lam: float,
    model: Model,
    variances: FloatArray | None,
    eta: FloatArray | None,
) -> tuple[FloatArray | None, float]:
    """Ī in each draw and P; None for noise at hand, and NaN for P if the noise is correlated."""
    if eta is not None:
        return None, math.nan
    if isinstance(system, GivenColumns):
        N = system.v.size
        own = Nodes(system.v, np.full(N, 1.0 / N), system.variances)
        P = component_wise(own.system(model, lam), root.e, root.u)
        return np.array([P / root.e]), float(P)
    if variances is None:
        return np.empty(0), math.nan
    info = information(system, root.e, root.u, variances)
    return info, root.e * float(np.mean(info))


def _errors(
    root: Root, E: float, V: float, alpha: float, info: FloatArray | None, P: float
) -> StandardErrors:
    """By the delta method, from the errors of log e and u."""
    u, of_u = root.u, math.sqrt(max(root.covariance[1, 1], 0.0))
    leak = math.nan
    if info is not None and math.isfinite(P):
        leak = leak_error(root, info, P)
    return StandardErrors(
        E=propagated(root, E, -2.0 * E / u), V=of_u / u**2, rho_hat=alpha * of_u, stability=of_u,
        onavekl=leak,
    )  # fmt: skip


def _start(model: Model, C: GivenCovariance) -> tuple[float, float]:
    """(e, u) to start with: the error of half the signal, and a small response."""
    E = model.sigma_xi**2 + 0.5 * model.rho * float(np.mean(C.diagonal))
    return 0.5 * E, 0.75


def _runaway(system: System) -> float:
    """ρ̂ to which the diverging recursion tends: e = R(e, 0)(α/ρ̂)²."""
    rho_hat, e = 1.0, 1.0
    try:
        for _ in range(100):
            R, rho_hat = system.averages(e, 0.0).means
            if R <= 0.0 or rho_hat <= 0.0:
                e *= 10.0
                continue
            new = R * (system.alpha / max(rho_hat, system.alpha)) ** 2
            if abs(math.log(new / e)) < 1e-3:
                break
            e = new
    except NotSolvedError:
        return 1.0
    return max(rho_hat, system.alpha)


def _check_noise(noise: ColumnNoise, N: int) -> None:
    if not isinstance(noise, (NoiseDesign, MatrixPower, Covariance)):
        raise ValueError(
            "noise must be a noise design, such as Isotropic(sigma), a power of the covariance, "
            "noise.MatrixPower(sigma, gamma), or a noise.Covariance, not an object of type "
            f"{type(noise).__name__}"
        )
    if isinstance(noise, Covariance) and noise.size != N:
        raise ValueError(f"the noise is for {noise.size} columns, and the model has {N}")
