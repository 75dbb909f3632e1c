"""The LASSO on a positive definite matrix: one step of Newton's method for a clipped problem."""

from __future__ import annotations

import numpy as np

from privasso.problem import smallest_subgradient
from privasso.solvers._gram import factorise
from privasso.solvers._newton import descend, line_search, residual

#: Epochs of coordinate descent before each factorisation.
_EPOCHS = 10
_ROUNDS = 60


def minimise_quadratic(
    H: np.ndarray, b: np.ndarray, thresholds: np.ndarray, x: np.ndarray, tol: float
) -> np.ndarray:
    """Minimise ½xᵀHx − bᵀx + Σ t_i|x_i| from x, H positive definite, some t_i zero perhaps.

    Coordinate descent finds the support, a Newton step on it the answer. A Newton step that
    changes signs ends at the minimum along its line, and coordinate descent goes on from there:
    no step raises the objective. Ends when no condition is violated by more than `tol` relative
    to the terms of the gradient, columns at unit norm.

    Examples
    --------
    >>> import numpy as np
    >>> H = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> minimise_quadratic(H, np.array([4.0, 1.0]), np.array([1.0, 0.0]), np.zeros(2), 1e-12)
    array([ 1.66666667, -0.33333333])
    """
    scale = np.sqrt(np.diag(H))
    H = H / scale
    H /= scale[:, None]
    b, t, z = b / scale, thresholds / scale, x * scale
    r = np.empty_like(z)
    residual(H, b, z, r)
    free = t == 0
    size = float(np.max(np.abs(b) + t, initial=0.0))
    for _ in range(_ROUNDS):
        descend(H, z, r, t, _EPOCHS, 0.0)
        active = np.flatnonzero((z != 0) | free)
        factor = factorise(H, active)
        if factor is not None and active.size:
            here = z[active]
            descent = r[active] - t[active] * np.sign(here)
            step = factor.solve(descent)
            decrease = float(descent @ step)
            if decrease > 0:
                length, hit = line_search(here, step, decrease, t[active])
                z[active] = here + length * step
                if hit >= 0:
                    z[active[hit]] = 0.0
        residual(H, b, z, r)
        if np.max(np.abs(smallest_subgradient(-r, z, t)), initial=0.0) <= tol * size:
            break
    return z / scale
