"""`solve`: the minimiser of ½‖y−Fx‖² + λ‖x‖₁ + ηᵀx with proof, or proof that there is none."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from privasso._blas import one_thread
from privasso._clock import Clock
from privasso._types import MatrixLike
from privasso._validation import positive_float
from privasso.operators import Metered, as_operator
from privasso.problem import Certificate, LabelledProblem, Problem, zero_column_ray
from privasso.solvers._algorithm import Algorithm, Outcome, algorithm_for
from privasso.solvers._solution import Solution, Status, raise_on_failure


def solve(
    F: MatrixLike,
    y: ArrayLike,
    lam: float,
    eta: ArrayLike | None = None,
    *,
    method: str | Algorithm = "auto",
    tol: float = 1e-8,
    throw: bool = True,
    time_limit: float | None = None,
) -> Solution:
    """Minimise ½‖y − Fx‖² + λ‖x‖₁ + ηᵀx.

    Parameters
    ----------
    F : array_like or sparse matrix, shape (M, N)
        Covariates; dense in C or Fortran order, float32 or float64, memory-mapped, CSR or CSC
        are used in place.
    y : array_like, shape (M,)
        Labels.
    lam : float
        Regularisation λ > 0.
    eta : array_like, shape (N,), optional
        Objective perturbation; none by default.
    method : {"auto", "amp", "cd", "amp-paper"} or Algorithm
        ``"auto"`` tries AMP if F is dense, neither small nor tall, and its columns look
        independent; otherwise, or if that fails, it uses coordinate descent. ``"amp-paper"`` is
        the paper's Algorithm 1, exact only to O(N^−½). A name stands for an algorithm with default
        options; for others pass the algorithm itself, such as ``Amp(polish=False)`` from
        `privasso.solvers`.
    tol : float
        Largest KKT violation, relative to λ, of a solution that counts as converged. Violations
        that one rounding of x explains are left out; if the largest of all exceeds `tol`,
        `Solution.rounding_limited` is true and the message says so.
    throw : bool
        Raise `UnboundedError` or `NotConvergedError` on failure; False returns the
        `Solution` with its status instead. `Status.FIXED_POINT`, in which ``"amp-paper"`` ends, is
        not a failure.
    time_limit : float, optional
        Seconds after which the solve ends with the best point so far and `Status.TIME_LIMIT`, or
        with `NotConvergedError` if `throw`. It may be exceeded by the time of one step, which
        takes about as long as a few passes over F.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> s = pv.Model(alpha=0.5, rho=0.1, sigma_xi=0.1).sample(n_features=400, rng=0)
    >>> eta = pv.Gram(0.05).draw(s.v, rng=1)
    >>> sol = pv.solve(s.F, s.y, 0.1, eta)
    >>> sol.status.name, sol.kkt < 1e-8, sol.gap < 1e-8
    ('CONVERGED', True, True)

    With too much noise for this λ no minimiser exists:

    >>> sol = pv.solve(s.F, s.y, 0.1, 10 * eta, throw=False)
    >>> sol.status.name, bool(np.abs(s.F @ sol.ray).max() < 1e-9)
    ('UNBOUNDED', True)
    """
    clock = Clock(time_limit)
    algorithm, tol = algorithm_for(method), positive_float("tol", tol)
    op = Metered(as_operator(F))
    problem = LabelledProblem(op, y, lam, eta)
    return _run(problem, op, algorithm, tol, throw, clock)


def solve_problem(
    problem: Problem,
    *,
    method: str | Algorithm = "auto",
    tol: float = 1e-8,
    throw: bool = True,
    time_limit: float | None = None,
) -> Solution:
    """Minimise ½‖Fx‖² − bᵀx + λ‖x‖₁ for a `Problem` (F, b, λ), which holds no labels.

    Parameters
    ----------
    problem : Problem
    method, tol, throw, time_limit : as in `solve`.
        ``"amp-paper"`` needs labels and so a `LabelledProblem`.

    Examples
    --------
    >>> import numpy as np
    >>> from privasso.problem import Problem
    >>> from privasso.solvers import solve_problem
    >>> solve_problem(Problem(np.eye(3), [3.0, -0.5, -2.0], lam=1.0)).x
    array([ 2.,  0., -1.])
    """
    clock = Clock(time_limit)
    algorithm, tol = algorithm_for(method), positive_float("tol", tol)
    op = Metered(problem.op)
    return _run(problem.with_operator(op), op, algorithm, tol, throw, clock)


def _run(
    problem: Problem, op: Metered, algorithm: Algorithm, tol: float, throw: bool, clock: Clock
) -> Solution:
    ray = zero_column_ray(problem)
    if ray is not None:
        outcome = Outcome.unbounded(problem, ray, [])
    else:
        with one_thread():
            outcome = algorithm.minimise(problem, tol, clock)
    solution = _solution(problem, outcome, outcome.by or algorithm, op.passes, tol)
    return raise_on_failure(solution) if throw else solution


def no_minimiser(problem: Problem, ray: np.ndarray) -> Solution:
    """The solution of a problem of which a ray is known."""
    return _solution(problem, Outcome.unbounded(problem, ray, []), algorithm_for("auto"))


def late(problem: Problem, x: np.ndarray, certificate: Certificate) -> Solution:
    """The solution of a problem for which there was no time left."""
    outcome = Outcome(x, Status.TIME_LIMIT, [], certificate)
    return _solution(problem, outcome, algorithm_for("auto"))


def solution_of(problem: Problem, outcome: Outcome, tol: float) -> Solution:
    """The solution that coordinate descent ended with, called by other means than `solve`."""
    return _solution(problem, outcome, algorithm_for("cd"), tol=tol)


def _solution(
    problem: Problem,
    outcome: Outcome,
    by: Algorithm,
    n_passes: float = 0.0,
    tol: float = np.inf,
) -> Solution:
    limited = outcome.status is Status.CONVERGED and outcome.certificate.kkt > tol
    message = _message(problem, outcome, by)
    if limited:
        message += (
            f" Rounding was the limit: tol = {tol:.0e} asks for more than double precision can "
            "show on this F."
        )
    return Solution(
        x=outcome.x,
        status=outcome.status,
        n_iter=len(outcome.steps),
        n_passes=n_passes,
        kkt=outcome.certificate.kkt,
        kkt_beyond_rounding=outcome.certificate.kkt_beyond_rounding,
        gap=outcome.certificate.gap,
        method=by.name,
        history=tuple(outcome.steps),
        ray=outcome.ray,
        message=message,
        rounding_limited=limited,
    )


def _message(problem: Problem, outcome: Outcome, by: Algorithm) -> str:
    """What happened and what to do, for `Solution.message` and the error that carries it."""
    if outcome.ray is not None:
        return _no_minimiser(problem, outcome.ray)
    found = (
        f"KKT violation {outcome.certificate.kkt:.1e} of lambda, "
        f"duality gap {outcome.certificate.gap:.1e}"
    )
    happened = {
        Status.CONVERGED: f"x is certified to be the minimiser: {found}.",
        Status.FIXED_POINT: f"x is a fixed point of {by.name}, but not the minimiser: {found}.",
        Status.MAX_ITER: f"{by.name} stopped before it converged: {found}.",
        Status.TIME_LIMIT: f"The time limit was over before {by.name} converged: {found}.",
        Status.DIVERGED: f"{by.name} diverged, and no ray shows the problem to be unbounded.",
    }
    advice = by.advice.get(outcome.status, "")
    if outcome.status is Status.TIME_LIMIT:
        advice = "Raise time_limit or lambda, or raise tol to accept a less exact minimiser."
    return " ".join([happened[outcome.status], advice]).strip()


def _no_minimiser(problem: Problem, ray: np.ndarray) -> str:
    lam = problem.lam
    needed = float(problem.b @ ray) / float(np.abs(ray).sum())
    if np.count_nonzero(ray) == 1:
        cause = f"column {int(np.flatnonzero(ray)[0])} of F is zero and its noise exceeds lambda"
    else:
        cause = "the noise has a component outside the row space of F that exceeds lambda"
    return (
        f"The objective is unbounded below at lambda = {lam:.6g}: {cause}, and along "
        "solution.ray the objective falls for ever. "
        f"Remedies: raise lambda to at least {needed:.6g} "
        "(critical_lambda(F, eta) gives the exact value); "
        f"or lower the noise level to at most {lam / needed:.3g} of its present value; "
        "or choose a noise design that puts less noise on small columns, such as Gram or "
        "PowerLaw(gamma=1)."
    )
