"""The logistic LASSO on the best guess from a release, for standardised columns."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.special import expit

from privasso._clock import Clock
from privasso._tuned import SPARSITY_LOSS
from privasso._validation import positive_float, real_array
from privasso.fit._charge import warn_user
from privasso.fit._choose_lambda import TimeLimitWarning
from privasso.fit._logistic_law import LogisticLaw, LogisticRows
from privasso.fit._model import CoefficientPath
from privasso.fit._release_law import joint_noise
from privasso.operators import Covariates
from privasso.problem import ClippedProblem, Logistic
from privasso.programs import Release
from privasso.solvers import NotConvergedError, Solution, Status, solve_clipped_problem

#: The smallest λ that is tried, relative to the one above which all coefficients are zero.
_SPAN, _POINTS = 1e-3, 36
#: A ridge on standardised columns, per row, that only decides between collinear columns.
_RIDGE = 1e-9


class LogisticLasso:
    """min_x Σ_μ [log(1 + e^{u_μ}) − p_μu_μ] + λ Σ_i s_i|x_i|, u = Fx + x₀, for probabilities p.

    p are those of the best guess of the coefficients from a release, see `LogisticLaw`; s_i is the
    root mean square of a column. So λ is the 1/C of scikit-learn's ``LogisticRegression`` on
    standardised columns, whatever their units are. There is a minimiser at every λ.

    Parameters
    ----------
    release : Release
        Of labels 0 and 1.
    rows : Covariates
        F.
    weights : ndarray of shape (M,) or None
        Weights of the rows in the release.
    tol : float
        Largest violation of an optimality condition, relative to the terms of the gradient.
    """

    def __init__(
        self, release: Release, rows: Covariates, weights: np.ndarray | None, *, tol: float = 1e-8
    ) -> None:
        self.rows, self.tol = LogisticRows(rows), tol
        self.law = LogisticLaw(self.rows, weights, *_standardised(release, self.rows))

    @cached_property
    def guess(self) -> np.ndarray:
        """The best guess of the coefficients of standardised columns, intercept last."""
        return self.law.guess()

    @cached_property
    def _fitted(self) -> np.ndarray:
        """The probabilities of the guess."""
        return expit(self.rows.log_odds(self.guess))

    @cached_property
    def _empty(self) -> float:
        """The probability of a model without coefficients."""
        return float(np.mean(self._fitted)) if self.rows.intercept else 0.5

    @cached_property
    def largest_lam(self) -> float:
        """The λ above which all coefficients are zero."""
        slopes = self.rows.products(self._fitted - self._empty)[: self.rows.n_columns]
        return float(np.max(np.abs(slopes), initial=0.0))

    @cached_property
    def _problem(self) -> ClippedProblem:
        Z = self.rows.design
        penalised = np.ones(Z.shape[1])
        penalised[self.rows.n_columns :] = 0.0
        # Labels of zero have the loss log(1 + eᵘ); the linear term brings the probabilities in.
        return ClippedProblem(
            Z,
            np.zeros(Z.shape[0]),
            0.0,
            loss=Logistic(),
            ridge=_RIDGE * Z.shape[0],
            eta=-(Z.T @ self._fitted),
            penalty_weights=penalised,
        )

    def solve(self, lam: float, *, clock: Clock | None = None) -> tuple[np.ndarray, float]:
        """Coefficients and intercept at λ."""
        lam = positive_float("lam", lam)
        if not self.rows.n_columns:
            return self.rows.in_units(self.guess)
        found = self._solved(lam, None, clock or Clock())
        if found.status is not Status.CONVERGED:
            raise NotConvergedError(found)
        return self.rows.in_units(self.rows.of_design(found.x))

    def path(self, lams: np.ndarray, *, clock: Clock | None = None) -> CoefficientPath:
        """Coefficients at each λ; NaN, with a status, where none were found."""
        lams, clock = real_array("lams", lams, ndim=1), clock or Clock()
        if np.min(lams) <= 0.0:
            raise ValueError("lams must be positive")
        n = self.rows.covariates.shape[1]
        coef, intercept = np.full((n, lams.size), np.nan), np.full(lams.size, np.nan)
        if not self.rows.n_columns:
            coef[:], intercept[:] = 0.0, self.solve(1.0)[1]
            return CoefficientPath(
                lams, coef, intercept, np.full(lams.size, Status.CONVERGED, dtype=object)
            )
        status, start = np.empty(lams.size, dtype=object), None
        for k in np.argsort(-lams, kind="stable").tolist():
            found = self._solved(float(lams[k]), start, clock)
            status[k], start = found.status, found.x
            if found.status is Status.CONVERGED:
                coef[:, k], intercept[k] = self.rows.in_units(self.rows.of_design(found.x))
        return CoefficientPath(lams, coef, intercept, status)

    def choose(self, clock: Clock | None = None) -> float:
        """Return the largest λ on a grid that loses at most ¼ % of the deviance explained by p.

        The loss above is the expected deviance of new labels if p are their probabilities, and
        least at the guess itself. It grows with λ, so the grid is bisected. If the clock expires
        before, the largest λ that is known to do is returned, with a `TimeLimitWarning`.
        """
        clock = clock or Clock()
        if self.largest_lam == 0.0:
            return 1.0  # at every λ all coefficients are zero
        lams = self.largest_lam * np.geomspace(1.0, _SPAN, _POINTS)
        best = self._deviance(self.rows.log_odds(self.guess))
        odds = float(np.log(self._empty) - np.log1p(-self._empty))
        enough = best + SPARSITY_LOSS * (self._deviance(np.full(self._fitted.size, odds)) - best)
        low, high, start = 0, _POINTS - 1, None
        while high > low:
            middle = (low + high) // 2
            found = self._solved(float(lams[middle]), start, clock)
            if clock.expired():
                warn_user(
                    f"the time limit of {clock.limit:g} s ended the choice of lam; a larger one "
                    "may predict as well",
                    TimeLimitWarning,
                )
                break
            start = found.x
            close = self._deviance(self.rows.design @ found.x) <= enough
            low, high = (low, middle) if close else (middle + 1, high)
        return float(lams[high])

    def errors(self, coef: np.ndarray, intercept: float) -> np.ndarray:
        """Standard errors of coefficients that are not zero, privacy noise included."""
        rows = self.rows.covariates
        x = self.rows.scale * coef[rows.live]
        if self.rows.intercept:
            x = np.append(x, intercept + rows.mean @ coef)
        found = np.full(coef.size, np.nan)
        found[rows.live] = self.law.errors(x) / self.rows.scale
        return found

    def _deviance(self, odds: np.ndarray) -> float:
        return float(np.sum(np.logaddexp(0.0, odds) - self._fitted * odds))

    def _solved(self, lam: float, start: np.ndarray | None, clock: Clock) -> Solution:
        return solve_clipped_problem(
            self._problem.with_lam(lam), tol=self.tol, x0=start, throw=False, expired=clock.expired
        )


def _standardised(release: Release, rows: LogisticRows) -> tuple[np.ndarray, np.ndarray]:
    """The release and its covariance in units of standardised columns, the label sum last."""
    live = rows.covariates.live
    noise = release.covariance.restricted(np.flatnonzero(live)).matrix()
    b = release.b[live]
    if release.label_sum is not None and release.sigma_sum is not None:
        b, noise = np.append(b, release.label_sum), joint_noise(noise, release.sigma_sum)
    return b / rows.units, noise / np.outer(rows.units, rows.units)
