"""The first iterations of AMP, on a rounded copy of F.

Until the support is nearly known, an iteration need not be exact. On a copy of F that is rounded to
16 bits it takes a quarter of the time. What these iterations find is a start for exact ones.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from privasso._clock import Clock
from privasso.operators import Rough
from privasso.problem import Problem
from privasso.solvers._iteration import PATIENCE, SUSPICIOUS_V, AmpState
from privasso.solvers._solution import Step

#: Relative size of a step that is small enough; then few columns near the support are left.
_ENOUGH = 0.01


class RoughStepper(Protocol):
    """What is needed from AMP."""

    def init(self, problem: Problem) -> AmpState:
        """The state before the first iteration."""
        ...

    def rough_step(self, problem: Problem, state: AmpState, rough: Rough) -> AmpState:
        """The state after one more iteration with the rounded copy in the place of F."""
        ...


def rough_start(
    amp: RoughStepper, problem: Problem, rough: Rough, clock: Clock
) -> tuple[AmpState | None, list[Step]]:
    """The state that exact iterations start from, None if they should start anew, and the steps.

    It ends early where the iteration does not settle: the exact one finds out why.
    """
    state = amp.init(problem)
    steps: list[Step] = []
    smallest, growing = np.inf, 0
    while state.change > _ENOUGH and len(steps) < PATIENCE and growing < 3 and not clock.expired():
        with np.errstate(over="ignore", invalid="ignore"):  # see below
            state = amp.rough_step(problem, state, rough)
        steps.append(Step("amp, roughly", state.n_active, state.change, state.s_theta))
        if not np.isfinite(state.change) or not np.isfinite(state.s_theta):
            return None, steps
        if state.s_theta > SUSPICIOUS_V and not problem.bounded:
            break
        growing = 0 if state.change < 0.98 * smallest else growing + 1
        smallest = min(smallest, state.change)
    return state, steps
