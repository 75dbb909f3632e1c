"""Mechanisms that release products of rows and labels, from which coefficients are computed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

import numpy as np

from privasso.noise import Covariance, Noise
from privasso.operators import Covariates
from privasso.privacy import Privacy
from privasso.programs import Calibration, Program

K = TypeVar("K", bound=Privacy)


class ReleaseMechanism(ABC, Generic[K]):
    """How noisy products b = Fᵀy − η are made for a kind of privacy.

    Coefficients are computed from the release. A guarantee that covers it covers them at every λ.
    """

    privacy: K

    @abstractmethod
    def default_noise(self, rows: Covariates) -> Noise:
        """Return the noise of ``noise="auto"``; its level is set by `calibrate`."""

    @abstractmethod
    def calibrate(self, rows: Covariates, shape: Covariance, v: np.ndarray) -> Calibration:
        """Scale noise of this shape over the live columns to the level that is asked for.

        v holds the squared scales that the shape was made from.
        """

    def calibrate_shaped(self, rows: Covariates, shrink: float) -> Calibration:
        """Shape noise for these rows, and scale it to the level that is asked for."""
        raise ValueError(
            "noise of the best covariance for the rows would reveal them, and "
            f"{type(self.privacy).__name__} does not take the covariates for public; choose a "
            "design such as PowerLaw(1.0, gamma=1.0)"
        )

    def weights(
        self, rows: Covariates, covariance: Covariance, sigma_sum: float
    ) -> np.ndarray | None:
        """Weights of the rows in a release with this noise; None where all are 1."""
        return rows.weights

    def settled(self, calibration: Calibration) -> Privacy:
        """Return the kind with everything written out that the calibration has decided."""
        return self.privacy

    @abstractmethod
    def program(self, rows: Covariates, calibration: Calibration) -> Program:
        """What is asked about the labels, and what becomes of the answers; reads no label."""
