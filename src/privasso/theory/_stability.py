"""The noise level, or λ, at which the estimator ceases to exist."""

from __future__ import annotations

import math
import warnings
from typing import SupportsIndex

import numpy as np

from privasso._validation import integer, positive_float
from privasso.model import Model
from privasso.noise import NoiseDesign
from privasso.theory._correlated_edge import correlated_edge
from privasso.theory._draws import ColumnNoise
from privasso.theory._nodes import REFINEMENTS, Tail, columns, lower_tail, quadrature
from privasso.theory._points import TOLERANCE, QuadratureWarning, out_of_range
from privasso.theory._state_evolution import check


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

    Parameters
    ----------
    model : Model
        Only its alpha and scales matter.
    noise : NoiseDesign
        Only its shape matters, not its level.
    n_features : int, optional
        Use the N quantiles of the law as scales, instead of the limit of many columns.
    draws, rng
        For a model with a covariance, as in `state_evolution`; `correlated_edge` also gives the
        Monte Carlo error.

    Returns
    -------
    float
        0 for α ≥ 1, where the minimiser always exists; inf where E is infinite at any level of
        noise, so that λ_crit/σ_η grows with the number of columns.

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
    check(model, noise)
    assert isinstance(noise, NoiseDesign)
    noise = noise.with_sigma(1.0)
    count = None if n_features is None else integer("n_features", n_features, minimum=1)
    nodes = columns(model.scales, noise, count)
    if nodes is not None:
        return _known(nodes.critical_ratio(model.alpha), model)
    tail = lower_tail(model.scales, noise)
    if model.alpha >= 1.0:
        return 0.0
    if tail is Tail.INFINITE:
        return math.inf
    ratio = _known(quadrature(model.scales, noise, 0, tail).critical_ratio(model.alpha), model)
    for level in range(1, REFINEMENTS + 1):
        nodes, before = quadrature(model.scales, noise, level, tail), ratio
        ratio = _known(nodes.critical_ratio(model.alpha), model)
        if abs(ratio - before) <= TOLERANCE * ratio:
            return ratio
    warnings.warn(
        f"the critical ratio over {model.scales!r} did not settle to {TOLERANCE:g}; "
        "pass n_features to predict for that many columns",
        QuadratureWarning,
        stacklevel=2,
    )
    return ratio


def _known(ratio: float, model: Model) -> float:
    if math.isnan(ratio):
        raise out_of_range(model.scales)
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
