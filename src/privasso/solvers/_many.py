"""`solve_many`: K perturbed LASSOs on one F in one batched run."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from privasso._blas import one_thread
from privasso._threads import n_threads, run
from privasso._validation import positive_float, real_array
from privasso.operators import Operator, as_operator
from privasso.problem import Problem, certify
from privasso.problem._problem import checked_squares
from privasso.solvers._batch_amp import batch_amp
from privasso.solvers._gram import Subproblem, submatrix
from privasso.solvers._solution import (
    NotConvergedError,
    Solution,
    Status,
    UnboundedError,
)
from privasso.solvers._solve import solve_problem

#: Most columns for which the Gram matrix of all of F is formed and shared.
GRAM_COLUMNS = 4096
_CANDIDATE = 0.96
_MAX_ROUNDS = 4


@dataclass(frozen=True)
class Solutions:
    """Answers to K problems that share F; attributes as in `Solution`, one entry a problem.

    Attributes
    ----------
    x : ndarray, shape (N, K)
        Minimisers, column by column (NaN where none exists).
    status : ndarray of Status, shape (K,)
    kkt, kkt_beyond_rounding, gap : ndarray, shape (K,)
    n_iter : ndarray, shape (K,)
    rays : dict
        For each unbounded problem its ray.
    messages : dict
        For each problem that did not converge what happened and what to do.
    """

    x: np.ndarray = field(repr=False)
    status: np.ndarray
    kkt: np.ndarray = field(repr=False)
    kkt_beyond_rounding: np.ndarray = field(repr=False)
    gap: np.ndarray = field(repr=False)
    n_iter: np.ndarray = field(repr=False)
    rays: dict[int, np.ndarray] = field(repr=False, default_factory=dict)
    messages: dict[int, str] = field(repr=False, default_factory=dict)


def solve_many(
    F: Any,
    y: Any,
    lam: Any,
    etas: Any = None,
    *,
    tol: float = 1e-8,
    max_iter: int = 1000,
    throw: bool = True,
) -> Solutions:
    """Minimise ½‖y − Fx‖² + λ_k‖x‖₁ + η_kᵀx for k = 1…K.

    Parameters
    ----------
    F, y : as in `solve`.
    lam : float or array_like, shape (K,)
        One λ for all, or one for each.
    etas : array_like, shape (N, K), optional
        Noise vectors; none for a path in λ alone.
    tol, max_iter, throw : as in `solve`.
        With `throw`, the first problem that fails raises.

    Examples
    --------
    >>> import privasso as pv
    >>> s = pv.Model().sample(n_features=300, rng=0)
    >>> etas = pv.Gram(0.05).draw(s.v, rng=1, size=8)
    >>> many = pv.solve_many(s.F, s.y, 0.1, etas)
    >>> many.x.shape, bool((many.kkt < 1e-8).all())
    ((300, 8), True)
    """
    op = as_operator(F)
    m, n = op.shape
    y = real_array("y", y, shape=(m,))
    lams = real_array("lam", lam)
    if lams.ndim > 1 or not (lams > 0).all():
        raise ValueError("lam must be a positive number or a vector of positive numbers")
    noise = None if etas is None else real_array("etas", etas, shape=(n, None))
    n_rhs = noise.shape[1] if noise is not None else lams.size
    if lams.size not in (1, n_rhs):
        raise ValueError(f"lam has {lams.size} entries for {n_rhs} noise vectors")
    lams = np.broadcast_to(lams.reshape(-1), (n_rhs,)).copy()
    squares, b = op.squares_and_rmatvec(y)
    checked_squares(squares)
    B = np.tile(b, (n_rhs, 1)) if noise is None else b - noise.T
    tol = positive_float("tol", tol)
    solutions = _Batch(op, squares, B, lams, tol, max_iter).run()
    if throw:
        _raise_first(solutions)
    return solutions


class _Batch:
    """The state of one batched run; row k of every array belongs to problem k."""

    def __init__(
        self,
        op: Operator,
        squares: np.ndarray,
        B: np.ndarray,
        lams: np.ndarray,
        tol: float,
        max_iter: int,
    ) -> None:
        self.op, self.squares, self.B, self.lams = op, squares, B, lams
        self.tol, self.max_iter = tol, max_iter
        n_rhs, n = B.shape
        self.norms = np.sqrt(np.where(squares > 0, squares, 1.0))
        self.x = np.full((n_rhs, n), np.nan)
        self.path = np.zeros((n_rhs, n))
        self.evidence = np.full((n_rhs, 3), np.inf)  # kkt, kkt beyond rounding, gap
        self.status = np.full(n_rhs, Status.MAX_ITER, dtype=object)
        self.n_iter = np.zeros(n_rhs, dtype=np.int64)
        self.rays: dict[int, np.ndarray] = {}
        self.messages: dict[int, str] = {}

    def run(self) -> Solutions:
        n_rhs, n = self.B.shape
        todo = np.arange(n_rhs)
        if n <= GRAM_COLUMNS and n_rhs > 1:
            todo = self._shared_gram(todo)
        for k in todo:
            problem = self._problem(k)
            self._record(
                k, solve_problem(problem, tol=self.tol, max_iter=self.max_iter, throw=False)
            )
        kkt, beyond, gap = self.evidence.T
        return Solutions(
            self.x.T, self.status, kkt, beyond, gap, self.n_iter, self.rays, self.messages
        )

    def _problem(self, k: int) -> Problem:
        return Problem(self.op, self.B[k], float(self.lams[k]), squares=self.squares)

    def _record(self, k: int, solution: Solution) -> None:
        self.x[k] = solution.x
        self.evidence[k] = solution.kkt, solution.kkt_beyond_rounding, solution.gap
        self.status[k] = solution.status
        self.n_iter[k] += solution.n_iter
        if solution.ray is not None:
            self.rays[k] = solution.ray
        if solution.status is not Status.CONVERGED:
            self.messages[k] = solution.message

    def _shared_gram(self, todo: np.ndarray) -> np.ndarray:
        """Batched AMP, exact solves on the shared Gram matrix; returns what is left to do."""
        start = batch_amp(self.op, self.squares, self.B.T, self.lams)
        self.n_iter += start.n_iter
        gram = self.op.gram()
        gram /= self.norms
        gram /= self.norms[:, None]
        open_ = todo[start.promising]
        candidates = {
            k: np.flatnonzero(np.abs(start.field[:, k]) > _CANDIDATE) for k in open_.tolist()
        }
        self.x[open_] = start.x[:, open_].T
        for _ in range(_MAX_ROUNDS):
            if open_.size == 0:
                break
            self._solve_columns(gram, candidates, open_)
            violators = self._verify(open_)
            open_ = np.array(sorted(violators), dtype=np.int64)
            for k, extra in violators.items():
                candidates[k] = np.union1d(candidates[k], extra)
        return np.flatnonzero(self.status != Status.CONVERGED)

    def _solve_columns(
        self, gram: np.ndarray, candidates: dict[int, np.ndarray], columns: np.ndarray
    ) -> None:
        """Solve on each working set; a thread takes every n-th column."""
        parts = n_threads()

        def work(part: int) -> None:
            for k in columns[part::parts].tolist():
                self._solve_column(gram, candidates[k], k)

        with one_thread():
            run([partial(work, part) for part in range(parts)])

    def _solve_column(self, gram: np.ndarray, index: np.ndarray, k: int) -> None:
        norms = self.norms[index]
        weights = self.lams[k] / norms
        problem = Subproblem(
            submatrix(gram, index),
            self.B[k, index] / norms,
            weights,
            rank=min(self.op.shape),
            prove=lambda direction: False,  # an escape is left to the single solve
        )
        result = problem.minimise(self.x[k, index] * norms, 0.1 * self.tol)
        self.x[k] = 0.0
        self.x[k, index] = result.z / norms
        self.path[k] = 0.0
        factor = result.factor
        if factor is not None:
            at = index[factor.active]
            d = factor.solve(np.sign(result.z[factor.active]) * weights[factor.active])
            self.path[k, at] = d / self.norms[at]

    def _verify(self, columns: np.ndarray) -> dict[int, np.ndarray]:
        """Certify a batch with four matrix products; returns the violators of what failed."""
        both = np.vstack([self.x[columns], self.path[columns]])
        W = np.ascontiguousarray(self.op.matmat(both.T).T)
        fitted = np.ascontiguousarray(self.op.rmatmat(W.T).T)
        violators: dict[int, np.ndarray] = {}
        for j, k in enumerate(columns.tolist()):
            problem = self._problem(k)
            x, c = self.x[k], self.B[k] - fitted[j]
            path = W[columns.size + j], fitted[columns.size + j]
            certificate = certify(problem, x, W[j], c, path, anchors=False)
            self.n_iter[k] += 1
            if certificate.proves(self.tol) and np.isfinite(certificate.gap):
                self.evidence[k] = (
                    certificate.kkt,
                    certificate.kkt_beyond_rounding,
                    certificate.gap,
                )
                self.status[k] = Status.CONVERGED
            else:
                excess = np.abs(c) > problem.lam * (1 + 0.1 * self.tol)
                violators[k] = np.flatnonzero(excess | (x != 0))
        return violators


def _raise_first(solutions: Solutions) -> None:
    failed = [k for k, status in enumerate(solutions.status) if status is not Status.CONVERGED]
    if not failed:
        return
    k = failed[0]
    kkt, beyond, gap = (
        float(values[k]) for values in (solutions.kkt, solutions.kkt_beyond_rounding, solutions.gap)
    )
    count = f"{len(failed)} of {solutions.status.size} problems failed; problem {k}: "
    solution = Solution(
        x=solutions.x[:, k],
        status=solutions.status[k],
        n_iter=int(solutions.n_iter[k]),
        n_passes=float("nan"),
        kkt=kkt,
        kkt_beyond_rounding=beyond,
        gap=gap,
        method="auto",
        ray=solutions.rays.get(k),
        message=count + solutions.messages.get(k, ""),
    )
    raise (UnboundedError if solution.ray is not None else NotConvergedError)(solution)
