"""What differs between the mechanisms that protect labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privasso.accounting import objective_sensitivity
from privasso.noise import Covariance
from privasso.operators import Covariates
from privasso.privacy._kind import Calibration
from privasso.privacy._label_level import Level, direct_level
from privasso.privacy._release import Release
from privasso.queries import LABEL_REPLACED, Ask, Neighbours

#: Coefficients of this size have lost digits to underflow.
_SMALLEST_EFFECT = 1e-290


@dataclass(frozen=True)
class LabelBudget:
    """(ε, δ) and the bounds of the labels.

    Attributes
    ----------
    epsilon, delta : float
        ε and δ.
    y_bounds : (float, float)
        Smallest and largest label.
    unit : float
        The power of two in which labels are measured.
    neighbours : Neighbours
        How data sets differ.
    """

    epsilon: float
    delta: float
    y_bounds: tuple[float, float]
    unit: float
    neighbours: Neighbours = LABEL_REPLACED

    @property
    def width(self) -> float:
        """Range of the labels in their unit."""
        return (self.y_bounds[1] - self.y_bounds[0]) / self.unit

    def label_sensitivity(self, t: float) -> float:
        """2κR/σ of a perturbed objective with residuals clipped at κ and a ridge R²/t."""
        kind = self.neighbours.of_objective
        c = objective_sensitivity(self.epsilon, self.delta, t, kind)
        return c if kind == "labels" else 2.0 * c

    def direct_level(self, n_rows: int, asked: bool | None) -> Level | None:
        """How the intercept of a fit is corrected; see `direct_level`."""
        return direct_level(
            self.epsilon, self.delta, n_rows, asked=asked, neighbours=self.neighbours
        )

    @property
    def change(self) -> float:
        """What one label may change, as a part of their range, measured from its middle."""
        return 0.5 if self.neighbours.relation == "emptied" else 1.0


class LabelMechanism(ABC):
    """A way to release what coefficients are computed from, under label differential privacy."""

    budget: LabelBudget

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
    def program(self, rows: Covariates, calibration: Calibration) -> Callable[[Ask], Release]:
        """What is asked, and what becomes of the answers."""

    @abstractmethod
    def composition(self, mu: float | None) -> str:
        """Say how the loss of several such releases adds up."""


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
