"""The LASSO on the best guess from a release, for standardised columns."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from privasso._blas import one_thread
from privasso._clock import Clock
from privasso._tuned import SPARSITY_LOSS
from privasso._validation import positive_float, real_array
from privasso.fit._charge import warn_user
from privasso.fit._choose_lambda import TimeLimitWarning
from privasso.fit._model import CoefficientPath
from privasso.fit._posterior import Posterior
from privasso.operators import Covariates
from privasso.solvers import Status, solve, solve_problems

#: Eigenvalues of the correlation matrix below this part of the largest are rounding.
_RANK = 1e-12
#: The smallest λ that is tried, relative to the one above which all coefficients are zero.
_SPAN, _POINTS = 1e-3, 36
#: Points of the grid that are solved at a time.
_TOGETHER = 12


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

    @cached_property
    def _root(self) -> np.ndarray:
        """R with RᵀR = FᵀF for standardised columns; as many rows as the rank, or F itself."""
        m, n = self.rows.shape
        if m < n and self.rows.weights is None:
            R = np.empty((m, self._scale.size))
            for span, block in self.rows.blocks():
                R[span] = block[:, self.rows.live] / self._scale
            return R
        G = self.rows.gram / np.outer(self._scale, self._scale)
        with one_thread():
            values, vectors = np.linalg.eigh(G)
        kept = values > _RANK * values[-1]
        return np.ascontiguousarray((vectors[:, kept] * np.sqrt(values[kept])).T)

    @cached_property
    def _fitted(self) -> np.ndarray:
        """R·m: the predictions of the guess, in the coordinates of R."""
        return self._root @ (self._scale * self.guess.coef)

    @cached_property
    def largest_lam(self) -> float:
        """The λ above which all coefficients are zero."""
        return float(np.max(np.abs(self._root.T @ self._fitted)))

    def solve(self, lam: float, *, clock: Clock | None = None) -> tuple[np.ndarray, float]:
        """Coefficients and intercept at λ."""
        lam, limit = positive_float("lam", lam), (clock or Clock()).remaining()
        if not self.rows.live.any():
            return self._complete(np.zeros(0))
        found = solve(self._root, self._fitted, lam, tol=self.tol, time_limit=limit)
        return self._complete(found.x)

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
        total = float(self._fitted @ self._fitted)
        for start in range(0, _POINTS, _TOGETHER):
            together = lams[start : start + _TOGETHER]
            x, status = self._solutions(together, clock)
            lost = np.sum((self._root @ x - self._fitted[:, None]) ** 2, axis=0)
            close = (lost <= SPARSITY_LOSS * total) & (status == Status.CONVERGED)
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
        lost = np.sum((self._root @ x - self._fitted[:, None]) ** 2, axis=0) / self.rows.shape[0]
        whole = float(self._fitted @ self._fitted) / self.rows.shape[0]
        return np.where(status == Status.CONVERGED, lost, np.inf), whole

    def _solutions(self, lams: np.ndarray, clock: Clock) -> tuple[np.ndarray, np.ndarray]:
        if not self.rows.live.any():
            return np.zeros((0, lams.size)), np.full(lams.size, Status.CONVERGED, dtype=object)
        b = (self._root.T @ self._fitted)[:, None]
        many = solve_problems(
            self._root, b, lams, tol=self.tol, throw=False, time_limit=clock.remaining()
        )
        return many.x, many.status

    def _complete(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        coef = np.zeros(self.rows.shape[1])
        coef[self.rows.live] = x / self._scale
        intercept = self.guess.mean_label - float(self.rows.mean @ coef)
        return coef, intercept if self.rows.centred else 0.0
