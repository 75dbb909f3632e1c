"""Which mechanism fits labels, and with which noise: from public covariates and the budget."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from privasso.noise import Covariance
from privasso.operators import BlockCovariates, Covariates
from privasso.planning._label_objective import LabelObjective
from privasso.planning._label_products import LabelProducts
from privasso.planning._objective_noise import calibrate_objective
from privasso.planning._release_mechanism import LabelMechanism
from privasso.planning._settings import default_kappa, usual_lam, usual_row, usual_t
from privasso.privacy import LabelDP
from privasso.problem import Clipped
from privasso.programs import Calibration, PerturbedObjective, Program, widest_bounds
from privasso.queries import ObjectiveNoise

#: Most entries of a table, and largest ε, for which "auto" perturbs the objective: whitened rows
#: are held in memory, and at large ε the noise does not matter.
_LARGEST_TABLE, _LARGEST_EPSILON = 1 << 28, 50.0


@dataclass(frozen=True)
class LabelRelease(LabelMechanism):
    """Products of covariates and labels, by the mechanism that is named, or by one of the two.

    A design that is given asks for Gaussian noise of exactly that shape, so that products are
    released unless the objective is to be perturbed by name.
    """

    privacy: LabelDP

    def shrink(self, rows: Covariates) -> float:
        """As the mechanism does with noise of the best covariance."""
        return self._for_shaped(rows).shrink(rows)

    def calibrate(self, rows: Covariates, shape: Covariance, v: np.ndarray) -> Calibration:
        """By name."""
        return self._named.calibrate(rows, shape, v)

    def calibrate_shaped(self, rows: Covariates, shrink: float) -> Calibration:
        """By the mechanism for noise of the best covariance."""
        return self._for_shaped(rows).calibrate_shaped(rows, shrink)

    shaped = calibrate_shaped

    def weights(
        self, rows: Covariates, covariance: Covariance, sigma_sum: float
    ) -> np.ndarray | None:
        """Weights by which the largest rows are shrunk, so that the guarantee holds."""
        return self._named.weights(rows, covariance, sigma_sum)

    def settled(self, calibration: Calibration) -> LabelDP:
        """Return the privacy with the mechanism, κ and t that the calibration has decided."""
        noise, given = calibration.objective, {"mechanism": "release", "level": None}
        kappa = t = None
        if noise is not None:
            kappa, t, level = noise.kappa, noise.t, noise.mu > 0.0
            given = {"mechanism": "objective", "level": level}
        return replace(self.privacy, kappa=kappa, t=t, **given)

    def rescaled(self, old: Calibration, epsilon: float, n_rows: int) -> Calibration:
        """By the mechanism that was calibrated."""
        return LabelRelease(self.settled(old))._named.rescaled(old, epsilon, n_rows)

    def calibrated(
        self,
        covariance: Covariance,
        sigma_sum: float,
        mu: float | None,
        weights: np.ndarray | None,
        n_rows: int,
    ) -> Calibration:
        """The calibration of a release that was made with this noise under settled privacy."""
        return Calibration(covariance, sigma_sum, mu, weights, self.objective_noise(n_rows))

    def objective_noise(self, n_rows: int) -> ObjectiveNoise | None:
        """That of a perturbed objective under settled privacy."""
        named = self._named
        return named.noise(n_rows) if isinstance(named, LabelObjective) else None

    def program(self, rows: Covariates, calibration: Calibration) -> Program:
        """That of the mechanism which was calibrated."""
        return LabelRelease(self.settled(calibration))._named.program(rows, calibration)

    def _for_shaped(self, rows: Covariates) -> LabelMechanism:
        """The mechanism with noise of the best covariance for these rows."""
        m, n = rows.shape
        small = m > n if isinstance(rows, BlockCovariates) else m * (n + 1) <= _LARGEST_TABLE
        if self.privacy.mechanism == "auto" and small and self.privacy.epsilon <= _LARGEST_EPSILON:
            return LabelObjective(replace(self.privacy, mechanism="objective"))
        return self._named

    @property
    def _named(self) -> LabelObjective | LabelProducts:
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
    lam = usual_lam(rows.shape[0], privacy.label_width)
    bounds, scaling = widest_bounds(n), (rows.mean, scale)
    return PerturbedObjective(noise, bounds, privacy.y_bounds, intercept, lam, scaling)
