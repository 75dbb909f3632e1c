"""The edge of stability for columns of any covariance.

As for independent columns (`_edge`), the signal and the label noise drop out at V → ∞. With

    z = argmin ½zᵀCz − (√(αe) h − η)ᵀz + λ‖z‖₁   and   R(e, 0) = E[zᵀCz]/(α²N),

R is convex in e with slope ρ̂/α, because ½zᵀCz is the largest value of the concave objective. A
fixed point exists exactly when R(e, 0) − e is negative somewhere, and it is smallest where ρ̂ = α.
Its derivative by λ is −2E‖z‖₁/(α²N), with which Newton's method finds the critical λ.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from privasso._validation import generator, integer
from privasso.model import Model
from privasso.noise import Covariance, MatrixPower, NoiseDesign
from privasso.theory._columns import GivenColumns
from privasso.theory._correlated_leakage import noise_level, own_variances
from privasso.theory._draws import ColumnNoise, Draws, NotSolvedError, given
from privasso.theory._search import lowest

_STEPS = 25
#: Accuracy of log e, in which the smallest value is flat, and of the ratio.
_WIDTH, _ACCURACY = 0.05, 2e-3


class Edge(NamedTuple):
    """λ/σ_η on the critical line, with its Monte Carlo standard error.

    Examples
    --------
    >>> from privasso.model import AutoRegressive, Model
    >>> from privasso.noise import Isotropic
    >>> edge = correlated_edge(
    ...     Model(covariance=AutoRegressive(0.5)), Isotropic(1.0), n_features=50, rng=0
    ... )
    >>> edge.ratio > 0.0, edge.standard_error < edge.ratio
    (True, True)
    """

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

    Parameters
    ----------
    model : Model
        With a covariance; only that and alpha matter.
    noise : NoiseDesign, noise.MatrixPower or noise.Covariance
        Only its shape matters.
    n_features, draws, rng
        As in `state_evolution`.

    Returns
    -------
    Edge
        0 if C has full rank and α ≥ 1; inf if noise lies outside the range of a singular C.

    Examples
    --------
    Noise in the directions in which the rows vary permits a smaller λ:

    >>> import numpy as np, privasso as pv
    >>> i = np.arange(100)
    >>> model = pv.Model(alpha=0.5, covariance=0.9 ** abs(i[:, None] - i))
    >>> isotropic, full = (
    ...     pv.theory.correlated_edge(model, noise, rng=0).ratio
    ...     for noise in (pv.Isotropic(1.0), pv.noise.MatrixPower(1.0, 2.0))
    ... )
    >>> full < 0.5 * isotropic
    True
    """
    rng = generator(rng)
    if model.covariance.n_columns is None:
        model = model.realised(1000 if n_features is None else n_features, rng)
    C = given(model)
    if model.alpha >= 1.0 and C.rank == C.n_columns:
        return Edge(0.0, 0.0)
    noise = unit_noise(noise, noise_level(noise, C))
    variances = own_variances(noise, C)
    n_draws = integer("draws", draws, minimum=2)
    lam, e = 0.7, 1.0
    exact = C.is_diagonal and variances is not None
    system: GivenColumns | Draws
    if exact and variances is not None:
        system = GivenColumns(model.alpha, 0.0, 0.0, lam, C.diagonal, variances)
    else:
        system = Draws(model, lam, noise, n_draws, rng)
    low, high = 0.0, math.inf
    gap = slope = error = math.nan
    for _ in range(_STEPS):
        system.lam = lam
        try:
            e, _, found = lowest(system, e, 1e-4 if exact else _WIDTH)
        except NotSolvedError:
            return Edge(math.inf, 0.0)
        R, _ = found.means
        gap = R - e
        if exact:
            slope = (_shifted(system, e, 1.0 + 1e-5) - R) / (1e-5 * lam)
            system.lam = lam
        else:
            assert isinstance(system, Draws)
            assert system.z is not None
            slope = -2.0 * float(np.mean(np.sum(np.abs(system.z), axis=0)))
            slope /= model.alpha**2 * C.n_columns
            error = float(np.std(found.R, ddof=1)) / math.sqrt(n_draws) / abs(slope)
        low, high = (lam, high) if gap > 0.0 else (low, lam)
        new = lam - gap / slope
        if not low < new < high:
            new = 0.5 * (low + high) if math.isfinite(high) else 2.0 * lam
        new = min(max(new, 0.3 * lam), 3.0 * lam)
        if abs(new - lam) <= (1e-7 if exact else _ACCURACY) * lam:
            return Edge(new, 0.0 if exact else error)
        lam = new
    return Edge(lam, 0.0 if exact else error)


def unit_noise(noise: ColumnNoise, level: float) -> ColumnNoise:
    """The same shape at level 1."""
    if isinstance(noise, NoiseDesign | MatrixPower):
        return noise.with_sigma(1.0)
    assert isinstance(noise, Covariance)
    return noise.scaled(1.0 / level**2)


def scaled_noise(noise: ColumnNoise, factor: float) -> ColumnNoise:
    """The same shape at a level that is `factor` times as high."""
    if isinstance(noise, Covariance):
        return noise.scaled(factor**2)
    return noise.with_sigma(factor * noise.sigma)


def _shifted(system: GivenColumns | Draws, e: float, factor: float) -> float:
    system.lam *= factor
    return system.averages(e, 0.0).means[0]
