"""Growing working sets: solve on a few columns, check all columns, add violators, repeat."""

from __future__ import annotations

import numpy as np

from privasso._clock import Clock
from privasso.operators import Block
from privasso.problem import Certificate, Problem, certify, violations
from privasso.solvers._algorithm import Outcome
from privasso.solvers._gram import GramResult
from privasso.solvers._solution import Status, Step
from privasso.solvers._sparse_set import SparseSet
from privasso.solvers._working_set import WorkingSet

_MAX_ROUNDS = 100
#: Factor from one λ to the next, and the accuracy that is enough at those before the last.
_DESCENT, _ROUGHLY = 0.6, 0.1
#: Fewest columns by which a set may grow.
_FIRST_COLUMNS = 32
#: Part of the support that may be missing in the set when it is solved exactly.
_MISSING = 0.1


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
        self._working = WorkingSet(problem) if problem.op.dense else SparseSet(problem)
        self._fitted: np.ndarray | None = np.zeros(problem.shape[1])  # FᵀFx, None if not known
        self._lam = np.inf
        if x is not None and index is not None:
            self._working.add(index, x[index], block)
            self._fitted, self._lam = None, problem.lam

    def minimise(
        self, problem: Problem, *, tol: float, clock: Clock, max_rounds: int = _MAX_ROUNDS
    ) -> Outcome:
        """Minimise over all columns, starting from where the last problem ended."""
        working = self._working
        working.problem = problem
        steps: list[Step] = []
        best, stalled, missing = np.inf, 0, 0
        lam = problem.lam
        if self._fitted is not None:
            lam, missing = self._advance(problem, problem.b - self._fitted, tol, None)
        while True:
            last = lam <= problem.lam
            roughly = not last or missing > _MISSING * max(10, self._n_active)
            result = working.minimise(
                lam, _ROUGHLY if roughly else 0.1 * tol, clock, roughly=roughly
            )
            if result.ray is not None:
                self._restart()
                return Outcome.unbounded(problem, result.ray, steps)
            self._lam = lam
            x, c, certificate = self._check(problem, result, exactly=not roughly)
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
            lam, missing = self._advance(problem, c, tol, result)
            if missing == 0 and stalled > 3:
                return Outcome(x, Status.MAX_ITER, steps, certificate)

    @property
    def _n_active(self) -> int:
        return int(np.count_nonzero(self._working.z))

    def _restart(self) -> None:
        """Forget the coefficients, which a ray may have led far away."""
        self._working.z = np.zeros_like(self._working.z)
        self._fitted, self._lam = np.zeros(self._working.problem.shape[1]), np.inf

    def _check(
        self, problem: Problem, result: GramResult, *, exactly: bool
    ) -> tuple[np.ndarray, np.ndarray, Certificate]:
        """x, c = b − FᵀFx and the certificate in one pass, with a dual point only if `exactly`."""
        working = self._working
        x = working.scatter(working.z)
        w = working.matvec(working.z)
        if not exactly:
            self._fitted = problem.op.rmatvec(w)
            c = problem.b - self._fitted
            kkt = float(violations(c, x, problem.lam).max()) / problem.lam
            return x, c, Certificate(kkt, kkt, np.inf)
        delta = working.path_direction(result.factor)
        self._fitted, q = problem.op.pair_rmatvec(w, delta)
        c = problem.b - self._fitted
        return x, c, certify(problem, x, w, c, (delta, q), anchors=False)

    def _advance(
        self, problem: Problem, c: np.ndarray, tol: float, result: GramResult | None
    ) -> tuple[float, int]:
        """Choose the next λ and add columns; return λ and how many columns violate there."""
        working = self._working
        lam = problem.lam
        if self._lam > lam:
            now = min(self._lam, float(np.abs(c).max()))
            lam = max(lam, min(_DESCENT * now, self._lam_with_room(c)))
        if result is not None and lam < self._lam:
            working.extrapolate(self._lam, lam, result.factor)
        violation = violations(c, working.scatter(working.z), lam)
        violation[working.index] = 0.0
        outside = np.flatnonzero(violation > 0.1 * tol * lam)
        self._grow(problem, c, violation, outside)
        return lam, outside.size

    def _room(self) -> int:
        """By how many columns the set may grow; a poor start does not make it all of F."""
        n = self._working.problem.shape[1]
        return n if n <= 2 * _FIRST_COLUMNS else max(_FIRST_COLUMNS, self._n_active)

    def _lam_with_room(self, c: np.ndarray) -> float:
        """The λ at which as many columns outside the set violate their condition as may join."""
        outside = np.abs(c)
        outside[self._working.index] = 0.0
        room = self._room()
        return float(np.partition(outside, -room)[-room]) if room < outside.size else 0.0

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
        most = min(2 * problem.shape[0] + 2 * _FIRST_COLUMNS, 4 * (room + _FIRST_COLUMNS))
        if working.index.size + wanted > most:
            working.keep(np.abs(c[working.index]), most - wanted)
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
