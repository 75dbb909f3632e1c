"""Which mechanism releases what, with which noise, and a release from covariates and labels."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from privasso._types import MatrixLike
from privasso._validation import generator, real_array, real_labels
from privasso.noise import Covariance, Diagonal, Noise, NoiseDesign, Shaped
from privasso.operators import BlockCovariates, Covariates
from privasso.planning._label_objective import LabelObjective
from privasso.planning._label_products import LabelProducts
from privasso.planning._objective_noise import calibrate_objective
from privasso.planning._release_mechanism import AverageProducts, LabelMechanism, ReleaseMechanism
from privasso.planning._settings import label_kappa, usual_lam, usual_row, usual_t
from privasso.privacy import LabelDP, OnAverage, Privacy, Scales, check_kind
from privasso.problem import Clipped
from privasso.programs import Calibration, PerturbedObjective, Program, Release, widest_bounds
from privasso.queries import Answering, ObjectiveNoise, bit_source
from privasso.scales import ScaleLaw

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
    usual = loss.suited(label_kappa(privacy.epsilon, *rows.shape, privacy.pair))
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


def release_mechanism(privacy: Privacy) -> ReleaseMechanism:
    """How products of rows and labels are released under a kind of privacy."""
    check_kind(privacy)
    if isinstance(privacy, LabelDP):
        return LabelRelease(privacy)
    if isinstance(privacy, OnAverage):
        return AverageProducts(privacy)
    raise ValueError(
        f"{type(privacy).__name__} releases coefficients only, no products of rows and labels; "
        "use LabelDP or OnAverage, or PrivateLasso"
    )


def calibrate(
    rows: Covariates, privacy: Privacy, noise: Noise, *, scales: Scales = None
) -> Calibration:
    """Return the noise that `privacy` asks for on these covariates; reads no label."""
    mechanism = release_mechanism(privacy)
    if isinstance(noise, Shaped):
        if scales is not None and not (isinstance(scales, str) and scales == "data"):
            raise ValueError(
                "noise of the best covariance is shaped for the rows themselves and takes no "
                "scales; leave scales out, or choose a design such as PowerLaw(1.0, gamma=0.5)"
            )
        return mechanism.calibrate_shaped(rows, noise.shrink)
    if not isinstance(noise, NoiseDesign):
        raise ValueError(
            "noise must be Shaped() or a noise design, such as PowerLaw(1.0, gamma=0.5), "
            f"not an object of type {type(noise).__name__}"
        )
    v = _squared_scales(rows, scales)
    shape = noise.with_sigma(1.0).covariance(v) if v.size else Diagonal([])
    return mechanism.calibrate(rows, shape, v)


def release_labels(
    F: MatrixLike,
    y: ArrayLike,
    privacy: Privacy,
    noise: Noise | Calibration,
    *,
    fit_intercept: bool = True,
    scales: Scales = None,
    rng: int | np.random.Generator | None = None,
) -> Release:
    """Run the mechanism once: draw the noise and return what later steps may use.

    Parameters
    ----------
    F : array_like or sparse matrix, shape (M, N), or Covariates
        Covariates; public under `LabelDP`.
    y : array_like, shape (M,)
        Labels.
    privacy : Privacy
        What to protect, and how much.
    noise : NoiseDesign, Shaped or Calibration
        How the noise is spread over the columns; its level comes from `privacy`. Or what
        `calibrate` returned for the same covariates.
    fit_intercept : bool
        Centre F and release the label sum as well.
    scales : None, "data", array_like of shape (N,) or ScaleLaw
        Where the design finds the scales s of the columns, v = s²: the columns of F (the
        default), given scales, or a law, which says nothing about single columns and so gives
        all the same variance.
    rng : None, int or numpy.random.Generator
        Source of the noise; None takes entropy from the operating system.
    """
    rows = F if isinstance(F, Covariates) else Covariates(F, centre=fit_intercept)
    if rows.centred != fit_intercept:
        raise ValueError("F is prepared with centring that contradicts fit_intercept")
    mechanism = release_mechanism(privacy)
    if isinstance(noise, Calibration):
        calibration = noise
    else:
        calibration = calibrate(rows, privacy, noise, scales=scales)
    labels = real_labels(y, rows.shape[0], finite=not privacy.formal)
    program, table = mechanism.program(rows, calibration), rows.labelled(labels)
    ask = Answering(table, bit_source(None if rng is None else generator(rng)))
    return program(ask, 0.0)


def _squared_scales(rows: Covariates, scales: Scales) -> np.ndarray:
    """V of the live columns, from the data or from `scales`."""
    if scales is None or (isinstance(scales, str) and scales == "data"):
        return rows.v
    if isinstance(scales, str):
        raise ValueError(f"scales must be 'data', an array of scales or a law, not {scales!r}")
    if isinstance(scales, ScaleLaw):
        mean = scales.moment(1.0)
        if not 0.0 < mean < math.inf:
            raise ValueError("scales is a law without a finite mean of v = s²; pass another")
        return np.full(int(rows.live.sum()), mean)
    s = real_array("scales", cast(ArrayLike, scales), shape=(rows.shape[1],))
    if np.min(s) < 0.0:
        raise ValueError("scales must be zero or more; they are scales s, with v = s²")
    return s[rows.live] ** 2
