"""Coordinate descent on working sets, which assumes nothing about F.

It is the choice for correlated, sparse, tall or badly scaled matrices. It starts from the columns
with the most to gain and adds the columns whose optimality conditions are violated. On the working
set, coordinate descent runs on the Gram matrix and Newton steps end it (`_gram`).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

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
from privasso.solvers._solution import Status


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
        """Start from zero with the columns that gain most; look for a ray if that fails."""
        m, n = problem.shape
        growth = Growth(problem)
        outcome = growth.minimise(problem, tol=tol, clock=clock, max_rounds=self.max_rounds)
        last_resort = outcome.status is Status.MAX_ITER and not problem.bounded
        if last_resort and m * n * n <= LP_LIMIT:
            # A programme that cannot be solved proves nothing: the status stays MAX_ITER.
            with suppress(ProgrammeError):
                programme = linear_programme(problem, time_limit=clock.remaining())
                ray = programme.d if programme.critical > problem.lam else None
                if ray is not None and not is_ray(problem, ray):
                    # Its conditions hold only to the tolerance of the programme.
                    ray = RaySearch(problem.op, problem.norms).ray(problem, ray)
                if ray is not None:
                    return Outcome.unbounded(problem, ray, outcome.steps)
        return outcome
