"""The Gaussian mechanism for products of covariates and labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from privasso.accounting import sensitivity_for
from privasso.noise import Covariance
from privasso.operators import BlockCovariates, Covariates
from privasso.privacy._kind import Calibration
from privasso.privacy._label_mechanism import (
    LabelBudget,
    LabelMechanism,
    check_units,
    why_infinite,
)
from privasso.privacy._label_rows import LabelRows, as_release
from privasso.privacy._product_sum import ProductSum
from privasso.privacy._release import Release
from privasso.privacy._row_weights import row_weights
from privasso.queries import Ask, NoisySum

#: Guards the calibrated sensitivity against the rounding of its own computation.
_ROUNDING = 1.0 + 1e-12


@dataclass(frozen=True)
class LabelProducts(LabelMechanism):
    """Fᵀ(y − c) and the label sum with Gaussian noise, in proportion to the range of the labels."""

    budget: LabelBudget

    @property
    def mu(self) -> float:
        """The largest Mahalanobis sensitivity that (ε, δ) allows."""
        return sensitivity_for(self.budget.epsilon, self.budget.delta)

    @property
    def _bound(self) -> float:
        """Largest size of a row in units of the noise."""
        return self.mu / (self.budget.change * self.budget.width) / _ROUNDING

    def shrink(self, rows: Covariates) -> float:
        """See `best_shrink`; labels are expected to vary by a sixth of their range."""
        from privasso.design import best_shrink

        return best_shrink(rows, self._bound, self.budget.width / 6.0)

    def calibrate(self, rows: Covariates, shape: Covariance) -> Calibration:
        """Scale the noise Σ so that (hi − lo)·max_μ ‖f_μ‖_{Σ⁻¹} = μ(ε, δ).

        Where a label is emptied rather than replaced, it is half of that.

        The maximum is taken over the rows of F exactly. With an intercept the rows are
        (f_μ − mean, 1): of the squared sensitivity the label sum takes the share 1/(1+√N), which
        costs the coefficients a factor 1 + 1/√N in variance whatever the units of F are.
        """
        largest_weight = 1.0 if rows.weights is None else float(np.max(rows.weights))
        bound = self._bound**2
        share = 1.0 / (1.0 + math.sqrt(shape.size)) if rows.centred else 0.0
        sigma_sum = largest_weight / math.sqrt(share * bound) if rows.centred else 0.0
        if shape.size == 0:
            return Calibration(shape, sigma_sum, self.mu, rows.weights)
        check_units(rows, self.budget.width * self.budget.unit)
        squares = rows.squared_row_norms(shape)
        largest = float(np.max(squares if rows.weights is None else rows.weights**2 * squares))
        factor = largest / ((1.0 - share) * bound)
        if not math.isfinite(factor * float(np.max(shape.diagonal))):
            raise ValueError(why_infinite(rows, shape))
        return Calibration(shape.scaled(factor), sigma_sum, self.mu, rows.weights)

    def calibrate_shaped(self, rows: Covariates, shrink: float) -> Calibration:
        """Noise of the best covariance, at the level where no row has a size above the bound.

        Rows that would exceed it are shrunk, see `row_weights`.
        """
        from privasso.design import release_shape

        check_units(rows, self.budget.width * self.budget.unit)
        if isinstance(rows, BlockCovariates):
            return self.calibrate(rows, rows.best_for_equal_weights())
        shape, bound = release_shape(rows, shrink), self._bound
        covariance, sigma_sum = shape.covariance.scaled(bound**-2), shape.sigma_sum / bound
        weights = self.weights(rows, covariance, sigma_sum)
        return Calibration(covariance, sigma_sum, self.mu, weights)

    def weights(
        self, rows: Covariates, covariance: Covariance, sigma_sum: float
    ) -> np.ndarray | None:
        """Weights w_μ, by which rows are multiplied but not their labels.

        In blocks the largest row sets the level, and all weights are 1; the noise is raised where
        rounding asks for it.
        """
        if isinstance(rows, BlockCovariates):
            return None
        return row_weights(rows, covariance, sigma_sum, self._bound)

    def rescaled(self, old: Calibration, epsilon: float, n_rows: int) -> Calibration:
        """The level is inversely proportional to μ(ε, δ)."""
        mu = sensitivity_for(epsilon, self.budget.delta)
        ratio = self.mu / mu
        return replace(
            old,
            covariance=old.covariance.scaled(ratio**2),
            sigma_sum=ratio * old.sigma_sum,
            mu=mu,
        )

    def program(self, rows: Covariates, calibration: Calibration) -> Callable[[Ask], Release]:
        """Ask for the sums of rows times labels."""
        mu, budget = calibration.mu, self.budget
        if mu is None or mu > self.mu:
            raise ValueError(
                "the noise was calibrated for a weaker guarantee than this one; calibrate it anew"
            )
        made = LabelRows.of(rows, calibration, budget.change * budget.width * _ROUNDING / mu)
        summand = ProductSum(made, budget.y_bounds, ProductSum.bits_for(mu, made.n_columns))
        question = NoisySum(summand, mu, budget.neighbours)

        def ask_for_products(ask: Ask) -> Release:
            white = ask(question) * (mu / budget.change / _ROUNDING)
            return as_release(rows, budget.y_bounds, calibration, white, budget.unit)

        return ask_for_products

    def composition(self, mu: float | None) -> str:
        """Gaussian mechanisms compose exactly: squared sensitivities add up."""
        here = "" if mu is None else f", here √k · {mu:.4g}"
        return (
            "Further fits on the same labels add to the loss: k releases like this one together "
            f"are a Gaussian mechanism of sensitivity √k · μ{here}. Solving again from the same "
            "release adds nothing."
        )
