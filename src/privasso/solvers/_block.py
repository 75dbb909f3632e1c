"""AMP carried on alone on the columns that matter: exact, and without a Gram matrix.

Columns off the working set stay at zero, so the iteration on the cut-out columns is the very
iteration on F, at the cost of their share of a pass. For large supports a few dozen of these cheap
iterations cost less than the Gram matrix and its factorisation. Where the support flickers, the
attempt fails and the Gram matrix is formed after all.
"""

from __future__ import annotations

import numpy as np

from privasso.operators import RowMajor
from privasso.problem import Certificate, Problem, certify, violations
from privasso.solvers._amp import Amp, AmpState
from privasso.solvers._driver import Verdict, iterate
from privasso.solvers._solution import Step

_MAX_ITER = 50
_MAX_ROUNDS = 4
_DIRECTION_STEPS = 6


def carry_on(
    problem: Problem, state: AmpState, index: np.ndarray, block: np.ndarray, tol: float
) -> tuple[np.ndarray, Certificate, list[Step]] | None:
    """Iterate on the columns `index`, cut out as `block`, and certify; None if that fails.

    Columns that object to the result join the set, and the iteration goes on from where it is.
    """
    n = problem.shape[1]
    x, u = state.x[index], state.u[index]
    g, s_theta = state.g.copy(), state.s_theta
    aim = tol
    steps: list[Step] = []
    for _ in range(_MAX_ROUNDS):
        op = RowMajor(block)
        part = Problem(op, problem.b[index], problem.lam, squares=problem.squares[index])
        start = AmpState(x, g, s_theta, u, x)
        run = iterate(Amp(), part, tol=aim, max_iter=_MAX_ITER, hand_over=False, start=start)
        steps += run.steps
        x, g, s_theta, u = run.state.x, run.state.g, run.state.s_theta, run.state.u
        share = index.size / n
        if run.verdict is not Verdict.FIXED_POINT:
            problem.op.passes += op.passes * share
            return None
        w = op.matvec(x)
        delta = op.matvec(path_coefficients(part, x))
        problem.op.passes += op.passes * share
        everywhere = np.zeros(n)
        everywhere[index] = x
        fitted, q = problem.op.pair_rmatvec(w, delta)
        c = problem.b - fitted
        certificate = certify(problem, everywhere, w, c, (delta, q), anchors=False)
        if certificate.proves(tol) and np.isfinite(certificate.gap):
            return everywhere, certificate, steps
        objecting = violations(c, everywhere, problem.lam) > 0.1 * tol * problem.lam
        objecting[index] = False
        more = np.flatnonzero(objecting)
        if more.size == 0:
            aim *= 0.1  # the step was smaller than the violation it left
            continue
        block = np.hstack([block, problem.op.columns(more)])
        index = np.concatenate([index, more])
        x, u = np.append(x, np.zeros(more.size)), np.append(u, c[more])
    return None


def path_coefficients(problem: Problem, x: np.ndarray) -> np.ndarray:
    """Roughly λ(F_AᵀF_A)⁻¹ sgn(x_A), by a few steps of conjugate gradients.

    The certificate needs only a direction in which every constraint of the support A relaxes.
    """
    norms = problem.norms
    on = x != 0
    r = np.where(on, problem.lam * np.sign(x) / norms, 0.0)
    p, d = r.copy(), np.zeros_like(r)
    buffer = np.zeros(problem.shape[0])
    gamma = float(r @ r)
    for _ in range(_DIRECTION_STEPS):
        q, _ = problem.op.update(p / norms, buffer, 0.0, 1.0)
        q = np.where(on, q / norms, 0.0)
        step = gamma / float(p @ q)
        d += step * p
        r -= step * q
        gamma, previous = float(r @ r), gamma
        p = r + gamma / previous * p
    return d / norms
