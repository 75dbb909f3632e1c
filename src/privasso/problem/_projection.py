"""Orthogonal projection on the null space of F by conjugate gradients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from privasso._threads import interruptible
from privasso.problem._problem import Problem

#: Eigenvalues of FFᵀ below this part of the largest one count as zero.
_RANK_TOLERANCE = 1e-13


@dataclass(frozen=True, eq=False)
class Projection:
    """The two parts of d = residual + (FD⁻¹)ᵀw, the residual close to the null space of FD⁻¹.

    `leak` is ‖FD⁻¹ residual‖ relative to its value before the first iteration.
    """

    residual: np.ndarray
    w: np.ndarray
    leak: float


def project(
    problem: Problem, d: np.ndarray, *, tol: float = 1e-13, max_iter: int = 200
) -> Iterator[Projection]:
    """Yield better and better projections of d on the null space of FD⁻¹, D the column norms.

    Conjugate gradients (CGLS) on min_w ‖d − (FD⁻¹)ᵀw‖, one pass over F per iteration: the pass that
    forms a gradient s = FD⁻¹r also yields Fᵀs, and Fᵀp of the search direction p follows by
    linearity. Dividing by D makes the rate of convergence independent of the scales of the columns.

    The arrays of a `Projection` are updated in place by the next iteration.
    """
    op, inverse_norms = problem.op, 1.0 / problem.norms
    m = problem.shape[0]
    r: np.ndarray = np.array(d, dtype=np.float64)
    w: np.ndarray = np.zeros(m)
    s: np.ndarray = np.zeros(m)
    q_s, _ = op.update(r * inverse_norms, s, 0.0, 1.0)
    p: np.ndarray = s.copy()
    q: np.ndarray = q_s * inverse_norms
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


def project_exactly(problem: Problem, d: np.ndarray) -> np.ndarray:
    """The projection of d on the null space of FD⁻¹ by an eigendecomposition, F made dense."""
    A = problem.op.toarray() / problem.norms
    m, n = A.shape
    gram = A @ A.T if m <= n else A.T @ A
    values, vectors = interruptible(lambda: np.linalg.eigh(gram))
    kept = values > _RANK_TOLERANCE * max(values[-1], 0.0)
    rows = vectors[:, kept] / np.sqrt(values[kept])
    basis = rows.T @ A if m <= n else vectors[:, kept].T  # orthonormal, of the row space
    r: np.ndarray = np.array(d, dtype=np.float64)
    for _ in range(3):  # the basis is orthonormal only to rounding
        r -= basis.T @ (basis @ r)
    return r
