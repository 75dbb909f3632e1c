"""The LASSO on a positive definite matrix: one step of Newton's method for a clipped problem."""

from __future__ import annotations

import numpy as np

from privasso._clock import Clock
from privasso.problem import smallest_subgradient
from privasso.solvers import _tuned as tuned
from privasso.solvers._gram import Factor, submatrix
from privasso.solvers._newton import descend, line_search, residual
from privasso.solvers._proximal import proximal_points


def minimise_quadratic(
    H: np.ndarray, b: np.ndarray, thresholds: np.ndarray, x: np.ndarray, tol: float
) -> np.ndarray:
    """Minimise ½xᵀHx − bᵀx + Σ t_i|x_i| from x, H positive definite, some t_i zero perhaps.

    Coordinate descent finds the support, a Newton step on it the answer. A Newton step that
    changes signs ends at the minimum along its line, and coordinate descent goes on from there.
    Where this is slow, the proximal-point iteration follows. Ends when no condition is violated by
    more than `tol` relative to the terms of the gradient, columns at unit norm, or when no further
    progress is possible.
    """
    scale = np.sqrt(np.diag(H))
    H = H / scale
    H /= scale[:, None]
    model = _Model(H, b / scale, thresholds / scale)
    limit = tol * float(np.max(np.abs(model.b) + model.t, initial=0.0))
    z = x * scale
    violation = model.improve(z)
    for _ in range(tuned.QUADRATIC_ROUNDS):
        if violation <= limit:
            break
        before, violation = violation, model.improve(z)
        if violation > 0.5 * before:
            z = _proximal(model, z, violation, limit)
            break
    return z / scale


class _Model:
    """H at unit diagonal, b and the thresholds t, with the step that lowers the objective."""

    def __init__(self, H: np.ndarray, b: np.ndarray, t: np.ndarray) -> None:
        self.H, self.b, self.t = H, b, t
        self._r = np.empty_like(b)

    def improve(self, z: np.ndarray) -> float:
        """Coordinate descent and one Newton step on z, in place; the largest violation then."""
        H, b, t, r = self.H, self.b, self.t, self._r
        residual(H, b, z, r)
        descend(H, z, r, t, tuned.EPOCHS, 0.0)
        active = np.flatnonzero((z != 0) | (t == 0))
        factor = cholesky(H, active) if active.size else None
        if factor is not None:
            here = z[active]
            descent = r[active] - t[active] * np.sign(here)
            step = factor.solve(descent)
            decrease = float(descent @ step)
            if decrease > 0:
                length, hit = line_search(here, step, decrease, decrease, t[active])
                z[active] = here + length * step
                if hit >= 0:
                    z[active[hit]] = 0.0
        residual(H, b, z, r)
        return float(np.max(np.abs(smallest_subgradient(-r, z, t)), initial=0.0))


def _proximal(model: _Model, z: np.ndarray, violation: float, limit: float) -> np.ndarray:
    """Proximal points, each improved by a Newton step, until the limit or no further progress."""
    best, stale = z, 0
    for point, _ in proximal_points(model.H, model.b, model.t, z, clock=Clock()):
        here = point.copy()
        reached = model.improve(here)
        stale = 0 if reached < 0.5 * violation else stale + 1
        if reached < violation:
            best, violation = here, reached
        if violation <= limit or stale > tuned.QUADRATIC_PATIENCE:
            break
    return best


def cholesky(H: np.ndarray, active: np.ndarray) -> Factor | None:
    """Factorise H on the active set; None if rounding has made it indefinite."""
    try:
        return Factor(active, np.linalg.cholesky(submatrix(H, active)))
    except np.linalg.LinAlgError:
        return None
