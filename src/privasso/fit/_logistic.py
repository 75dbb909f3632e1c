"""The logistic LASSO on the best guess from a release, for standardised columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from privasso._blas import threads_for
from privasso._clock import Clock
from privasso._tuned import SPARSITY_LOSS
from privasso._types import Matrix
from privasso._validation import positive_float, real_array
from privasso.fit._charge import warn_user
from privasso.fit._choose_lambda import TimeLimitWarning
from privasso.fit._gibbs import posterior_moments
from privasso.fit._model import CoefficientPath
from privasso.fit._release_law import joint_noise
from privasso.operators import Covariates
from privasso.problem import ClippedProblem, Logistic
from privasso.programs import Release, sandwich_errors
from privasso.solvers import NotConvergedError, Solution, Status, solve_clipped_problem


class LogisticRows:
    """The live columns, centred if there is an intercept and divided by their root mean squares.

    Coefficients x refer to these columns; with an intercept the last entry is the log odds at the
    means of the columns.

    Parameters
    ----------
    rows : Covariates
        The covariates, without weights of their own.
    """

    def __init__(self, rows: Covariates) -> None:
        self.covariates = rows
        self.intercept = rows.centred
        self.n_columns = int(rows.live.sum())
        self.scale = np.sqrt(rows.squares[rows.live] / rows.total)

    @property
    def units(self) -> np.ndarray:
        """The scales of the columns, and 1 for the column of ones."""
        return np.append(self.scale, 1.0) if self.intercept else self.scale

    @cached_property
    def design(self) -> Matrix:
        """The columns as a matrix with the column of ones; sparse ones are not centred."""
        rows = self.covariates
        ones = np.ones((rows.shape[0], int(self.intercept)))
        if rows.sparse:
            scaled = rows.stored @ sp.diags_array(1.0 / self.scale)
            return sp.csr_array(sp.hstack([scaled, ones]) if self.intercept else scaled)
        Z = np.empty((rows.shape[0], self.n_columns + self.intercept))
        for span, block in rows.blocks():
            Z[span, : self.n_columns] = block[:, rows.live] / self.scale
        Z[:, self.n_columns :] = ones
        return Z

    def for_design(self, x: np.ndarray) -> np.ndarray:
        """Coefficients of `design` that give the same log odds."""
        return self._shifted(x, -1.0)

    def of_design(self, x: np.ndarray) -> np.ndarray:
        """The reverse of `for_design`."""
        return self._shifted(x, 1.0)

    def _shifted(self, x: np.ndarray, sign: float) -> np.ndarray:
        rows, n = self.covariates, self.n_columns
        if not (self.intercept and rows.sparse):
            return x
        middle = rows.mean[rows.live] / self.scale
        return np.append(x[:n], x[n] + sign * float(middle @ x[:n]))

    def log_odds(self, x: np.ndarray) -> np.ndarray:
        """Zx of all rows."""
        return self.design @ self.for_design(x)

    def products(self, r: np.ndarray) -> np.ndarray:
        """Zᵀr."""
        rows = self.covariates
        found = rows.rmatvec(r)[rows.live] / self.scale
        return np.append(found, np.sum(r)) if self.intercept else found

    def moments(self, weights: np.ndarray) -> np.ndarray:
        """Σ_μ w_μ z_μz_μᵀ."""
        found = self.covariates.moments(weights, ones=self.intercept)
        return found / np.outer(self.units, self.units)

    def in_units(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """Coefficients of all columns in their own units, and the intercept."""
        rows, n = self.covariates, self.n_columns
        coef = np.zeros(rows.shape[1])
        coef[rows.live] = x[:n] / self.scale
        return coef, float(x[n] - rows.mean @ coef) if self.intercept else 0.0


#: Largest variance of the log odds over the rows, and deviation of the intercept under the prior.
_MOST_SIGNAL, _INTERCEPT = 20.0, 2.5
#: Points about which the law is taken to be linear, and the length of the chain at all but the
#: last.
_ROUNDS, _SHORT = 6, 300
#: From this round on, steps are halved.
_HALVED = 3
#: Added to the covariance of the release, relative to its mean variance, against rounding.
_JITTER = 1e-10


@dataclass(frozen=True, eq=False)
class LogisticLaw:
    """B ~ N(g(x), H₂(x) + Σ) for a release B of labels y ~ Bernoulli(p), p = 1/(1 + e^(−zᵀx)).

    With rows z_μ of standardised columns, the column of ones included, and their weights w_μ,

        B = Σ w_μ z_μ(y_μ − ½) − noise,   g = Σ w_μ z_μ(p_μ − ½),
        H = Σ w_μ p_μ(1−p_μ) z_μz_μᵀ,    H₂ = Σ w_μ² p_μ(1−p_μ) z_μz_μᵀ.

    About any point x₀, B − g(x₀) + Hx₀ ~ N(Hx, H₂ + Σ) to first order. So the mean of the
    coefficients given B follows from the prior of `posterior_moments`, for standardised columns,
    and becomes the next x₀. There is always one, also where no labels could have given B, and a
    logistic regression on B would have no minimiser.

    Attributes
    ----------
    rows : LogisticRows
        z.
    weights : ndarray of shape (M,) or None
        w; None if all are 1.
    b : ndarray
        B, in units of standardised columns.
    noise : ndarray
        Σ, likewise.
    """

    rows: LogisticRows
    weights: np.ndarray | None = field(repr=False)
    b: np.ndarray = field(repr=False)
    noise: np.ndarray = field(repr=False)

    def guess(self) -> np.ndarray:
        """Mean of the coefficients given the release; the intercept, if there is one, is last."""
        x = np.zeros(self.b.size)
        if not x.size:
            return x
        for k in range(_ROUNDS):
            last = k == _ROUNDS - 1
            found = self._given(x, None if last else _SHORT)
            x = found if last or k < _HALVED else 0.5 * (x + found)
        return x

    def _given(self, x: np.ndarray, sweeps: int | None) -> np.ndarray:
        """Mean of the coefficients for the law that is linear about x."""
        n, H, V = self.rows.n_columns, *self._moments(x)
        V[np.diag_indices_from(V)] += _JITTER * np.trace(V) / V.shape[0]
        seen = self.b - self._expected(x) + H @ x
        with threads_for(V.shape[0] ** 3 / 3):
            solved = cho_solve(cho_factor(V, lower=True), np.column_stack([H, seen]))
            A, h = H @ solved[:, :-1], H @ solved[:, -1]
        A = 0.5 * (A + A.T)
        if not self.rows.intercept:
            return posterior_moments(A, h, _MOST_SIGNAL, sweeps=sweeps)[0]
        own, cross = A[n, n] + _INTERCEPT**-2, A[:n, n]
        mean = np.zeros(n)
        if n:
            conditional = np.ascontiguousarray(A[:n, :n] - np.outer(cross, cross) / own)
            shifted = h[:n] - cross * h[n] / own
            mean = posterior_moments(conditional, shifted, _MOST_SIGNAL, sweeps=sweeps)[0]
        return np.append(mean, (h[n] - cross @ mean) / own)

    def errors(self, x: np.ndarray) -> np.ndarray:
        """Standard errors of the coefficients that are not zero, NaN elsewhere.

        They are the roots of the diagonal of H⁻¹(H₂ + Σ)H⁻¹ over the support and the intercept:
        labels that vary around their probabilities, and privacy noise. That the support was chosen
        from the same release is not accounted for.
        """
        n, taken = self.rows.n_columns, x.copy()
        taken[n:] = 1.0
        H, middle = self._moments(x)
        try:
            return sandwich_errors(taken, H, middle)[:n]
        except np.linalg.LinAlgError:
            return np.full(n, np.nan)

    def _expected(self, x: np.ndarray) -> np.ndarray:
        """g(x)."""
        pull = expit(self.rows.log_odds(x)) - 0.5
        return self.rows.products(pull if self.weights is None else self.weights * pull)

    def _moments(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """H and H₂ + Σ at x."""
        odds = self.rows.log_odds(x)
        spread = expit(odds) * expit(-odds)
        if self.weights is None:
            H = self.rows.moments(spread)
            return H, H + self.noise
        H = self.rows.moments(self.weights * spread)
        return H, self.rows.moments(self.weights**2 * spread) + self.noise


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
        """Return the largest λ of a grid that loses at most 0.1 % of the deviance explained by p.

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
