"""Products of rows and labels with noise of a given level, without a bound on any loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from privasso.blocks import RowBlocks
from privasso.operators import Covariates
from privasso.programs._calibration import Calibration
from privasso.programs._release import Release
from privasso.queries import BitSource, Query, rounded_gaussian

#: Integer noise of this deviation stands for standard normal numbers.
_DEVIATION = 2.0**44


@dataclass(frozen=True, eq=False)
class NoisyProducts(Query[Release]):
    """Products of rows and labels with noise, in floating point: no loss of theirs is bounded.

    Attributes
    ----------
    rows : Covariates
        The covariates.
    calibration : Calibration
        The law of the noise.
    """

    rows: Covariates = field(repr=False)
    calibration: Calibration

    @property
    def sentence(self) -> str:
        """What is released."""
        return "products of covariates and labels, with noise"

    @property
    def neighbours(self) -> None:
        """There are none."""
        return

    @property
    def loss(self) -> None:
        """There is no bound."""
        return

    @property
    def possible(self) -> Release:
        """Products of labels that are zero, without noise."""
        return self._release(
            np.zeros(self.rows.shape[0]), np.zeros(self.calibration.covariance.rank + 1)
        )

    def run(self, rows: RowBlocks, bits: BitSource) -> Release:
        """Add noise to the products and to the label sum."""
        size = self.calibration.covariance.rank + 1
        return self._release(rows.labels, rounded_gaussian(_DEVIATION, size, bits) / _DEVIATION)

    def _release(self, y: np.ndarray, normal: np.ndarray) -> Release:
        F, calibration = self.rows, self.calibration
        covariance = calibration.covariance
        weighted = y if F.weights is None else F.weights * y
        b = F.rmatvec(weighted)
        b[F.live] -= covariance.colour(normal[:-1])
        label_sum = float(np.sum(weighted) - calibration.sigma_sum * normal[-1])
        return Release(
            b=b,
            covariance=covariance.embedded(F.live),
            n_rows=F.shape[0],
            centre=0.0,
            label_sum=label_sum if F.centred else None,
            sigma_sum=calibration.sigma_sum if F.centred else None,
            weight_sum=F.total,
        )

    def log_likelihoods(self, rows: RowBlocks, answers: Sequence[Release]) -> NoReturn:
        """Attacks on such releases have scores of their own."""
        raise NotImplementedError
