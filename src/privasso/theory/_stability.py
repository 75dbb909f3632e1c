"""The noise level, or λ, at which the estimator ceases to exist."""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple, SupportsIndex

import numpy as np

from privasso._validation import generator, integer, positive_float
from privasso.model import Model
from privasso.noise import Covariance
from privasso.theory._correlated import given_columns
from privasso.theory._draws import (
    ColumnNoise,
    Draws,
    NotSolvedError,
    given,
    lowest,
    noise_level,
    own_variances,
)
from privasso.theory._nodes import REFINEMENTS, Nodes, Tail, columns, lower_tail, quadrature
from privasso.theory._points import TOLERANCE, QuadratureWarning, out_of_range
from privasso.theory._state_evolution import check

_STEPS = 25
#: Accuracy of log e, in which the smallest value is flat, and of the ratio.
_WIDTH, _ACCURACY = 0.05, 2e-3


def critical_lambda_ratio(
    model: Model,
    noise: ColumnNoise,
    *,
    n_features: SupportsIndex | None = None,
    draws: SupportsIndex = 8,
    rng: int | np.random.Generator | None = None,
) -> float:
    """λ_crit/σ_η: below this ratio the private LASSO has no minimiser.

    State evolution loses its fixed point by V → ∞, E → ∞ with e = E/(1+V)² finite. In that limit
    the signal and the label noise drop out, and with A = αve + σ_η²(v), t = λ/√A what remains is

        E_v[2Q(t)] = α,    E_v[A ((1+t²) 2Q(t) − 2tφ(t))/(α²v)] = e,

    two equations for e and λ. They depend on λ/σ_η, α, the scale law and the shape of the noise
    alone. For given data and noise, `critical_lambda` computes λ_crit = min_u ‖Fᵀu − η‖_∞ exactly.

    It is 0 for α ≥ 1, where the minimiser always exists, and inf where E is infinite at any level
    of noise, so that λ_crit/σ_η grows with the number of columns. The arguments are those of
    `state_evolution`; of the model only alpha and the columns matter, and of the noise its shape.
    For a model with a covariance `correlated_edge` also gives the Monte Carlo error.

    Examples
    --------
    >>> import privasso as pv
    >>> model = pv.Model(alpha=0.5, scales=pv.LogNormal(0.0, 0.5))
    >>> round(pv.theory.critical_lambda_ratio(model, pv.Isotropic(1.0)), 4)
    1.1644
    >>> round(pv.theory.critical_lambda_ratio(model, pv.Gram(1.0)), 4)
    0.5996
    """
    if isinstance(model, Model) and model.covariance is not None:
        count = None if n_features is None else integer("n_features", n_features, minimum=1)
        size = integer("draws", draws, minimum=2)
        return correlated_edge(model, noise, n_features=count, draws=size, rng=rng).ratio
    noise = check(model, noise).with_sigma(1.0)
    count = None if n_features is None else integer("n_features", n_features, minimum=1)
    nodes = columns(model.scales, noise, count)
    if nodes is not None:
        return _known(nodes, model)
    tail = lower_tail(model.scales, noise)
    if model.alpha >= 1.0:
        return 0.0
    if tail is Tail.INFINITE:
        return math.inf
    ratio = _known(quadrature(model.scales, noise, 0, tail), model)
    for level in range(1, REFINEMENTS + 1):
        before, ratio = ratio, _known(quadrature(model.scales, noise, level, tail), model)
        if abs(ratio - before) <= TOLERANCE * ratio:
            return ratio
    warnings.warn(
        f"the critical ratio over {model.scales!r} did not settle to {TOLERANCE:g}; "
        "pass n_features to predict for that many columns",
        QuadratureWarning,
        stacklevel=2,
    )
    return ratio


def _known(nodes: Nodes, model: Model) -> float:
    ratio = nodes.critical_ratio(model.alpha)
    if math.isnan(ratio):
        raise out_of_range(model.scales if model.covariance is None else model.covariance)
    return ratio


