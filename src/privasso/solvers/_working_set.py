"""Working sets: solve on a few columns, check all columns in one pass, add violators, repeat."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from privasso._blas import gram_matrix
from privasso._clock import Clock
from privasso.operators import Block, RowMajor
from privasso.problem import Problem, certify, ray_from, violations
from privasso.solvers._algorithm import Outcome
from privasso.solvers._gram import Factor, GramResult, Subproblem, factorise, submatrix
from privasso.solvers._proximal import FIRST_SIGMA
from privasso.solvers._solution import Status, Step
from privasso.solvers._sparse_set import SparseSet

_MAX_ROUNDS = 100
#: Factor from one λ to the next, and the accuracy that is enough at those before the last.
_DESCENT, _ROUGHLY = 0.6, 0.1
#: Columns of a first working set, and fewest by which a set may grow.
FIRST_COLUMNS = 32


class WorkingSet:
    """Columns copied out of F, with the Gram matrix of these columns at unit norm.

    The coefficients on the set are z_i = x_i·‖F_i‖, those of columns of unit norm.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._blocks: list[Block] = []
        self.index = np.empty(0, dtype=np.int64)
        self.gram = np.empty((0, 0))
        self.norms = np.empty(0)
        self.z = np.empty(0)
        self._sigma = FIRST_SIGMA

    def add(self, index: np.ndarray, x: np.ndarray, block: Block | None = None) -> None:
        """Add columns and their coefficients; `block` holds the columns if copied out before."""
        if index.size == 0:
            return
        if block is None:
            block = self._problem.op.columns(index)
        self._extend_gram(index, block)
        self.index = np.concatenate([self.index, index])
        self.norms = self._problem.norms[self.index]
        self.z = np.concatenate([self.z, x * self._problem.norms[index]])
        self._blocks.append(block)
        self._problem.op.count(index.size / self._problem.shape[1])

    def _extend_gram(self, index: np.ndarray, block: Block) -> None:
        norms = self._problem.norms[index]
        old, new = self.index.size, self.index.size + index.size
        gram = np.empty((new, new))
        gram[:old, :old] = self.gram
        start = 0
        for other in self._blocks:
            stop = start + other.shape[1]
            cross = _dense(other.T @ block) / norms
            cross /= self.norms[start:stop, None]
            gram[start:stop, old:] = cross
            gram[old:, start:stop] = cross.T
            start = stop
        own = _dense(block.T @ block) if sp.issparse(block) else gram_matrix(block)
        own /= norms
        own /= norms[:, None]
        gram[old:, old:] = own
        self.gram = gram

    def keep(self, urgency: np.ndarray, n_kept: int) -> None:
        """Keep the support and, of the other columns, those with the largest urgency."""
        rank = np.where(self.z != 0, np.inf, urgency)
        n_kept = max(n_kept, int(np.count_nonzero(self.z)))
        if n_kept >= rank.size:
            return
        keep = np.sort(np.argpartition(rank, -n_kept)[-n_kept:])
        edges = np.cumsum([0] + [block.shape[1] for block in self._blocks])
        parts = [
            block[:, keep[(keep >= lo) & (keep < hi)] - lo]
            for block, (lo, hi) in zip(self._blocks, pairwise(edges), strict=True)
        ]
        join = sp.hstack if sp.issparse(self._blocks[0]) else np.hstack
        self._blocks = [join(parts)]
        self.gram = submatrix(self.gram, keep)
        self.index, self.norms, self.z = self.index[keep], self.norms[keep], self.z[keep]

    def minimise(self, lam: float, tol: float, clock: Clock, *, roughly: bool) -> GramResult:
        """Solve the problem at λ on these columns, starting from the present coefficients.

        `roughly` gives up early: it is for a λ on the way to another one.
        """
        b = self._problem.b[self.index] / self.norms
        weights = lam / self.norms
        rank = min(self._problem.shape)
        find_ray = None if self._problem.bounded else self._ray_from
        part = Subproblem(self.gram, b, weights, rank, find_ray, bounded=self._problem.bounded)
        result = part.minimise(self.z, tol, clock=clock, sigma=self._sigma, roughly=roughly)
        self.z = result.z
        self._sigma = max(FIRST_SIGMA, result.sigma / 125.0)
        return result

    def extrapolate(self, lam: float, target: float, factor: Factor | None) -> None:
        """Move along the path from the minimiser at λ towards that at the target."""
        active = np.flatnonzero(self.z)
        if factor is None or not np.array_equal(factor.active, active):
            return
        signs = np.sign(self.z[active])
        moved = self.z[active] + factor.solve(signs * (lam - target) / self.norms[active])
        self.z[active] = np.where(moved * signs > 0, moved, 0.0)

    def _ray_from(self, direction: np.ndarray) -> np.ndarray | None:
        """The ray of the whole problem to which a direction on the set leads, if it does."""
        return ray_from(self._problem, self.scatter(direction))

    def matvec(self, z: np.ndarray) -> np.ndarray:
        """F_S x for x = z / norms."""
        x = z / self.norms
        w = np.zeros(self._problem.shape[0])
        start = 0
        for block in self._blocks:
            stop = start + block.shape[1]
            w += _times(block, x[start:stop])
            start = stop
        self._problem.op.count(self.index.size / self._problem.shape[1])
        return w

    def path_direction(self, factor: Factor | None) -> np.ndarray:
        """λ·F_A(F_AᵀF_A)⁻¹ sgn(x_A), A the support: how Fx changes as λ decreases."""
        active = np.flatnonzero(self.z)
        d = np.zeros_like(self.z)
        if 0 < active.size <= min(self._problem.shape):
            if factor is None or not np.array_equal(factor.active, active):
                factor = factorise(self.gram, active)
            if factor is not None:
                rhs = np.sign(self.z[active]) * self._problem.lam / self.norms[active]
                d[active] = factor.solve(rhs)
        return self.matvec(d)

    def scatter(self, values: np.ndarray) -> np.ndarray:
        """Coefficients on the set (in units of z) as a vector x over all columns."""
        x = np.zeros(self._problem.shape[1])
        x[self.index] = values / self.norms
        return x


