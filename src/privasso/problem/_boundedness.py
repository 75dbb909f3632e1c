"""Whether a minimiser exists: rays that prove it does not, and the critical λ.

The objective falls without bound exactly when there is a ray, a direction d with Fd = 0 and
λ‖d‖₁ < bᵀd. By duality there is none when λ is at least

    λ_crit = min_w ‖b − Fᵀw‖_∞ = max { bᵀd : Fd = 0, ‖d‖₁ ≤ 1 }.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import get_lapack_funcs

from privasso._threads import interruptible
from privasso._types import MatrixLike
from privasso._validation import real_array
from privasso.operators import Operator, as_operator
from privasso.problem._problem import Problem

#: Conjugate gradients end with a gradient of this part of the first, or after so many steps.
_ACCURATE, _MAX_ITER = 1e-13, 200


@dataclass(frozen=True, eq=False)
class Projection:
    """The two parts of d = residual + (FD⁻¹)ᵀw, the residual close to the null space of FD⁻¹.

    `leak` is ‖FD⁻¹ residual‖ relative to its value before the first iteration.
    """

    residual: np.ndarray
    w: np.ndarray
    leak: float


def project(problem: Problem, d: np.ndarray) -> Iterator[Projection]:
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
    for _ in range(_MAX_ITER):
        curvature = float(q @ q)
        if start == 0.0 or gamma <= _ACCURATE**2 * start or curvature == 0.0:
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


#: Largest ‖Fd‖ of a ray d, relative to Σ|d_i|‖F_i‖.
NULL_TOLERANCE = 1e-9
#: The slope along a ray must be at least this far below zero, relative to λ‖d‖₁.
SLOPE_TOLERANCE = 1e-7


def slope(problem: Problem, d: np.ndarray) -> float:
    """Slope of the objective along d far out: λ‖d‖₁ − bᵀd, relative to λ‖d‖₁."""
    length = problem.lam * np.abs(d).sum()
    return float((length - problem.b @ d) / length) if length > 0 else 0.0


def is_ray(problem: Problem, d: np.ndarray) -> bool:
    """Whether d proves the problem unbounded: Fd = 0 to working precision, negative slope."""
    if not np.isfinite(d).all() or slope(problem, d) > -SLOPE_TOLERANCE:
        return False
    image = problem.op.matvec(d)
    largest = float(np.abs(image).max())
    if largest == 0.0:
        return True
    length = largest * np.linalg.norm(image / largest)  # squares of tiny numbers would be zero
    return bool(length <= NULL_TOLERANCE * (np.abs(d) @ np.sqrt(problem.squares)))


def zero_column_ray(problem: Problem) -> np.ndarray | None:
    """Return a unit ray along a zero column with b_i beyond ±λ, if there is one.

    Only this column of F is read.
    """
    free = np.flatnonzero((problem.squares == 0) & (np.abs(problem.b) > problem.lam))
    if free.size == 0:
        return None
    i = free[np.argmax(np.abs(problem.b[free]))]
    if abs(problem.op.columns(np.array([i]))).max() > 0.0:  # its square is zero, and it is not
        return None
    d = np.zeros(problem.shape[1])
    d[i] = np.sign(problem.b[i])
    return d


def ray_from(problem: Problem, x: np.ndarray) -> np.ndarray | None:
    """Project x on the null space of F and return the result if it is a ray, otherwise None.

    On an unbounded problem the iterates of a descent method move away along a ray, and their
    projection soon is a ray itself. The projection is computed to full accuracy only if its slope
    is negative after a few iterations of conjugate gradients. On nearly collinear columns these
    converge slowly; if F is not large, `RaySearch` then takes their place.
    """
    scale = np.abs(x).max(initial=0.0)
    if scale == 0.0:
        return None
    d, accurate, promising = x, False, False
    for k, part in enumerate(project(problem, x / scale * problem.norms)):
        d = part.residual / problem.norms
        promising = slope(problem, d) < -SLOPE_TOLERANCE
        if part.leak < 1e-2 and not promising and k >= 10:
            return None
        accurate = part.leak < 1e-10
        if promising and accurate:
            break
    rays = RaySearch(problem.op, problem.norms)
    if promising and not accurate and rays.direct:
        return rays.ray(problem, x)
    largest = np.abs(d).max()
    if largest == 0.0:
        return None
    d = d / largest
    return d if is_ray(problem, d) else None


class ProgrammeError(RuntimeError):
    """The linear programme could not be solved, as can happen with very different scales."""


@dataclass(frozen=True, eq=False)
class Programme:
    """Solution of the linear programme.

    `critical`: λ_crit. `w` (M,): the point that attains the minimum. `d` (N,): the direction, ‖d‖₁
    = 1, that attains the maximum.
    """

    critical: float
    w: np.ndarray
    d: np.ndarray


def linear_programme(problem: Problem, *, time_limit: float | None = None) -> Programme:
    """Minimise t subject to −t ≤ (b − Fᵀw)_i ≤ t; its value is λ_crit.

    The multipliers of the two sides are the positive and negative parts of d. F is made dense, and
    the time grows with the cube of the size: seconds at 500 × 1000, minutes beyond. Ctrl-C ends it
    at once.

    `problem`: F and b; its λ does not matter.

    Raises `ProgrammeError` when the programme cannot be solved, or not in that time.
    """
    from scipy.optimize import linprog  # takes long to import, and few solves need it

    F = problem.op.toarray()
    m, n = F.shape
    # Each constraint is divided by the size of its column, in units of their geometric mean, and
    # each unknown by that of its row: the tolerances of the solver are absolute, it ignores tiny
    # coefficients, and F may be much larger or smaller than 1.
    sizes = np.abs(F).max(axis=0)
    level = 1.0 / float(np.exp(np.mean(np.log(sizes[sizes > 0])))) if sizes.any() else 1.0
    unit = np.divide(1.0, sizes, out=np.full(n, level), where=sizes > 0)
    A = F * unit
    lengths = np.linalg.norm(A, axis=1)
    rows = 1.0 / np.where(lengths > 0, lengths, 1.0)
    A *= rows[:, None]
    width = unit / level
    bound = max(float(np.abs(problem.b).max()), np.finfo(float).tiny)
    side = problem.b / bound * width
    result = interruptible(
        lambda: linprog(
            np.append(np.zeros(m), 1.0),
            A_ub=np.hstack([-np.concatenate([A, -A], axis=1).T, -np.tile(width, 2)[:, None]]),
            b_ub=np.concatenate([-side, side]),
            bounds=[(None, None)] * m + [(0, None)],
            method="highs-ipm",
            options={} if time_limit is None else {"time_limit": time_limit},
        )
    )
    if result.status != 0:
        raise ProgrammeError(
            f"the linear programme for the critical lambda failed: {result.message}"
        )
    multiplier = -result.ineqlin.marginals.reshape(2, n) * width
    return Programme(
        critical=float(result.fun * bound),
        w=result.x[:m] * rows * (bound * level),
        d=multiplier[0] - multiplier[1],
    )


def critical_lambda(F: MatrixLike, eta: ArrayLike) -> float:
    """Smallest λ for which ½‖y−Fx‖² + λ‖x‖₁ + ηᵀx has a minimiser, whatever y is.

    λ_crit = min_u ‖Fᵀu − η‖_∞, a linear programme. Below it the objective is unbounded. It is zero
    if F has full column rank, and proportional to η: multiplying the noise by λ/λ_crit makes a
    given λ large enough.

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


