"""How the perturbed objective of labels is calibrated for public covariates."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from privasso._tuned import LABEL_RIDGE, LABEL_RIDGES, MOST_LABEL_KAPPA
from privasso.noise import Covariance
from privasso.operators import BlockCovariates, Covariates
from privasso.planning._clipped_rows import clipped_r2, clipped_settings
from privasso.planning._objective_noise import calibrate_objective, label_sensitivity
from privasso.planning._release_mechanism import (
    LabelMechanism,
    check_units,
    stated,
    why_infinite,
)
from privasso.planning._release_shape import release_shape
from privasso.planning._settings import label_kappa
from privasso.privacy import LabelDP
from privasso.problem import Huber
from privasso.programs import (
    Calibration,
    LabelMap,
    LabelRows,
    Level,
    ObjectiveProgram,
    direct_level,
    row_weights,
)
from privasso.queries import ObjectiveNoise

#: Rows are whitened to this length at most.
_RADIUS = 1.0


@dataclass(frozen=True)
class LabelObjective(LabelMechanism):
    """The minimiser of a perturbed objective.

    Attributes
    ----------
    privacy : LabelDP
        Budget, κ, t and `level`; the last three are None as long as the rows are to decide on them.
    """

    privacy: LabelDP

    def kappa(self, rows: Covariates) -> float:
        """κ, as a part of the range of the labels."""
        privacy = self.privacy
        if privacy.kappa is not None:
            return privacy.kappa
        return label_kappa(privacy.epsilon, *rows.shape, privacy.pair)

    def noise(self, n_rows: int) -> ObjectiveNoise:
        """Noise and ridge for whitened rows and labels in units of their range."""
        privacy = self.privacy
        assert privacy.kappa is not None
        assert privacy.t is not None
        assert privacy.level is not None
        return _noise(privacy, privacy.kappa, privacy.t, n_rows, privacy.level)

    def shrink(self, rows: Covariates) -> float:
        """See `clipped_settings`."""
        if not rows.live.any():
            return 0.0
        return clipped_settings(rows, self.kappa(rows), self._sensitivities()).shrink

    def r2(self, rows: Covariates) -> float:
        """What a fit of these rows can be expected to reach; see `clipped_r2`."""
        return clipped_r2(rows, self.kappa(rows), self._sensitivities())

    def calibrate(self, rows: Covariates, shape: Covariance, v: np.ndarray) -> Calibration:
        """Scale the shape so that no row (√w f, √w) is larger than 1, and choose a ridge.

        The label sum has the same share as for products of covariates and labels.
        """
        weights = np.ones(rows.shape[0]) if rows.weights is None else rows.weights
        share = 1.0 / (1.0 + math.sqrt(shape.size)) if rows.centred else 0.0
        sigma_sum = math.sqrt(float(np.max(weights)) / share) if rows.centred else 0.0
        if shape.size:
            check_units(rows, self.privacy.label_width)
            largest = float(np.max(weights * rows.squared_row_norms(shape)))
            factor = largest / (1.0 - share)
            if not math.isfinite(factor * float(np.max(shape.diagonal))):
                raise ValueError(why_infinite(rows, shape))
            shape = shape.scaled(factor)
        return self._scaled(rows, shape, sigma_sum, LABEL_RIDGE * self.privacy.epsilon)

    def shaped(self, rows: Covariates, shrink: float) -> Calibration:
        """Noise of the best covariance, and the ridge of the least expected error."""
        shape, t = release_shape(rows, shrink, roots=True), LABEL_RIDGE * self.privacy.epsilon
        if self.privacy.t is None and rows.live.any():
            t = clipped_settings(rows, self.kappa(rows), self._sensitivities(), (shrink,)).t
        return self._scaled(rows, shape.covariance, shape.sigma_sum, t)

    def _scaled(
        self, rows: Covariates, covariance: Covariance, sigma_sum: float, t: float
    ) -> Calibration:
        """Scale noise under which rows have at most the size 1; t unless one is given."""
        privacy = self.privacy if self.privacy.t is not None else replace(self.privacy, t=t)
        # The mean of the residuals of weighted rows is not the one that such a fit is about.
        wanted = privacy.level if rows.centred and rows.weights is None else False
        found = _level(privacy, rows.shape[0], wanted)
        decided = replace(privacy, kappa=self.kappa(rows), level=found is not None)
        settled = LabelObjective(decided)
        noise = settled.noise(rows.shape[0])
        level = noise.sigma * self.privacy.units
        covariance, sigma_sum = stated(covariance.scaled(level**2)), sigma_sum * level
        weights = settled.weights(rows, covariance, sigma_sum)
        return Calibration(covariance, sigma_sum, None, weights, noise)

    def _sensitivities(self) -> dict[float, float]:
        """Values of t to choose from, and the 2κR/σ that (ε, δ) allows for each."""
        given, epsilon = self.privacy.t, self.privacy.epsilon
        values = [part * epsilon for part in LABEL_RIDGES] if given is None else [given]
        return {t: label_sensitivity(self.privacy, t) for t in values}

    def weights(
        self, rows: Covariates, covariance: Covariance, sigma_sum: float
    ) -> np.ndarray | None:
        """Weights w_μ; rows and labels are multiplied by √w_μ.

        In blocks the largest row sets the level, and all weights are 1. A row that rounding leaves
        longer is shrunk where it is.
        """
        if isinstance(rows, BlockCovariates):
            return None
        level = self.noise(rows.shape[0]).sigma * self.privacy.units
        return row_weights(rows, covariance, sigma_sum, _RADIUS / level, power=2)

    def rescaled(self, old: Calibration, epsilon: float, n_rows: int) -> Calibration:
        """T grows in proportion to ε, and κ as by default."""
        assert old.objective is not None
        before, ratio = old.objective, epsilon / self.privacy.epsilon
        size = n_rows, old.covariance.size, self.privacy.pair
        now, then = (label_kappa(one, *size) for one in (self.privacy.epsilon, epsilon))
        kappa = min(max(MOST_LABEL_KAPPA, before.kappa), then / now * before.kappa)
        t, level = ratio * before.t, before.mu > 0.0
        noise = _noise(replace(self.privacy, epsilon=epsilon), kappa, t, n_rows, level)
        factor = noise.sigma / before.sigma
        return replace(
            old,
            covariance=old.covariance.scaled(factor**2),
            sigma_sum=factor * old.sigma_sum,
            objective=noise,
        )

    def program(self, rows: Covariates, calibration: Calibration) -> ObjectiveProgram:
        """What is asked, for rows and the noise that was calibrated for them."""
        noise, privacy = calibration.objective, self.privacy
        if noise is None or noise != self.noise(rows.shape[0]):
            raise ValueError(
                "the noise was calibrated for another guarantee or another number of rows; "
                "calibrate it anew"
            )
        made = LabelRows.of(rows, calibration, noise.sigma * privacy.units)
        largest = 1.0 if rows.weights is None else float(np.max(rows.weights))
        empty = privacy.pair.empties
        view = LabelMap(made, privacy.y_bounds, noise.radius, largest, empty)
        level = _level(privacy, rows.shape[0], privacy.level)
        return ObjectiveProgram(rows, calibration, noise, privacy, view, level)


def _level(privacy: LabelDP, n_rows: int, asked: bool | None) -> Level | None:
    """How the intercept is corrected, in units of the range of the labels."""
    return direct_level(
        privacy.epsilon, privacy.delta, n_rows, asked=asked, neighbours=privacy.pair
    )


@lru_cache(maxsize=64)
def _noise(privacy: LabelDP, kappa: float, t: float, n_rows: int, level: bool) -> ObjectiveNoise:
    beside = _level(privacy, n_rows, level)
    return calibrate_objective(
        privacy.epsilon,
        privacy.delta,
        privacy.pair,
        loss=Huber(kappa),
        radius=_RADIUS,
        t=t,
        n_rows=n_rows,
        mu=0.0 if beside is None else beside.mu,
    )
