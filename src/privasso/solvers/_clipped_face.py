"""A clipped problem on a few columns: Newton's method with an exact line search.

At the present x the rows have curvatures d_μ (for Huber w_μ, or zero where the residual is
clipped), and the second derivative of the smooth part on the columns is H = FᵀDF + Q. The LASSO
with this quadratic model gives a direction, and a line search on the objective the step. For
Huber the objective is piecewise quadratic: once the clipped rows and the support are right, one
step is exact. The matrix FᵀDF is kept, and only rows whose curvature changes are read for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from privasso._clock import Clock
from privasso.operators import Block, Operator, as_operator
from privasso.problem import ClippedProblem, smallest_subgradient
from privasso.solvers import _tuned as tuned
from privasso.solvers._gram import Factor, submatrix
from privasso.solvers._newton import descend, line_search, residual
from privasso.solvers._proximal import proximal_points

_UNIT = 2.0**-53
_ROUNDING = 8 * _UNIT


@dataclass(frozen=True, eq=False)
class FaceResult:
    """Where Newton's method ended on a face: the coefficients, their predictions, the steps."""

    x: np.ndarray
    u: np.ndarray
    n_steps: int


class Face:
    """Columns `index` of F, all others being zero, with FᵀDF on them.

    More than half of the columns are not copied: the face then is all of F, in place.
    """

    def __init__(self, problem: ClippedProblem, index: np.ndarray) -> None:
        m, n = problem.shape
        self.whole = index.size > n // 2
        self.index: np.ndarray = np.arange(n) if self.whole else index
        self.op: Operator = problem.op if self.whole else _as_rows(problem.op.columns(index))
        self._d = np.zeros(m)
        self._curved = np.zeros((self.index.size, self.index.size))
        #: Entry (i, j) of FᵀDF is off by at most √(uncertainty_i · uncertainty_j).
        self.uncertainty: np.ndarray = np.zeros(self.index.size)

    def with_columns(self, problem: ClippedProblem, more: np.ndarray) -> Face:
        """Return the face with more columns; what is known of FᵀDF is kept."""
        index = np.concatenate([self.index, more])
        if self.whole or index.size > problem.shape[1] // 2:
            return Face(problem, index)
        block = problem.op.columns(more)
        other = object.__new__(Face)
        other.whole, other.index, other._d = False, index, self._d
        old = self.op.toarray() if self.op.dense else self.op.columns(np.arange(self.index.size))
        join = np.hstack if self.op.dense else sp.hstack
        other.op = _as_rows(join([old, block]))
        other._curved = np.zeros((index.size, index.size))
        k = self.index.size
        other._curved[:k, :k] = self._curved
        other.uncertainty = np.concatenate([self.uncertainty, np.zeros(more.size)])
        for rows, d in _pieces(self._d, index.size):
            part = other.op.rows(rows)
            fresh = _times_rows(part[:, k:], d)
            cross = _dense(part.T @ fresh)
            other._curved[:, k:] += cross
            other._curved[k:, :k] += cross[:k].T
            added = np.concatenate([np.diag(self._curved), np.diag(cross[k:])])
            other._note_rounding(d.size, added)
        return other

    def curved(self, d: np.ndarray) -> np.ndarray:
        """FᵀDF for the curvatures d of the rows."""
        changed = np.flatnonzero(d != self._d)
        if changed.size > tuned.CLIPPED_REFORM * np.count_nonzero(d):
            self._curved = np.zeros_like(self._curved)
            self._d = np.zeros_like(d)
            self.uncertainty = np.zeros_like(self.uncertainty)
        change = d - self._d
        for sign in (1.0, -1.0):
            for rows, size in _pieces(np.maximum(sign * change, 0.0), self.index.size):
                part = _times_rows(self.op.rows(rows), np.sqrt(size))
                product = _dense(part.T @ part)  # NumPy sees that the product is symmetric
                self._curved += product if sign > 0 else -product
                self._note_rounding(size.size, np.diag(product))
        self._d = d
        return self._curved

    def _note_rounding(self, n_rows: int, added: np.ndarray) -> None:
        """Add what the rounding of one sum over rows, and of its addition to FᵀDF, can amount to.

        An entry of the sum is off by at most γ Σ_μ|d_μ||f_μi||f_μj|, γ growing with the number of
        rows, and that is at most γ√(a_i a_j) with a_i = Σ_μ|d_μ|f_μi², which is `added`.
        """
        total = np.maximum(np.diag(self._curved), 0.0) + added
        self.uncertainty = self.uncertainty + _UNIT * (1.1 * (n_rows + 16) * added + 2 * total)

    def hessian(self, problem: ClippedProblem, d: np.ndarray) -> np.ndarray:
        """FᵀDF + Q on the columns of the face."""
        return self.curved(d) + problem.ridge.submatrix(self.index)

    def minimise(
        self,
        problem: ClippedProblem,
        x: np.ndarray,
        tol: float,
        *,
        cautious: bool,
        expired: Callable[[], bool],
    ) -> FaceResult:
        """Minimise over the columns of the face, starting from x (over these columns only).

        `cautious` starts with the parabola above the loss, which is the better model far from
        the minimiser. `expired` is asked before every step whether to stop.
        """
        everything = slice(0, problem.shape[0])
        Q = problem.ridge.submatrix(self.index)
        eta, thresholds = problem.eta[self.index], problem.thresholds[self.index]
        norms = np.sqrt(problem.squares[self.index])
        steep = np.sqrt(problem.steepness[self.index])
        x = x.copy()
        u = self.op.matvec(x)
        step = 0
        while step < tuned.CLIPPED_STEPS and not expired():
            d = problem.majorant(u) if cautious else problem.curvature(u)
            psi = problem.pull(everything, u)
            linear = Q @ x + eta
            gradient = linear - self.op.rmatvec(psi)
            size = norms * float(np.linalg.norm(psi)) + np.abs(linear) + thresholds
            worst = np.abs(smallest_subgradient(gradient, x, thresholds))
            beyond = worst > _ROUNDING * steep * float(np.linalg.norm(steep * x))
            relative = float(np.divide(worst, size, out=np.zeros_like(x), where=beyond).max())
            if relative <= tol:
                break
            H = self.curved(d) + Q
            inner = max(0.01 * tol, tuned.CLIPPED_FORCING * relative)
            target = minimise_quadratic(H, H @ x - gradient, thresholds, x, inner)
            direction = target - x
            q = self.op.matvec(direction)
            length = _line_search(problem, (x, u), (direction, q), (Q, eta, thresholds))
            step += 1
            x = target if length == 1.0 else x + length * direction
            u = u + length * q
            if length == 0.0 and cautious:  # rounding hides what is left to gain
                break
            cautious = length < tuned.CLIPPED_SHORT
        return FaceResult(x, u, step)


