"""State evolution for given columns of any covariance, at one point."""

from __future__ import annotations

import math

import numpy as np

from privasso._types import Passed
from privasso._validation import generator, integer, real_array
from privasso.model import GivenCovariance, Model
from privasso.noise import Covariance, MatrixPower, NoiseDesign
from privasso.theory._correlated_leakage import information
from privasso.theory._draws import (
    ColumnNoise,
    Draws,
    NotSolvedError,
    covariance_of,
    find_root,
    given,
    own_variances,
)
from privasso.theory._fixed_point import (
    STATUS,
    FixedPoint,
    FixedPointStatus,
    StandardErrors,
    leak_error,
)
from privasso.theory._nodes import Nodes
from privasso.theory._points import solve_system
from privasso.theory._system import NONE, FloatArray, row_averages

#: Columns of a correlation that is for any number of them, unless n_features says otherwise.
_USUAL_COLUMNS = 1000


def given_columns(
    model: Model, noise: ColumnNoise, n_features: int | None, rng: np.random.Generator
) -> Model:
    """The model with a covariance matrix; raises an error unless the noise is for its columns."""
    if model.covariance.n_columns is None and n_features is None:
        n_features = _USUAL_COLUMNS
    model = model.realised(n_features, rng)
    if not isinstance(noise, (NoiseDesign, MatrixPower, Covariance)):
        raise ValueError(
            "noise must be a noise design, such as Isotropic(sigma), a power of the covariance, "
            "noise.MatrixPower(sigma, gamma), or a noise.Covariance, not an object of type "
            f"{type(noise).__name__}"
        )
    N = given(model).n_columns
    if isinstance(noise, Covariance) and noise.size != N:
        raise ValueError(f"the noise is for {noise.size} columns, and the model has {N}")
    return model


def correlated_state_evolution(
    model: Model,
    lam: float,
    noise: ColumnNoise,
    n_features: int | None,
    draws: int,
    rng: int | np.random.Generator | None,
    eta: FloatArray | None = None,
    start: tuple[float, float] | None = None,
    kappa: float = math.inf,
    ridge: float | ColumnNoise | None = None,
) -> FixedPoint:
    """The fixed point for a model with a covariance; λ has been checked."""
    rng = generator(rng)
    model = given_columns(model, noise, n_features, rng)
    C = given(model)
    if eta is not None:
        eta = real_array("eta", eta, shape=(C.n_columns,))
    Q = None
    if ridge is not None:
        shaped = isinstance(ridge, ColumnNoise)
        Q = covariance_of(ridge, C).matrix() if shaped else ridge * np.eye(C.n_columns)
    point: dict[str, Passed] = {
        "model": model, "lam": lam, "noise": noise, "kappa": kappa,
        "ridge": 0.0 if ridge is None else ridge,
    }  # fmt: skip
    variances = own_variances(noise, C)
    linear = kappa == math.inf and Q is None
    if C.is_diagonal and linear and (variances is not None or eta is not None):
        return _exact(C, variances, eta, point)
    return _simulated(C, variances, eta, Q, integer("draws", draws, minimum=2), rng, start, point)


def _exact(
    C: GivenCovariance,
    variances: FloatArray | None,
    eta: FloatArray | None,
    point: dict[str, Passed],
) -> FixedPoint:
    """Independent columns, by the closed form."""
    N = C.n_columns
    own = variances if eta is None and variances is not None else np.zeros(N)
    nodes = Nodes(C.diagonal, np.full(N, 1.0 / N), own)
    system = nodes.system(point["model"], point["lam"], mean=NONE if eta is None else -eta)
    found, (e, u) = solve_system(system, point["model"].covariance)
    status, P = STATUS[int(found.status[0])], float(found.component_wise[0])
    known = status is FixedPointStatus.STABLE and eta is None
    return FixedPoint(
        status=status, E=float(found.E[0]), V=float(found.V[0]), rho_hat=float(found.rho_hat[0]),
        _component_wise=P if known else math.nan, _system=system, _at=(e, u),
        _information=None if eta is not None else np.array([P / e]) if known else np.empty(0),
        **point,
    )  # fmt: skip


def _simulated(
    C: GivenCovariance,
    variances: FloatArray | None,
    eta: FloatArray | None,
    Q: FloatArray | None,
    n_draws: int,
    rng: np.random.Generator,
    start: tuple[float, float] | None,
    point: dict[str, Passed],
) -> FixedPoint:
    model, kappa = point["model"], point["kappa"]
    draws = Draws(model, point["lam"], point["noise"], n_draws, rng, eta, kappa, Q)
    if start is None:
        # The error of half the signal, and a small response.
        E = model.sigma_xi**2 + 0.5 * model.rho * float(np.mean(C.diagonal))
        start = 0.5 * E, 0.75 * row_averages(0.5 * E, kappa)[0]
    try:
        root = find_root(draws, *start)
    except NotSolvedError:
        root = None
    point |= {"n_draws": n_draws, "_system": draws, "_seed": int(rng.integers(2**63))}
    if root is None:
        return FixedPoint(
            status=FixedPointStatus.UNSTABLE, E=math.inf, V=math.inf, rho_hat=_runaway(draws),
            _information=np.empty(0), **point,
        )  # fmt: skip
    info, P = None, math.nan
    if draws.is_linear and eta is None:
        # For noise that is correlated over the columns, the leakage is computed when asked for.
        info = np.empty(0)
        if variances is not None:
            info = information(draws, root.b, root.q, variances)
            P = root.b * float(np.mean(info))
    rho_hat, error = float(np.mean(root.averages.rho_hat)), root.averages.rho_hat.std(ddof=1)
    of_E, of_V, of_stability = root.errors
    of_rho_hat = float(error) / math.sqrt(n_draws)
    if draws.is_linear:
        rho_hat, of_rho_hat = model.alpha * (1.0 - root.q), model.alpha * of_stability
    leak = leak_error(root, info, P) if info is not None and math.isfinite(P) else math.nan
    return FixedPoint(
        status=FixedPointStatus.STABLE, E=root.E, V=root.V, rho_hat=rho_hat,
        standard_errors=StandardErrors(of_E, of_V, of_rho_hat, of_stability, leak),
        _component_wise=P, _information=info, _root=root, _at=(root.b, root.q), **point,
    )  # fmt: skip


def _runaway(draws: Draws) -> float:
    """ρ̂ to which the diverging recursion tends: e = R(e, 0)/S²."""
    S, e = 1.0 / draws.alpha, 1.0
    try:
        for _ in range(100):
            R, S = draws.averages(e, 0.0).means
            if R <= 0.0 or S <= 0.0:
                e *= 10.0
                continue
            new = R / max(S, 1.0) ** 2
            if abs(math.log(new / e)) < 1e-3:
                break
            e = new
    except NotSolvedError:
        return 1.0
    return draws.alpha * max(S, 1.0)
