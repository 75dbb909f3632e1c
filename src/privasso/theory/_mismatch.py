"""State evolution when the noise was shaped after other scales than the data have."""

from __future__ import annotations

import warnings
from typing import SupportsIndex

import numpy as np

from privasso._validation import integer, nonnegative_float, positive_float
from privasso.model import Model
from privasso.noise import NoiseDesign
from privasso.theory._fixed_point import FixedPoint, point_at
from privasso.theory._nodes import Nodes, Tail, columns, lower_tail, quadrature
from privasso.theory._points import GridPoints, QuadratureWarning, solve_system
from privasso.theory._state_evolution import check, state_evolution
from privasso.theory._system import FloatArray

#: Nodes of the error Z at each refinement of the scales.
_ERROR_NODES = (25, 45, 85, 165)
#: Two quadratures must agree to this.
_TOLERANCE = 1e-5


def mismatched_state_evolution(
    model: Model,
    lam: float,
    noise: NoiseDesign,
    scale_error: float,
    *,
    n_features: SupportsIndex | None = None,
) -> FixedPoint:
    """Predict with noise shaped after v̂ = v e^(τZ), Z ~ N(0, 1), on data that have v.

    Scales from a public or an older data set may be wrong, here by a factor of about e^(τ/2) up
    or down (v is the square of a scale). The variances are σ² profile(v̂)/E[profile(v̂)], so they
    need v̂ alone; the averages of state evolution run over v and Z together.

    `scale_error` is τ, the standard deviation of the error of log v, zero or more.
    """
    check(model, noise)
    lam = positive_float("lam", lam)
    scale_error = nonnegative_float("scale_error", scale_error)
    count = None if n_features is None else integer("n_features", n_features, minimum=1)
    unit = noise.with_sigma(1.0)
    nodes = columns(model.scales, unit, count)
    tail = Tail.LIGHT if nodes is not None else lower_tail(model.scales, unit)
    if scale_error == 0.0 or noise.sigma == 0.0 or tail is Tail.INFINITE:
        return state_evolution(model, lam, noise, n_features=count)
    before = None
    for level, n_errors in enumerate(_ERROR_NODES):
        given = nodes if nodes is not None else quadrature(model.scales, unit, level, tail)
        v, w, seen = with_scale_error(given.v, given.w, scale_error, n_errors)
        pairs = Nodes(v, w, unit.variances(seen, w))
        after, _ = solve_system(pairs.system(model, lam, noise.mean_power), model.scales)
        if before is not None and _agree(before, after):
            return point_at(after, 0, model, lam, noise)
        before = after
    assert before is not None
    warnings.warn(
        f"the average over {model.scales!r} and the error of the scales did not settle to "
        f"{_TOLERANCE:g}",
        QuadratureWarning,
        stacklevel=2,
    )
    return point_at(before, 0, model, lam, noise)


def with_scale_error(
    v: FloatArray, w: FloatArray, scale_error: float, n: int, reach: float = 9.0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return v, weights and v̂ = v e^(τz) for every pair of a column and one of n nodes z.

    The nodes are those of the trapezoidal rule over ±reach. It converges exponentially and,
    unlike Gauss–Hermite, has enough nodes at large z of either sign.
    """
    z = np.linspace(-reach, reach, n)
    weight: FloatArray = np.exp(-0.5 * z * z)
    weight = weight / float(np.sum(weight))
    return (
        np.repeat(v, n),
        np.outer(w, weight).ravel(),
        np.outer(v, np.exp(scale_error * z)).ravel(),
    )


def _agree(a: GridPoints, b: GridPoints) -> bool:
    pairs = ((a.E, b.E), (a.V, b.V), (a.component_wise, b.component_wise))
    return bool(a.status[0] == b.status[0]) and all(
        np.allclose(x, y, rtol=_TOLERANCE, atol=1e-14, equal_nan=True) for x, y in pairs
    )
