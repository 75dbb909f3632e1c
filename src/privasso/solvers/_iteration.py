"""The loop that both forms of AMP share: they write the step, the loop decides when to stop.

It tells apart three things that are all called "AMP fails":

- the problem has no minimiser: V = s_θ grows without bound and the iterates move away along a
  ray, which their projection on the null space of F shows;
- a coefficient close to the threshold is set to zero and back for ever, although the minimiser
  exists: the loop hands over to an exact solve on the columns in question;
- the columns are correlated, for which AMP is not made: the iterates grow although the problem has
  a minimiser.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol, TypeVar

import numpy as np

from privasso._clock import Clock
from privasso.operators import Block, Metered, Rough, as_operator
from privasso.problem import Problem, certify, certify_point, ray_from, violations
from privasso.solvers import _tuned as tuned
from privasso.solvers._algorithm import Outcome
from privasso.solvers._solution import Status, Step


@dataclass(frozen=True, eq=False)
class AmpState:
    """Everything that one iteration passes on to the next.

    - `x` (N,): the estimate, with exact zeros.
    - `g` (M,): the residual with its Onsager correction.
    - `s_theta`: V of state evolution.
    - `u` (N,): the field, of which x is the thresholded value.
    - `mixed` (N,): where the next iteration starts: x, or with damping a mixture of x and the old
      value.
    - `change`: relative size of the undamped step.
    - `turnover`: the part of the support that the step changed.
    - `block`: columns of F that were copied out during the iteration.
    """

    x: np.ndarray
    g: np.ndarray
    s_theta: float
    u: np.ndarray
    mixed: np.ndarray
    change: float = np.inf
    turnover: float = 1.0
    block: Block | None = None

    @property
    def n_active(self) -> int:
        """Number of coefficients that are not zero."""
        return int(np.count_nonzero(self.x))


S = TypeVar("S", bound=AmpState)


class Stepper(Protocol[S]):
    """What the loop needs from a form of AMP."""

    def init(self, problem: Problem) -> S:
        """The state before the first iteration."""
        ...

    def step(self, problem: Problem, state: S, take: np.ndarray | None = None) -> S:
        """The state after one more iteration, with the columns `take` copied out of F."""
        ...


class Roundable(Stepper[AmpState], Protocol):
    """A form of AMP that can also iterate on a rounded copy of F."""

    def around(self, rough: Rough, x: np.ndarray, c: np.ndarray) -> Stepper[AmpState]:
        """The same iteration on the copy, where c = b − FᵀFx is known at an x."""
        ...


class End(Enum):
    """Why the loop ended."""

    FIXED_POINT = "fixed point"
    HAND_OVER = "hand over"
    UNBOUNDED = "unbounded"
    DIVERGED = "diverged"
    MAX_ITER = "max_iter"
    TIME_LIMIT = "time limit"


@dataclass(frozen=True, eq=False)
class Run:
    """A finished loop: the last state, why it ended, and the columns or the ray that it found."""

    state: AmpState
    end: End
    steps: list[Step]
    candidates: np.ndarray | None = None
    ray: np.ndarray | None = None


def iterate(
    stepper: Stepper[S],
    problem: Problem,
    *,
    tol: float,
    max_iter: int,
    clock: Clock,
    start: S | None = None,
    hand_over: Callable[[Problem, S], np.ndarray] | None = None,
) -> Run:
    """Iterate to a fixed point, a hand-over, a ray, divergence or a limit of steps or time.

    `hand_over` chooses the columns for an exact solve once the support hardly changes; they are
    copied out of F in one last iteration. Without it the loop goes on to its fixed point.
    """
    m, n = problem.shape
    state = stepper.init(problem) if start is None else start
    steps: list[Step] = []
    next_look = tuned.SUSPICIOUS_V
    unsure = m < n and not problem.bounded
    smallest, growing = np.inf, 0
    previous_v = 0.0
    for iteration in range(1, max_iter + 1):
        if clock.expired():
            return Run(state, End.TIME_LIMIT, steps)
        settled = state.turnover <= tuned.SETTLED_TURNOVER and state.change <= tuned.SETTLED_CHANGE
        # While V is large and still grows, the iterates may be moving along a ray.
        rising = unsure and state.s_theta > max(tuned.SUSPICIOUS_V, 1.01 * previous_v)
        previous_v = state.s_theta
        candidates = None
        if hand_over is not None and not rising and (settled or iteration > tuned.AMP_PATIENCE):
            candidates = hand_over(problem, state)
        state = stepper.step(problem, state, candidates)
        steps.append(Step("amp", state.n_active, state.change, state.s_theta))
        if not np.isfinite(state.change) or not np.isfinite(state.s_theta):
            return Run(state, End.DIVERGED, steps)
        if candidates is not None:
            return Run(state, End.HAND_OVER, steps, candidates)
        if state.change <= 0.1 * tol:  # the KKT violation is of the size of the step, or larger
            return Run(state, End.FIXED_POINT, steps)
        if unsure and state.s_theta >= next_look:
            next_look = 2 * state.s_theta
            ray = ray_from(problem, state.x)
            if ray is not None:
                return Run(state, End.UNBOUNDED, steps, ray=ray)
        # Where AMP works, each step is √(ρ̂/α) times the one before. It has failed after five large
        # steps in a row none of which is smaller than the smallest so far.
        growing = 0 if state.change < 0.98 * smallest else growing + 1
        smallest = min(smallest, state.change)
        if growing >= 5 and state.change > tuned.SETTLED_CHANGE:
            return Run(state, End.DIVERGED, steps)
    return Run(state, End.MAX_ITER, steps)


def outcome_of(problem: Problem, run: Run, tol: float, status: Status) -> Outcome:
    """The outcome of a loop that nothing follows; `status` if its point is no minimiser."""
    x, steps = run.state.x, run.steps
    if run.ray is not None:
        return Outcome.unbounded(problem, run.ray, steps)
    if run.end is End.DIVERGED:
        return Outcome(x, Status.DIVERGED, steps)
    if run.end is End.TIME_LIMIT:
        return Outcome.at_limit(problem, x, steps)
    certificate = certify_point(problem, x)
    return Outcome(x, Status.CONVERGED if certificate.proves(tol) else status, steps, certificate)


def soft(u: np.ndarray, lam: float | np.ndarray) -> np.ndarray:
    """Soft threshold, sgn(u)·max(|u| − λ, 0)."""
    return u - np.clip(u, -lam, lam)


def movement(problem: Problem, old: np.ndarray, new: np.ndarray) -> tuple[float, float]:
    """Relative size of a step, weighted with column norms, and the changed part of the support."""
    size = float(np.linalg.norm(new * problem.norms))
    change = float(np.linalg.norm((new - old) * problem.norms)) / size if size > 0 else 0.0
    flipped = int(np.count_nonzero((new != 0) != (old != 0)))
    return change, flipped / max(1, int(np.count_nonzero(new)))


def amp_on_columns(
    amp: Roundable,
    problem: Problem,
    state: AmpState,
    index: np.ndarray,
    block: np.ndarray,
    tol: float,
    clock: Clock,
) -> Outcome | None:
    """Iterate on the columns `index`, copied out as `block`, and certify; None if that fails.

    The other columns stay at zero, so that this is the iteration on F, at the cost of their part of
    a pass. For large supports a few dozen of these cheap iterations take less time than the Gram
    matrix and its factorisation. The iteration fails if a coefficient at the threshold keeps going
    to zero and back; then the Gram matrix is formed after all.

    Columns whose optimality condition the result violates join the set, and the iteration goes on
    from the state that it is in.
    """
    n = problem.shape[1]
    x, u = state.x[index], state.u[index]
    g, s_theta = state.g, state.s_theta
    aim = tuned.ALONE_AIM * tol
    steps: list[Step] = []
    for _ in range(tuned.ALONE_ROUNDS):
        op = Metered(as_operator(block))
        part = Problem(op, problem.b[index], problem.lam, squares=problem.squares[index])
        start, rough = AmpState(x, g, s_theta, u, x, state.change), op.rough()
        if rough is not None:
            run = _refined(amp, part, rough, start, aim, clock)
        else:
            limit = tuned.ALONE_ITERATIONS
            run = iterate(amp, part, tol=aim, max_iter=limit, clock=clock, start=start)
        steps += run.steps
        x, g, s_theta, u = run.state.x, run.state.g, run.state.s_theta, run.state.u
        share = index.size / n
        if run.end is End.TIME_LIMIT:
            problem.op.count(op.passes * share)
            everywhere = np.zeros(n)
            everywhere[index] = x
            return Outcome.at_limit(problem, everywhere, steps)
        if run.end is not End.FIXED_POINT:
            problem.op.count(op.passes * share)
            return None
        w = op.matvec(x)
        everywhere = np.zeros(n)
        everywhere[index] = x
        path = None
        if problem.dual_point is not None:
            c = problem.b - problem.op.rmatvec(w)
        else:
            delta = op.matvec(path_coefficients(part, x, rough))
            fitted, q = problem.op.pair_rmatvec(w, delta)
            path, c = (delta, q), problem.b - fitted
        problem.op.count(op.passes * share)
        certificate = certify(problem, everywhere, w, c, path, anchors=False)
        if certificate.proves(tol) and np.isfinite(certificate.gap):
            return Outcome(everywhere, Status.CONVERGED, steps, certificate)
        violated = violations(c, everywhere, problem.lam) > 0.1 * tol * problem.lam
        violated[index] = False
        more = np.flatnonzero(violated)
        if more.size == 0:
            aim *= 0.1  # the last step was smaller than the violation that it left
            continue
        block = np.hstack([block, problem.op.columns(more)])
        index = np.concatenate([index, more])
        x, u = np.append(x, np.zeros(more.size)), np.append(u, c[more])
    return None


def _refined(
    amp: Roundable, problem: Problem, rough: Rough, state: AmpState, aim: float, clock: Clock
) -> Run:
    """Iterate on the rounded copy, again and again around the point that it found before.

    One product with F at each of these points shows what is left. It ends when the largest
    violation is `aim`.
    """
    steps: list[Step] = []
    while len(steps) < tuned.ALONE_ITERATIONS:
        x, g = state.x, np.zeros(problem.shape[0])
        c = problem.b + problem.op.update(x, g, 0.0, -1.0)[0]
        left = float(violations(c, x, problem.lam).max()) / problem.lam
        if left <= aim:
            return Run(replace(state, g=g), End.FIXED_POINT, steps)
        small = max(tuned.ROUGH_GAIN, aim / left) * state.change
        run = iterate(
            amp.around(rough, x, c),
            problem,
            tol=10 * small,
            max_iter=tuned.ALONE_ITERATIONS - len(steps),
            clock=clock,
            start=AmpState(x, state.g - g, state.s_theta, state.u, x),
        )
        steps += run.steps
        if run.end is not End.FIXED_POINT:
            return replace(run, steps=steps)
        state = replace(run.state, g=run.state.g + g)
    return Run(state, End.MAX_ITER, steps)


def path_coefficients(problem: Problem, x: np.ndarray, rough: Rough | None = None) -> np.ndarray:
    """λ(F_AᵀF_A)⁻¹ sgn(x_A) on the support A, roughly: a few steps of conjugate gradients.

    That is accurate enough, because the certificate needs only some direction in which every
    constraint of the support becomes strict.
    """
    norms = problem.norms
    on = x != 0
    r = np.where(on, problem.lam * np.sign(x) / norms, 0.0)
    p, d = r.copy(), np.zeros_like(r)
    buffer = np.zeros(problem.shape[0])
    gamma, enough = float(r @ r), tuned.DIRECTION_ACCURACY * problem.lam
    for _ in range(tuned.DIRECTION_STEPS):
        if np.abs(r * norms).max(initial=0.0) <= enough:
            break
        q, _ = (rough or problem.op).update(p / norms, buffer, 0.0, 1.0)
        problem.op.count(0.0 if rough is None else rough.part)
        q = np.where(on, q / norms, 0.0)
        step = gamma / float(p @ q)
        d += step * p
        r -= step * q
        gamma, previous = float(r @ r), gamma
        p = r + gamma / previous * p
    return d / norms