def _line_search(
    problem: ClippedProblem,
    at: tuple[np.ndarray, np.ndarray],
    along: tuple[np.ndarray, np.ndarray],
    terms: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> float:
    """The step t in [0, 1]: 1 where the objective still falls, otherwise close to the minimum.

    The slope φ′ of the objective along the direction grows with t. Every t with φ′(t) ≤ 0 lowers
    the objective, so the answer is one with φ′(0)/2 ≤ φ′(t) ≤ 0, or just before a jump of φ′.
    """
    (x, u), (direction, q), (Q, eta, thresholds) = at, along, terms
    everything = slice(0, problem.shape[0])
    Qd = Q @ direction
    constant, curve = float(direction @ (Q @ x + eta)), float(direction @ Qd)
    weighted = thresholds * direction

    def slope(t: float) -> float:
        point = x + t * direction
        signs = np.where(point != 0, np.sign(point), -np.sign(direction))  # from the left
        pulled = float(problem.pull(everything, u + t * q) @ q)
        return constant + t * curve - pulled + float(weighted @ signs)

    start = constant - float(problem.pull(everything, u) @ q)
    start += float(weighted @ np.where(x != 0, np.sign(x), np.sign(direction)))
    if start >= 0.0:
        return 0.0 if not np.any(direction) else 1.0 if slope(1.0) <= 0.0 else 0.0
    end = slope(1.0)
    if end <= -1e-6 * start:
        return 1.0
    lo, hi, at_lo, at_hi = 0.0, 1.0, start, end
    for k in range(40):
        # The secant on even turns, halves on odd ones.
        t = lo + (hi - lo) * (at_lo / (at_lo - at_hi) if k % 2 == 0 else 0.5)
        t = min(max(t, lo + 0.05 * (hi - lo)), hi - 0.05 * (hi - lo))
        here = slope(t)
        if here > 0:
            hi, at_hi = t, here
        else:
            lo, at_lo = t, here
            if here >= 0.1 * start:
                break
        if hi - lo <= 1e-3 * lo:
            break
    return lo


def _pieces(change: np.ndarray, n: int) -> Iterator[tuple[np.ndarray | slice, np.ndarray]]:
    """Rows where `change` is not zero with their values, so many at a time as fit in cache.

    If most rows change, they come as slices, zeros included, which need no copy of F.
    """
    step = max(64, tuned.CLIPPED_CHUNK // max(1, n))
    rows = np.flatnonzero(change)
    if 2 * rows.size > change.size:
        for start in range(0, change.size, step):
            piece = slice(start, min(start + step, change.size))
            yield piece, change[piece]
        return
    for start in range(0, rows.size, step):
        part = rows[start : start + step]
        yield part, change[part]


def _as_rows(block: Block) -> Operator:
    """Columns copied out of F in the order in which rows are read fast."""
    if sp.issparse(block):
        return as_operator(sp.csr_array(block))
    return as_operator(np.ascontiguousarray(block))


def _times_rows(part: Block, d: np.ndarray) -> Block:
    return part.multiply(d[:, None]).tocsr() if sp.issparse(part) else part * d[:, None]


def _dense(product: Block) -> np.ndarray:
    return product.toarray() if sp.issparse(product) else product


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
