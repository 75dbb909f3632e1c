"""State evolution of the clipped-residual LASSO at one point, refined until it settles."""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privasso.model import Model
from privasso.noise import NoiseDesign
from privasso.scales import ScaleLaw
from privasso.theory._clipped_recursion import column_averages, iterate_clipped, row_averages
from privasso.theory._clipped_root import clipped_fixed_point
from privasso.theory._fixed_point import FixedPoint, FixedPointStatus
from privasso.theory._nodes import (
    REFINEMENTS,
    Nodes,
    Tail,
    columns,
    quadrature,
    tail_exponent,
    tail_of,
)
from privasso.theory._points import TOLERANCE, QuadratureWarning, out_of_range

FloatArray = NDArray[np.float64]

#: Rows of the recursion after which ρ̂ of a diverging one is read off.
_RUNAWAY = 1000


def clipped_state_evolution(
    model: Model,
    lam: float,
    noise: NoiseDesign,
    kappa: float,
    ridge: float | NoiseDesign,
    n_features: int | None,
) -> FixedPoint:
    """The fixed point of the clipped recursion; the arguments have been checked."""
    unit = noise.with_sigma(1.0)
    nodes = columns(model.scales, unit, n_features)
    if nodes is not None:
        return _solve(model, lam, noise, kappa, ridge, nodes)
    tail = _lower_tail(model.scales, noise, ridge)
    nodes = quadrature(model.scales, unit, 0, tail)
    if tail is Tail.INFINITE:
        nothing = (math.inf, math.nan, math.nan)
        return _point(
            FixedPointStatus.INFINITE_ERROR, nothing, model, lam, noise, kappa, ridge, nodes
        )
    before = _solve(model, lam, noise, kappa, ridge, nodes)
    for level in range(1, REFINEMENTS + 1):
        nodes = quadrature(model.scales, unit, level, tail)
        after = _solve(model, lam, noise, kappa, ridge, nodes)
        if _agree(before, after):
            return after
        before = after
    warnings.warn(
        f"the average over {model.scales!r} did not settle to {TOLERANCE:g} at "
        f"{nodes.v.size} nodes; pass n_features to predict for that many columns",
        QuadratureWarning,
        stacklevel=3,
    )
    return before


class ClippedPoint(NamedTuple):
    """Error and sparsity on given columns, and (b, q) as a start for the next point nearby.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> from privasso.theory import clipped_point
    >>> model, one = pv.Model(scales=pv.Constant(1.0)), np.ones(1)
    >>> point = clipped_point(model, 0.2, 0.1, one, one, 0.01 * one, 0.5 * one)
    >>> near = clipped_point(model, 0.21, 0.1, one, one, 0.01 * one, 0.5 * one, point.start)
    >>> 0.0 < near.rho_hat < point.rho_hat < 1.0  # a larger λ leaves fewer coefficients
    True
    """

    E: float
    rho_hat: float
    start: tuple[float, float]


def clipped_point(
    model: Model,
    lam: float,
    kappa: float,
    v: FloatArray,
    w: FloatArray,
    variances: FloatArray,
    ridge: FloatArray,
    start: tuple[float, float] | None = None,
) -> ClippedPoint | None:
    """The fixed point on given columns, fast enough for a search; None where there is none.

    It is None, too, where double precision does not reach it.

    Parameters
    ----------
    model : Model
        Its scales are not used.
    lam, kappa : float
        As in `state_evolution`.
    v, w, variances, ridge : ndarray
        Squared scales, weights that sum to 1, noise variances and ridge.
    start : (float, float), optional
        Of a point nearby.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> from privasso.theory import clipped_point
    >>> model, one = pv.Model(scales=pv.Constant(1.0)), np.ones(1)
    >>> point = clipped_point(model, 0.2, 0.1, one, one, 0.01 * one, 0.5 * one)
    >>> fp = pv.state_evolution(model, 0.2, pv.Isotropic(0.1), kappa=0.1, ridge=0.5)
    >>> bool(np.isclose(point.E, fp.E))
    True
    """
    data = (model.alpha, model.rho, model.sigma_xi**2, lam)
    with np.errstate(all="ignore"):
        b, q = clipped_fixed_point(*(start or (0.0, 0.0)), *data, kappa, v, w, variances, ridge)
    if not q > 0.0:
        return None
    e = row_averages(b, kappa)[1]
    R, _, rho_hat = column_averages(e, q, *data, v, w, variances, ridge)[:3]
    return ClippedPoint(R / (q * q), rho_hat, (b, q))


