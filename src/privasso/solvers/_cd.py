"""Coordinate descent with working sets, for matrices on which AMP has no business.

Correlated, sparse, tall or ill-scaled: the method makes no assumption about F. It starts from
the columns with the most to gain and lets `finish` grow the set; on the set, coordinate
descent runs on the Gram matrix and Newton steps end it (`_gram`), which is what acceleration
schemes approximate when the Gram matrix is out of reach.
"""

from __future__ import annotations

import numpy as np

from privasso.problem import Problem
from privasso.solvers._working_set import Finish, finish


def coordinate_descent(problem: Problem, *, tol: float, max_rounds: int) -> Finish:
    """Minimise from zero; no iterate of another method is needed or used."""
    m, n = problem.shape
    gain = np.maximum(np.abs(problem.b) - problem.lam, 0.0) / problem.norms
    size = min(n, max(64, m // 8), int(np.count_nonzero(gain)))
    index = np.sort(np.argpartition(gain, -size)[-size:]) if size else np.empty(0, dtype=np.int64)
    return finish(problem, np.zeros(n), index, tol=tol, max_rounds=max_rounds)
