"""Fixed points for arrays of (λ, σ), with the average over scales refined until it settles."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privasso._threads import n_threads, run
from privasso.model import Model
from privasso.noise import NoiseDesign
from privasso.scales import ScaleLaw
from privasso.theory._grid import (
    ACTIVE,
    DIVERGENCE,
    ERROR,
    INFINITE,
    N_ROWS,
    STABLE,
    STATUS,
    VARIANCE,
    agree,
    solve_level,
)
from privasso.theory._nodes import REFINEMENTS, Nodes, Tail, columns, lower_tail, quadrature

FloatArray = NDArray[np.float64]

#: Two quadratures must agree to this, relative to E, V, ρ̂ and OnAveKL.
TOLERANCE = 1e-6
#: Number of points times nodes below which a second thread takes longer than it saves.
_SERIAL_BELOW = 20_000


class QuadratureWarning(UserWarning):
    """The average over the scales did not settle to 1e-6; the prediction is less accurate.

    Examples
    --------
    >>> import privasso as pv
    >>> model = pv.Model(scales=pv.LogNormal(0.0, 4.0))  # s beyond e⁴ in one column of six
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = pv.state_evolution(model, 1e-3, pv.Gram(0.1))
    ...     _ = pv.state_evolution(model, 1e-3, pv.Isotropic(0.1))
    >>> {each.category.__name__ for each in caught}
    {'QuadratureWarning'}
    """


@dataclass(frozen=True, eq=False)
class GridPoints:
    """State evolution at many points: arrays with one entry per point."""

    status: FloatArray
    E: FloatArray
    V: FloatArray
    rho_hat: FloatArray
    component_wise: FloatArray
    nodes: Nodes
    """Nodes of the last refinement."""


def solve_grid(
    model: Model,
    lams: FloatArray,
    sigmas: FloatArray,
    noise: NoiseDesign,
    n_features: int | None,
) -> GridPoints:
    """State evolution at the pairs (λ_k, σ_k), with the noise at level σ_k instead of its own."""
    noise = noise.with_sigma(1.0)
    values = np.zeros((N_ROWS, lams.size))
    nodes = columns(model.scales, noise, n_features)
    if nodes is not None:
        _solve_level(values, model, lams, sigmas, nodes, warm=False)
        return _points(values, nodes)

    tail = lower_tail(model.scales, noise)
    nodes = quadrature(model.scales, noise, 0, tail)
    _solve_level(values, model, lams, sigmas, nodes, warm=False)
    if tail is Tail.INFINITE:
        # Only points without noise have an integral that a refinement could settle.
        _diverge(values, model.alpha, sigmas > 0.0)
        todo = np.flatnonzero(sigmas == 0.0)
    else:
        todo = np.arange(lams.size)
    for level in range(1, REFINEMENTS + 1):
        if todo.size == 0:
            return _points(values, nodes)
        nodes = quadrature(model.scales, noise, level, tail)
        before = np.ascontiguousarray(values[:, todo])
        after = before.copy()
        _solve_level(after, model, lams[todo], sigmas[todo], nodes, warm=True)
        values[:, todo] = after
        settled = np.empty(todo.size, dtype=np.bool_)
        agree(before, after, TOLERANCE, settled)
        todo = todo[~settled]
    if todo.size:
        warnings.warn(
            f"the average over {model.scales!r} did not settle to {TOLERANCE:g} at "
            f"{nodes.v.size} nodes; pass n_features to predict for that many columns",
            QuadratureWarning,
            stacklevel=3,
        )
    return _points(values, nodes)


def solve_nodes(model: Model, lams: FloatArray, sigmas: FloatArray, nodes: Nodes) -> GridPoints:
    """State evolution at the pairs (λ_k, σ_k) on given columns with their variances."""
    values = np.zeros((N_ROWS, lams.size))
    _solve_level(values, model, lams, sigmas, nodes, warm=False)
    return _points(values, nodes)


def _solve_level(
    values: FloatArray,
    model: Model,
    lams: FloatArray,
    sigmas: FloatArray,
    nodes: Nodes,
    *,
    warm: bool,
) -> None:
    """Fill `values` on one set of nodes, on several threads if the work is worth them."""
    ratio = nodes.critical_ratio(model.alpha)
    n = lams.size

    def solve(first: int, last: int) -> None:
        with np.errstate(all="ignore"):  # see below
            solve_level(
                values, first, last, warm, lams, sigmas, ratio,
                model.alpha, model.rho, model.sigma_xi**2, nodes.v, nodes.w, nodes.profile,
            )  # fmt: skip

    workers = min(n_threads(), n) if n * nodes.v.size > _SERIAL_BELOW else 1
    edges = [n * k // workers for k in range(workers + 1)]
    run([partial(solve, first, last) for first, last in pairwise(edges)])
    stable = values[:, values[STATUS] == STABLE]
    if not (
        np.isfinite(ratio)
        and np.isfinite(values[ACTIVE]).all()
        and np.isfinite(stable[[ERROR, VARIANCE]]).all()
        and not np.isnan(stable[DIVERGENCE]).any()
    ):
        raise out_of_range(model.scales)


def out_of_range(scales: ScaleLaw) -> ValueError:
    """The error that says that double precision does not hold a prediction."""
    return ValueError(
        f"the averages over {scales!r} leave the range of double precision: choose scales that "
        "span fewer orders of magnitude, or numbers nearer to one for λ and the noise; for the "
        "limit of many columns, pass n_features to predict for that many"
    )


def _diverge(values: FloatArray, alpha: float, where: NDArray[np.bool_]) -> None:
    """Overwrite the points where E is infinite; every column is active there."""
    values[STATUS, where] = INFINITE
    values[ERROR, where] = values[DIVERGENCE, where] = np.inf
    values[ACTIVE, where] = 1.0
    values[VARIANCE, where] = 1.0 / (alpha - 1.0) if alpha > 1.0 else np.inf


def _points(values: FloatArray, nodes: Nodes) -> GridPoints:
    return GridPoints(
        values[STATUS],
        values[ERROR],
        values[VARIANCE],
        values[ACTIVE],
        values[DIVERGENCE],
        nodes,
    )