def ridge_values(ridge: float | NoiseDesign, v: FloatArray, w: FloatArray) -> FloatArray:
    """The diagonal of the ridge on columns of squared scales v and weights w."""
    if isinstance(ridge, NoiseDesign):
        return ridge.variances(v, w)
    return np.full(v.size, ridge)


def _solve(
    model: Model,
    lam: float,
    noise: NoiseDesign,
    kappa: float,
    ridge: float | NoiseDesign,
    nodes: Nodes,
) -> FixedPoint:
    v, w = nodes.v, nodes.w
    variances = noise.mean_power * nodes.profile
    Q = ridge_values(ridge, v, w)
    data = (model.alpha, model.rho, model.sigma_xi**2, lam)
    with np.errstate(all="ignore"):
        b, q = clipped_fixed_point(0.0, 0.0, *data, kappa, v, w, variances, Q)
    if math.isnan(q):
        raise out_of_range(model.scales)
    if q == 0.0:
        rows = iterate_clipped(*data, kappa, v, w, variances, Q, _RUNAWAY, 1e-10, 1e12)
        found = (math.inf, math.inf, float(rows[-1, 2]))
        return _point(FixedPointStatus.UNSTABLE, found, model, lam, noise, kappa, ridge, nodes)
    e = row_averages(b, kappa)[1]
    R, S, rho_hat = column_averages(e, q, *data, v, w, variances, Q)[:3]
    found = (R / (q * q), S / q, rho_hat)
    return _point(FixedPointStatus.STABLE, found, model, lam, noise, kappa, ridge, nodes)


def _point(
    status: FixedPointStatus,
    found: tuple[float, float, float],
    model: Model,
    lam: float,
    noise: NoiseDesign,
    kappa: float,
    ridge: float | NoiseDesign,
    nodes: Nodes,
) -> FixedPoint:
    E, V, rho_hat = found
    return FixedPoint(
        status=status,
        E=E,
        V=V,
        rho_hat=rho_hat,
        model=model,
        lam=lam,
        noise=noise,
        _component_wise=math.nan,
        _nodes=nodes,
        kappa=kappa,
        ridge=ridge,
        _ridge=ridge_values(ridge, nodes.v, nodes.w),
    )


def _lower_tail(scales: ScaleLaw, noise: NoiseDesign, ridge: float | NoiseDesign) -> Tail:
    """Decide whether E is finite, as `lower_tail` does without a ridge.

    With σ_η² ∝ v^γ and Λ_v ∝ v^r for v → 0 a small column contributes vσ_η²/d²·g, d = αvq + Λ_v, to
    E: the power γ + 1 − 2 min(r, 1) of v takes the place of γ − 1.
    """
    if noise.sigma == 0.0:
        return Tail.LIGHT
    gamma = tail_exponent(scales, noise)
    if isinstance(ridge, NoiseDesign):
        r = tail_exponent(scales, ridge) if ridge.sigma > 0.0 else math.inf
    else:
        r = 0.0 if ridge > 0.0 else math.inf
    return tail_of(scales, gamma, gamma + 1.0 - 2.0 * min(r, 1.0))


def _agree(a: FixedPoint, b: FixedPoint) -> bool:
    return a.status is b.status and all(
        x == y or abs(x - y) <= TOLERANCE * abs(y) + 1e-14
        for x, y in ((a.E, b.E), (a.V, b.V), (a.rho_hat, b.rho_hat))
    )
