"""The loop that every message-passing algorithm shares.

An algorithm supplies ``init`` and ``step``; the driver decides when to stop and says why. It
knows the three different things that are called "AMP fails":

- the problem has no minimiser: V = s_θ grows without bound and the iterates run away along a
  ray, which their projection on the null space of F exhibits;
- the support flickers: a coefficient at the threshold flips in and out for ever, although the
  minimiser exists: the driver hands over to the working set;
- the matrix is not of AMP's kind (correlated columns): the iterates blow up although the
  problem is fine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import numpy as np

from privasso.problem import Problem, ray_from
from privasso.solvers._amp import AmpState
from privasso.solvers._solution import Step

#: Hand over to the working set once an iteration changes less than this part of the support,
SETTLED_TURNOVER = 0.1
#: and moves the coefficients by less than this, relative to their size.
SETTLED_CHANGE = 0.2
#: Hand over after this many iterations in any case: what moves then is flicker.
PATIENCE = 30
#: Columns from which on a working set counts as large: its Gram matrix costs their square.
LARGE_SET = 1200
#: V at which the first look for a ray is taken; later ones at every doubling. V = ρ̂/(α − ρ̂)
#: at a fixed point, so this is three quarters of the way to the end of stability.
SUSPICIOUS_V = 3.0


class Algorithm(Protocol):
    """What the driver needs from a message-passing algorithm."""

    name: str

    def init(self, problem: Problem) -> AmpState: ...

    def step(
        self, problem: Problem, state: AmpState, take: np.ndarray | None = None
    ) -> AmpState: ...


class Verdict(Enum):
    """Why the loop ended."""

    FIXED_POINT = "fixed point"
    SETTLED = "support settled"
    FLICKER = "support flickers"
    UNBOUNDED = "unbounded"
    DIVERGED = "diverged"
    MAX_ITER = "max_iter"


@dataclass
class Run:
    """A finished loop: the last state, its verdict and what led to it."""

    state: AmpState
    verdict: Verdict
    steps: list[Step] = field(default_factory=list)
    candidates: np.ndarray | None = None
    ray: np.ndarray | None = None


def iterate(
    algorithm: Algorithm,
    problem: Problem,
    *,
    tol: float,
    max_iter: int,
    hand_over: bool,
    callback: Callable[[AmpState], None] | None = None,
    start: AmpState | None = None,
) -> Run:
    """Iterate until a fixed point, a hand-over (if allowed), a ray, divergence or the limit."""
    m, n = problem.shape
    state = algorithm.init(problem) if start is None else start
    steps: list[Step] = []
    next_look = SUSPICIOUS_V
    smallest, growing = np.inf, 0
    previous_v = 0.0
    for iteration in range(1, max_iter + 1):
        settled = state.turnover <= SETTLED_TURNOVER and state.change <= SETTLED_CHANGE
        # While V is large and still grows, the iterates may be on their way along a ray.
        rising = m < n and state.s_theta > max(SUSPICIOUS_V, 1.01 * previous_v)
        ready = hand_over and not rising and (settled or iteration > PATIENCE)
        previous_v = state.s_theta
        candidates = candidate_columns(problem, state) if ready else None
        state = algorithm.step(problem, state, candidates)
        steps.append(Step("amp", state.n_active, state.change, state.s_theta))
        if callback is not None:
            callback(state)
        if not np.isfinite(state.change) or not np.isfinite(state.s_theta):
            return Run(state, Verdict.DIVERGED, steps)
        if candidates is not None:
            verdict = Verdict.SETTLED if settled else Verdict.FLICKER
            return Run(state, verdict, steps, candidates)
        if state.change <= 0.1 * tol:  # the KKT violation follows the step, a little larger
            return Run(state, Verdict.FIXED_POINT, steps)
        if m < n and state.s_theta >= next_look:
            next_look = 2 * state.s_theta
            ray = ray_from(problem, state.x)
            if ray is not None:
                return Run(state, Verdict.UNBOUNDED, steps, ray=ray)
        # Steps shrink by √(ρ̂/α) an iteration where AMP works. Five in a row that do not come
        # below the smallest so far, at a size that is not flicker, are not noise.
        growing = 0 if state.change < 0.98 * smallest else growing + 1
        smallest = min(smallest, state.change)
        if growing >= 5 and state.change > SETTLED_CHANGE:
            return Run(state, Verdict.DIVERGED, steps)
    return Run(state, Verdict.MAX_ITER, steps)


def candidate_columns(problem: Problem, state: AmpState) -> np.ndarray:
    """Columns that may be in the support of the minimiser: the active ones and those close to it.

    How close is judged by how much the field still moves. A large set is not given to the Gram
    matrix but to `carry_on`, where a wider margin costs little and a missed column much.
    """
    field = np.abs(state.u) / problem.lam
    index = np.flatnonzero((field > 1.0 - min(0.5, max(0.05, 2.0 * state.change))) | (state.x != 0))
    if index.size >= LARGE_SET:
        margin = min(0.5, max(0.15, 4.0 * state.change))
        index = np.flatnonzero((field > 1.0 - margin) | (state.x != 0))
    most = 2 * problem.shape[0]  # a support cannot exceed M; far more candidates only cost
    if index.size > most:
        index = np.sort(index[np.argpartition(np.abs(state.u[index]), -most)[-most:]])
    return index
