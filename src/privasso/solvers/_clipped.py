"""`solve_clipped`: the minimiser of a clipped-residual LASSO, with a bound on its distance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from privasso._blas import one_thread
from privasso._validation import positive_float, real_array
from privasso.operators import Metered
from privasso.problem import ClippedProblem, Huber
from privasso.solvers._clipped_face import Face
from privasso.solvers._clipped_run import Run
from privasso.solvers._solution import Solution, Status, raise_on_failure


def solve_clipped(
    F: Any,
    y: Any,
    lam: float,
    eta: Any = None,
    *,
    kappa: float,
    ridge: Any,
    weights: Any = None,
    penalty_weights: Any = None,
    tol: float = 1e-12,
    x0: Any = None,
    throw: bool = True,
) -> Solution:
    """Minimise Σ_μ w_μ ℓ_κ(y_μ − f_μᵀx) + λ Σ_i ω_i|x_i| + ½xᵀQx + ηᵀx.

    ℓ_κ is the Huber loss: r²/2 for −κ ≤ r ≤ κ, κ·abs(r) − κ²/2 beyond. The minimiser x̂ exists and
    is unique. The solution comes with a proof of how close it is: ``distance`` is an upper bound
    of ‖x − x̂‖_Q that includes all rounding errors.

    Parameters
    ----------
    F, y, eta : as in `solve`.
    lam : float
        Regularisation λ ≥ 0.
    kappa : float
        The largest residual κ > 0 that is not clipped; ``numpy.inf`` clips none.
    ridge : float, array_like of shape (N,) or (N, N), or Covariance
        Q, positive definite: a multiple of the identity, a diagonal, or a whole matrix.
    weights : array_like, shape (M,), optional
        w ≥ 0; 1 by default.
    penalty_weights : array_like, shape (N,), optional
        ω ≥ 0; 1 by default. Zero leaves a column, such as an intercept, without penalty.
    tol : float
        Largest violation of an optimality condition, relative to the terms of the gradient, of a
        solution that counts as converged. Violations that rounding of x explains do not count.
    x0 : array_like, shape (N,), optional
        Where to start; zero by default.
    throw : bool
        Raise `NotConvergedError` on failure; False returns the `Solution` with its status.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> s = pv.Model(alpha=2.0, rho=0.1, sigma_xi=0.1).sample(n_features=200, rng=0)
    >>> eta = pv.Gram(0.05).draw(s.v, rng=1)
    >>> sol = pv.solve_clipped(s.F, s.y, 0.1, eta, kappa=0.2, ridge=0.1 * s.v)
    >>> sol.status.name, sol.kkt < 1e-13, sol.distance < 1e-13
    ('CONVERGED', True, True)
    """
    problem = ClippedProblem(
        F,
        y,
        lam,
        loss=Huber(kappa),
        ridge=ridge,
        eta=eta,
        weights=weights,
        penalty_weights=penalty_weights,
    )
    return solve_clipped_problem(problem, tol=tol, x0=x0, throw=throw)


def solve_clipped_problem(
    problem: ClippedProblem,
    *,
    tol: float = 1e-12,
    x0: Any = None,
    throw: bool = True,
    expired: Callable[[], bool] = lambda: False,
) -> Solution:
    """Minimise a `ClippedProblem`, with any loss.

    Parameters
    ----------
    problem : ClippedProblem
    tol, x0, throw : as in `solve_clipped`.
    expired : callable
        Asked before every step whether to stop; the status then is MAX_ITER.

    Examples
    --------
    >>> import numpy as np
    >>> from privasso.problem import ClippedProblem, Logistic
    >>> from privasso.solvers import solve_clipped_problem
    >>> F, y = np.array([[1.0], [1.0], [-1.0]]), [1, 1, 0]
    >>> problem = ClippedProblem(F, y, 0.5, loss=Logistic(), ridge=0.5)
    >>> solve_clipped_problem(problem).x.round(6)
    array([0.826418])
    """
    tol = positive_float("tol", tol)
    solution, _ = minimise_clipped(problem, starting_point(problem, x0), None, tol, expired)
    return raise_on_failure(solution) if throw else solution


def starting_point(problem: ClippedProblem, x0: Any) -> np.ndarray:
    """Return x0 as an array of its own, or zeros."""
    n = problem.shape[1]
    return np.zeros(n) if x0 is None else np.array(real_array("x0", x0, shape=(n,)))


def minimise_clipped(
    problem: ClippedProblem,
    x: np.ndarray,
    face: Face | None,
    tol: float,
    expired: Callable[[], bool],
) -> tuple[Solution, Face]:
    """Minimise from x and, if there is one, the face of a problem with the same F and curvatures.

    Returns the solution and the face on which it was found, for the next problem.
    """
    op = Metered(problem.op)
    problem = problem.with_operator(op)
    with one_thread():
        run = Run(problem, tol, expired)
        x, face, certificate = run.minimise(x, face)
    status = Status.CONVERGED if certificate.proves(tol) else Status.MAX_ITER
    found = (
        f"KKT violation {certificate.kkt:.1e} of the gradient, "
        f"at most {certificate.distance:.1e} from the minimiser in the norm of the ridge"
    )
    advice = (
        f"x is certified to be the minimiser: {found}."
        if status is Status.CONVERGED
        else f"The solver stopped before it converged: {found}. Remedies: a larger tol, or a "
        "larger ridge if columns are nearly collinear."
    )
    solution = Solution(
        x=x,
        status=status,
        n_iter=run.n_steps,
        n_passes=op.passes,
        kkt=certificate.kkt,
        kkt_beyond_rounding=certificate.kkt_beyond_rounding,
        gap=certificate.gap,
        method="clipped",
        history=tuple(run.history),
        message=advice,
        distance=certificate.distance,
    )
    return solution, face
