"""Orthogonal projection on the null space of F by conjugate gradients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privasso.problem._problem import Problem


@dataclass(frozen=True)
class Projection:
    """The parts of d = residual + (FD⁻¹)ᵀw, with residual close to the null space of FD⁻¹."""

    residual: np.ndarray
    w: np.ndarray
    leak: float  # ‖FD⁻¹ residual‖ relative to where it started


def project(problem: Problem, d: np.ndarray, *, tol: float = 1e-13, max_iter: int = 200):
    """Yield ever better projections of d on the null space of FD⁻¹, D the column norms.

    CGLS on min_w ‖d − (FD⁻¹)ᵀw‖; one fused pass an iteration: the product Fᵀs of each new
    gradient s = FD⁻¹r comes from the pass that forms s, and Fᵀp of the search direction
    follows by linearity. Scaling by D makes the rate of convergence independent of the scales
    of the columns.
    """
    op, inverse_norms = problem.op, 1.0 / problem.norms
    m = problem.shape[0]
    r = np.array(d, dtype=np.float64)
    w = np.zeros(m)
    s = np.zeros(m)
    q_s, _ = op.update(r * inverse_norms, s, 0.0, 1.0)
    p, q = s.copy(), q_s * inverse_norms
    gamma = start = float(s @ s)
    yield Projection(r, w, 1.0)
    for _ in range(max_iter):
        curvature = float(q @ q)
        if start == 0.0 or gamma <= tol**2 * start or curvature == 0.0:
            return
        step = gamma / curvature
        w += step * p
        r -= step * q
        q_s, _ = op.update(r * inverse_norms, s, 0.0, 1.0)
        gamma, previous = float(s @ s), gamma
        beta = gamma / previous
        p = s + beta * p
        q = q_s * inverse_norms + beta * q
        yield Projection(r, w, float(np.sqrt(gamma / start)))
