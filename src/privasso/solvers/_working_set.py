"""Solve on a few columns, check all of them in one pass, add those that object, repeat."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from privasso._blas import gram_matrix, threads_for
from privasso.operators import Block, RowMajor
from privasso.problem import NO_CERTIFICATE, Certificate, Problem, certify, ray_from, violations
from privasso.solvers._gram import Factor, GramResult, Subproblem, factorise, submatrix
from privasso.solvers._proximal import FIRST_SIGMA
from privasso.solvers._solution import Step

_MAX_ROUNDS = 100


class WorkingSet:
    """Columns of F that are cut out, with the Gram matrix of their directions.

    Coefficients on the set are z = x·‖F_i‖, so that every column counts as having unit norm.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._blocks: list[Block] = []
        self.index = np.empty(0, dtype=np.int64)
        self.gram = np.empty((0, 0))
        self.norms = np.empty(0)
        self.z = np.empty(0)
        self.ray: np.ndarray | None = None
        self._sigma = FIRST_SIGMA

    def add(self, index: np.ndarray, x: np.ndarray, block: Block | None = None) -> None:
        """Add columns with their coefficients; `block` holds them where a pass cut them out."""
        if index.size == 0:
            return
        if block is None:
            block = self._problem.op.columns(index)
        self._extend_gram(index, block)
        self.index = np.concatenate([self.index, index])
        self.norms = self._problem.norms[self.index]
        self.z = np.concatenate([self.z, x * self._problem.norms[index]])
        self._blocks.append(block)
        self._problem.op.passes += index.size / self._problem.shape[1]

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

    def keep_support(self) -> None:
        """Drop the columns whose coefficient is zero."""
        keep = np.flatnonzero(self.z)
        edges = np.cumsum([0] + [block.shape[1] for block in self._blocks])
        parts = [
            block[:, keep[(keep >= lo) & (keep < hi)] - lo]
            for block, (lo, hi) in zip(self._blocks, pairwise(edges), strict=True)
        ]
        join = sp.hstack if sp.issparse(self._blocks[0]) else np.hstack
        self._blocks = [join(parts)]
        self.gram = submatrix(self.gram, keep)
        self.index, self.norms, self.z = self.index[keep], self.norms[keep], self.z[keep]

    def minimise(self, tol: float) -> GramResult:
        """Solve the problem on these columns exactly, starting from where it stands."""
        b = self._problem.b[self.index] / self.norms
        weights = self._problem.lam / self.norms
        rank = min(self._problem.shape)
        with threads_for(float(self.index.size) ** 3 / 3):
            result = Subproblem(self.gram, b, weights, rank, self._prove).minimise(
                self.z, tol, sigma=self._sigma
            )
        self.z = result.z
        self._sigma = max(FIRST_SIGMA, result.sigma / 125.0)
        return result

    def _prove(self, direction: np.ndarray) -> bool:
        """Whether a direction on the set leads to a ray of the whole problem, kept in `ray`."""
        self.ray = ray_from(self._problem, self.scatter(direction))
        return self.ray is not None

    def matvec(self, z: np.ndarray) -> np.ndarray:
        """F_S x for x = z / norms."""
        x = z / self.norms
        w = np.zeros(self._problem.shape[0])
        start = 0
        for block in self._blocks:
            stop = start + block.shape[1]
            w += _times(block, x[start:stop])
            start = stop
        self._problem.op.passes += self.index.size / self._problem.shape[1]
        return w

    def path_direction(self, factor: Factor | None) -> np.ndarray:
        """λ·F_A(F_AᵀF_A)⁻¹ sgn(x_A), A the support: how Fx moves as λ shrinks."""
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
    """Block @ x on our own threads where the layout has a kernel for it."""
    if isinstance(block, np.ndarray) and block.flags.c_contiguous:
        return RowMajor(block).matvec(np.ascontiguousarray(x))
    return block @ x


def _dense(product: Block) -> np.ndarray:
    return product.toarray() if hasattr(product, "toarray") else product


@dataclass
class Finish:
    """Where the working set ended: a certificate, a ray, or neither."""

    x: np.ndarray
    certificate: Certificate
    converged: bool
    ray: np.ndarray | None = None
    steps: list[Step] = field(default_factory=list)


def finish(
    problem: Problem,
    x: np.ndarray,
    index: np.ndarray,
    *,
    tol: float,
    block: Block | None = None,
    max_rounds: int = _MAX_ROUNDS,
) -> Finish:
    """Minimise over all columns, starting from x and the working set `index`.

    Each round costs one pass over F: it checks the optimality of every column and, with a
    second right-hand side in the same pass, yields the dual point of the certificate.
    """
    m = problem.shape[0]
    working = WorkingSet(problem)
    working.add(index, x[index], block)
    steps: list[Step] = []
    best, stalled = np.inf, 0
    while True:
        result = working.minimise(0.1 * tol)
        x = working.scatter(working.z)
        if result.escaped:
            return Finish(x, NO_CERTIFICATE, False, working.ray, steps)
        w, delta = working.matvec(working.z), working.path_direction(result.factor)
        fitted, q = problem.op.pair_rmatvec(w, delta)
        c = problem.b - fitted
        certificate = certify(problem, x, w, c, (delta, q), anchors=False)
        violation = violations(c, x, problem.lam)
        n_active = int(np.count_nonzero(x))
        steps.append(Step("working set", n_active, certificate.kkt, working.index.size / m))
        if certificate.proves(tol):
            if not np.isfinite(certificate.gap):
                certificate = certify(problem, x, w, c, (delta, q))
            return Finish(x, certificate, True, None, steps)
        stalled = 0 if certificate.kkt < 0.5 * best else stalled + 1
        best = min(best, certificate.kkt)
        violation[working.index] = 0.0
        outside = np.flatnonzero(violation > 0.1 * tol * problem.lam)
        if len(steps) >= max_rounds or (outside.size == 0 and stalled > 3):
            return Finish(x, certificate, False, None, steps)
        # A coordinate step on column i gains (violation / norm)²/2: the steepest come first. The
        # set at most doubles a round, so that a poor start does not swallow all of F; beyond
        # twice the largest support there can be it is cut back, which costs nothing but rounds,
        # the objective being lower each time.
        room = max(64, min(working.index.size, m))
        if working.index.size + min(outside.size, room) > 2 * m + 64:
            working.keep_support()
        if outside.size > room:
            gain = violation[outside] / problem.norms[outside]
            outside = np.sort(outside[np.argpartition(gain, -room)[-room:]])
        working.add(outside, np.zeros(outside.size))
