"""Certified answers at every grid point of one data set, a ray shared by all that it proves.

With η = σz, the objective has no minimiser exactly when some d with Fd = 0 has
σ zᵀd + λ‖d‖₁ < 0. One such ray serves every point of the same data set and direction z with a
ratio σ/λ > ‖d‖₁/(−zᵀd), so the costly search for a ray is made once or twice, near the edge, and
each further point takes one verification.
"""

from __future__ import annotations

from contextlib import suppress
from enum import IntEnum

import numpy as np

from privasso.operators import as_operator
from privasso.problem import Problem, ProgrammeError, is_ray, linear_programme
from privasso.solvers import Solution, Status, solve_many, solve_problem


class Answer(IntEnum):
    """What is known about a grid point, with proof."""

    EXISTS = 0
    UNBOUNDED = 1
    UNSOLVED = 2


#: Size M·N² up to which the linear programme is tried where the solver gives up: some seconds.
_LP_LIMIT = 1e9
_ANSWERS = {Status.CONVERGED: Answer.EXISTS, Status.UNBOUNDED: Answer.UNBOUNDED}


def certified(
    F: np.ndarray,
    y: np.ndarray,
    lams: np.ndarray,
    sigmas: np.ndarray,
    groups: np.ndarray,
    etas: np.ndarray,
    hard: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Answers (K,) and minimisers (N, K), NaN where there is none.

    Parameters
    ----------
    F, y : ndarray
        The data set.
    lams, sigmas : ndarray, shape (K,)
        The grid points.
    groups : ndarray of int, shape (K,)
        Points of one group have noise of the same direction: η_k = σ_k z.
    etas : ndarray, shape (N, K)
        The noise.
    hard : ndarray of bool, shape (K,)
        Points to solve by themselves and first, since there may be rays. It decides how long it
        takes, never the answer.
    """
    n_points = lams.size
    answers = np.full(n_points, Answer.UNSOLVED)
    x = np.full((F.shape[1], n_points), np.nan)
    op = as_operator(F)
    squares, b = op.squares_and_rmatvec(y)
    ratios = sigmas / lams
    problems = [
        Problem(op, b - etas[:, k], float(lams[k]), squares=squares) for k in range(n_points)
    ]
    open_ = np.ones(n_points, dtype=bool)

    def record(k: int, solution: Solution) -> None:
        answers[k] = _ANSWERS.get(solution.status, Answer.UNSOLVED)
        x[:, k] = solution.x if answers[k] == Answer.EXISTS else np.nan
        open_[k] = False
        if solution.ray is not None:
            beyond = open_ & (groups == groups[k])
            for j in np.flatnonzero(beyond).tolist():
                if is_ray(problems[j], solution.ray):
                    answers[j], open_[j] = Answer.UNBOUNDED, False

    # The smaller the ratio at which a ray is found, the more points it serves.
    for k in np.argsort(ratios, kind="stable").tolist():
        if hard[k] and open_[k]:
            record(k, solve_problem(problems[k], throw=False))
    left = np.flatnonzero(open_)
    if left.size:
        many = solve_many(F, y, lams[left], etas[:, left], throw=False)
        answers[left] = [_ANSWERS.get(status, Answer.UNSOLVED) for status in many.status]
        exists = answers[left] == Answer.EXISTS
        x[:, left[exists]] = many.x[:, exists]
    for k in np.flatnonzero(answers == Answer.UNSOLVED).tolist():
        if _has_ray(problems[k]):
            answers[k] = Answer.UNBOUNDED
    return answers, x


def _has_ray(problem: Problem) -> bool:
    """Ask the linear programme, for points so close to the edge that the solver cannot tell."""
    m, n = problem.shape
    if m < n and m * float(n) * n <= _LP_LIMIT:
        with suppress(ProgrammeError):
            return is_ray(problem, linear_programme(problem).d)
    return False
