"""A working set: columns copied out of F with their Gram matrix, and the problem on them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from privasso._blas import gram_matrix
from privasso._clock import Clock
from privasso.operators import Block, PackedColumns
from privasso.problem import Problem, RaySearch
from privasso.solvers import _tuned as tuned
from privasso.solvers._gram import Factor, GramResult, Subproblem, factorise, submatrix


class WorkingSet:
    """Columns copied out of F, with the Gram matrix of these columns at unit norm.

    The coefficients on the set are z_i = x_i·‖F_i‖, those of columns of unit norm. A set of most
    columns keeps no copies, which would be as large as F.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem  # another one with the same F may take its place
        self._rays = RaySearch(problem.op, problem.norms)
        self._blocks: list[Block] = []
        self._whole = False  # whether F takes the place of the copies
        self.index = np.empty(0, dtype=np.int64)
        self.gram = np.empty((0, 0))  # of the columns at unit norm
        self.norms = np.empty(0)
        self.z = np.empty(0)

    def add(self, index: np.ndarray, x: np.ndarray, block: Block | None = None) -> None:
        """Add columns and their coefficients; `block` holds the columns if copied out before."""
        if index.size == 0:
            return
        op = self.problem.op
        m, n = op.shape
        plain = op.dense and not op.packed and op.entry_bytes == 8 and m * n >= tuned.LARGE_F
        self._whole |= plain and self.index.size + index.size > tuned.MOST_COPIED * n
        if self._whole:
            self._blocks = []
            self._extend_gram_by_all(index)
        else:
            if block is None:
                block = op.working_columns(index)
            self._extend_gram(index, block)
            if isinstance(block, PackedColumns) and self._blocks:
                block = self._blocks.pop().joined(block)
            self._blocks.append(block)
            op.count(index.size / op.shape[1])
        self._note(index, x)

    def _note(self, index: np.ndarray, x: np.ndarray) -> None:
        self.index = np.concatenate([self.index, index])
        self.norms = self.problem.norms[self.index]
        self.z = np.concatenate([self.z, x * self.problem.norms[index]])

    def _larger_gram(self, new: int) -> np.ndarray:
        """Make room for further columns."""
        gram, old = np.empty((new, new)), self.index.size
        gram[:old, :old] = self.gram
        self.gram = gram
        return gram

    def _extend_gram_by_all(self, index: np.ndarray) -> None:
        """Products with all columns of F, of which those in the set are kept."""
        every = np.concatenate([self.index, index])
        norms, old = self.problem.norms[every], self.index.size
        gram = self._larger_gram(every.size)
        for start in range(old, every.size, tuned.COPIED_AT_ONCE):
            part = slice(start, min(start + tuned.COPIED_AT_ONCE, every.size))
            found = self.problem.op.rmatmat(self.problem.op.columns(every[part]))[every]
            found /= norms[part]
            found /= norms[:, None]
            gram[:, part], gram[part] = found, found.T

    def _extend_gram(self, index: np.ndarray, block: Block) -> None:
        norms = self.problem.norms[index]
        old = self.index.size
        gram = self._larger_gram(old + index.size)
        start = 0
        for other in self._blocks:
            stop = start + other.shape[1]
            cross = gram[start:stop, old:]
            if isinstance(other, PackedColumns):
                cross[...] = other.cross(block)
            elif sp.issparse(other):
                cross[...] = dense(other.T @ block)
            else:
                np.matmul(other.T, block, out=cross)
            cross /= norms
            cross /= self.norms[start:stop, None]
            gram[old:, start:stop] = cross.T
            start = stop
        own = _gram(block)
        own /= norms
        own /= norms[:, None]
        gram[old:, old:] = own

    def keep(self, urgency: np.ndarray, n_kept: int) -> None:
        """Keep the support and, of the other columns, those with the largest urgency."""
        rank = np.where(self.z != 0, np.inf, urgency)
        n_kept = max(n_kept, int(np.count_nonzero(self.z)))
        if n_kept < rank.size:
            keep = np.sort(np.argpartition(rank, -n_kept)[-n_kept:])
            self._take(keep)
            self.index, self.norms, self.z = self.index[keep], self.norms[keep], self.z[keep]

    def _take(self, keep: np.ndarray) -> None:
        """Leave out the copies of all other columns."""
        edges = np.cumsum([0] + [block.shape[1] for block in self._blocks])
        # One after another, so that not all columns are there twice.
        for k, (lo, hi) in enumerate(pairwise(edges)):
            own = keep[(keep >= lo) & (keep < hi)] - lo
            block = self._blocks[k]
            self._blocks[k] = (
                block.taken(own) if isinstance(block, PackedColumns) else block[:, own]
            )
        self.gram = submatrix(self.gram, keep)

    def minimise(self, lam: float, tol: float, clock: Clock, *, roughly: bool) -> GramResult:
        """Solve the problem at λ on these columns, starting from the present coefficients.

        `roughly` gives up early: it is for a λ on the way to another one.
        """
        part = self._subproblem(self.gram, lam)
        result = part.minimise(self.z, tol, clock=clock, roughly=roughly)
        self.z = result.z
        return result

    def _subproblem(self, gram: np.ndarray, lam: float) -> Subproblem:
        problem = self.problem
        find_ray = None if problem.bounded else self._ray_from
        return Subproblem(
            gram, problem.b[self.index] / self.norms, lam / self.norms, min(problem.shape),
            find_ray, bounded=problem.bounded,
        )  # fmt: skip

    def _ray_from(self, direction: np.ndarray) -> np.ndarray | None:
        """The ray of the whole problem to which a direction on the set leads, if it does."""
        return self._rays.ray(self.problem, self.scatter(direction))

    def matvec(self, z: np.ndarray) -> np.ndarray:
        """F_S x for x = z / norms."""
        if self._whole:
            return self.problem.op.matvec(self.scatter(z))
        x = z / self.norms
        w = np.zeros(self.problem.shape[0])
        start = 0
        for block in self._blocks:
            stop = start + block.shape[1]
            w += _times(block, x[start:stop])
            start = stop
        self.problem.op.count(self.index.size / self.problem.shape[1])
        return w

    def path_direction(self, factor: Factor | None) -> np.ndarray:
        """λ·F_A(F_AᵀF_A)⁻¹ sgn(x_A), A the support: how Fx changes as λ decreases."""
        active = np.flatnonzero(self.z)
        d = np.zeros_like(self.z)
        if 0 < active.size <= min(self.problem.shape):
            if factor is None or not np.array_equal(factor.active, active):
                factor = factorise(self.gram, active)
            if factor is not None:
                rhs = np.sign(self.z[active]) * self.problem.lam / self.norms[active]
                d[active] = factor.solve(rhs)
        return self.matvec(d)

    def scatter(self, values: np.ndarray) -> np.ndarray:
        """Coefficients on the set (in units of z) as a vector x over all columns."""
        x = np.zeros(self.problem.shape[1])
        x[self.index] = values / self.norms
        return x


def _times(block: Block, x: np.ndarray) -> np.ndarray:
    return block.matvec(x) if isinstance(block, PackedColumns) else block @ x


def _gram(block: Block) -> np.ndarray:
    """Products of the columns of a block with one another."""
    if isinstance(block, PackedColumns):
        return block.gram()
    return dense(block.T @ block) if sp.issparse(block) else gram_matrix(block)


def dense(product: Block) -> np.ndarray:
    """The matrix as an array, if it is sparse."""
    return product.toarray() if hasattr(product, "toarray") else product
