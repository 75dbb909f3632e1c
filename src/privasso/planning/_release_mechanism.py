"""Mechanisms that release products of rows and labels, and the one with noise of a given level."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from privasso.noise import Covariance, Factored, Noise, PowerLaw, Shaped
from privasso.operators import BlockCovariates, Covariates
from privasso.privacy import LabelDP, OnAverage, Privacy
from privasso.programs import Calibration, NoisyProducts, ProductsProgram, Program

K = TypeVar("K", bound=Privacy)
#: Most columns for which the noise has a full covariance by default.
LARGEST_SHAPE = 2048
#: Coefficients of this size have lost digits to underflow.
_SMALLEST_EFFECT = 1e-290


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

    def weights_of(self, rows: Covariates, calibration: Calibration) -> np.ndarray | None:
        """What `weights` returns for the noise of a calibration."""
        return rows.weights

    def settled(self, calibration: Calibration) -> K:
        """Return the kind with everything written out that the calibration has decided."""
        return self.privacy

    @abstractmethod
    def program(self, rows: Covariates, calibration: Calibration) -> Program:
        """What is asked about the labels, and what becomes of the answers; reads no label."""


class LabelMechanism(ReleaseMechanism[LabelDP]):
    """A way to release what coefficients are computed from, under label differential privacy."""

    def default_noise(self, rows: Covariates) -> Noise:
        """The best covariance for the rows; with very many columns σ² ∝ √v, the best diagonal one.

        The best covariance has a dense root, whose size and cost grow with the square and the cube
        of the number of columns. Rows are shrunk where that is expected to pay.
        """
        if int(rows.live.sum()) > LARGEST_SHAPE:
            return PowerLaw(1.0, 0.5)
        blocks = isinstance(rows, BlockCovariates)
        return Shaped(shrink=0.0 if blocks else self.shrink(rows))

    def calibrate_shaped(self, rows: Covariates, shrink: float) -> Calibration:
        """Noise of the best covariance, at the level where no row has a size above the bound.

        Rows that would exceed it are shrunk, see `row_weights`.
        """
        check_units(rows, self.privacy.label_width)
        if not isinstance(rows, BlockCovariates):
            return self.shaped(rows, shrink)
        if shrink > 0.0:
            raise ValueError(
                "rows in blocks are not shrunk; leave noise out, or choose Shaped(shrink=0.0) or a "
                "design such as PowerLaw(1.0, gamma=0.5)"
            )
        return self.calibrate(rows, rows.best_for_equal_weights(), rows.v)

    def weights_of(self, rows: Covariates, calibration: Calibration) -> np.ndarray | None:
        """They are known already; see `stated`."""
        return calibration.weights

    @abstractmethod
    def shrink(self, rows: Covariates) -> float:
        """Part of the rows to shrink, with noise of the best covariance."""

    @abstractmethod
    def shaped(self, rows: Covariates, shrink: float) -> Calibration:
        """`calibrate_shaped` for rows that are not in blocks."""

    @abstractmethod
    def rescaled(self, old: Calibration, epsilon: float, n_rows: int) -> Calibration:
        """The same shape of noise at the level for another ε."""


def stated(covariance: Covariance) -> Covariance:
    """The same, computed from its root as it will be from a release that holds the root alone.

    Weights that follow from it are then those of the release, digit by digit. The root is
    triangular, with which rows are whitened in half of the time.
    """
    if isinstance(covariance, Factored):
        covariance = covariance.triangular
    return covariance.restricted(np.arange(covariance.size))


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
