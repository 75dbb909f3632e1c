"""A working set of sparse columns: no Gram matrix, unless the set is small.

The Gram matrix of sparse columns has far more entries than the columns. So on a large set,
coordinate descent updates the fitted values, and conjugate gradients take the Newton step on the
support.

The columns are f_i − r·mean_i: f_i sparse (CSC), r one number per row, and mean_i one per column,
zero unless the matrix is centred. The compiled loops hold the fitted values Fx in two parts, the
sparse part w = Σ x_i f_i and the number τ = Σ x_i mean_i, so that no column is ever made dense.
`along` is r·f_i for each column, `total` is r·r, and state = (τ, r·w).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from privasso._clock import Clock
from privasso._threads import interruptible
from privasso.operators import Columns
from privasso.problem import Problem
from privasso.solvers import _tuned as tuned
from privasso.solvers._gram import Factor, GramResult
from privasso.solvers._newton import line_search
from privasso.solvers._working_set import WorkingSet

_FAST = {"reassoc", "contract", "nsz"}


@njit(nogil=True, cache=True, fastmath=_FAST)
def product(data, rows, starts, i, w):  # pragma: no cover
    """f_i·w."""
    s = 0.0
    for k in range(starts[i], starts[i + 1]):
        s += data[k] * w[rows[k]]
    return s


@njit(nogil=True, cache=True)
def fit(data, rows, starts, mean, along, x, w, state):  # pragma: no cover
    """Fitted values of x from nothing."""
    w[:] = 0.0
    state[:] = 0.0
    for i in range(x.size):
        if x[i] != 0.0:
            for k in range(starts[i], starts[i + 1]):
                w[rows[k]] += x[i] * data[k]
            state[0] += x[i] * mean[i]
            state[1] += x[i] * along[i]


@njit(nogil=True, cache=True)
def gradient(data, rows, starts, mean, along, total, w, state, index, out):  # pragma: no cover
    """``out[k] = F_iᵀ(Fx)`` for the columns i = index[k]."""
    for k in range(index.size):
        i = index[k]
        s = product(data, rows, starts, i, w)
        out[k] = s - along[i] * state[0] - mean[i] * (state[1] - state[0] * total)


@njit(nogil=True, cache=True)
def sweep(
    data, rows, starts, mean, along, total, squares, b, lam, x, w, state, n_epochs, tol
):  # pragma: no cover
    """Cyclic coordinate descent in place; stops as `_newton.descend` does, or when it is done."""
    for epoch in range(n_epochs):
        moved = False
        flipped = False
        for i in range(x.size):
            if squares[i] <= 0.0:
                continue
            s = product(data, rows, starts, i, w)
            s -= along[i] * state[0] + mean[i] * (state[1] - state[0] * total)
            u = b[i] - s + squares[i] * x[i]
            new = 0.0
            if u > lam:
                new = (u - lam) / squares[i]
            elif u < -lam:
                new = (u + lam) / squares[i]
            d = new - x[i]
            if d != 0.0:
                flipped |= (new == 0.0) != (x[i] == 0.0)
                moved |= abs(d) * squares[i] > tol * lam
                x[i] = new
                for k in range(starts[i], starts[i + 1]):
                    w[rows[k]] += d * data[k]
                state[0] += d * mean[i]
                state[1] += d * along[i]
        if not moved or (epoch >= 1 and not flipped):
            break


@njit(nogil=True, cache=True)
def conjugate_gradients(
    data, rows, starts, mean, along, total, norms, active, rhs, w, n_steps, tol
):  # pragma: no cover
    """Roughly solve H p = rhs, H the Gram matrix of the active columns at unit norm.

    Returns p, pᵀHp and whether p is a direction without curvature, in which case p is that
    direction alone. w is a buffer.
    """
    n = active.size
    p = np.zeros(n)
    Hp = np.zeros(n)
    r = rhs.copy()
    d = r.copy()
    Hd = np.empty(n)
    state = np.zeros(2)
    x = np.zeros(norms.size)
    gamma = np.dot(r, r)
    start = gamma
    for _ in range(n_steps):
        if gamma <= tol * tol * start:
            break
        for k in range(n):
            x[active[k]] = d[k] / norms[active[k]]
        fit(data, rows, starts, mean, along, x, w, state)
        gradient(data, rows, starts, mean, along, total, w, state, active, Hd)
        for k in range(n):
            Hd[k] /= norms[active[k]]
        curvature = np.dot(d, Hd)
        if curvature <= 1e-13 * np.dot(d, d):
            return d, max(curvature, 0.0), True
        step = gamma / curvature
        p += step * d
        Hp += step * Hd
        r -= step * Hd
        previous = gamma
        gamma = np.dot(r, r)
        d = r + (gamma / previous) * d
    return p, np.dot(p, Hp), False


class SparseSet(WorkingSet):
    """Sparse columns copied out of F."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self._columns: Columns = problem.op.sparse_columns(self.index)

    def add(self, index: np.ndarray, x: np.ndarray, block: object = None) -> None:
        """Add columns and their coefficients."""
        if index.size == 0:
            return
        self._columns = self._columns.joined(self.problem.op.sparse_columns(index))
        self._note(index, x)
        self.problem.op.count(index.size / self.problem.shape[1])

    def _take(self, keep: np.ndarray) -> None:
        self._columns = self._columns.taken(keep)

    def matvec(self, z: np.ndarray) -> np.ndarray:
        """F_S x for x = z / norms."""
        self.problem.op.count(self.index.size / self.problem.shape[1])
        return self._columns.matvec(z / self.norms)

    def path_direction(self, factor: Factor | None) -> np.ndarray:
        """λ·F_A(F_AᵀF_A)⁻¹ sgn(x_A), A the support, by conjugate gradients."""
        d = np.zeros_like(self.z)
        active = np.flatnonzero(self.z)
        if active.size:
            rhs = np.sign(self.z[active]) * self.problem.lam / self.norms[active]
            p, _, flat = self._solve(active, rhs, 1e-8)
            if not flat:
                d[active] = p
        return self.matvec(d)

    def minimise(self, lam: float, tol: float, clock: Clock, *, roughly: bool) -> GramResult:
        """Solve the problem at λ on these columns, starting from the present coefficients."""
        if self.index.size == 0:
            return GramResult(self.z)
        if self.index.size <= tuned.SPARSE_SMALL and not roughly:
            gram = self._columns.gram()
            gram /= self.norms
            gram /= self.norms[:, None]
            result = self._subproblem(gram, lam).minimise(self.z, tol, clock=clock)
        else:
            result = self._descend(
                lam, tol, clock, tuned.SPARSE_ROUGH_ROUNDS if roughly else tuned.SPARSE_ROUNDS
            )
        self.z = result.z
        return result

    def _descend(self, lam: float, tol: float, clock: Clock, n_rounds: int) -> GramResult:
        """Coordinate descent and Newton steps until no violation exceeds tol·λ."""
        columns = self._columns
        arrays = columns.arrays()
        norms, b = self.norms, self.problem.b[self.index]
        squares = norms**2
        x = self.z / norms
        w, state = np.zeros(self.problem.shape[0]), np.zeros(2)
        everything = np.arange(x.size)
        fitted = np.empty(x.size)
        settings = (*arrays, columns.total, squares, b, lam, x, w, state, tuned.EPOCHS, tol)
        settled, skipped = False, 0
        for _ in range(n_rounds):
            before = x != 0
            fit(*arrays, x, w, state)  # afresh, so that rounding errors do not add up
            if skipped:
                pass  # a few columns were left out: the step again, on the others
            elif columns.block.nnz < tuned.SHORT_CALL:
                sweep(*settings)
            else:
                interruptible(lambda: sweep(*settings))
            gradient(*arrays, columns.total, w, state, everything, fitted)
            c = b - fitted
            off = np.where(x != 0, np.abs(c - lam * np.sign(x)), np.maximum(np.abs(c) - lam, 0.0))
            active = np.flatnonzero(x)
            if float(off.max()) <= tol * lam or clock.expired() or active.size == 0:
                break
            z = x[active] * norms[active]
            descent = (c[active] - lam * np.sign(z)) / norms[active]
            settled = settled and bool(np.array_equal(before, x != 0))
            turnover = np.count_nonzero(before != (x != 0)) / active.size
            accuracy = tuned.SPARSE_FORCING if turnover > tuned.STEADY else tuned.SPARSE_FINER
            accuracy = tuned.SPARSE_ACCURACY if settled else accuracy
            p, curvature, flat = self._solve(active, descent, accuracy)
            decrease = float(descent @ p)
            if decrease <= 0.0:
                break
            weights = lam / norms[active]
            t, hit = line_search(z, p, decrease, curvature, weights)
            if not np.isfinite(t):
                if self.problem.bounded:
                    break
                direction = np.zeros_like(x)
                direction[active] = p
                ray = self._ray_from(direction)
                return GramResult(x * norms, ray=ray, falling=True)
            moved = z + t * p
            if hit >= 0:
                moved[hit] = 0.0
            settled = not flat and hit < 0
            cut = None
            if not flat and (hit >= 0 or t < 1.0):
                cut = np.where((z + p) * np.sign(z) > 0.0, z + p, 0.0)
                if self._gain(active, c, lam, z, cut) > self._gain(active, c, lam, z, moved):
                    moved = cut
            few = 0 < np.count_nonzero(moved == 0.0) <= tuned.STEADY * active.size
            skipped = skipped + 1 if few and moved is cut and skipped < tuned.SKIPS else 0
            x[active] = moved / norms[active]
        return GramResult(x * norms)

    def _gain(
        self, active: np.ndarray, c: np.ndarray, lam: float, z: np.ndarray, to: np.ndarray
    ) -> float:
        """By how much the objective falls from z to another point on the active columns.

        Computed from the difference d of the two as cᵀd − ½‖Fd‖² − λ·(change of ‖x‖₁), in which
        no large numbers cancel.
        """
        norms = self.norms[active]
        d = np.zeros(self.z.size)
        d[active] = (to - z) / norms
        w = self._columns.matvec(d)
        shrinking = float(np.sum((np.abs(to) - np.abs(z)) / norms))
        return float(c @ d) - 0.5 * float(w @ w) - lam * shrinking

    def _solve(
        self, active: np.ndarray, rhs: np.ndarray, accuracy: float
    ) -> tuple[np.ndarray, float, bool]:
        columns = self._columns
        buffer = np.zeros(self.problem.shape[0])
        arguments = (*columns.arrays(), columns.total, self.norms, active, rhs, buffer)
        if columns.block.nnz < tuned.SHORT_CALL:
            return conjugate_gradients(*arguments, tuned.SPARSE_STEPS, accuracy)
        return interruptible(lambda: conjugate_gradients(*arguments, tuned.SPARSE_STEPS, accuracy))
