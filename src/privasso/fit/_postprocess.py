"""From a release to coefficients, as functions of the covariates and b alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from privasso._clock import Clock
from privasso._threads import interruptible
from privasso._validation import positive_float, real_array
from privasso.fit._model import CoefficientPath
from privasso.fit._release_law import uncentred
from privasso.noise import Covariance, Diagonal, Factored
from privasso.operators import Covariates, Operator, as_operator, square_root
from privasso.problem import LP_LIMIT, Problem, critical_lambda, rounding_floor, violations
from privasso.programs import Release
from privasso.solvers import (
    NotConvergedError,
    Solution,
    Status,
    UnboundedError,
    solve_problem,
    solve_problems,
)

#: Eigenvalues of a correlation matrix below this part of the largest are rounding.
_RANK = 1e-12


def check_shape(release: Release, rows: Covariates) -> None:
    """Refuse covariates of another shape than those that the release was made from."""
    expected = (release.n_rows, release.b.size)
    if rows.shape != expected:
        raise ValueError(
            f"X has shape {rows.shape} but the release was made from {expected}; "
            "pass the covariates of the fit"
        )


class Postprocess:
    """The solving half of a fit: a release and the covariates it was made from.

    It minimises ½xᵀGx − bᵀx + λ‖x‖₁ with the weighted Gram matrix G of the rows.

    Parameters
    ----------
    release : Release
        The release.
    rows : Covariates
        The covariates that it was made from.
    weights : ndarray of shape (M,) or None
        Weights of the rows in the release; see `row_weights`.
    method, tol
        As in `solve`.
    """

    def __init__(
        self,
        release: Release,
        rows: Covariates,
        *,
        weights: np.ndarray | None = None,
        method: str = "auto",
        tol: float = 1e-8,
    ) -> None:
        check_shape(release, rows)
        if rows.centred != release.fit_intercept:
            raise ValueError("the covariates must be centred exactly when the label sum is there")
        self.release = release
        self.method, self.tol = method, tol
        rows, b, self.covariance = _in_own_centre(release, rows, weights)
        self.b = b[rows.live]
        self.rows, self.squares = rows, rows.squares[rows.live]
        root = square_root(rows) if method != "amp" else None
        self.reduced = root is not None
        self.op: Operator | None = None
        if rows.live.any():
            self.op = as_operator(rows.operator() if root is None else root)

    @property
    def largest_lam(self) -> float:
        """The λ above which all coefficients are zero."""
        return float(np.max(np.abs(self.b), initial=0.0))

    @property
    def full_rank(self) -> bool:
        """Whether F is known to have full column rank, and so a minimiser at every λ."""
        return self.reduced

    def solve(self, lam: float, *, clock: Clock | None = None) -> tuple[np.ndarray, float]:
        """Coefficients and intercept at λ; if no minimiser exists, the error names a larger λ."""
        clock = clock or Clock()
        lam = positive_float("lam", lam)
        if self.op is None:
            return self._complete(np.zeros(0))
        if self.reduced:
            x, _, holds = self._checked(np.array([lam]), clock)
            if holds.all():
                return self._complete(x[:, 0])
            self._use_all_rows()
        problem = Problem(self.op, self.b, lam, squares=self.squares)
        solution = solve_problem(
            problem, method=self.method, tol=self.tol, throw=False, time_limit=clock.remaining()
        )
        if solution.status is Status.UNBOUNDED:
            raise UnboundedError(replace(solution, message=self._advice(solution, lam)))
        if solution.status is not Status.CONVERGED:
            raise NotConvergedError(solution)
        return self._complete(solution.x)

    def path(self, lams: np.ndarray, *, clock: Clock | None = None) -> CoefficientPath:
        """Coefficients at each λ; NaN, with a status, where no minimiser exists or was found."""
        clock = clock or Clock()
        lams = real_array("lams", lams, ndim=1)
        if np.min(lams) <= 0.0:
            raise ValueError("lams must be positive")
        if self.reduced:
            x, status, holds = self._checked(lams, clock)
            if not holds.all():
                self._use_all_rows()
                x[:, ~holds], status[~holds] = self.solutions(lams[~holds], clock=clock)
        else:
            x, status = self.solutions(lams, clock=clock)
        coef = np.zeros((self.rows.shape[1], lams.size))
        coef[self.rows.live] = x
        coef[:, [s is not Status.CONVERGED for s in status]] = np.nan
        intercept = np.array([self._intercept(c) for c in coef.T])
        return CoefficientPath(lams, coef, intercept, status)

    def solutions(
        self, lams: np.ndarray, *, clock: Clock | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients of the live columns and statuses for all λ at once."""
        clock = clock or Clock()
        if self.op is None:
            return np.zeros((0, lams.size)), np.full(lams.size, Status.CONVERGED, dtype=object)
        if self.reduced or self.method == "auto":
            many = solve_problems(
                self.op,
                self.b[:, None],
                lams,
                tol=self.tol,
                throw=False,
                time_limit=clock.remaining(),
            )
            return many.x, many.status
        problem = Problem(self.op, self.b, float(lams[0]), squares=self.squares)
        found = [
            solve_problem(
                problem.with_lam(lam),
                method=self.method,
                tol=self.tol,
                throw=False,
                time_limit=clock.remaining(),
            )
            for lam in lams.tolist()
        ]
        return (
            np.stack([s.x for s in found], axis=1),
            np.array([s.status for s in found], dtype=object),
        )

    def gram_and_inverse(self, support: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """F_SᵀF_S and its inverse for live columns S; None if they are collinear."""
        assert self.op is not None
        norms = np.sqrt(self.squares[support])
        block = self.op.columns(support)
        block = np.asarray(block.todense() if hasattr(block, "todense") else block) / norms
        correlations, scale = block.T @ block, np.outer(norms, norms)
        try:
            interruptible(lambda: np.linalg.cholesky(correlations))
        except np.linalg.LinAlgError:
            return None
        return correlations * scale, interruptible(lambda: np.linalg.inv(correlations)) / scale

    def _checked(self, lams: np.ndarray, clock: Clock) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Solutions from the square root, and which of them are optimal for all rows of F.

        The square root has the rounding errors of the Gram matrix, so one pass over F checks x.
        """
        x, statuses = self.solutions(lams, clock=clock)
        holds = np.array([status is Status.CONVERGED for status in statuses])
        fitted = self.rows.normal_products(np.where(holds, x, 0.0))
        norms = np.sqrt(self.squares)
        for k in np.flatnonzero(holds):
            length = np.sqrt(max(float(x[:, k] @ fitted[:, k]), 0.0))
            rounding = rounding_floor(self.b, norms, length)
            violation = violations(self.b - fitted[:, k], x[:, k], float(lams[k]))
            holds[k] = np.all(violation <= np.maximum(self.tol * lams[k], rounding))
        return x, statuses, holds

    def _use_all_rows(self) -> None:
        self.reduced = False
        self.op = as_operator(self.rows.operator())

    def needed_lambda(self, ray: np.ndarray | None = None) -> tuple[float, bool]:
        """Smallest λ with a minimiser, and whether it is exact or only a lower bound."""
        assert self.op is not None
        m, n = self.op.shape
        if m * n * n <= LP_LIMIT:
            return critical_lambda(self.op, self.b), True
        assert ray is not None
        return float(self.b @ ray) / float(np.abs(ray).sum()), False

    def _advice(self, solution: Solution, lam: float) -> str:
        needed, exact = self.needed_lambda(solution.ray)
        bound = "above" if exact else "well above"
        return (
            f"there is no minimiser at lam = {lam:.6g}: the noise in the release exceeds it in a "
            f"direction that changes no prediction; lam must be {bound} {needed:.6g}"
        )

    def _complete(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        coef = np.zeros(self.rows.shape[1])
        coef[self.rows.live] = x
        return coef, self._intercept(coef)

    def _intercept(self, coef: np.ndarray) -> float:
        if not self.rows.centred:
            return 0.0
        return float(self.release.mean_label - self.rows.mean @ coef)


def _in_own_centre(
    release: Release, rows: Covariates, weights: np.ndarray | None
) -> tuple[Covariates, np.ndarray, Covariance]:
    """The rows with the weights of the release, centred by these, and b for them with its noise.

    A release is centred by the means m of the rows it was calibrated for. With the weighted means
    m_w of shrunk rows and the noisy label sum s, b_w = b − (m_w − m)s, and the noise of s is added
    to that of b.
    """
    b = uncentred(release, rows, weights)
    own = rows if weights is None or weights is rows.weights else rows.reweighted(weights)
    live = np.flatnonzero(own.live)
    covariance = release.covariance.restricted(live) if live.size else Diagonal([])
    if own is rows or release.label_sum is None or release.sigma_sum is None:
        return own, b, covariance
    shift = np.where(own.live, own.mean - rows.mean, 0.0)
    far = release.sigma_sum * shift[live]
    noise = covariance.matrix() + np.outer(far, far) if live.size else np.zeros((0, 0))
    return own, b - release.label_sum * shift, _factored(noise)


def _factored(matrix: np.ndarray) -> Covariance:
    """The covariance of noise that may lie in a subspace."""
    if matrix.size == 0:
        return Diagonal([])
    scale = np.sqrt(np.diag(matrix))
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    kept = values > _RANK * values[-1]
    return Factored(scale[:, None] * vectors[:, kept] * np.sqrt(values[kept]))
