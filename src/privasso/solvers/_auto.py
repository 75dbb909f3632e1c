"""AMP where it can work, coordinate descent everywhere else."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from privasso._clock import Clock
from privasso.operators import Operator
from privasso.problem import Problem
from privasso.solvers import _tuned as tuned
from privasso.solvers._algorithm import Algorithm, Outcome, register
from privasso.solvers._amp import Amp
from privasso.solvers._coordinate_descent import CoordinateDescent
from privasso.solvers._solution import Status


@register
@dataclass(frozen=True)
class Auto(Algorithm):
    """AMP if F is dense and its columns look independent, coordinate descent otherwise.

    AMP is tried with at least 50 rows and columns, and fewer than 4 rows per column or at least
    200 columns whose product with the labels exceeds λ. Coordinate descent also follows if AMP
    fails.

    `amp`: what is tried first. `cd`: what is used if AMP is not tried, or ends without a minimiser
    and without a ray.
    """

    name: ClassVar[str] = "auto"

    amp: Amp = field(default_factory=Amp)
    cd: CoordinateDescent = field(default_factory=CoordinateDescent)

    def minimise(self, problem: Problem, tol: float, clock: Clock) -> Outcome:
        """Return the first outcome that is a minimiser, a ray or late, otherwise the last one."""
        steps = []
        m, n = problem.shape
        many = np.count_nonzero(np.abs(problem.b) > problem.lam) >= tuned.AMP_MANY
        wanted = m < tuned.TALL * n or many
        if wanted and amp_may_work(problem.op):
            first = self.amp.minimise(problem, tol, clock)
            if first.status in (Status.CONVERGED, Status.UNBOUNDED, Status.TIME_LIMIT):
                return replace(first, by=self.amp)
            steps = first.steps
        last = self.cd.minimise(problem, tol, clock)
        return replace(last, steps=steps + last.steps, by=self.cd)


def look_independent(op: Operator) -> bool:
    """Whether a few columns are as little correlated as independent ones would be.

    Independent columns of M entries have a mean squared correlation of 1/M. Means that are not
    zero count as correlation, because AMP cannot deal with them either.
    """
    m, n = op.shape
    starts = np.linspace(0, n - tuned.RUN_LENGTH, tuned.RUNS).astype(np.int64)
    index = np.unique(starts[:, None] + np.arange(tuned.RUN_LENGTH))
    few = tuned.ROWS_COMPARED
    if m > 2 * few and few * n < m * index.size:  # what is read is less
        m = few  # evenly spaced
        block = op.rows(np.linspace(0, op.shape[0] - 1, m).astype(np.int64))[:, index]
    else:
        block = op.columns(index)
    lengths = np.linalg.norm(block, axis=0)
    block = block[:, lengths > 0] / lengths[lengths > 0]
    size = block.shape[1]
    if size < 2:
        return False
    correlations = block.T @ block
    total = float(np.sum(correlations**2)) - float(np.sum(np.diag(correlations) ** 2))
    return m * total / (size * (size - 1)) < tuned.INDEPENDENT


def amp_may_work(op: Operator) -> bool:
    """Whether F is dense, not packed, not small, and its columns look independent."""
    large = min(op.shape) >= tuned.AMP_SMALLEST
    return op.dense and not op.packed and large and look_independent(op)
