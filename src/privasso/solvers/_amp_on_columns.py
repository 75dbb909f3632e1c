"""AMP on the columns that matter alone: exact, and without a Gram matrix.

The other columns stay at zero, so that the iteration on the columns copied out is the iteration on
F, at the cost of their part of a pass. For large supports a few dozen of these cheap iterations
take less time than the Gram matrix and its factorisation. The iteration fails if a coefficient at
the threshold keeps going to zero and back; then the Gram matrix is formed after all.
"""

from __future__ import annotations

import numpy as np

from privasso._clock import Clock
from privasso.operators import Metered, as_operator
from privasso.problem import Problem, certify, violations
from privasso.solvers._algorithm import Outcome
from privasso.solvers._iteration import AmpState, End, Stepper, iterate
from privasso.solvers._solution import Status, Step

_MAX_ITER = 120
_MAX_ROUNDS = 6
#: Steps of conjugate gradients towards a dual point, and the relative error of the slowest
#: constraint that is enough.
_DIRECTION_STEPS, _DIRECTION_ACCURACY = 6, 0.3


def amp_on_columns(
    amp: Stepper[AmpState],
    problem: Problem,
    state: AmpState,
    index: np.ndarray,
    block: np.ndarray,
    tol: float,
    clock: Clock,
) -> Outcome | None:
    """Iterate on the columns `index`, copied out as `block`, and certify; None if that fails.

    Columns whose optimality condition the result violates join the set, and the iteration goes on
    from the state that it is in.
    """
    n = problem.shape[1]
    x, u = state.x[index], state.u[index]
    g, s_theta = state.g, state.s_theta
    aim = tol * _step_for_violation(problem, x, index, s_theta)
    steps: list[Step] = []
    trusting = True
    for _ in range(_MAX_ROUNDS):
        op = Metered(as_operator(block))
        part = Problem(op, problem.b[index], problem.lam, squares=problem.squares[index])
        start = AmpState(x, g, s_theta, u, x)
        run = iterate(amp, part, tol=aim, max_iter=_MAX_ITER, clock=clock, start=start)
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
        w = np.zeros(problem.shape[0])
        fitted, _ = op.update(x, w, 0.0, 1.0)
        own = float(violations(part.b - fitted, x, problem.lam).max()) / (tol * problem.lam)
        if own > 1.0 and trusting:
            # A step that is small leaves a larger violation now and then. It is seen on these
            # columns already, for less than a pass over F and the direction of the proof.
            problem.op.count(op.passes * share)
            aim, trusting = 0.5 * aim / own, False
            continue
        trusting = True
        everywhere = np.zeros(n)
        everywhere[index] = x
        path = None
        if problem.dual_point is not None:
            c = problem.b - problem.op.rmatvec(w)
        else:
            delta = op.matvec(path_coefficients(part, x))
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


def _step_for_violation(
    problem: Problem, x: np.ndarray, index: np.ndarray, s_theta: float
) -> float:
    """Forty times the relative step at which the largest violation is about λ, at most 10.

    A step Δz in units of columns of unit norm leaves violations of ‖F_i‖|Δz_i|/(1 + V), and the
    largest of n entries is about four times their root mean square.
    """
    norms = problem.norms[index]
    size = float(np.linalg.norm(x * norms)) * float(norms.max())
    entries = np.sqrt(max(1, np.count_nonzero(x)))
    return float(min(10.0, 40 * problem.lam * (1 + s_theta) * entries / (4 * max(size, 1e-300))))


def path_coefficients(problem: Problem, x: np.ndarray) -> np.ndarray:
    """λ(F_AᵀF_A)⁻¹ sgn(x_A) on the support A, roughly: a few steps of conjugate gradients.

    That is accurate enough, because the certificate needs only some direction in which every
    constraint of the support becomes strict.
    """
    norms = problem.norms
    on = x != 0
    r = np.where(on, problem.lam * np.sign(x) / norms, 0.0)
    p, d = r.copy(), np.zeros_like(r)
    buffer = np.zeros(problem.shape[0])
    gamma, enough = float(r @ r), _DIRECTION_ACCURACY * problem.lam
    for _ in range(_DIRECTION_STEPS):
        if np.abs(r * norms).max(initial=0.0) <= enough:
            break
        q, _ = problem.op.update(p / norms, buffer, 0.0, 1.0)
        q = np.where(on, q / norms, 0.0)
        step = gamma / float(p @ q)
        d += step * p
        r -= step * q
        gamma, previous = float(r @ r), gamma
        p = r + gamma / previous * p
    return d / norms
