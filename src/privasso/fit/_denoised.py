"""The LASSO on the best guess from a release, for standardised columns."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from privasso._clock import Clock
from privasso._tuned import SPARSITY_LOSS
from privasso._validation import positive_float, real_array
from privasso.fit._charge import warn_user
from privasso.fit._choose_lambda import TimeLimitWarning
from privasso.fit._model import CoefficientPath
from privasso.fit._release_law import MOST_COLUMNS, Posterior
from privasso.operators import Covariates
from privasso.problem import violations
from privasso.solvers import GramLasso, NotConvergedError, Solution, Status, solve_problems

#: The smallest λ that is tried, relative to the one above which all coefficients are zero.
_SPAN, _POINTS = 1e-3, 36
#: Points of the grid that are solved at a time.
_TOGETHER = 12
#: Why there are no coefficients, and what to do.
_LATE = (
    "The time limit was over before the coefficients were found; allow more time, or use a larger "
    "lam."
)
_COARSE = (
    "The coefficients were not found to the accuracy of tol; use a larger lam or a larger tol."
)


class Denoised:
    """min_x ½‖F(x − m)‖² + λ Σ_i s_i|x_i| for a guess m of the coefficients.

    s_i is the root mean square of a column, so that λ is a threshold for standardised columns,
    whatever their units are. The problem is the LASSO on the predictions Fm. It has a minimiser at
    every λ.

    Parameters
    ----------
    guess : Posterior
        m, and the label at the means of the columns.
    rows : Covariates
        F.
    tol : float
        Largest violation of an optimality condition, relative to λ.
    """

    def __init__(self, guess: Posterior, rows: Covariates, *, tol: float = 1e-8) -> None:
        self.guess, self.rows, self.tol = guess, rows, tol
        self._scale = np.sqrt(rows.squares[rows.live] / rows.total)
        self._coef = self._scale * guess.coef

    @cached_property
    def _columns(self) -> np.ndarray | None:
        """F for standardised columns, where there are too many for a Gram matrix."""
        m, n = self.rows.shape
        if self._scale.size <= MOST_COLUMNS or m >= n:
            return None
        Z = np.empty((self.rows.shape[0], self._scale.size))
        for span, block in self.rows.blocks():
            Z[span] = block[:, self.rows.live] / self._scale
        return Z

    @cached_property
    def _gram(self) -> np.ndarray:
        """FᵀF for standardised columns."""
        return self.rows.gram / np.outer(self._scale, self._scale)

    @cached_property
    def _lasso(self) -> GramLasso:
        return GramLasso(self._gram, min(self.rows.shape))

    def _products(self, x: np.ndarray) -> np.ndarray:
        """FᵀFx for standardised columns."""
        if self._columns is None:
            return self._gram @ x
        return self._columns.T @ (self._columns @ x)

    @cached_property
    def _slopes(self) -> np.ndarray:
        """FᵀFm for standardised columns."""
        return self._products(self._coef)

    @cached_property
    def _explained(self) -> float:
        """‖Fm‖²."""
        return float(self._coef @ self._slopes)

    def _lost(self, x: np.ndarray) -> np.ndarray:
        """‖F(x − m)‖² for columns x of coefficients."""
        off = x - self._coef[:, None]
        return np.sum(off * self._products(off), axis=0)

    @cached_property
    def largest_lam(self) -> float:
        """The λ above which all coefficients are zero."""
        return float(np.max(np.abs(self._slopes)))

    def solve(self, lam: float, *, clock: Clock | None = None) -> tuple[np.ndarray, float]:
        """Coefficients and intercept at λ."""
        lam = positive_float("lam", lam)
        x, (status,) = self._solutions(np.array([lam]), clock or Clock())
        if status is not Status.CONVERGED:
            left = violations(self._slopes - self._products(x)[:, 0], x[:, 0], lam)
            kkt, said = float(np.max(left)) / lam, _LATE if status is Status.TIME_LIMIT else _COARSE
            raise NotConvergedError(
                Solution(x[:, 0], status, 0, 0.0, kkt, kkt, math.inf, "cd", message=said)
            )
        return self._complete(x[:, 0])

    def path(self, lams: np.ndarray, *, clock: Clock | None = None) -> CoefficientPath:
        """Coefficients at each λ; NaN, with a status, where none were found."""
        lams = real_array("lams", lams, ndim=1)
        if np.min(lams) <= 0.0:
            raise ValueError("lams must be positive")
        x, status = self._solutions(lams, clock or Clock())
        both = [self._complete(column) for column in x.T]
        coef = np.stack([coef for coef, _ in both], axis=1)
        failed = np.array([one is not Status.CONVERGED for one in status])
        coef[:, failed] = np.nan
        intercept = np.where(failed, np.nan, [value for _, value in both])
        return CoefficientPath(lams, coef, intercept, status)

    def choose(self, clock: Clock | None = None) -> float:
        """Return the largest λ on a grid with ‖F(x̂ − m)‖² ≤ a thousandth of ‖Fm‖².

        Given the release, the expected squared error of coefficients x is ‖F(x − m)‖² plus a
        constant. So this is the sparsest model that predicts practically as well as the guess.
        If the clock expires before, the smallest λ solved so far is returned, with a
        `TimeLimitWarning`.
        """
        clock = clock or Clock()
        if self.largest_lam == 0.0:
            return 1.0  # at every λ all coefficients are zero
        lams = self.largest_lam * np.geomspace(1.0, _SPAN, _POINTS)
        for start in range(0, _POINTS, _TOGETHER):
            together = lams[start : start + _TOGETHER]
            x, status = self._solutions(together, clock)
            close = self._lost(x) <= SPARSITY_LOSS * self._explained
            close &= status == Status.CONVERGED
            if close.any():
                return float(together[np.argmax(close)])
            if clock.expired():
                solved = np.concatenate([lams[:start], together[status == Status.CONVERGED]])
                warn_user(
                    f"the time limit of {clock.limit:g} s ended the choice of lam; it is the "
                    "smallest of the values solved until then",
                    TimeLimitWarning,
                )
                return float(solved[-1]) if solved.size else self.largest_lam
        return float(lams[-1])

    def lost(self, lams: np.ndarray, clock: Clock) -> tuple[np.ndarray, float]:
        """Mean squares of what is lost of the predictions of the guess, and that of these."""
        x, status = self._solutions(lams, clock)
        lost, m = np.where(status == Status.CONVERGED, self._lost(x), np.inf), self.rows.shape[0]
        return lost / m, self._explained / m

    def _solutions(self, lams: np.ndarray, clock: Clock) -> tuple[np.ndarray, np.ndarray]:
        if not self.rows.live.any():
            return np.zeros((0, lams.size)), np.full(lams.size, Status.CONVERGED, dtype=object)
        if self._columns is None:
            x, solved = self._lasso.path(self._slopes, lams, tol=self.tol, clock=clock)
            other = Status.TIME_LIMIT if clock.expired() else Status.MAX_ITER
            status = [Status.CONVERGED if one else other for one in solved.tolist()]
            return x, np.array(status, dtype=object)
        many = solve_problems(
            self._columns, self._slopes[:, None], lams, tol=self.tol, throw=False,
            time_limit=clock.remaining(),
        )  # fmt: skip
        return many.x, many.status

    def _complete(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        coef = np.zeros(self.rows.shape[1])
        coef[self.rows.live] = x / self._scale
        intercept = self.guess.mean_label - float(self.rows.mean @ coef)
        return coef, intercept if self.rows.centred else 0.0