_geqrf, _geqp3, _orgqr = get_lapack_funcs(("geqrf", "geqp3", "orgqr"), dtype=np.float64)
#: Columns that LAPACK may treat at once.
_BLOCK = 64
#: Largest M·N·min(M, N) for which F is factorised, which takes about a second.
_LIMIT = 4e9
#: Diagonal entries of the triangular factor below this part of the largest one: a smaller rank.
_RANK_TOLERANCE = 1e-12
#: Without the exchange of columns, entries below this part of the largest may mean the same.
_SUSPICIOUS = 1e-6


class RaySearch:
    """Projections on the null space of F, exact also where columns are nearly collinear.

    Conjugate gradients, which `ray_from` uses, need as many passes over F as the condition number
    is large. Here an orthonormal basis of the row space of FD⁻¹, D the column norms, is computed
    once, when the first direction is to be projected.

    `norms` (N,): norms of its columns, with 1 in the place of 0.
    """

    def __init__(self, op: Operator, norms: np.ndarray) -> None:
        self._op, self._norms = op, norms
        m, n = op.shape
        #: Whether F is small enough for that.
        self.direct = float(m) * n * min(m, n) <= _LIMIT

    @cached_property
    def _basis(self) -> np.ndarray:
        """Orthonormal basis of the row space of FD⁻¹, one vector per column."""
        Q, size = interruptible(lambda: self._factorised(pivoting=False))
        if size.min(initial=np.inf) <= _SUSPICIOUS * size.max(initial=0.0):
            del Q
            Q, size = interruptible(lambda: self._factorised(pivoting=True))
            Q = Q[:, : np.count_nonzero(size > _RANK_TOLERANCE * size.max(initial=0.0))]
        return Q

    def _factorised(self, *, pivoting: bool) -> tuple[np.ndarray, np.ndarray]:
        """The orthonormal factor of (FD⁻¹)ᵀ, and the sizes of the diagonal of the triangular one.

        With pivoting these are in descending order. The factor takes the place of the matrix.
        """
        A = np.divide(self._op.toarray(), self._norms, order="C").T  # as LAPACK wants it
        rows, columns = A.shape
        room = _BLOCK * max(columns, 1)
        if pivoting:
            A, _, tau, *_ = _geqp3(A, lwork=room, overwrite_a=1)
        else:
            A, tau, *_ = _geqrf(A, lwork=room, overwrite_a=1)
        size = np.abs(np.diag(A))
        Q, *_ = _orgqr(A[:, : min(rows, columns)], tau, lwork=room, overwrite_a=1)
        return Q, size

    def _outside(self, d: np.ndarray) -> np.ndarray:
        """The part of d in the null space of FD⁻¹."""
        Q = self._basis
        if Q.shape[1] >= Q.shape[0]:  # full column rank
            return np.zeros_like(d)
        r = np.array(d, dtype=np.float64)
        for _ in range(2):  # the second time removes the rounding errors of the first
            r -= Q @ (Q.T @ r)
        return r

    def ray(self, problem: Problem, x: np.ndarray) -> np.ndarray | None:
        """Project x on the null space of F and return the result if it is a ray."""
        if not self.direct:
            return ray_from(problem, x)
        scale = float(np.abs(x).max(initial=0.0))
        if scale == 0.0:
            return None
        d = self._outside(x / scale * self._norms) / self._norms
        largest = float(np.abs(d).max())
        if largest == 0.0:
            return None
        d = d / largest
        return d if is_ray(problem, d) else None
