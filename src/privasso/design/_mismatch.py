"""State evolution when the noise was shaped after other scales than the data have."""

from __future__ import annotations

import warnings
from typing import SupportsIndex

import numpy as np

from privasso._validation import integer, nonnegative_float, positive_float
from privasso.design._columns import blurred
from privasso.model import Model
from privasso.noise import NoiseDesign
from privasso.theory import FixedPoint, QuadratureWarning, state_evolution
from privasso.theory._gradient import root
from privasso.theory._grid import STABLE
from privasso.theory._information import component_wise
from privasso.theory._nodes import Nodes, Tail, columns, lower_tail, quadrature
from privasso.theory._points import Points, solve_nodes
from privasso.theory._recursion import averages
from privasso.theory._state_evolution import check, fixed_point

#: Nodes of the error Z at each refinement of the scales.
_BLUR = (25, 45, 85, 165)
#: Two quadratures must agree to this.
_TOLERANCE = 1e-5


def mismatched_state_evolution(
    model: Model,
    lam: float,
    noise: NoiseDesign,
    tau: float,
    *,
    n_features: SupportsIndex | None = None,
) -> FixedPoint:
    """Predict with noise shaped after v̂ = v e^(τZ), Z ~ N(0, 1), on data that have v.

    Public or outdated scales are off by a factor of about e^(τ/2) each way (v is the square of a
    scale). The variances are σ² profile(v̂)/E[profile(v̂)], as anyone who has only v̂ would
    normalise them; the averages of state evolution run over v and Z together.

    Parameters
    ----------
    model, lam, noise, n_features
        As in `state_evolution`.
    tau : float
        Standard deviation of the error of log v, zero or more.

    Examples
    --------
    >>> import privasso as pv
    >>> from privasso.design import mismatched_state_evolution
    >>> model = pv.Model(scales=pv.LogNormal(0.0, 0.5))
    >>> for tau in (0.0, 0.5, 1.0):
    ...     fp = mismatched_state_evolution(model, 0.3, pv.Gram(0.1), tau)
    ...     print(round(fp.E, 4), round(fp.onavekl(), 3))
    0.0452 2.117
    0.0455 4.521
    0.0472 76.492
    """
    check(model, noise)
    lam, tau = positive_float("lam", lam), nonnegative_float("tau", tau)
    count = None if n_features is None else integer("n_features", n_features, minimum=1)
    unit = noise.with_sigma(1.0)
    nodes = columns(model.scales, unit, count)
    tail = Tail.LIGHT if nodes is not None else lower_tail(model.scales, unit)
    if tau == 0.0 or noise.sigma == 0.0 or tail is Tail.INFINITE:
        return state_evolution(model, lam, noise, n_features=count)
    before = None
    for level, blur in enumerate(_BLUR):
        given = nodes if nodes is not None else quadrature(model.scales, unit, level, tail)
        v, w, seen = blurred(given.v, given.w, tau, blur)
        after = _solve(model, lam, noise.sigma, Nodes(v, w, unit.variances(seen, w)))
        if before is not None and _agree(before, after):
            return fixed_point(after, 0, model, lam, noise)
        before = after
    assert before is not None
    warnings.warn(
        f"the average over {model.scales!r} and the error of the scales did not settle to "
        f"{_TOLERANCE:g}",
        QuadratureWarning,
        stacklevel=2,
    )
    return fixed_point(before, 0, model, lam, noise)


def _solve(model: Model, lam: float, sigma: float, nodes: Nodes) -> Points:
    """One point on the pairs (v, v̂), of which there are too many for the critical line."""
    data = (model.alpha, model.rho, model.sigma_xi**2, nodes.v, nodes.w)
    variances = sigma**2 * nodes.profile
    e, u = root(0.0, 0.0, lam, variances, *data)
    if u == 0.0:
        return solve_nodes(model, np.array([lam]), np.array([sigma]), nodes)
    alpha, rho, xi2, v, w = data
    rho_hat = averages(e, u, alpha, rho, xi2, lam, 1.0, v, w, variances)[1]
    P = component_wise(e, u, alpha, rho, lam, 1.0, v, w, variances)
    numbers = (STABLE, e / (u * u), rho_hat / (alpha * u), rho_hat, P)
    return Points(*(np.array([float(x)]) for x in numbers), nodes=nodes)


def _agree(a: Points, b: Points) -> bool:
    pairs = ((a.E, b.E), (a.V, b.V), (a.component_wise, b.component_wise))
    return bool(a.status[0] == b.status[0]) and all(
        np.allclose(x, y, rtol=_TOLERANCE, atol=1e-14, equal_nan=True) for x, y in pairs
    )
