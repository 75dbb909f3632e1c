"""The law of a release given the coefficients of a logistic regression, and the reverse."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from privasso._blas import threads_for
from privasso._types import Matrix
from privasso.fit._gibbs import posterior_moments
from privasso.operators import Covariates
from privasso.programs import sandwich_errors


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
