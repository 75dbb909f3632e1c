"""The law of the noise on the columns of given covariates."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from privasso.noise import Covariance
from privasso.queries import ObjectiveNoise


@dataclass(frozen=True, eq=False)
class Calibration:
    """The noise that a kind of privacy asks for on given covariates; no label is read for it.

    Attributes
    ----------
    covariance : Covariance
        Of the noise on the live columns.
    sigma_sum : float
        Standard deviation of the noise on the label sum; zero without an intercept.
    mu : float or None
        Largest Mahalanobis distance between the releases of two neighbouring data sets; None where
        there is none, or the release comes from a perturbed objective.
    weights : ndarray of shape (M,) or None
        Weights of the rows in the release, those of shrunk rows included; None if all are 1.
    objective : ObjectiveNoise or None
        The perturbed objective that the release comes from, for whitened rows and labels in units
        of their range; None where the products themselves are released.
    """

    covariance: Covariance = field(repr=False)
    sigma_sum: float
    mu: float | None
    weights: np.ndarray | None = field(default=None, repr=False)
    objective: ObjectiveNoise | None = None

    @property
    def level(self) -> float:
        """Root of the mean variance over the live columns."""
        n = self.covariance.size
        return float(np.sqrt(self.covariance.trace() / n)) if n else 0.0

    @property
    def shrunk(self) -> tuple[int, float]:
        """How many rows have a weight below 1, and the mean weight of these."""
        small = np.empty(0) if self.weights is None else self.weights[self.weights < 1.0]
        return small.size, float(np.mean(small)) if small.size else 1.0
