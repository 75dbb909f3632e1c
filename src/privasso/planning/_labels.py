"""Which mechanism fits labels, and with which noise: from public covariates and the budget."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from privasso.noise import Covariance, Noise, PowerLaw, Shaped
from privasso.operators import BlockCovariates, Covariates
from privasso.planning._label_mechanism import LabelMechanism
from privasso.planning._label_objective import LabelObjective
from privasso.planning._label_products import LabelProducts
from privasso.planning._objective_noise import calibrate_objective
from privasso.planning._release_mechanism import ReleaseMechanism
from privasso.planning._settings import default_kappa, usual_lam, usual_row, usual_t
from privasso.privacy import LabelDP
from privasso.problem import Clipped
from privasso.programs import Calibration, PerturbedObjective, Program, widest_bounds

#: Most columns for which the noise has a full covariance by default.
LARGEST_SHAPE = 2048
#: Most entries of a table, and largest ε, for which "auto" perturbs the objective: whitened rows
#: are held in memory, and at large ε the noise does not matter.
_LARGEST_TABLE, _LARGEST_EPSILON = 1 << 28, 50.0


@dataclass(frozen=True)
class LabelRelease(ReleaseMechanism[LabelDP]):
    """Products of covariates and labels, by one of two mechanisms."""

    privacy: LabelDP

    def default_noise(self, rows: Covariates) -> Noise:
        """The best covariance for the rows; with very many columns σ² ∝ √v, the best diagonal one.

        The best covariance has a dense root, whose size and cost grow with the square and the cube
        of the number of columns. Rows are shrunk where that is expected to pay.
        """
        if int(rows.live.sum()) > LARGEST_SHAPE:
            return PowerLaw(1.0, 0.5)
        if isinstance(rows, BlockCovariates):
            return Shaped(shrink=0.0)
        return Shaped(shrink=self._for_shaped(rows).shrink(rows))

    def calibrate(self, rows: Covariates, shape: Covariance, v: np.ndarray) -> Calibration:
        """Scale noise of a given shape; see `LabelProducts` and `LabelObjective`.

        A design that is given asks for Gaussian noise of exactly that shape, so that products are
        released unless the objective is to be perturbed by name.
        """
        return self._mechanism.calibrate(rows, shape)

    def calibrate_shaped(self, rows: Covariates, shrink: float) -> Calibration:
        """Noise of the best covariance, at the level where no row has a size above the bound.

        Rows that would exceed it are shrunk, see `row_weights`.
        """
        if isinstance(rows, BlockCovariates) and shrink > 0.0:
            raise ValueError(
                "rows in blocks are not shrunk; leave noise out, or choose Shaped(shrink=0.0) or a "
                "design such as PowerLaw(1.0, gamma=0.5)"
            )
        return self._for_shaped(rows).calibrate_shaped(rows, shrink)

    def weights(
        self, rows: Covariates, covariance: Covariance, sigma_sum: float
    ) -> np.ndarray | None:
        """Weights by which the largest rows are shrunk, so that the guarantee holds."""
        return self._mechanism.weights(rows, covariance, sigma_sum)

    def settled(self, calibration: Calibration) -> LabelDP:
        """Return the privacy with the mechanism, κ and t that the calibration has decided."""
        noise = calibration.objective
        if noise is None:
            open_ = {"kappa": None, "t": None, "level": None}
            return replace(self.privacy, mechanism="release", **open_)
        level = noise.mu > 0.0
        return replace(
            self.privacy, mechanism="objective", kappa=noise.kappa, t=noise.t, level=level
        )

    def rescaled(
        self, calibration: Calibration, epsilon: float, n_rows: int
    ) -> tuple[LabelDP, Calibration]:
        """Return the privacy at another ε, and the same shape of noise at the level for it."""
        mechanism = LabelRelease(self.settled(calibration))._mechanism
        changed = mechanism.rescaled(calibration, epsilon, n_rows)
        return LabelRelease(replace(self.privacy, epsilon=epsilon)).settled(changed), changed

    def calibrated(
        self,
        covariance: Covariance,
        sigma_sum: float,
        mu: float | None,
        weights: np.ndarray | None,
        n_rows: int,
    ) -> Calibration:
        """The calibration of a release that was made with this noise under settled privacy."""
        mechanism = self._mechanism
        noise = mechanism.noise(n_rows) if isinstance(mechanism, LabelObjective) else None
        return Calibration(covariance, sigma_sum, mu, weights, noise)

    def program(self, rows: Covariates, calibration: Calibration) -> Program:
        """That of the mechanism which was calibrated."""
        return LabelRelease(self.settled(calibration))._mechanism.program(rows, calibration)

    def _for_shaped(self, rows: Covariates) -> LabelMechanism:
        """The mechanism with noise of the best covariance for these rows."""
        m, n = rows.shape
        small = m > n if isinstance(rows, BlockCovariates) else m * (n + 1) <= _LARGEST_TABLE
        if self.privacy.mechanism == "auto" and small and self.privacy.epsilon <= _LARGEST_EPSILON:
            return LabelObjective(replace(self.privacy, mechanism="objective"))
        return self._mechanism

    @property
    def _mechanism(self) -> LabelMechanism:
        """The mechanism by name; products are released where it is still open."""
        objective = self.privacy.mechanism == "objective"
        return LabelObjective(self.privacy) if objective else LabelProducts(self.privacy)


def labels_at_one_lam(privacy: LabelDP, rows: Covariates, loss: Clipped) -> PerturbedObjective:
    """Noise, ridge and scaling for a fit at one λ, from covariates, which are public.

    Columns are measured from their means, in units of their deviations.
    """
    if privacy.mechanism == "release" or privacy.level:
        raise ValueError(
            f"{loss.about} cannot be found from noisy products or corrected by a mean; leave "
            "mechanism and level out"
        )
    n, intercept = rows.shape[1], rows.centred
    usual = loss.suited(default_kappa(privacy.epsilon))
    noise = calibrate_objective(
        privacy.epsilon,
        privacy.delta,
        privacy.pair,
        loss=usual if privacy.kappa is None else loss.clipped(privacy.kappa),
        radius=usual_row(n + intercept, standard=True),
        t=usual_t(privacy.epsilon) if privacy.t is None else privacy.t,
        n_rows=rows.shape[0],
    )
    scale = np.where(rows.live, np.sqrt(rows.squares / rows.total), 0.0)
    lam = usual_lam(rows.shape[0], privacy.width)
    bounds, scaling = widest_bounds(n), (rows.mean, scale)
    return PerturbedObjective(noise, bounds, privacy.y_bounds, intercept, lam, scaling)
