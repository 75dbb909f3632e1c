"""Approximate message passing (AMP) in a form whose fixed point is the minimiser.

For F = F̃ diag(s) with independent entries, write V for s_θ. One iteration on (F, b, λ):

    g ← (V g − F x) / (1 + V)
    Σ_i = (1 + V) / ‖F_i‖²
    u = Fᵀg + b + x/Σ
    x ← Σ soft(u, λ)
    V ← (1 + V) · #{i : |u_i| > λ} / M

The paper corrects g with the vector (F∘F)s where this form has the scalar V, the value it
takes for large N. With the scalar, a fixed point has g = −Fx, hence c = b − FᵀFx satisfies the
optimality conditions exactly; with the vector it satisfies them only to O(N^−½) (see
`_amp_paper`). State evolution is the same for both. On (y, η) the iteration started from
g = y is this one started from g = 0, with g shifted by y.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from privasso._clock import Clock
from privasso._validation import integer
from privasso.operators import Block, Rough
from privasso.problem import Problem
from privasso.solvers import _tuned as tuned
from privasso.solvers._algorithm import Algorithm, Outcome, checked_damping, register
from privasso.solvers._growth import grow_working_set
from privasso.solvers._iteration import (
    AmpState,
    End,
    Run,
    amp_on_columns,
    iterate,
    movement,
    outcome_of,
    soft,
)
from privasso.solvers._solution import Status


@register
@dataclass(frozen=True)
class Amp(Algorithm):
    """Approximate message passing, finished by an exact solve on the columns that matter.

    Parameters
    ----------
    damping : float
        Weight in [0, 1) on the *old* value of x and V. `AmpState.change` is that of the undamped
        step, so that damping does not make the iteration look converged.
    polish : bool
        Stop as soon as the support hardly changes and solve exactly on the columns that may be in
        it, which takes far fewer passes over F. False iterates to the fixed point, for the study
        of the algorithm.
    max_iter : int
        Limit of AMP iterations.

    Examples
    --------
    A run to the fixed point:

    >>> import privasso as pv
    >>> s = pv.Model(alpha=0.5).sample(n_features=400, rng=0)
    >>> pv.solve(s.F, s.y, 0.2, method=Amp(polish=False)).status.name
    'CONVERGED'

    The iterates one by one, for a study of the algorithm:

    >>> problem = pv.problem.Problem.from_labels(s.F, s.y, 0.2)
    >>> state = Amp().init(problem)
    >>> for _ in range(5):
    ...     state = Amp().step(problem, state)
    >>> state.change < 0.2
    True
    """

    name: ClassVar[str] = "amp"
    advice: ClassVar[Mapping[Status, str]] = {
        Status.DIVERGED: (
            "AMP is made for independent columns; the columns of this F are probably correlated, "
            "or have large means. Use method='cd' or 'auto'."
        ),
        Status.MAX_ITER: (
            "A coefficient at the threshold keeps going to zero and back, or lambda is close to "
            "critical: use method='cd' or 'auto', or Amp(polish=True)."
        ),
    }

    damping: float = 0.0
    polish: bool = True
    max_iter: int = 1000

    def __post_init__(self) -> None:
        object.__setattr__(self, "damping", checked_damping(self.damping))
        object.__setattr__(self, "max_iter", integer("max_iter", self.max_iter, minimum=1))

    def minimise(self, problem: Problem, tol: float, clock: Clock) -> Outcome:
        """Iterate until the support hardly changes, then solve exactly on the columns near it."""
        run = self._run(problem, tol, clock)
        if not self.polish or run.end in (End.UNBOUNDED, End.DIVERGED, End.TIME_LIMIT):
            return outcome_of(problem, run, tol, Status.MAX_ITER)
        outcome = self._polished(problem, run.state, run.candidates, tol, clock)
        return replace(outcome, steps=run.steps + outcome.steps)

    def _run(self, problem: Problem, tol: float, clock: Clock) -> Run:
        go = partial(
            iterate,
            problem=problem,
            tol=tol,
            max_iter=self.max_iter,
            clock=clock,
            hand_over=candidate_columns if self.polish else None,
        )
        rough = problem.op.rough() if self.polish else None
        if rough is not None:
            run = go(self.around(rough, np.zeros(problem.shape[1]), problem.b))
            if run.end is not End.DIVERGED:  # as numbers do that are beyond single precision
                return run
        return go(self)

    def around(self, rough: Rough, x: np.ndarray, c: np.ndarray) -> RoughAmp:
        """The same iteration on a rounded copy of F, where c = b − FᵀFx is known at an x."""
        return RoughAmp(self, rough, x, c)

    def _polished(
        self,
        problem: Problem,
        state: AmpState,
        candidates: np.ndarray | None,
        tol: float,
        clock: Clock,
    ) -> Outcome:
        if candidates is None:
            return grow_working_set(problem, state.x, np.flatnonzero(state.x), tol=tol, clock=clock)
        if isinstance(state.block, np.ndarray) and _alone(problem, state, candidates.size, tol):
            outcome = amp_on_columns(Amp(), problem, state, candidates, state.block, tol, clock)
            if outcome is not None:
                return outcome
        return grow_working_set(
            problem, state.x, candidates, tol=tol, clock=clock, block=state.block
        )

    def init(self, problem: Problem) -> AmpState:
        """The state after the first threshold, of b itself, for which F need not be read."""
        m, n = problem.shape
        zero = np.zeros(n)
        start = AmpState(zero, np.zeros(m), 0.0, problem.b, zero)
        return self.threshold(problem, start, start.g, problem.b)

    def step(self, problem: Problem, state: AmpState, take: np.ndarray | None = None) -> AmpState:
        """One iteration in one pass over F, after which the columns `take` are copied out."""
        inverse = 1.0 / (1.0 + state.s_theta)
        g = state.g.copy()
        q, block = problem.op.update(state.mixed, g, state.s_theta * inverse, -inverse, take=take)
        u = q + problem.b + state.mixed * problem.squares * inverse
        return self.threshold(problem, state, g, u, block)

    def threshold(
        self,
        problem: Problem,
        state: AmpState,
        g: np.ndarray,
        u: np.ndarray,
        block: Block | None = None,
    ) -> AmpState:
        """The state after the field u."""
        m = problem.shape[0]
        squares = np.where(problem.squares > 0, problem.squares, np.inf)
        x = soft(u, problem.lam) * ((1.0 + state.s_theta) / squares)
        s_theta = (1.0 + state.s_theta) * np.count_nonzero(x) / m
        change, turnover = movement(problem, state.mixed, x)
        mixed = x
        if self.damping:
            mixed = self.damping * state.mixed + (1.0 - self.damping) * x
            s_theta = self.damping * state.s_theta + (1.0 - self.damping) * s_theta
        return AmpState(x, g, s_theta, u, mixed, change, turnover, block)


@dataclass(frozen=True, eq=False)
class RoughAmp:
    """AMP on a rounded copy F̂, which takes a quarter of the time.

    Around x₀, where c₀ = b − FᵀFx₀ is known, F̂ multiplies x − x₀ alone: g stands for g + Fx₀, and
    c₀ for b. Rounding then moves the fixed point by a small part of its distance from x₀.
    """

    amp: Amp
    rough: Rough
    x: np.ndarray
    c: np.ndarray

    def init(self, problem: Problem) -> AmpState:
        """As on F itself."""
        return self.amp.init(problem)

    def step(self, problem: Problem, state: AmpState, take: np.ndarray | None = None) -> AmpState:
        """One iteration on the copy; the columns `take` are those of F."""
        inverse = 1.0 / (1.0 + state.s_theta)
        g = state.g.copy()
        q, _ = self.rough.update(state.mixed - self.x, g, state.s_theta * inverse, -inverse)
        problem.op.count(self.rough.part)
        u = q + self.c + state.mixed * problem.squares * inverse
        block = None if take is None else problem.op.columns(take)
        return self.amp.threshold(problem, state, g, u, block)


def _alone(problem: Problem, state: AmpState, size: int, tol: float) -> bool:
    """Whether iterating on so many columns to the end takes less time than their Gram matrix.

    Near the fixed point each step is √(ρ̂/α) of the one before. An iteration reads each entry of
    the columns once; the Gram matrix and its factors take size/30 + size²/(12M) as long.
    """
    m = problem.shape[0]
    rate = np.sqrt(state.n_active / m)
    if size == 0 or not 0.0 < rate < 1.0 or not 0.0 < state.change < 1.0:
        return False
    left = np.log(0.1 * tol / state.change) / np.log(rate)
    return bool(left <= min(tuned.ALONE_FEW, size / 30 + size * size / (12 * m)))


def candidate_columns(problem: Problem, state: AmpState) -> np.ndarray:
    """Columns that may be in the support of the minimiser: the active ones and those close to it.

    The more the field still moves, the more columns count as close. A set that AMP goes on alone on
    has the columns within some standard deviations of what the field has still to move: a column
    too many costs little there and a column too few costs much.
    """
    field = np.abs(state.u)
    margin = min(0.5, max(0.05, 2.0 * state.change))
    index = np.flatnonzero((field > (1.0 - margin) * problem.lam) | (state.x != 0))
    if _alone(problem, state, index.size, 1e-8):
        if index.size > 0.5 * problem.shape[1]:
            return np.arange(problem.shape[1])  # no copy is needed
        reach = tuned.ALONE_DEVIATIONS * _still_to_move(problem, state) * problem.norms
        index = np.flatnonzero((field > problem.lam - reach) | (state.x != 0))
    most = 2 * problem.shape[0]  # the support has at most M columns, so more are a waste of time
    if index.size > most:
        index = np.sort(index[np.argpartition(field[index], -most)[-most:]])
    return index


def _still_to_move(problem: Problem, state: AmpState) -> float:
    """Standard deviation of u_i/‖F_i‖ from now to the fixed point.

    A coefficient that is not zero moves with its field, Δx_i‖F_i‖ = (1 + V)Δu_i/‖F_i‖, and the
    fields of all columns move alike. Steps become smaller by r = √(ρ̂/α) each, so that r/(1 − r) of
    the last one is left.
    """
    active = max(1, state.n_active)
    rate = min(np.sqrt(active / problem.shape[0]), 0.9)
    size = float(np.linalg.norm(state.x * problem.norms))
    last = state.change * size / np.sqrt(active) / (1.0 + state.s_theta)
    return float(last * rate / (1.0 - rate))