def critical_noise(
    model: Model,
    lam: float,
    noise: ColumnNoise,
    *,
    n_features: SupportsIndex | None = None,
    draws: SupportsIndex = 8,
    rng: int | np.random.Generator | None = None,
) -> float:
    """Return the noise level σ_η at which the private LASSO ceases to exist, for a given λ.

    It is λ divided by `critical_lambda_ratio`: inf for α ≥ 1, and 0 where every level is too
    much in the limit of many columns.

    Examples
    --------
    >>> import privasso as pv
    >>> model = pv.Model(alpha=0.5, scales=pv.LogNormal(0.0, 0.5))
    >>> sigma = pv.critical_noise(model, 0.2, pv.Gram(1.0))
    >>> round(sigma, 4)
    0.3335
    >>> pv.state_evolution(model, 0.2, pv.Gram(0.999 * sigma)).status.name
    'STABLE'
    >>> pv.state_evolution(model, 0.2, pv.Gram(1.001 * sigma)).status.name
    'UNSTABLE'
    """
    lam = positive_float("lam", lam)
    ratio = critical_lambda_ratio(model, noise, n_features=n_features, draws=draws, rng=rng)
    return lam / ratio if ratio > 0.0 else math.inf


class Edge(NamedTuple):
    """λ/σ_η on the critical line, with its Monte Carlo standard error."""

    ratio: float
    standard_error: float


def correlated_edge(
    model: Model,
    noise: ColumnNoise,
    *,
    n_features: int | None = None,
    draws: int = 8,
    rng: int | np.random.Generator | None = None,
) -> Edge:
    """λ_crit/σ_η for a model with a covariance: below it the private LASSO has no minimiser.

    The noise may have any covariance; only its shape matters. The other arguments are those of
    `state_evolution`. The ratio is 0 if C has full rank and α ≥ 1, and inf if noise lies outside
    the range of a singular C.

    As for independent columns (`_edge`), the signal and the label noise drop out at V → ∞. With

        z = argmin ½zᵀCz − (√(αe) h − η)ᵀz + λ‖z‖₁   and   R(e, 0) = E[zᵀCz]/(α²N),

    R is convex in e with slope ρ̂/α, because ½zᵀCz is the largest value of the concave objective. A
    fixed point exists exactly when R(e, 0) − e is negative somewhere, and it is smallest where
    ρ̂ = α. Its derivative by λ is −2E‖z‖₁/(α²N), with which Newton's method finds the critical λ.
    """
    rng = generator(rng)
    model = given_columns(model, noise, n_features, rng)
    C = given(model)
    if model.alpha >= 1.0 and C.rank == C.n_columns:
        return Edge(0.0, 0.0)
    level = noise_level(noise)
    noise = noise.scaled(level**-2.0) if isinstance(noise, Covariance) else noise.with_sigma(1.0)
    variances, N = own_variances(noise, C), C.n_columns
    n_draws = integer("draws", draws, minimum=2)
    if C.is_diagonal and variances is not None:
        return Edge(_known(Nodes(C.diagonal, np.full(N, 1.0 / N), variances), model), 0.0)
    lam, e, low, high, error = 0.7, 1.0, 0.0, math.inf, math.nan
    simulated = Draws(model, lam, noise, n_draws, rng)
    for _ in range(_STEPS):
        simulated.lam = lam
        try:
            e, _, found = lowest(simulated, e, _WIDTH)
        except NotSolvedError:
            return Edge(math.inf, 0.0)
        assert simulated.z is not None
        gap = found.means[0] - e
        slope = -2.0 * float(np.mean(np.sum(np.abs(simulated.z), axis=0))) / (model.alpha**2 * N)
        error = float(np.std(found.R, ddof=1)) / math.sqrt(n_draws) / abs(slope)
        low, high = (lam, high) if gap > 0.0 else (low, lam)
        new = lam - gap / slope
        if not low < new < high:
            new = 0.5 * (low + high) if math.isfinite(high) else 2.0 * lam
        new = min(max(new, 0.3 * lam), 3.0 * lam)
        if abs(new - lam) <= _ACCURACY * lam:
            return Edge(new, error)
        lam = new
    return Edge(lam, error)
