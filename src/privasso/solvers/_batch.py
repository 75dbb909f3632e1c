"""K problems on one F: batched AMP, then exact solves on a Gram matrix that all of them share."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial

import numpy as np

from privasso._blas import one_thread, product_by_columns
from privasso._clock import Clock
from privasso.operators import Operator
from privasso.problem import Certificate, Problem, certify, zero_column_ray
from privasso.solvers import _tuned as tuned
from privasso.solvers._auto import amp_may_work
from privasso.solvers._batch_steps import NewtonSteps, batch_amp
from privasso.solvers._gram import Subproblem, factorise, submatrix
from privasso.solvers._growth import Growth
from privasso.solvers._shared import LinearTerms, WholeGram
from privasso.solvers._solution import Solution, Status
from privasso.solvers._solve import late, no_minimiser, solution_of, solve_problem


class Batch:
    """One batched run; row k of every array belongs to problem k.

    `run` fills the arrays. Problems that the batch does not solve are solved one after another,
    the largest λ first. Each begins where the one before it ended, unless the columns look
    independent and the noise differs: AMP is then the better start. Once the clock has expired, the
    problems that are left keep the point that they are at, or zero if they were not begun, and get
    the status TIME_LIMIT.
    """

    def __init__(
        self,
        op: Operator,
        squares: np.ndarray,
        terms: LinearTerms,
        lams: np.ndarray,
        tol: float,
        clock: Clock,
        *,
        bounded: bool = False,
        dual_point: np.ndarray | None = None,
    ) -> None:
        self.op, self.squares, self.lams, self.tol, self.clock = op, squares, lams, tol, clock
        self.terms, self._dual_point = terms, dual_point
        n_rhs, n = terms.shape
        nothing = np.broadcast_to(0.0, (n,))
        self._without_term = Problem(
            op, nothing, 1.0, squares=squares, bounded=bounded, dual_point=dual_point
        )
        self.norms = self._without_term.norms
        self.x = np.full((n_rhs, n), np.nan)
        self.evidence = np.full((n_rhs, 3), np.inf)  # kkt, kkt beyond rounding, gap
        self.status = np.full(n_rhs, Status.MAX_ITER, dtype=object)
        self.n_iter = np.zeros(n_rhs, dtype=np.int64)
        self.falling: set[int] = set()  # probably without a minimiser: for a single solve
        self.rays: dict[int, np.ndarray] = {}
        self.messages: dict[int, str] = {}

    @cached_property
    def path(self) -> np.ndarray:
        """How each x changes as λ decreases; only the solves on a Gram matrix need it."""
        return np.zeros_like(self.x)

    def run(self) -> None:
        """Solve all problems."""
        n_rhs, n = self.terms.shape
        todo = np.argsort(-self.lams, kind="stable")
        alike = self._gram_pays(n_rhs) and self.terms.equal
        # From one λ to the next little changes, so that each is a better start than AMP would be.
        independent = n_rhs > 1 and not alike and amp_may_work(self.op)
        if independent and n <= tuned.GRAM_COLUMNS and n_rhs >= tuned.BATCH_FEWEST:
            self._shared_gram()
            todo = todo[self.status[todo] != Status.CONVERGED]
        if independent and not self.terms.equal:
            self._one_by_one(todo, self._afresh)
            return
        growth = Growth(self._problem(0))
        with one_thread():
            if todo.size > 1 and self._gram_pays(todo.size) and not self.clock.expired():
                self._record(int(todo[0]), self._one_after_another(growth, int(todo[0])))
                todo = self._along_gram(todo)
            self._one_by_one(todo, partial(self._one_after_another, growth))

    def _one_by_one(self, todo: np.ndarray, solve: Callable[[int], Solution]) -> None:
        """Solve problem after problem, as long as there is time."""
        for done, k in enumerate(todo.tolist()):
            if self.clock.expired():
                self._leave(todo[done:])
                return
            self._record(k, solve(k))

    def _afresh(self, k: int) -> Solution:
        """Solve problem k as if it were the only one."""
        problem, ray = self._problem(k), self._known_ray(k)
        if ray is not None:
            return no_minimiser(problem, ray)
        limit = self.clock.remaining()
        return solve_problem(problem, tol=self.tol, throw=False, time_limit=limit)

    def _one_after_another(self, growth: Growth, k: int) -> Solution:
        """Solve problem k from where the one before it ended, or afresh if that fails."""
        problem = self._problem(k)
        ray = self._known_ray(k)
        if ray is None:
            ray = zero_column_ray(problem)
        if ray is not None:
            return no_minimiser(problem, ray)
        outcome = growth.minimise(problem, tol=self.tol, clock=self.clock)
        if outcome.status is not Status.MAX_ITER:
            return solution_of(problem, outcome, self.tol)
        growth.begin(problem)  # what it holds is of no use to others, and takes memory
        return self._afresh(k)

    def _known_ray(self, k: int) -> np.ndarray | None:
        """A ray of the same problem at a larger λ, which is a ray at this one too."""
        for j, ray in self.rays.items():
            if self.lams[k] <= self.lams[j] and self.terms.same(k, j):
                return ray
        return None

    def _leave(self, columns: np.ndarray) -> None:
        """Certify the points that these problems are at, when there is no time to go on."""
        X = np.nan_to_num(self.x[columns], copy=True)
        W, fitted = self._products(X)
        for j, k in enumerate(columns.tolist()):
            problem = self._problem(k)
            found = certify(problem, X[j], W[j], problem.b - fitted[j], anchors=False)
            self._record(k, late(problem, X[j], found))

    def _problem(self, k: int) -> Problem:
        return self._without_term.with_linear_term(self.terms.one(k), float(self.lams[k]))

    def _record(self, k: int, solution: Solution) -> None:
        self.x[k] = solution.x
        self.evidence[k] = solution.kkt, solution.kkt_beyond_rounding, solution.gap
        self.status[k] = solution.status
        self.n_iter[k] += solution.n_iter
        if solution.ray is not None:
            self.rays[k] = solution.ray
        if solution.status is not Status.CONVERGED:
            self.messages[k] = solution.message

    def _shared_gram(self) -> None:
        """Batched AMP, then Newton steps; some problems may stay open."""
        everything = np.arange(self.terms.shape[0])
        F = self.op.single()
        start = batch_amp(F, self.squares, self.terms.some(everything), self.lams, self.clock)
        self.n_iter += start.n_iter
        open_ = np.flatnonzero(start.promising)
        self.x[open_] = start.x[open_]
        C = self._conditions(open_)
        good = np.isfinite(C).all(axis=1)
        self.x[open_[~good]] = np.nan
        open_, C = open_[good], C[good]
        if open_.size == 0 or self.clock.expired():
            return
        shared: NewtonSteps | None = None
        near = self._near(open_, C)
        if np.sum(near.sum(axis=1, dtype=float) ** 2) > np.count_nonzero(near.any(axis=0)) ** 2:
            shared = NewtonSteps(self.op, self.norms, np.flatnonzero(near.any(axis=0)))
        del F, near, start
        for _ in range(tuned.NEWTON_ROUNDS):
            open_, C = self._verify(open_[self._newton_steps(open_, C, shared)])
            if open_.size == 0 or self.clock.expired():
                return

    def _near(self, columns: np.ndarray, C: np.ndarray) -> np.ndarray:
        """Which columns may be in the support of which of these problems."""
        close = np.abs(C) > tuned.BATCH_CANDIDATE * self.lams[columns, None]
        return close | (self.x[columns] != 0)

    def _newton_steps(
        self, columns: np.ndarray, C: np.ndarray, shared: NewtonSteps | None
    ) -> np.ndarray:
        """Take a step from each of these points, given c; returns which have moved.

        Without `shared` correlations, each problem computes those of its own columns.
        """
        if shared is not None:
            return shared.take(self.x, C, self.lams, columns, self.path, self.clock)
        moved = np.zeros(columns.size, dtype=bool)
        for j, near in enumerate(self._near(columns, C)):
            if self.clock.expired():
                break
            own, one = NewtonSteps(self.op, self.norms, np.flatnonzero(near)), slice(j, j + 1)
            moved[one] = own.take(self.x, C[one], self.lams, columns[one], self.path, self.clock)
        return moved

    def _conditions(self, columns: np.ndarray) -> np.ndarray:
        """B − FᵀFx of these problems."""
        return self.terms.some(columns) - self._products(self.x[columns])[1]

    def _gram_pays(self, n_rhs: int) -> bool:
        """Whether the Gram matrix of all columns takes less time than a pass for each problem.

        It is at most twice as large as F.
        """
        m, n = self.op.shape
        rows = m * self.op.entry_bytes / 8.0  # of F, if its entries were numbers
        small = n <= min(tuned.GRAM_COLUMNS, 2 * rows, tuned.COLUMNS_PER_PROBLEM * n_rhs)
        return self.op.dense and small

    def _along_gram(self, todo: np.ndarray) -> np.ndarray:
        """Solve on the Gram matrix of all columns, each problem from the one before it.

        The first of `todo` is solved. Returns the problems that are still open.
        """
        if self.status[todo[0]] is not Status.CONVERGED:
            return todo[1:]
        gram = WholeGram(self.op, self.norms)
        doubtful: list[int] = []
        before = int(todo[0])
        c = gram.conditions(self.terms.one(before), self.x[before])
        for k in todo[1:].tolist():
            if self.clock.expired():
                break
            x, b, lam = self.x[before], self.terms.one(k), self.lams[k]
            alike = self.terms.same(k, before)
            if not alike:
                c = gram.conditions(b, x)
            # Columns whose product with the residual may rise to λ on the way to it (strong rule).
            near = lam * min(tuned.STRONG_RULE, max(2.0 - self.lams[before] / lam, 0.5))
            index = np.flatnonzero((np.abs(c) > near) | (x != 0))
            most = 2 * np.count_nonzero(x) + tuned.FIRST_OUTSIDE
            if index.size > most:
                urgency = np.where(x[index] != 0, np.inf, np.abs(c[index]))
                index = np.sort(index[np.argpartition(urgency, -most)[-most:]])
            self.x[k] = x
            for _ in range(tuned.WHOLE_GRAM_ROUNDS):
                self._solve_column(submatrix(gram.H, index), index, k)
                c = gram.conditions(b, self.x[k])
                violated = np.abs(c) > lam * (1 + 0.1 * self.tol)
                violated[index] = False
                if not violated.any():
                    break
                index = np.union1d(index, np.flatnonzero(violated))
            if k not in self.falling:
                if not (gram.exact and self._proved(gram, k, c)):
                    doubtful.append(k)
                before = k
            elif alike:
                break  # a smaller λ has no minimiser either
        if doubtful:
            self._verify(np.array(doubtful))
        return todo[self.status[todo] != Status.CONVERGED]

    def _proved(self, gram: WholeGram, k: int, c: np.ndarray) -> bool:
        """Whether the Gram matrix is enough for a certificate; if so, it is recorded."""
        certificate = gram.certificate(
            self.terms.one(k),
            float(self.lams[k]),
            self.x[k],
            c,
            dual_point=self._dual_point,
            path=self.path[k] if self._dual_point is None else None,
        )
        self.n_iter[k] += 1
        return self._accept(k, certificate)

    def _accept(self, k: int, certificate: Certificate) -> bool:
        """Record the certificate if it proves that problem k is solved."""
        if not (certificate.proves(self.tol) and np.isfinite(certificate.gap)):
            return False
        self.evidence[k] = certificate.kkt, certificate.kkt_beyond_rounding, certificate.gap
        self.status[k] = Status.CONVERGED
        return True

    def _solve_column(self, gram: np.ndarray, index: np.ndarray, k: int) -> None:
        """Solve problem k on the columns `index`, of which `gram` is the Gram matrix."""
        norms = self.norms[index]
        weights = self.lams[k] / norms
        problem = Subproblem(
            gram,
            self.terms.one(k)[index] / norms,
            weights,
            rank=min(self.op.shape),  # without `find_ray`: unbounded problems get a single solve
        )
        result = problem.minimise(self.x[k, index] * norms, 0.1 * self.tol, clock=self.clock)
        if result.falling:
            self.falling.add(k)
        self.x[k] = 0.0
        self.x[k, index] = result.z / norms
        factor, active = result.factor, np.flatnonzero(result.z)
        if self._dual_point is not None:
            return
        self.path[k] = 0.0
        if factor is None and 0 < active.size <= min(self.op.shape):
            factor = factorise(problem.H, active)
        if factor is not None:
            at = index[factor.active]
            d = factor.solve(np.sign(result.z[factor.active]) * weights[factor.active])
            self.path[k, at] = d / self.norms[at]

    def _verify(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Certify with a few matrix products; returns the problems that fail, and c of each."""
        X = self.x[columns]
        W, fitted = self._products(X)
        C = self.terms.some(columns) - fitted
        known = self._dual_point is not None
        D, Q = (W, C) if known else self._products(self.path[columns])
        failed = []
        for j, k in enumerate(columns.tolist()):
            path = None if known else (D[j], Q[j])
            found = certify(self._problem(k), X[j], W[j], C[j], path, anchors=False)
            if not self._accept(k, found) and k not in self.falling:
                failed.append(j)
        self.n_iter[columns] += 1
        return columns[failed], C[failed]

    def _products(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Fx and FᵀFx for every row x of X."""
        used = np.flatnonzero(X.any(axis=0))
        if self.op.dense and not self.op.packed and 4 * used.size < X.shape[1]:
            W = product_by_columns(self.op.columns(used), X[:, used].T)
        else:
            W = self.op.matmat(X.T)
        return np.ascontiguousarray(W.T), np.ascontiguousarray(self.op.rmatmat(W).T)
