"""Growing working sets: solve on a few columns, check all columns, add violators, repeat."""

from __future__ import annotations

import numpy as np

from privasso._clock import Clock
from privasso.operators import Block, Operator
from privasso.problem import Certificate, Problem, certify, violations
from privasso.solvers import _tuned as tuned
from privasso.solvers._algorithm import Outcome
from privasso.solvers._gram import GramResult
from privasso.solvers._solution import Status, Step
from privasso.solvers._sparse_set import SparseSet
from privasso.solvers._working_set import WorkingSet


class Growth:
    """A working set that is kept from one problem to the next; all problems share F.

    Each round takes one pass over F, which checks the optimality condition of every column and,
    with a second right-hand side, yields the dual point of the certificate. The clock is asked
    once per round.

    Where the last λ is far above the one that is asked for, rounds solve roughly at values in
    between: from one to the next few columns join and leave the support, which is quicker than to
    find the support at a small λ from nothing.
    """

    def __init__(
        self,
        problem: Problem,
        x: np.ndarray | None = None,
        index: np.ndarray | None = None,
        block: Block | None = None,
    ) -> None:
        self._working: WorkingSet
        self._fitted: np.ndarray | None  # FᵀFx, None if not known
        self._lam: float
        self.begin(problem)
        if x is not None and index is not None:
            self._working.add(index, x[index], block)
            self._fitted, self._lam = None, problem.lam

    def begin(self, problem: Problem) -> None:
        """An empty set, at a λ so large that all coefficients are zero."""
        self._working = WorkingSet(problem) if problem.op.dense else SparseSet(problem)
        self._fitted, self._lam = np.zeros(problem.shape[1]), np.inf

    def minimise(
        self,
        problem: Problem,
        *,
        tol: float,
        clock: Clock,
        max_rounds: int = tuned.GROWTH_ROUNDS,
    ) -> Outcome:
        """Minimise over all columns, starting from where the last problem ended.

        It gives up after some exact solves that gain nothing.
        """
        if self._fitted is not None and self._lam <= problem.lam:
            self._prepare(problem, problem.b - self._fitted)
        working = self._working
        working.problem = problem
        steps: list[Step] = []
        best, stalled, missing = np.inf, 0, 0
        lam = problem.lam
        if self._fitted is not None:
            lam, missing = self._advance(problem, problem.b - self._fitted, None, tol)
        while True:
            last = lam <= problem.lam
            roughly = not last or missing > tuned.MISSING * max(10, self._n_active)
            if last and working.index.size <= tuned.SMALL_SET:
                roughly = False
            aim = tuned.ROUGHLY if roughly else 0.1 * tol
            if not roughly and missing and not problem.op.dense and steps:
                # A pass takes less time than many digits.
                aim = max(aim, tuned.GAIN * steps[-1].change)
            result = working.minimise(lam, aim, clock, roughly=roughly)
            if result.ray is not None:
                self._restart()
                return Outcome.unbounded(problem, result.ray, steps)
            self._lam = lam
            x, c, q, certificate = self._check(problem, result, exactly=not roughly)
            size = working.index.size / problem.shape[0]
            steps.append(Step("working set", self._n_active, certificate.kkt, size))
            if not roughly and certificate.proves(tol):
                if not np.isfinite(certificate.gap) and not clock.expired():
                    certificate = certify(problem, x, working.matvec(working.z), c)
                return Outcome(x, Status.CONVERGED, steps, certificate)
            if clock.expired():
                return Outcome(x, Status.TIME_LIMIT, steps, certificate)
            if not roughly:
                stalled = 0 if certificate.kkt < 0.5 * best else stalled + 1
                best = min(best, certificate.kkt)
            if len(steps) >= max_rounds:
                return Outcome(x, Status.MAX_ITER, steps, certificate)
            lam, missing = self._advance(problem, c, q, tol)
            del c, q  # large vectors, which the next round has of its own
            if missing == 0 and stalled > tuned.GROWTH_PATIENCE:
                return Outcome(x, Status.MAX_ITER, steps, certificate)

    @property
    def _n_active(self) -> int:
        return int(np.count_nonzero(self._working.z))

    def _prepare(self, problem: Problem, c: np.ndarray) -> None:
        """Begin another problem at the minimiser of the last one, where it has this c = b − FᵀFx.

        If many columns of a large support will change, it begins from nothing instead. Otherwise
        columns leave the set that were in it for the sake of other problems.
        """
        excess = float(np.abs(c).max()) / problem.lam
        if excess * self._n_active > tuned.FAR * problem.shape[0]:
            self.begin(problem)
            return
        near = np.abs(c[self._working.index])
        wanted = int(np.count_nonzero((near > tuned.CLOSE * problem.lam) | (self._working.z != 0)))
        if wanted < tuned.MANY_LESS * near.size:
            self._working.keep(near, wanted)

    def _restart(self) -> None:
        """Forget the coefficients, which a ray may have led far away."""
        self._working.z = np.zeros_like(self._working.z)
        self._fitted, self._lam = np.zeros(self._working.problem.shape[1]), np.inf

    def _check(
        self, problem: Problem, result: GramResult, *, exactly: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, Certificate]:
        """x, c = b − FᵀFx, λ dc/dλ if it is known, and the certificate, in one pass over F."""
        working = self._working
        x = working.scatter(working.z)
        w = working.matvec(working.z)
        path = q = None
        # On the way the path tells which columns come next; where F is sparse, a step along it
        # takes longer than a pass. At the end it leads to a dual point, unless one is known.
        if problem.op.dense if not exactly else problem.dual_point is None:
            delta = working.path_direction(result.factor)
            self._fitted, q = problem.op.pair_rmatvec(w, delta)
            path = delta, q
        else:
            self._fitted = problem.op.rmatvec(w)
        c = problem.b - self._fitted
        if not exactly:
            kkt = float(violations(c, x, problem.lam).max()) / problem.lam
            return x, c, q, Certificate(kkt, kkt, np.inf)
        return x, c, q, certify(problem, x, w, c, path, anchors=False)

    def _advance(
        self, problem: Problem, c: np.ndarray, q: np.ndarray | None, tol: float
    ) -> tuple[float, int]:
        """Choose the next λ and add columns; return λ and how many columns violate there.

        As long as the support does not change, c is c − (λ − λ')·slope at λ', slope = q/λ.
        """
        working = self._working
        lam = problem.lam
        if self._everything(problem):
            missing = np.setdiff1d(np.arange(c.size), working.index)
            working.add(missing, np.zeros(missing.size))
            return lam, 0
        slope = np.zeros_like(c) if q is None else q / lam
        if self._lam > lam:
            now = min(self._lam, float(np.abs(c).max()))
            room = max(self._lam_with_room(c, slope, now), tuned.JUMP * now)
            lam = max(lam, min(tuned.DESCENT * now, room))
            if np.isfinite(self._lam):
                c = c - (self._lam - lam) * slope
        violation = violations(c, working.scatter(working.z), lam)
        violation[working.index] = 0.0
        outside = np.flatnonzero(violation > 0.1 * tol * lam)
        self._grow(problem, c, violation, outside)
        return lam, outside.size

    def _everything(self, problem: Problem) -> bool:
        """Whether all columns are taken at once: with few of them, one reading of F is enough."""
        m, n = problem.shape
        return n <= 2 * tuned.FIRST_COLUMNS and m >= tuned.TALL * n and problem.op.dense

    def _room(self) -> int:
        """By how many columns the set may grow; a poor start does not make it all of F."""
        m, n = self._working.problem.shape
        if n <= 2 * tuned.FIRST_COLUMNS:
            return n
        easy = m >= tuned.TALL * n or not self._working.problem.op.dense
        return max(tuned.FIRST_COLUMNS, (2 if easy else 1) * min(self._n_active, m, n))

    def _lam_with_room(self, c: np.ndarray, slope: np.ndarray, now: float) -> float:
        """The λ at which as many columns outside the set violate their condition as may join."""
        room = self._room()
        if room >= c.size:
            return 0.0
        rest = c - now * slope if np.isfinite(self._lam) else c  # c at λ = 0
        with np.errstate(divide="ignore", invalid="ignore"):
            above = np.where(slope < 1.0, rest / (1.0 + tuned.SLIGHT - slope), 0.0)
            below = np.where(slope > -1.0, -rest / (1.0 + tuned.SLIGHT + slope), 0.0)
        joins = np.maximum(above, below)
        joins[self._working.index] = 0.0
        return float(np.partition(joins, -room)[-room])

    def _affordable(self, op: Operator) -> int:
        """Columns for which the set takes no more memory than F twice and its support four times.

        While it grows, two Gram matrices and the columns are there at once: 2k² + kM numbers, or
        as many fewer as F is packed.
        """
        (m, n), part = op.shape, op.entry_bytes / 8.0  # of a number, for an entry of F
        support = min(self._n_active, m, n)  # an iterate may have more coefficients than that
        share = tuned.SHARE if op.packed or part >= 1.0 else tuned.SHARE_OF_SINGLE
        room = share * (2.0 * part * m * n + 4.0 * support**2)
        own = part * m if op.packed else m
        return int((np.sqrt(own * own + 8.0 * room) - own) / 4.0)

    def _grow(
        self, problem: Problem, c: np.ndarray, violation: np.ndarray, outside: np.ndarray
    ) -> None:
        """Add the columns that promise most.

        A coordinate step on column i lowers the objective by (violation / norm)²/2: the columns
        that gain most come first. If the set becomes much larger than the support, or than the
        largest possible support, the columns that are furthest from joining the support leave it.
        """
        working, room = self._working, self._room()
        wanted = min(outside.size, room)
        most = min(2 * problem.shape[0] + 2 * tuned.FIRST_COLUMNS, 4 * (room + tuned.FIRST_COLUMNS))
        if problem.op.dense:
            most = min(most, self._affordable(problem.op))
        if working.index.size + wanted > most:
            working.keep(np.abs(c[working.index]), most - wanted)
            # On the way, iterates may have more coefficients than a minimiser can; they stay.
            room = max(tuned.FIRST_COLUMNS, min(room, most - working.index.size))
        if outside.size > room:
            gain = violation[outside] / problem.norms[outside]
            outside = np.sort(outside[np.argpartition(gain, -room)[-room:]])
        working.add(outside, np.zeros(outside.size))


def grow_working_set(
    problem: Problem,
    x: np.ndarray,
    index: np.ndarray,
    *,
    tol: float,
    clock: Clock,
    block: Block | None = None,
) -> Outcome:
    """Minimise over all columns, starting from x and the working set `index`.

    `block` holds the columns `index` if they were copied out of F before.
    """
    return Growth(problem, x, index, block).minimise(problem, tol=tol, clock=clock)
