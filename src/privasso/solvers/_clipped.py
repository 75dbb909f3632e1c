"""The minimiser of a clipped-residual LASSO, with a bound on its distance.

Working sets grow until no column violates its condition; corrections in twice the working precision
and a certificate follow.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from privasso._blas import one_thread
from privasso._types import MatrixLike
from privasso._validation import positive_float, real_array
from privasso.noise import Covariance
from privasso.operators import Metered
from privasso.problem import (
    ClippedCertificate,
    ClippedProblem,
    Huber,
    certain_curvature,
    certify_clipped,
    sharpened,
    smallest_subgradient,
    undecided_columns,
)
from privasso.solvers import _tuned as tuned
from privasso.solvers._clipped_face import Face, cholesky
from privasso.solvers._gram import submatrix
from privasso.solvers._solution import Solution, Status, Step, raise_on_failure


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
    tol, n = positive_float("tol", tol), problem.shape[1]
    x = np.zeros(n) if x0 is None else np.array(real_array("x0", x0, shape=(n,)))
    op = Metered(problem.op)
    problem = problem.with_operator(op)
    with one_thread():
        run = _Run(problem, tol, expired)
        x, certificate = run.minimise(x)
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
    return raise_on_failure(solution) if throw else solution


class _Run:
    """One solve: rounds of working sets, then corrections in twice the working precision."""

    def __init__(self, problem: ClippedProblem, tol: float, expired: Callable[[], bool]) -> None:
        self.problem, self.tol, self.expired = problem, tol, expired
        self.history: list[Step] = []
        self.n_steps = 0

    def minimise(self, x: np.ndarray) -> tuple[np.ndarray, ClippedCertificate]:
        """Minimise from x; certify; where the certificate fails, try once more from there."""
        tol = self.tol
        x, face = self._grow(x, None, tol)
        x, certificate = self._correct(x, face)
        for _ in range(tuned.CLIPPED_RETRIES):
            if certificate.proves(self.tol) or self.expired():
                break
            tol *= 1e-2
            again, face = self._grow(x, face, tol)
            again, other = self._correct(again, face)
            if other.distance < certificate.distance:
                x, certificate = again, other
        return x, self._sharpen(x, face, certificate)

    def _grow(self, x: np.ndarray, face: Face | None, tol: float) -> tuple[np.ndarray, Face]:
        """Minimise over a working set, check all columns in one pass, add violators, repeat."""
        problem = self.problem
        n = problem.shape[1]
        cautious = face is None and not x.any()
        needed = (x != 0) | (problem.thresholds == 0)
        worst = 1.0
        if face is None:
            excess, gain = self._excess(x)
            worst = float(excess.max())
            room = max(_room(n), int(needed.sum()))
            chosen = needed | _largest(gain, ~needed, room)
            chosen[0] |= not chosen.any()  # a face has at least one column, also where x = 0
            face = Face(problem, np.flatnonzero(chosen))
        elif np.any(needed & ~_members(face, n)):
            face = face.with_columns(problem, np.flatnonzero(needed & ~_members(face, n)))
        for _ in range(tuned.CLIPPED_ROUNDS):
            # Early rounds need not be exact, as the set is not the right one yet.
            inner = 0.1 * tol if face.whole else max(0.1 * tol, 1e-3 * worst)
            x = self._minimise(x, face, inner, cautious=cautious)
            cautious = False
            if face.whole:
                break
            excess, gain = self._excess(x)
            worst = float(excess.max())
            self._note(x, face, worst)
            wrong = ~_members(face, n) & (excess > 0.1 * tol)
            if self.expired():
                break
            if not wrong.any():  # all but sure: what is left to check, the certificate does
                if worst > 0.1 * tol:
                    x = self._minimise(x, face, 0.1 * tol)
                break
            more = _largest(gain, wrong, max(_room(n), face.index.size))
            face = face.with_columns(problem, np.flatnonzero(more))
        return x, face

    def _minimise(
        self, x: np.ndarray, face: Face, tol: float, *, cautious: bool = False
    ) -> np.ndarray:
        """Minimise on the face."""
        result = face.minimise(
            self.problem, x[face.index], tol, cautious=cautious, expired=self.expired
        )
        self.n_steps += result.n_steps
        x = np.zeros_like(x)
        x[face.index] = result.x
        return x

    def _excess(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Violations beyond rounding relative to the gradient, and what a step on each gains."""
        gradient, scale = self.problem.gradient(x)
        size = np.abs(smallest_subgradient(gradient, x, self.problem.thresholds))
        beyond = size > self.problem.rounding_floor(x)
        excess = np.divide(size, scale, out=np.zeros_like(size), where=beyond)
        return excess, size / np.sqrt(self.problem.steepness)

    def _correct(self, x: np.ndarray, face: Face) -> tuple[np.ndarray, ClippedCertificate]:
        """Newton steps on the support with the gradient in twice the working precision."""
        problem = self.problem
        certificate = self._certify(x, face)
        here = x[face.index]
        active = np.flatnonzero((here != 0) | (problem.thresholds[face.index] == 0))
        penalised = problem.thresholds[face.index[active]] > 0
        solve = None
        for turn in range(tuned.CLIPPED_CORRECTIONS):
            self._note(x, face, certificate.kkt)
            # After the first correction, rounding of x may be all that is left: an eighth of the
            # floor, as each entry of x is off by at most half its last digit.
            floor = problem.rounding_floor(x) / 8 if turn else 0.0
            floor = np.maximum(floor, certificate.rounding)
            explained = bool(np.all(np.abs(certificate.residual) <= floor))
            enough = explained or certificate.kkt <= tuned.CLIPPED_ENOUGH
            if enough or active.size == 0 or self.expired():
                break
            if solve is None:
                solve = _solver(face, problem, problem.curvature(certificate.fitted.value), active)
            if solve is None:
                break
            self.n_steps += 1
            moved = x[face.index[active]] - solve(certificate.residual[face.index[active]])
            if np.any(penalised & (moved * x[face.index[active]] <= 0)):
                break
            better = x.copy()
            better[face.index[active]] = moved
            other = self._certify(better, face)
            improved = other.distance < 0.5 * certificate.distance
            if other.distance < certificate.distance:
                x, certificate = better, other
            if not improved:
                break
        return x, certificate

    def _sharpen(
        self, x: np.ndarray, face: Face, certificate: ClippedCertificate
    ) -> ClippedCertificate:
        """Use the curvature of the rows too, where all that matters happens on the face."""
        problem = self.problem
        undecided = undecided_columns(problem, x, certificate)
        inside = undecided[face.index]
        n_inside = int(inside.sum())
        if n_inside < undecided.sum() or not 0 < n_inside <= tuned.SHARPEN_COLUMNS:
            return certificate
        if not problem.op.exact_columns:
            return certificate
        K = face.hessian(problem, certain_curvature(problem, certificate))
        take = np.flatnonzero(inside)
        own = submatrix(K, take)
        return sharpened(certificate, face.index[take], own, face.uncertainty[take])

    def _certify(self, x: np.ndarray, face: Face) -> ClippedCertificate:
        """Certify x, whose support lies in the face."""
        copied = self.problem.op.exact_columns and not face.whole
        fitted = face.op.matvec_enclosed(x[face.index]) if copied else None
        return certify_clipped(self.problem, x, fitted)

    def _note(self, x: np.ndarray, face: Face, worst: float) -> None:
        size = face.index.size / self.problem.shape[0]
        self.history.append(Step("working set", int(np.count_nonzero(x)), worst, size))


def _solver(
    face: Face, problem: ClippedProblem, d: np.ndarray, active: np.ndarray
) -> Callable[[np.ndarray], np.ndarray] | None:
    """The solution of H_AA p = r for columns of any scale, or None where H_AA is singular."""
    H = face.hessian(problem, d)
    scale = np.sqrt(np.diag(H))
    factor = cholesky(H / scale / scale[:, None], active)
    if factor is None:
        return None
    own = scale[active]
    return lambda r: factor.solve(r / own) / own


def _room(n: int) -> int:
    """Columns of a first working set: so many that FᵀDF on them costs about a pass over F."""
    return max(16, int(np.sqrt(8 * n)))


def _members(face: Face, n: int) -> np.ndarray:
    inside = np.zeros(n, dtype=bool)
    inside[face.index] = True
    return inside


def _largest(gain: np.ndarray, among: np.ndarray, room: int) -> np.ndarray:
    """Which entries with a positive gain among those given are the `room` largest."""
    candidates = np.flatnonzero(among & (gain > 0))
    if candidates.size > room:
        candidates = candidates[np.argpartition(gain[candidates], -room)[-room:]]
    chosen = np.zeros(gain.size, dtype=bool)
    chosen[candidates] = True
    return chosen