def _times(block: Block, x: np.ndarray) -> np.ndarray:
    """``block @ x``, with our own kernel and threads if the block is dense in C order."""
    if isinstance(block, np.ndarray) and block.flags.c_contiguous:
        return RowMajor(block).matvec(np.ascontiguousarray(x))
    return block @ x


def _dense(product: Block) -> np.ndarray:
    return product.toarray() if hasattr(product, "toarray") else product


def grow_working_set(
    problem: Problem,
    x: np.ndarray,
    index: np.ndarray,
    *,
    tol: float,
    clock: Clock,
    block: Block | None = None,
    max_rounds: int = _MAX_ROUNDS,
    first_lam: float | None = None,
) -> Outcome:
    """Minimise over all columns, starting from x and the working set `index`.

    `block` holds the columns `index` if they were copied out of F before. Each round takes one pass
    over F, which checks the optimality condition of every column and, with a second right-hand
    side, yields the dual point of the certificate. The clock is asked once per round.

    From a `first_lam` above λ, each round is a rough solve at a smaller λ, until λ is reached:
    from one to the next few columns join and leave the support, which is quicker than to find the
    support at a small λ from nothing.
    """
    working = WorkingSet(problem) if problem.op.dense else SparseSet(problem)
    working.add(index, x[index], block)
    steps: list[Step] = []
    best, stalled, missing = np.inf, 0, 0
    lam = problem.lam if first_lam is None else max(problem.lam, _DESCENT * first_lam)
    while True:
        last = lam <= problem.lam
        roughly = not last or missing > 0.1 * max(10, int(np.count_nonzero(working.z)))
        aim = _ROUGHLY if roughly else 0.1 * tol
        result = working.minimise(lam, aim, clock, roughly=roughly)
        if result.ray is not None:
            return Outcome.unbounded(problem, result.ray, steps)
        x = working.scatter(working.z)
        w = working.matvec(working.z)
        n_active = int(np.count_nonzero(x))
        size = working.index.size / problem.shape[0]
        if last and not roughly:
            delta = working.path_direction(result.factor)
            fitted, q = problem.op.pair_rmatvec(w, delta)
            c = problem.b - fitted
            certificate = certify(problem, x, w, c, (delta, q), anchors=False)
            steps.append(Step("working set", n_active, certificate.kkt, size))
            if certificate.proves(tol):
                if not np.isfinite(certificate.gap) and not clock.expired():
                    certificate = certify(problem, x, w, c, (delta, q))
                return Outcome(x, Status.CONVERGED, steps, certificate)
        else:
            c = problem.b - problem.op.rmatvec(w)
            certificate = certify(problem, x, w, c, anchors=False)
            steps.append(Step("working set", n_active, certificate.kkt, size))
        if clock.expired():
            return Outcome(x, Status.TIME_LIMIT, steps, certificate)
        next_lam = max(problem.lam, min(_DESCENT * lam, _lam_with_room(working, c, n_active)))
        violation = violations(c, x, next_lam)
        violation[working.index] = 0.0
        outside = np.flatnonzero(violation > 0.1 * tol * next_lam)
        missing = outside.size
        if last and not roughly:
            stalled = 0 if certificate.kkt < 0.5 * best else stalled + 1
            best = min(best, certificate.kkt)
            if outside.size == 0 and stalled > 3:
                return Outcome(x, Status.MAX_ITER, steps, certificate)
        if len(steps) >= max_rounds:
            return Outcome(x, Status.MAX_ITER, steps, certificate)
        if next_lam < lam:
            working.extrapolate(lam, next_lam, result.factor)
        lam = next_lam
        _grow(working, problem, c, violation, outside, n_active)


def _lam_with_room(working: WorkingSet | SparseSet, c: np.ndarray, n_active: int) -> float:
    """The λ at which as many columns outside the set violate their condition as may join it."""
    outside = np.abs(c)
    outside[working.index] = 0.0
    room = max(FIRST_COLUMNS, n_active)
    if room >= outside.size:
        return 0.0
    return float(np.partition(outside, -room)[-room])


def _grow(
    working: WorkingSet | SparseSet,
    problem: Problem,
    c: np.ndarray,
    violation: np.ndarray,
    outside: np.ndarray,
    n_active: int,
) -> None:
    """Add the columns that promise most.

    A coordinate step on column i lowers the objective by (violation / norm)²/2: the columns that
    gain most come first. The set grows by at most the size of the support, so that a poor start
    does not make it all of F. Beyond twice the largest possible support, the columns that are
    furthest from joining the support leave the set.
    """
    m = problem.shape[0]
    room = max(FIRST_COLUMNS, min(n_active, m))
    wanted, most = min(outside.size, room), 2 * m + 2 * FIRST_COLUMNS
    if working.index.size + wanted > most:
        working.keep(np.abs(c[working.index]), most - wanted)
    if outside.size > room:
        gain = violation[outside] / problem.norms[outside]
        outside = np.sort(outside[np.argpartition(gain, -room)[-room:]])
    working.add(outside, np.zeros(outside.size))
