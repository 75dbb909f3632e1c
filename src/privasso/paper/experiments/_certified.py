"""At every grid point of one data set: a certified minimiser, or a proof that there is none.

With η = σz, the objective has no minimiser exactly when some d with Fd = 0 has
σ zᵀd + λ‖d‖₁ < 0. Such a ray d proves this for every point with the same data set and direction z
and a ratio σ/λ > ‖d‖₁/(−zᵀd). The costly search for a ray is therefore made once or twice, near
the edge; at every other point the ray is only verified.
"""

from __future__ import annotations

from contextlib import suppress
from enum import IntEnum

import numpy as np

from privasso.operators import as_operator
from privasso.problem import Problem, ProgrammeError, is_ray, linear_programme
from privasso.solvers import Solution, Status, solve_many, solve_problem


class Answer(IntEnum):
    """What is proved about a grid point: a minimiser exists, none exists, or neither is known."""

    EXISTS = 0
    UNBOUNDED = 1
    UNSOLVED = 2


#: Size M·N² up to which the linear programme, which then takes some seconds, is tried where the
#: solver finds no answer.
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
    """Return the answers (K,) and the minimisers (N, K), NaN where there is none.

    K grid points (λ, σ) of the data set (F, y) have the noise `etas` (N, K). Points of one of the
    `groups` have noise of the same direction: η_k = σ_k z. At the `hard` points a ray is likely;
    they are solved first and one by one, which changes the time this takes, not the answers.
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

    # A ray that is found at a small ratio decides more of the other points.
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
    """Whether the linear programme finds a ray; for points too close to the edge for the solver."""
    m, n = problem.shape
    if m < n and m * float(n) * n <= _LP_LIMIT:
        with suppress(ProgrammeError):
            return is_ray(problem, linear_programme(problem).d)
    return False
