"""A fit as a forecast sees it: all that is known without labels."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np

from privasso.fit import MOST_COLUMNS, Plan, Released
from privasso.noise import Noise, Shaped
from privasso.operators import Covariates
from privasso.planning import LabelRelease, calibrate
from privasso.privacy import LabelDP
from privasso.programs import Calibration

#: Largest mean of a column, relative to its root mean square, of a fit without intercept.
_LARGEST_MEAN = 0.5


@dataclass(frozen=True, eq=False)
class Scheme:
    """Covariates, noise and estimator of a fit under label differential privacy.

    Attributes
    ----------
    rows : Covariates
        Public covariates.
    privacy : LabelDP
        The guarantee.
    calibration : Calibration
        Its noise on these rows.
    noise : NoiseDesign, Shaped or None
        How the noise is spread, for other columns; None if unknown.
    lam : float or None
        λ, or None if it is chosen from the release.
    denoise : bool
        Whether the LASSO runs on the best guess.
    """

    rows: Covariates = field(repr=False)
    privacy: LabelDP
    calibration: Calibration = field(repr=False)
    noise: Noise | None
    lam: float | None = None
    denoise: bool = True

    @classmethod
    def of_plan(cls, plan: Plan, lam: float | None = None) -> Scheme:
        """The scheme of a plan, which must be one for label differential privacy."""
        options = plan.options
        rows, calibration = plan.covariates, plan.calibration
        assert rows is not None
        assert calibration is not None
        # Scales that were given for these columns say nothing about others.
        noise = plan.noise if options.scales is None else None
        privacy = cast(LabelDP, options.privacy)
        return cls(rows, privacy, calibration, noise, lam, options.denoise)

    @classmethod
    def of_release(cls, released: Released, lam: float | None = None) -> Scheme:
        """The scheme that a release was made by."""
        made, rows = released.release, released.rows
        privacy = cast(LabelDP, released.privacy)
        covariance = made.covariance.restricted(np.flatnonzero(rows.live))
        calibration = LabelRelease(privacy).calibrated(
            covariance, made.sigma_sum or 0.0, made.mu, released.weights, rows.shape[0]
        )
        # Other designs may have been applied to given scales, which a release does not hold.
        noise = released.noise if isinstance(released.noise, Shaped) else None
        return cls(rows, privacy, calibration, noise, lam, released.denoise)

    @property
    def unavailable(self) -> str | None:
        """Why fits of this kind cannot be simulated, or None."""
        columns = int(self.rows.live.sum())
        if columns == 0:
            return "no column carries data, so there is nothing to predict"
        if columns > MOST_COLUMNS:
            return f"simulated fits would take too long for more than {MOST_COLUMNS} columns"
        if not self.rows.centred and not self._around_zero:
            return (
                "without an intercept, fits are simulated for columns with means near zero and "
                "label bounds around zero only"
            )
        if not self.denoise and self.lam is None:
            return "with denoise=False, fits are simulated for a given λ only; give λ as a number"
        return None

    @property
    def _around_zero(self) -> bool:
        """Whether labels of any coefficients would be within their bounds without an intercept."""
        rows, (low, high) = self.rows, self.privacy.y_bounds
        weights = np.ones(rows.shape[0]) if rows.weights is None else rows.weights
        means = rows.rmatvec(weights)[rows.live] / np.sqrt(rows.total * rows.squares[rows.live])
        return low < 0.0 < high and bool(np.max(np.abs(means)) <= _LARGEST_MEAN)

    def with_epsilon(self, factor: float) -> Scheme:
        """The scheme with ε times `factor`: the noise keeps its shape and changes its level.

        Examples
        --------
        >>> import privasso as pv
        >>> from privasso.fit import FitOptions, plan_fit
        >>> options = FitOptions(pv.LabelDP(1.0, 1e-6, (0, 1)))
        >>> scheme = Scheme.of_plan(plan_fit(np.random.default_rng(0).random((50, 3)), options))
        >>> scheme.with_epsilon(2.0).calibration.level < scheme.calibration.level
        True
        """
        epsilon = factor * self.privacy.epsilon
        privacy, calibration = LabelRelease(self.privacy).rescaled(
            self.calibration, epsilon, self.rows.shape[0]
        )
        return replace(self, privacy=privacy, calibration=calibration)

    def on_columns(self, columns: np.ndarray) -> Scheme:
        """The scheme on some of the columns, with noise that is calibrated anew."""
        assert self.noise is not None
        rows = self.rows.selected(columns)
        return replace(self, rows=rows, calibration=calibrate(rows, self.privacy, self.noise))
