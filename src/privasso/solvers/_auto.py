"""AMP where it can work, coordinate descent everywhere else."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from privasso._clock import Clock
from privasso.problem import Problem
from privasso.solvers._algorithm import Algorithm, Outcome, register
from privasso.solvers._amp import Amp
from privasso.solvers._coordinate_descent import CoordinateDescent
from privasso.solvers._solution import Status

#: Fewest rows and columns for which AMP is tried.
_SMALLEST = 50


@register
@dataclass(frozen=True)
class Auto(Algorithm):
    """AMP if F is dense with at least 50 rows and columns, then coordinate descent if AMP fails.

    Parameters
    ----------
    amp : Amp
        What is tried first.
    cd : CoordinateDescent
        What is used if AMP is not tried, or ends without a minimiser and without a ray.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> pv.solve(np.eye(2), [3.0, 0.5], 1.0, method=Auto()).method
    'cd'
    """

    name: ClassVar[str] = "auto"

    amp: Amp = field(default_factory=Amp)
    cd: CoordinateDescent = field(default_factory=CoordinateDescent)

    def minimise(self, problem: Problem, tol: float, clock: Clock) -> Outcome:
        """Return the first outcome that is a minimiser, a ray or late, otherwise the last one."""
        steps = []
        if problem.op.dense and min(problem.shape) >= _SMALLEST:
            first = self.amp.minimise(problem, tol, clock)
            if first.status in (Status.CONVERGED, Status.UNBOUNDED, Status.TIME_LIMIT):
                return replace(first, by=self.amp)
            steps = first.steps
        last = self.cd.minimise(problem, tol, clock)
        return replace(last, steps=steps + last.steps, by=self.cd)
