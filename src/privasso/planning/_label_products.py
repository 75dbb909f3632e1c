"""The Gaussian mechanism for products of covariates and labels."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from privasso._blas import one_thread
from privasso._tuned import LABEL_WIDTH, SHRINK_GAIN, SHRINK_PRODUCTS
from privasso.accounting import sensitivity_for
from privasso.noise import Covariance
from privasso.operators import BlockCovariates, Covariates
from privasso.planning._release_mechanism import (
    LabelMechanism,
    check_units,
    stated,
    why_infinite,
)
from privasso.planning._release_shape import ReleaseShape, release_shape, row_sample
from privasso.planning._settings import label_kappa
from privasso.privacy import LabelDP
from privasso.programs import (
    Calibration,
    LabelRows,
    ProductsProgram,
    ProductSum,
    as_release,
    row_weights,
)
from privasso.queries import NoisySum

#: Guards the calibrated sensitivity against the rounding of its own computation.
_ROUNDING = 1.0 + 1e-12


@dataclass(frozen=True)
class LabelProducts(LabelMechanism):
    """Fᵀ(y − c) and the label sum with Gaussian noise, in proportion to the range of the labels."""

    privacy: LabelDP

    @property
    def mu(self) -> float:
        """The largest Mahalanobis sensitivity that (ε, δ) allows."""
        return self.privacy.mu

    @property
    def _change(self) -> float:
        """What one label may change, as a part of their range, measured from its middle."""
        return 0.5 if self.privacy.neighbours == "emptied" else 1.0

    @property
    def _bound(self) -> float:
        """Largest size of a row in units of the noise."""
        return self.mu / (self._change * self.privacy.units) / _ROUNDING

    def shrink(self, rows: Covariates) -> float:
        """See `best_shrink`; labels are expected to vary by a sixth of their range."""
        return best_shrink(rows, self._bound, self.privacy.units / LABEL_WIDTH)

    def calibrate(self, rows: Covariates, shape: Covariance, v: np.ndarray) -> Calibration:
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
        check_units(rows, self.privacy.label_width)
        squares = rows.squared_row_norms(shape)
        largest = float(np.max(squares if rows.weights is None else rows.weights**2 * squares))
        factor = largest / ((1.0 - share) * bound)
        if not math.isfinite(factor * float(np.max(shape.diagonal))):
            raise ValueError(why_infinite(rows, shape))
        return Calibration(shape.scaled(factor), sigma_sum, self.mu, rows.weights)

    def shaped(self, rows: Covariates, shrink: float) -> Calibration:
        """Noise of the best covariance, at the level where no row has a size above the bound.

        Rows that would exceed it are shrunk, see `row_weights`.
        """
        shape, bound = release_shape(rows, shrink), self._bound
        covariance, sigma_sum = stated(shape.covariance.scaled(bound**-2)), shape.sigma_sum / bound
        all_fit = shape.squares.size == rows.shape[0] and np.max(shape.squares) <= 1.0
        if rows.weights is None and all_fit:
            return Calibration(covariance, sigma_sum, self.mu)
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
        mu = sensitivity_for(epsilon, self.privacy.delta)
        ratio = self.mu / mu
        return replace(
            old,
            covariance=old.covariance.scaled(ratio**2),
            sigma_sum=ratio * old.sigma_sum,
            mu=mu,
        )

    def program(self, rows: Covariates, calibration: Calibration) -> ProductsProgram:
        """Ask for the sums of rows times labels."""
        mu, privacy, change = calibration.mu, self.privacy, self._change
        if mu is None or mu > self.mu:
            raise ValueError(
                "the noise was calibrated for a weaker guarantee than this one; calibrate it anew"
            )
        made = LabelRows.of(rows, calibration, change * privacy.units * _ROUNDING / mu)
        summand = ProductSum(made, privacy.y_bounds, ProductSum.bits_for(mu, made.n_columns))
        question = NoisySum(summand, mu, privacy.pair)

        kappa = label_kappa(privacy.epsilon, *rows.shape, privacy.pair)
        release = partial(
            as_release,
            rows,
            privacy.y_bounds,
            calibration,
            unit=privacy.unit,
            times=mu / change / _ROUNDING,
        )
        return ProductsProgram(question, kappa, release)


_JITTER = 1e-10


def best_shrink(rows: Covariates, bound: float, label_deviation: float) -> float:
    """Return the part of the rows to shrink: 0.75 if that explains more, else 0.

    Compared is the expected error of the best linear guess of coefficients x ~ N(0, τ²/N) of
    standardised columns from labels with deviation τ around their predictions.

    `bound`: largest size of a row in units of the noise. `label_deviation`: τ, in the same unit as
    the range of the labels.
    """
    if not rows.live.any():
        return 0.0
    part = row_sample(rows)
    copies = rows.shape[0] / part.shape[0]
    errors = [
        _expected_error(part, release_shape(part, shrink), bound, label_deviation, copies)
        for shrink in (0.0, SHRINK_PRODUCTS)
    ]
    return SHRINK_PRODUCTS if errors[0] - errors[1] > SHRINK_GAIN else 0.0


def _expected_error(
    rows: Covariates, shape: ReleaseShape, bound: float, label_deviation: float, copies: float
) -> float:
    """Mean squared error of the best linear guess per row, in units of τ²."""
    n, scale = shape.covariance.size, np.sqrt(rows.squares[rows.live] / rows.total)
    units = np.outer(scale, scale)
    weights = np.ones(rows.shape[0]) if rows.weights is None else rows.weights
    weights = np.minimum(weights, 1.0 / np.sqrt(shape.squares))
    G = copies * rows.moments(weights) / units
    V = copies * rows.moments(weights**2) / units
    V += shape.covariance.matrix() / (units * (bound * label_deviation) ** 2)
    K = G @ G / n + V
    K[np.diag_indices(n)] += _JITTER * np.trace(K) / n
    with one_thread():
        left = np.eye(n) / n - G @ np.linalg.solve(K, G) / n**2
    return float(np.sum(rows.moments(rows.weights) / units * left) / rows.total)
