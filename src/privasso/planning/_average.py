"""The mechanism of noise of a given level."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privasso.noise import Covariance, Noise, PowerLaw
from privasso.operators import Covariates
from privasso.planning._release_mechanism import ReleaseMechanism
from privasso.privacy import OnAverage
from privasso.programs import Calibration, NoisyProducts, ProductsProgram


@dataclass(frozen=True)
class AverageProducts(ReleaseMechanism[OnAverage]):
    """Fᵀy and the label sum with noise of the mean variance σ²; the labels are used as they are."""

    privacy: OnAverage

    def default_noise(self, rows: Covariates) -> Noise:
        """σ² ∝ v, the best or nearly the best power for the on-average KL divergence."""
        return PowerLaw(1.0, 1.0)

    def calibrate(self, rows: Covariates, shape: Covariance, v: np.ndarray) -> Calibration:
        """Scale the noise so that its mean variance is σ².

        The label sum gets the noise of a column of ones whose noise is proportional to its norm,
        σ_0² = σ²·N/mean(v).
        """
        if shape.size == 0 or self.privacy.sigma == 0.0:
            return Calibration(shape.scaled(0.0), 0.0, None)
        mean = shape.trace() / shape.size
        sigma_sum = self.privacy.sigma * math.sqrt(rows.shape[1] / float(np.mean(v)))
        return Calibration(
            shape.scaled(self.privacy.sigma**2 / mean), sigma_sum if rows.centred else 0.0, None
        )

    def program(self, rows: Covariates, calibration: Calibration) -> ProductsProgram:
        """Ask for Fᵀy and the label sum with noise."""
        return ProductsProgram(NoisyProducts(rows, calibration))
