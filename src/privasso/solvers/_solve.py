"""`solve`: the minimiser of ½‖y−Fx‖² + λ‖x‖₁ + ηᵀx with proof, or proof that there is none."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from privasso._blas import one_thread
from privasso._validation import integer, positive_float, real_array, real_float
from privasso.operators import as_operator
from privasso.problem import (
    LP_LIMIT,
    NO_CERTIFICATE,
    Certificate,
    Problem,
    ProgrammeError,
    certify,
    is_ray,
    linear_programme,
    zero_column_ray,
)
from privasso.solvers._amp import Amp, AmpState
from privasso.solvers._amp_paper import AmpPaper
from privasso.solvers._block import carry_on
from privasso.solvers._cd import coordinate_descent
from privasso.solvers._driver import LARGE_SET, Run, Verdict, iterate
from privasso.solvers._messages import describe
from privasso.solvers._solution import Solution, Status, Step, raise_on_failure
from privasso.solvers._working_set import Finish, finish

METHODS = ("auto", "amp", "amp-paper", "cd")

Callback = Callable[[AmpState], None]


def solve(
    F: Any,
    y: Any,
    lam: float,
    eta: Any = None,
    *,
    method: str = "auto",
    tol: float = 1e-8,
    max_iter: int = 1000,
    damping: float = 0.0,
    polish: bool = True,
    rng: Any = None,
    callback: Callback | None = None,
    throw: bool = True,
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
    method : {"auto", "amp", "cd", "amp-paper"}
        ``"auto"`` tries AMP where it can work and turns to coordinate descent where it does
        not. ``"amp-paper"`` is the paper's Algorithm 1, exact only to O(N^−½).
    tol : float
        Largest KKT violation, relative to λ, of a solution that counts as converged.
    max_iter : int
        Limit of AMP iterations, and of rounds of the working set.
    damping : float
        Weight on the old value in AMP, in [0, 1).
    polish : bool
        Let AMP hand its support to an exact solve on a working set (far fewer passes over F).
        False runs AMP to its own fixed point, for the study of the algorithm.
    rng : None, int or numpy.random.Generator
        For the random start of ``"amp-paper"``; nothing else is random.
    callback : callable, optional
        Called with the `AmpState` after each AMP iteration.
    throw : bool
        Raise `UnboundedError` or `NotConvergedError` on failure; False returns the
        `Solution` with its status instead.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> s = pv.Model(alpha=0.5, rho=0.1, sigma_xi=0.1).sample(n_features=400, rng=0)
    >>> eta = pv.Gram(0.05).draw(s.v, rng=1)
    >>> sol = pv.solve(s.F, s.y, 0.1, eta)
    >>> sol.status.name, sol.kkt < 1e-8, sol.gap < 1e-8
    ('CONVERGED', True, True)

    Too much noise for so little regularisation, and no minimiser exists:

    >>> sol = pv.solve(s.F, s.y, 0.1, 10 * eta, throw=False)
    >>> sol.status.name, bool(np.abs(s.F @ sol.ray).max() < 1e-9)
    ('UNBOUNDED', True)
    """
    options = _checked(method, tol, max_iter, damping)
    op = as_operator(F)
    already = op.passes
    problem = Problem.from_labels(op, y, lam, eta)
    if method == "amp-paper":
        m, n = problem.shape
        labels = real_array("y", y, shape=(m,))
        noise = np.zeros(n) if eta is None else real_array("eta", eta, shape=(n,))
        paper = AmpPaper(labels, noise, rng=rng, damping=options["damping"])
        solution = _amp_paper(problem, paper, tol=tol, max_iter=max_iter, callback=callback)
    else:
        with one_thread():
            solution = _solve(problem, method=method, polish=polish, callback=callback, **options)
    return _delivered(solution, already, throw)


def solve_problem(
    problem: Problem,
    *,
    method: str = "auto",
    tol: float = 1e-8,
    max_iter: int = 1000,
    damping: float = 0.0,
    polish: bool = True,
    callback: Callback | None = None,
    throw: bool = True,
) -> Solution:
    """Minimise a `Problem` (F, b, λ): what `solve` does once labels and noise are in b.

    Examples
    --------
    >>> import numpy as np
    >>> from privasso.problem import Problem
    >>> from privasso.solvers import solve_problem
    >>> solve_problem(Problem(np.eye(3), [3.0, -0.5, -2.0], lam=1.0)).x
    array([ 2.,  0., -1.])
    """
    options = _checked(method, tol, max_iter, damping)
    if method == "amp-paper":
        raise ValueError(
            "method 'amp-paper' needs y and eta, not only b = F.T @ y - eta; "
            "call solve(F, y, lam, eta, method='amp-paper')"
        )
    already = problem.op.passes
    with one_thread():
        solution = _solve(problem, method=method, polish=polish, callback=callback, **options)
    return _delivered(solution, already, throw)


def _delivered(solution: Solution, already: float, throw: bool) -> Solution:
    """The solution with the passes of this solve alone; raised as an error if it is a failure."""
    solution = replace(solution, n_passes=solution.n_passes - already)
    return raise_on_failure(solution) if throw else solution


