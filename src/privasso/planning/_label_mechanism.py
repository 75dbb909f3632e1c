"""What differs between the mechanisms that release products of covariates and labels."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from privasso.noise import Covariance
from privasso.operators import Covariates
from privasso.privacy import LabelDP
from privasso.programs import Calibration, Program

#: Coefficients of this size have lost digits to underflow.
_SMALLEST_EFFECT = 1e-290


class LabelMechanism(ABC):
    """A way to release what coefficients are computed from, under label differential privacy."""

    privacy: LabelDP

    @abstractmethod
    def shrink(self, rows: Covariates) -> float:
        """Part of the rows to shrink, with noise of the best covariance."""

    @abstractmethod
    def calibrate(self, rows: Covariates, shape: Covariance) -> Calibration:
        """Scale noise of this shape."""

    @abstractmethod
    def calibrate_shaped(self, rows: Covariates, shrink: float) -> Calibration:
        """Shape noise for these rows, and scale it."""

    @abstractmethod
    def weights(
        self, rows: Covariates, covariance: Covariance, sigma_sum: float
    ) -> np.ndarray | None:
        """Weights of the rows in a release with this noise; None where all are 1."""

    @abstractmethod
    def rescaled(self, old: Calibration, epsilon: float, n_rows: int) -> Calibration:
        """The same shape of noise at the level for another ε."""

    @abstractmethod
    def program(self, rows: Covariates, calibration: Calibration) -> Program:
        """What is asked, and what becomes of the answers."""


def check_units(rows: Covariates, width: float) -> None:
    """Refuse units in which coefficients are no floating-point numbers."""
    with np.errstate(over="ignore", under="ignore"):
        effects = width / np.sqrt(rows.squares[rows.live] / rows.total)
    if not np.all(np.isfinite(effects) & (effects > _SMALLEST_EFFECT)):
        raise ValueError(
            "coefficients of labels with these bounds on these columns are beyond the range "
            "of floating-point numbers; change the units of the labels or of the columns"
        )


def why_infinite(rows: Covariates, shape: Covariance) -> str:
    """Say why no level of noise of this shape protects the labels."""
    silent = ~(shape.diagonal > 0.0)
    if silent.any():
        column = int(np.flatnonzero(rows.live)[np.flatnonzero(silent)[0]])
        return (
            f"the noise design gives column {column} no noise although it has non-zero entries, so "
            "no level of noise protects the labels; drop the column, or choose a design or scales "
            "that give every column noise"
        )
    return (
        "the noise that this design needs exceeds the largest float; choose a design that gives "
        "small columns more of it, such as PowerLaw(1.0, gamma=0.5)"
    )
