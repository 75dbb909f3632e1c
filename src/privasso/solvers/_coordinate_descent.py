"""Coordinate descent on working sets, which assumes nothing about F.

It is the choice for correlated, sparse, tall or badly scaled matrices. It starts from the columns
with the most to gain and adds the columns whose optimality conditions are violated. On the working
set, coordinate descent runs on the Gram matrix and Newton steps end it (`_gram`). Where that gains
nothing, as close to the λ below which there is no minimiser, an interior-point method decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from privasso._clock import Clock
from privasso._validation import integer
from privasso.problem import (
    LP_LIMIT,
    Problem,
    ProgrammeError,
    RaySearch,
    is_ray,
    linear_programme,
)
from privasso.solvers._algorithm import Algorithm, Outcome, register
from privasso.solvers._growth import Growth
from privasso.solvers._interior import interior_point
from privasso.solvers._solution import Status
from privasso.solvers._tuned import INTERIOR_LIMIT


@register
@dataclass(frozen=True)
class CoordinateDescent(Algorithm):
    """Coordinate descent on working sets that grow until no column violates its condition.

    Parameters
    ----------
    max_rounds : int
        Limit of rounds; each solves on the working set and checks all columns in one pass.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> pv.solve(np.eye(2), [3.0, 0.5], 1.0, method=CoordinateDescent(max_rounds=5)).x
    array([2., 0.])
    """

    name: ClassVar[str] = "cd"
    advice: ClassVar[Mapping[Status, str]] = {
        Status.MAX_ITER: (
            "Raise tol, or max_rounds of CoordinateDescent; "
            "critical_lambda(F, eta) tells whether a minimiser exists."
        ),
    }

    max_rounds: int = 1000

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_rounds", integer("max_rounds", self.max_rounds, minimum=1))

    def minimise(self, problem: Problem, tol: float, clock: Clock) -> Outcome:
        """Start from zero with the columns that gain most; if that fails, from the inside."""
        m, n = problem.shape
        small = float(m) * n * min(m, n) <= INTERIOR_LIMIT
        outcome = Growth(problem).minimise(
            problem, tol=tol, clock=clock, max_rounds=self.max_rounds
        )
        stuck = outcome.status is Status.MAX_ITER and len(outcome.steps) < self.max_rounds
        if not stuck or not small:
            return outcome
        found = interior_point(problem, tol=tol, clock=clock)
        if found.ray is not None:
            return Outcome.unbounded(problem, found.ray, outcome.steps)
        if found.x is not None and found.certificate is not None:
            return Outcome(found.x, Status.CONVERGED, outcome.steps, found.certificate)
        if clock.expired():
            return replace(outcome, status=Status.TIME_LIMIT)
        ray = None if problem.bounded else _ray_of_programme(problem, clock)
        return outcome if ray is None else Outcome.unbounded(problem, ray, outcome.steps)


def _ray_of_programme(problem: Problem, clock: Clock) -> np.ndarray | None:
    """A ray from the linear programme of the critical λ, which needs no decision on the rank."""
    m, n = problem.shape
    if m * n * n > LP_LIMIT:
        return None
    try:
        programme = linear_programme(problem, time_limit=clock.remaining())
    except ProgrammeError:  # it proves nothing
        return None
    if programme.critical <= problem.lam:
        return None
    if is_ray(problem, programme.d):
        return programme.d
    # Its conditions hold only to the tolerance of the programme.
    return RaySearch(problem.op, problem.norms).ray(problem, programme.d)
