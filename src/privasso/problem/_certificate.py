"""Proof of optimality: the KKT residual, and a duality gap that is valid with a linear term.

The dual of min ½‖Fx‖² − bᵀx + λ‖x‖₁ is max −½‖w‖² subject to ‖b − Fᵀw‖_∞ ≤ λ. At the
optimum w = Fx. Close to it, Fx violates the constraints slightly. For the plain LASSO one then
shrinks the residual towards zero. That is wrong here: with b outside the row space of F, neither
zero nor any multiple of the residual need satisfy the constraints. Instead w moves along a
direction that leads into the feasible set:

- *along the path*: δ = F_S (F_SᵀF_S)⁻¹ sgn(x_S) is how Fx changes as λ decreases, so a very small
  step makes every constraint of the support S strict;
- without noise, towards the labels y, which satisfy b − Fᵀy = 0;
- otherwise towards an *anchor* w₀ that satisfies every constraint strictly: the least-squares fit
  of b by Fᵀw (each constraint in units of its column) or, if that fails, the solution of the
  linear programme.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from privasso.problem._boundedness import ProgrammeError, linear_programme, project
from privasso.problem._problem import Problem, violations

_EPS = np.finfo(np.float64).eps

#: Largest M·N² for which the linear programme is solved (it takes about a second).
LP_LIMIT = 2e8
#: Largest violation, relative to λ, that cancellation in Fx explains.
_CANCELLATION_LIMIT = 1e-6


@dataclass(frozen=True)
class Certificate:
    """What is known about a point x.

    - `kkt`: largest violation of an optimality condition, divided by λ.
    - `kkt_beyond_rounding`: the same, without violations that rounding explains. If a column is
      very large compared with λ, a change of x in its last digit moves FᵀFx by more than λ·tol.
    - `gap`: objective at x minus a lower bound of the minimum, never negative; infinite if no
      feasible dual point was found.
    """

    kkt: float
    kkt_beyond_rounding: float
    gap: float

    def proves(self, tol: float) -> bool:
        """Whether x is optimal to `tol`, or to rounding if that is coarser."""
        return self.kkt_beyond_rounding <= tol


#: What is known about a point that was not checked, or that is no candidate for a minimiser.
NO_CERTIFICATE = Certificate(kkt=np.inf, kkt_beyond_rounding=np.inf, gap=np.inf)


def certify(
    problem: Problem,
    x: np.ndarray,
    w: np.ndarray,
    c: np.ndarray,
    path: tuple[np.ndarray, np.ndarray] | None = None,
    *,
    anchors: bool = True,
) -> Certificate:
    """Certify x, given w = Fx, c = b − Fᵀw and, if known, the path direction (δ, Fᵀδ).

    Without `anchors` only directions are tried that need no further pass over F, and the gap may
    be infinite.
    """
    lam = problem.lam
    violation = violations(c, x, lam)
    floor = rounding_floor(problem.b, problem.norms, float(np.linalg.norm(w)))
    floor = np.maximum(floor, cancellation_floor(x, problem.norms, lam))
    resolved = ~(violation <= floor)  # also what is not a number
    return Certificate(
        kkt=float(violation.max() / lam),
        kkt_beyond_rounding=float(violation[resolved].max(initial=0.0) / lam),
        gap=dual_gap(problem, x, w, c, path, anchors=anchors),
    )


def certify_point(problem: Problem, x: np.ndarray, *, anchors: bool = True) -> Certificate:
    """Certify x, of which nothing else is known; takes one pass, and more with `anchors`."""
    w = np.zeros(problem.shape[0])
    fitted, _ = problem.op.update(x, w, 0.0, 1.0)
    return certify(problem, x, w, problem.b - fitted, anchors=anchors)


def cancellation_floor(x: np.ndarray, norms: np.ndarray, lam: float) -> np.ndarray:
    """How much rounding x can move FᵀFx where large coefficients cancel in Fx, entry by entry.

    On nearly collinear columns ‖Fx‖ may be far smaller than Σ|x_i|‖F_i‖, to which rounding errors
    are relative. No more than 10⁻⁶λ is ever explained by this, so that coefficients without bound
    do not pass as a minimiser.
    """
    total = float(np.abs(x) @ norms)
    return np.minimum(_EPS * total * norms, _CANCELLATION_LIMIT * lam)


def rounding_floor(b: np.ndarray, norms: np.ndarray, length: float) -> np.ndarray:
    """Size of the rounding error in b − FᵀFx, component by component, given ‖Fx‖."""
    out = np.abs(b)
    out += norms * length
    out *= 16 * _EPS
    return out


def dual_gap(
    problem: Problem,
    x: np.ndarray,
    w: np.ndarray,
    c: np.ndarray,
    path: tuple[np.ndarray, np.ndarray] | None = None,
    *,
    anchors: bool = True,
) -> float:
    """Return P(x) − D(w + tδ) for the smallest step t along a direction into the feasible set.

    Computed as Σ(λ|x_i| − c_i x_i) + t wᵀδ + ½t²‖δ‖². Every term vanishes at the optimum, so that
    no digits are lost in a difference of large numbers.
    """
    base = float(np.sum(problem.lam * np.abs(x) - c * x))
    if not np.isfinite(base):
        return np.inf
    for delta, q in _directions(problem, w, c, path, anchors):
        t = step_to_feasible(c, q, problem.lam)
        if t is not None:
            return max(base + t * float(w @ delta) + 0.5 * t * t * float(delta @ delta), 0.0)
    return np.inf


def _directions(
    problem: Problem,
    w: np.ndarray,
    c: np.ndarray,
    path: tuple[np.ndarray, np.ndarray] | None,
    anchors: bool,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield directions δ with q = Fᵀδ, cheapest first; each is computed when it is asked for."""
    if np.abs(c).max() <= problem.lam:
        yield np.zeros_like(w), np.zeros_like(c)
    if path is not None:
        yield path
    known = problem.to_dual_point(w, c)
    if known is not None:
        yield known
    for anchor in (least_squares_anchor, programme_anchor) if anchors else ():
        found = anchor(problem)
        if found is not None:
            w0, c0 = found
            yield w0 - w, c - c0


def step_to_feasible(c: np.ndarray, q: np.ndarray, lam: float) -> float | None:
    """Smallest t ≥ 0 with ‖c − t q‖_∞ ≤ λ, or None if there is no such t."""
    moving = q != 0
    if np.abs(c[~moving]).max(initial=0.0) > lam:
        return None
    c, q = c[moving], q[moving]
    lo = ((c - np.sign(q) * lam) / q).max(initial=0.0)
    hi = ((c + np.sign(q) * lam) / q).min(initial=np.inf)
    if lo == 0.0:
        return 0.0 if hi >= 0.0 else None
    return float(lo) if lo <= hi else None


def least_squares_anchor(problem: Problem) -> tuple[np.ndarray, np.ndarray] | None:
    """(w₀, b − Fᵀw₀) of the least-squares fit, if it is strictly feasible."""
    *_, last = project(problem, problem.b / problem.norms)
    return _strict(problem, last.w)


def programme_anchor(problem: Problem) -> tuple[np.ndarray, np.ndarray] | None:
    """(w₀, b − Fᵀw₀) of the linear programme, if it is small enough to be solved."""
    m, n = problem.shape
    if m * n * n > LP_LIMIT:
        return None
    try:
        return _strict(problem, linear_programme(problem).w)
    except ProgrammeError:
        return None


def _strict(problem: Problem, w: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    c = problem.b - problem.op.rmatvec(w)
    return (w, c) if np.abs(c).max() < problem.lam else None