def _checked(method: str, tol: float, max_iter: int, damping: float) -> dict[str, Any]:
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    damping = real_float("damping", damping)
    if not 0.0 <= damping < 1.0:
        raise ValueError(f"damping is the weight on the old value, in [0, 1), not {damping!r}")
    return {
        "tol": positive_float("tol", tol),
        "max_iter": integer("max_iter", max_iter, minimum=1),
        "damping": damping,
    }


def _solve(
    problem: Problem,
    *,
    method: str,
    tol: float,
    max_iter: int,
    damping: float,
    polish: bool,
    callback: Callback | None,
) -> Solution:
    ray = zero_column_ray(problem)
    if ray is not None:
        return _unbounded(problem, ray, "cd" if method == "auto" else method, [])
    steps: list[Step] = []
    if method == "amp" or (method == "auto" and amp_may_work(problem)):
        run = iterate(
            Amp(damping), problem, tol=tol, max_iter=max_iter, hand_over=polish, callback=callback
        )
        steps = run.steps
        solution = _after_amp(problem, run, tol=tol, polish=polish)
        if solution.status is Status.CONVERGED or solution.status is Status.UNBOUNDED:
            return solution
        if method == "amp":
            return solution
    end = coordinate_descent(problem, tol=tol, max_rounds=max_iter)
    return _finished(problem, end, "cd", steps, last_resort=True)


def amp_may_work(problem: Problem) -> bool:
    """Whether a short trial of AMP is worth its passes: both sides large, F not sparse."""
    m, n = problem.shape
    return problem.op.dense and min(m, n) >= 50


def _after_amp(problem: Problem, run: Run, *, tol: float, polish: bool) -> Solution:
    """Certify where AMP ended, after the working set has polished it if it may."""
    if run.verdict is Verdict.UNBOUNDED:
        assert run.ray is not None
        return _unbounded(problem, run.ray, "amp", run.steps)
    if run.verdict is Verdict.DIVERGED:
        return _solution(problem, run.state.x, Status.DIVERGED, "amp", run.steps, NO_CERTIFICATE)
    if polish:
        index = np.flatnonzero(run.state.x) if run.candidates is None else run.candidates
        block = None if run.candidates is None else run.state.block
        if isinstance(block, np.ndarray) and index.size >= LARGE_SET:
            carried = carry_on(problem, run.state, index, block, tol)
            if carried is not None:
                x, certificate, more = carried
                steps = run.steps + more
                return _solution(problem, x, Status.CONVERGED, "amp", steps, certificate)
        end = finish(problem, run.state.x, index, tol=tol, block=block)
        return _finished(problem, end, "amp", run.steps, last_resort=False)
    certificate = _certificate(problem, run.state.x)
    status = Status.CONVERGED if certificate.proves(tol) else Status.MAX_ITER
    return _solution(problem, run.state.x, status, "amp", run.steps, certificate)


def _finished(
    problem: Problem, end: Finish, method: str, before: list[Step], *, last_resort: bool
) -> Solution:
    steps = before + end.steps
    if end.ray is not None:
        return _unbounded(problem, end.ray, method, steps)
    status = Status.CONVERGED if end.converged else Status.MAX_ITER
    m, n = problem.shape
    if status is Status.MAX_ITER and last_resort and m * n * n <= LP_LIMIT:
        # A programme that fails proves nothing: the status stays MAX_ITER.
        with suppress(ProgrammeError):
            programme = linear_programme(problem)
            if programme.critical > problem.lam and is_ray(problem, programme.d):
                return _unbounded(problem, programme.d, method, steps)
    return _solution(problem, end.x, status, method, steps, end.certificate)


def _amp_paper(
    problem: Problem, paper: AmpPaper, *, tol: float, max_iter: int, callback: Callback | None
) -> Solution:
    run = iterate(paper, problem, tol=tol, max_iter=max_iter, hand_over=False, callback=callback)
    if run.verdict is Verdict.UNBOUNDED:
        assert run.ray is not None
        return _unbounded(problem, run.ray, paper.name, run.steps)
    status = {
        Verdict.FIXED_POINT: Status.CONVERGED,
        Verdict.DIVERGED: Status.DIVERGED,
    }.get(run.verdict, Status.MAX_ITER)
    certificate = _certificate(problem, run.state.x)
    return _solution(problem, run.state.x, status, paper.name, run.steps, certificate)


def _certificate(problem: Problem, x: np.ndarray) -> Certificate:
    w = np.zeros(problem.shape[0])
    fitted, _ = problem.op.update(x, w, 0.0, 1.0)
    return certify(problem, x, w, problem.b - fitted)


def _unbounded(problem: Problem, ray: np.ndarray, method: str, steps: list[Step]) -> Solution:
    x = np.full(problem.shape[1], np.nan)
    return _solution(problem, x, Status.UNBOUNDED, method, steps, NO_CERTIFICATE, ray)


def _solution(
    problem: Problem,
    x: np.ndarray,
    status: Status,
    method: str,
    steps: list[Step],
    certificate: Certificate,
    ray: np.ndarray | None = None,
) -> Solution:
    return Solution(
        x=x,
        status=status,
        n_iter=len(steps),
        n_passes=problem.op.passes,
        kkt=certificate.kkt,
        kkt_beyond_rounding=certificate.kkt_beyond_rounding,
        gap=certificate.gap,
        method=method,
        history=tuple(steps),
        ray=ray,
        message=describe(problem, status, method, certificate, ray),
    )
