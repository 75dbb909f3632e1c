"""The minimiser of clipped-residual LASSOs, one or many on one F, with a bound on its distance."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import ArrayLike

from privasso._blas import one_thread
from privasso._types import MatrixLike
from privasso._validation import positive_float, real_array
from privasso.noise import Covariance
from privasso.operators import Metered
from privasso.problem import ClippedProblem, Huber
from privasso.solvers._clipped_face import Face
from privasso.solvers._clipped_run import Run
from privasso.solvers._many import Solutions
from privasso.solvers._solution import Solution, Status, raise_on_failure


def solve_clipped(
    F: MatrixLike,
    y: ArrayLike,
    lam: float,
    eta: ArrayLike | None = None,
    *,
    kappa: float,
    ridge: ArrayLike | Covariance,
    weights: ArrayLike | None = None,
    penalty_weights: ArrayLike | None = None,
    tol: float = 1e-12,
    x0: ArrayLike | None = None,
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
    x0: ArrayLike | None = None,
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


def starting_point(problem: ClippedProblem, x0: ArrayLike | None) -> np.ndarray:
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


def solve_clipped_many(
    problem: ClippedProblem,
    etas: ArrayLike | None = None,
    lams: ArrayLike | None = None,
    *,
    tol: float = 1e-12,
    x0: ArrayLike | None = None,
    throw: bool = True,
    expired: Callable[[], bool] = lambda: False,
) -> Solutions:
    """Minimise a `ClippedProblem` for K noise vectors, K values of λ, or K pairs of both.

    Each problem starts from the minimiser of the one before, with the columns that it read and
    with its matrix of second derivatives, which changes only by the rows that are clipped in one
    of the two and not in the other. A path in λ is fastest from large to small values.

    Parameters
    ----------
    problem : ClippedProblem
        Gives everything but what varies.
    etas : array_like, shape (N, K), optional
        Noise vectors; that of the problem by default.
    lams : array_like, shape (K,), optional
        Values of λ; that of the problem by default.
    tol, throw : as in `solve_clipped`.
    x0 : array_like, shape (N,), optional
        Where the first problem starts.
    expired : callable
        Asked before every step whether to stop.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> from privasso.problem import ClippedProblem, Huber
    >>> from privasso.solvers import solve_clipped_many
    >>> s = pv.Model(alpha=2.0).sample(n_features=100, rng=0)
    >>> problem = ClippedProblem(s.F, s.y, 0.1, loss=Huber(0.2), ridge=0.1 * s.v)
    >>> many = solve_clipped_many(problem, pv.Gram(0.05).draw(s.v, rng=1, size=8))
    >>> many.x.shape, bool((many.distance < 1e-13).all())
    ((100, 8), True)
    >>> solve_clipped_many(problem, lams=[1.0, 0.1]).x.shape
    (100, 2)
    """
    tol = positive_float("tol", tol)
    problems = list(_problems(problem, etas, lams))
    x, face = starting_point(problem, x0), None
    found: list[Solution] = []
    for one in problems:
        solution, face = minimise_clipped(one, x, _fitting(face, x), tol, expired)
        found.append(raise_on_failure(solution) if throw else solution)
        x = solution.x
    return Solutions(
        x=np.stack([one.x for one in found], axis=1),
        status=np.array([one.status for one in found], dtype=object),
        kkt=np.array([one.kkt for one in found]),
        kkt_beyond_rounding=np.array([one.kkt_beyond_rounding for one in found]),
        gap=np.array([one.gap for one in found]),
        n_iter=np.array([one.n_iter for one in found]),
        messages={k: s.message for k, s in enumerate(found) if s.status is not Status.CONVERGED},
        distance=np.array([one.distance for one in found]),
    )


def _problems(
    problem: ClippedProblem, etas: ArrayLike | None, lams: ArrayLike | None
) -> Iterable[ClippedProblem]:
    n = problem.shape[1]
    columns = None if etas is None else real_array("etas", etas, shape=(n, None)).T
    values = None if lams is None else real_array("lams", lams, ndim=1)
    given = values if columns is None else columns
    if given is None:
        raise ValueError("pass etas, lams or both")
    if values is not None and len(given) != len(values):
        raise ValueError(f"lams has {len(values)} entries for {len(given)} columns of etas")
    for k in range(len(given)):
        one = problem if columns is None else problem.with_eta(columns[k])
        yield one if values is None else one.with_lam(float(values[k]))


def _fitting(face: Face | None, x: np.ndarray) -> Face | None:
    """The face of the last problem, unless most of its columns are of no use by now."""
    if face is None or face.whole:
        return face
    return face if face.index.size <= 4 * max(64, int(np.count_nonzero(x))) else None
