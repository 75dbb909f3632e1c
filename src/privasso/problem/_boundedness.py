"""Does a minimiser exist? Rays that prove it does not, and the critical λ.

The objective falls without bound exactly when a ray d exists with Fd = 0 and
λ‖d‖₁ < bᵀd. By duality none exists when λ is at least

    λ_crit = min_w ‖b − Fᵀw‖_∞ = max { bᵀd : Fd = 0, ‖d‖₁ ≤ 1 }.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog

from privasso._validation import real_array
from privasso.operators import as_operator
from privasso.problem._problem import Problem
from privasso.problem._projection import project

#: A ray's image must vanish to this accuracy, relative to Σ|d_i|‖F_i‖.
NULL_TOLERANCE = 1e-9
#: and its slope must be negative by this much, relative to λ‖d‖₁.
SLOPE_TOLERANCE = 1e-7


def slope(problem: Problem, d: np.ndarray) -> float:
    """Slope of the objective along d far out: λ‖d‖₁ − bᵀd, relative to λ‖d‖₁."""
    length = problem.lam * np.abs(d).sum()
    return float((length - problem.b @ d) / length) if length > 0 else 0.0


def is_ray(problem: Problem, d: np.ndarray) -> bool:
    """Whether d proves the problem unbounded: Fd = 0 to working precision, negative slope.

    Examples
    --------
    >>> import numpy as np
    >>> twins = Problem(np.array([[1.0, 1.0]]), b=[5.0, 0.0], lam=1.0)
    >>> is_ray(twins, np.array([1.0, -1.0])), is_ray(twins, np.array([1.0, 1.0]))
    (True, False)
    """
    if not np.isfinite(d).all() or slope(problem, d) > -SLOPE_TOLERANCE:
        return False
    image = np.linalg.norm(problem.op.matvec(d))
    return bool(image <= NULL_TOLERANCE * (np.abs(d) @ problem.norms))


def zero_column_ray(problem: Problem) -> np.ndarray | None:
    """Return a unit ray along a zero column with |b_i| > λ, the cheapest evidence there is."""
    free = np.flatnonzero((problem.squares == 0) & (np.abs(problem.b) > problem.lam))
    if free.size == 0:
        return None
    i = free[np.argmax(np.abs(problem.b[free]))]
    d = np.zeros(problem.shape[1])
    d[i] = np.sign(problem.b[i])
    return d


def ray_from(problem: Problem, x: np.ndarray) -> np.ndarray | None:
    """Project x on the null space of F and return it if that proves the problem unbounded.

    Iterates of a descent method on an unbounded problem run away along a ray, so their
    projection is one long before they are far out. Only a direction whose slope turns
    negative early is pursued to full accuracy.
    """
    scale = np.abs(x).max(initial=0.0)
    if scale == 0.0:
        return None
    d = x
    for k, part in enumerate(project(problem, x / scale * problem.norms)):
        d = part.residual / problem.norms
        promising = slope(problem, d) < -SLOPE_TOLERANCE
        if part.leak < 1e-2 and not promising and k >= 10:
            return None
        if promising and part.leak < 1e-10:
            break
    d = d / np.abs(d).max()
    return d if is_ray(problem, d) else None


class ProgrammeError(RuntimeError):
    """The linear programme could not be solved, as may happen with scales far apart."""


class Programme(NamedTuple):
    """Solution of the linear programme: its value, the dual point w, the direction d."""

    critical: float
    w: np.ndarray
    d: np.ndarray


def linear_programme(problem: Problem) -> Programme:
    """λ_crit, the w that attains the minimum and the d (‖d‖₁ = 1) that attains the maximum.

    min t subject to −t ≤ (b − Fᵀw)_i ≤ t; the multipliers of the two sides are the positive
    and negative parts of d. Dense and cubic in size: seconds at 500 × 1000, minutes beyond.
    """
    F = problem.op.toarray()
    m, n = F.shape
    # Scaling a constraint changes nothing but its units; without it, scales far from 1 meet the
    # absolute tolerances of the programme.
    unit = 1.0 / problem.norms
    bound = max(float(np.abs(problem.b).max()), np.finfo(float).tiny)
    rows = np.concatenate([F * unit, -F * unit], axis=1).T  # ±Fᵀw, constraint by constraint
    A = np.hstack([-rows, -np.concatenate([unit, unit])[:, None]])
    side = problem.b / bound * unit
    result = linprog(
        np.append(np.zeros(m), 1.0),
        A_ub=A,
        b_ub=np.concatenate([-side, side]),
        bounds=[(None, None)] * m + [(0, None)],
        method="highs-ipm",
    )
    if result.status != 0:
        raise ProgrammeError(
            f"the linear programme for the critical lambda failed: {result.message}"
        )
    multiplier = -result.ineqlin.marginals.reshape(2, n) * unit
    return Programme(
        critical=float(result.fun * bound),
        w=result.x[:m] * bound,
        d=multiplier[0] - multiplier[1],
    )


def critical_lambda(F: Any, eta: Any) -> float:
    """Smallest λ for which ½‖y−Fx‖² + λ‖x‖₁ + ηᵀx has a minimiser, whatever y is.

    λ_crit = min_u ‖Fᵀu − η‖_∞, a linear programme. Below it the objective is unbounded; at
    full column rank it is zero. It is proportional to η: to make a given λ admissible, shrink
    the noise by λ/λ_crit.

    Examples
    --------
    >>> import numpy as np
    >>> round(critical_lambda(np.array([[1.0, 1.0]]), eta=[0.3, -0.1]), 12)  # |η₁ − η₂|/2
    0.2
    """
    op = as_operator(F)
    eta = real_array("eta", eta, shape=(op.shape[1],))
    if not eta.any():
        return 0.0
    return linear_programme(Problem(op, eta, lam=1.0)).critical
