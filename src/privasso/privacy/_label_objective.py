"""Objective perturbation for labels: noise in proportion to a residual, not to a label.

In coordinates in which the noise Σ₀ of the release is the identity, rows g_μ = √w_μ Σ₀^(−½) f_μ
have a length of at most 1. The mechanism publishes the minimiser û of

    Σ_μ ℓ_κ(√w_μ (y_μ − c) − g_μᵀu) + (Λ/2)‖u‖² + ηᵀu,   η ~ N(0, σ²I).

Its optimality condition is Λû + η = Σ_μ ψ_μ g_μ, ψ_μ the clipped residuals. With public rows

    b = (GᵀG + Λ)û = Gᵀ(√w(y − c)) − η − Σ_μ (r_μ − ψ_μ) g_μ

is computed from û alone, r_μ the residuals. Where none is clipped, it is the product of rows and
labels with Gaussian noise of deviation σ ∝ κ, against the range of the labels where the products
themselves are released. So everything that uses such a release works for it too.

Where residuals are clipped the last entry of b is about the median of the labels rather than their
mean. A noisy mean of the labels then corrects it; see `Level`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np

from privasso.noise import Covariance
from privasso.operators import BlockCovariates, Covariates
from privasso.privacy._calibration import calibrate_objective
from privasso.privacy._kind import Calibration
from privasso.privacy._label_level import FromMean, Level
from privasso.privacy._label_mechanism import (
    LabelBudget,
    LabelMechanism,
    check_units,
    why_infinite,
)
from privasso.privacy._label_rows import LabelMap, LabelRows, as_release
from privasso.privacy._label_settings import LABEL_RIDGE, LARGEST_KAPPA, default_kappa
from privasso.privacy._release import Release
from privasso.privacy._row_weights import row_weights
from privasso.problem import Huber
from privasso.queries import Ask, ObjectiveNoise, PerturbedMinimiser

#: Values of t to choose from, relative to ε, and the one without columns to choose it for.
_RIDGES, _RIDGE = (0.02, 0.05, 0.1, 0.2, 0.4), LABEL_RIDGE
#: Rows are whitened to this length at most.
_RADIUS = 1.0


@dataclass(frozen=True)
class LabelObjective(LabelMechanism):
    """The minimiser of a perturbed objective.

    Attributes
    ----------
    budget : LabelBudget
        ε, δ and the bounds of the labels.
    kappa : float
        κ, as a part of the range of the labels.
    t : float or None
        Squared length of a row over the ridge; None as long as it is to be chosen from the rows.
    level : bool or None
        Whether the intercept is corrected; None as long as that is to be decided by the rows.
    """

    budget: LabelBudget
    kappa: float
    t: float | None = None
    level: bool | None = None

    def noise(self, n_rows: int) -> ObjectiveNoise:
        """Noise and ridge for whitened rows and labels in units of their range."""
        assert self.t is not None
        assert self.level is not None
        budget = self.budget
        return _noise(budget, self.kappa, self.t, n_rows, self.level)

    def shrink(self, rows: Covariates) -> float:
        """See `clipped_settings`."""
        from privasso.design import clipped_settings

        if not rows.live.any():
            return 0.0
        return clipped_settings(rows, self.kappa, self._sensitivities()).shrink

    def calibrate(self, rows: Covariates, shape: Covariance) -> Calibration:
        """Scale the shape so that no row (√w f, √w) is larger than 1, and choose a ridge.

        The label sum has the same share as for products of covariates and labels.
        """
        weights = np.ones(rows.shape[0]) if rows.weights is None else rows.weights
        share = 1.0 / (1.0 + math.sqrt(shape.size)) if rows.centred else 0.0
        sigma_sum = math.sqrt(float(np.max(weights)) / share) if rows.centred else 0.0
        if shape.size:
            check_units(rows, self.budget.width * self.budget.unit)
            largest = float(np.max(weights * rows.squared_row_norms(shape)))
            factor = largest / (1.0 - share)
            if not math.isfinite(factor * float(np.max(shape.diagonal))):
                raise ValueError(why_infinite(rows, shape))
            shape = shape.scaled(factor)
        return self._scaled(rows, shape, sigma_sum, _RIDGE * self.budget.epsilon)

    def calibrate_shaped(self, rows: Covariates, shrink: float) -> Calibration:
        """Noise of the best covariance, and the ridge of the least expected error."""
        from privasso.design import clipped_settings, release_shape, row_roots

        check_units(rows, self.budget.width * self.budget.unit)
        if isinstance(rows, BlockCovariates):
            return self.calibrate(rows, rows.best_for_equal_weights())
        shape, t = release_shape(rows, shrink, row_roots(rows)), _RIDGE * self.budget.epsilon
        if self.t is None and rows.live.any():
            t = clipped_settings(rows, self.kappa, self._sensitivities(), (shrink,)).t
        return self._scaled(rows, shape.covariance, shape.sigma_sum, t)

    def _scaled(
        self, rows: Covariates, covariance: Covariance, sigma_sum: float, t: float
    ) -> Calibration:
        """Scale noise under which rows have at most the size 1; t unless one is given."""
        settled = self if self.t is not None else replace(self, t=t)
        # The mean of the residuals of weighted rows is not the one that such a fit is about.
        wanted = self.level if rows.centred and rows.weights is None else False
        found = self.budget.direct_level(rows.shape[0], wanted)
        settled = replace(settled, level=found is not None)
        noise = settled.noise(rows.shape[0])
        level = noise.sigma * self.budget.width
        covariance, sigma_sum = covariance.scaled(level**2), sigma_sum * level
        weights = settled.weights(rows, covariance, sigma_sum)
        return Calibration(covariance, sigma_sum, None, weights, noise)

    def _sensitivities(self) -> dict[float, float]:
        """Values of t to choose from, and the 2κR/σ that (ε, δ) allows for each."""
        budget = self.budget
        values = [part * budget.epsilon for part in _RIDGES] if self.t is None else [self.t]
        return {t: budget.label_sensitivity(t) for t in values}

    def weights(
        self, rows: Covariates, covariance: Covariance, sigma_sum: float
    ) -> np.ndarray | None:
        """Weights w_μ; rows and labels are multiplied by √w_μ.

        In blocks the largest row sets the level, and all weights are 1. A row that rounding leaves
        longer is shrunk where it is.
        """
        if isinstance(rows, BlockCovariates):
            return None
        level = self.noise(rows.shape[0]).sigma * self.budget.width
        return row_weights(rows, covariance, sigma_sum, _RADIUS / level, power=2)

    def rescaled(self, old: Calibration, epsilon: float, n_rows: int) -> Calibration:
        """T grows in proportion to ε, and κ as by default."""
        assert old.objective is not None
        before, ratio = old.objective, epsilon / self.budget.epsilon
        larger = default_kappa(epsilon) / default_kappa(self.budget.epsilon)
        kappa = min(max(LARGEST_KAPPA, before.kappa), larger * before.kappa)
        t, level = ratio * before.t, before.mu > 0.0
        noise = _noise(replace(self.budget, epsilon=epsilon), kappa, t, n_rows, level)
        factor = noise.sigma / before.sigma
        return replace(
            old,
            covariance=old.covariance.scaled(factor**2),
            sigma_sum=factor * old.sigma_sum,
            objective=noise,
        )

    def program(self, rows: Covariates, calibration: Calibration) -> ObjectiveProgram:
        """What is asked, for rows and the noise that was calibrated for them."""
        noise, budget = calibration.objective, self.budget
        if noise is None or noise != self.noise(rows.shape[0]):
            raise ValueError(
                "the noise was calibrated for another guarantee or another number of rows; "
                "calibrate it anew"
            )
        made = LabelRows.of(rows, calibration, noise.sigma * budget.width)
        largest = 1.0 if rows.weights is None else float(np.max(rows.weights))
        empty = budget.neighbours.empties
        view = LabelMap(made, budget.y_bounds, noise.radius, largest, empty)
        level = budget.direct_level(rows.shape[0], self.level)
        return ObjectiveProgram(rows, calibration, noise, budget, view, level)

    def composition(self, mu: float | None) -> str:
        """Losses are composed numerically."""
        return (
            "Further fits on the same labels add to the loss, and a ledger keeps count of them. "
            "Solving again from the same release adds nothing."
        )


@dataclass(frozen=True, eq=False)
class ObjectiveProgram:
    """Ask for the minimiser, and for the mean of the labels where that corrects the intercept."""

    rows: Covariates = field(repr=False)
    calibration: Calibration
    noise: ObjectiveNoise
    budget: LabelBudget
    view: LabelMap
    level: Level | None

    def __call__(self, ask: Ask) -> Release:
        """The minimiser as products of rows and labels."""
        noise, made = self.noise, self.view.rows
        free = np.zeros(made.n_columns)
        u = ask(PerturbedMinimiser(self.view, noise, 0.0, free))
        white = (made.normal_product(self._moments, u) + noise.ridge * u) / noise.sigma
        off = 0.0
        if self.level is not None and made.ones is not None:
            # Rows count as in the fit, so that one far from all others, which is shrunk, does not
            # decide the mean. No weight is larger than 1, so that no label moves the sum by more.
            weights, total = self.calibration.weights, float(self.rows.shape[0])
            total = total if weights is None else float(np.sum(np.minimum(weights, 1.0)))
            mean = self.calibration.sigma_sum * float(white[-1]) / total / self.budget.width
            off = self.level.correction(
                ask,
                FromMean(made.ones, mean),
                view=self.view,
                n_rows=total,
            )
        bounds, unit = self.budget.y_bounds, self.budget.unit
        return as_release(self.rows, bounds, self.calibration, white, unit, level=off)

    @cached_property
    def _moments(self) -> np.ndarray:
        return self.rows.moments(self.calibration.weights, ones=self.rows.centred)


@lru_cache(maxsize=64)
def _noise(budget: LabelBudget, kappa: float, t: float, n_rows: int, level: bool) -> ObjectiveNoise:
    beside = budget.direct_level(n_rows, level)
    return calibrate_objective(
        budget.epsilon,
        budget.delta,
        budget.neighbours,
        loss=Huber(kappa),
        radius=_RADIUS,
        t=t,
        n_rows=n_rows,
        mu=0.0 if beside is None else beside.mu,
    )
