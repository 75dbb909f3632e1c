"""Error, leakage and sensitivity of a design in one model, with gradients in its parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privasso.design._columns import Family, SearchColumns
from privasso.model import Model
from privasso.theory import Leakage, largest_row_norm, point_gradients

FloatArray = NDArray[np.float64]

#: Takes the place of the logarithm of a number that is infinite or does not exist.
FAR = 60.0
#: Takes the place of the logarithm of a leakage that is zero or nearly so.
FLOOR = -60.0


@dataclass(frozen=True, eq=False)
class LogValue:
    """A logarithm and its gradient in (log λ, log σ², θ)."""

    log: float
    gradient: FloatArray


class Evaluator:
    """One model on fixed columns; each evaluation starts from the fixed point of the last.

    Parameters are x = (log λ, log σ², θ); the variances are σ² e^(Bθ)/E_v[e^(Bθ)].
    """

    def __init__(
        self,
        model: Model,
        columns: SearchColumns,
        family: Family,
        n_features: int | None,
        measure: Leakage = "onavekl",
    ) -> None:
        self.model, self.columns, self.n_features = model, columns, n_features
        self.measure: Leakage = measure
        self.low_exponent = family.low_exponent
        # With arbitrarily small columns the error is infinite unless the noise vanishes with v.
        self.must_vanish = n_features is None and not model.scales.inverse_mean_is_finite
        self._basis = family.basis(columns.log_seen)
        self._at: bytes = b""
        self._start: tuple[float, float] | None = None
        self.error = self.leakage = LogValue(FAR, np.zeros(2 + family.size))

    def at(self, x: FloatArray, *, leak: bool) -> Evaluator:
        """Evaluate `error` and, with `leak`, `leakage` at x, unless that was the last point."""
        key = x.tobytes() + bytes([leak])
        if key == self._at:
            return self
        self._at = key
        variances, relative = self._variances(x)
        point = point_gradients(
            self.model, math.exp(x[0]), variances, self.columns.v, self.columns.w,
            leakage=self.measure if leak else None, start=self._start,
        )  # fmt: skip
        nothing = np.zeros(x.size)
        self.error = self.leakage = LogValue(FAR, nothing)
        if point is None:
            return self
        self._start = point.start
        by_error = self._chain(point.E_by_lam, point.E_by_variances, relative)
        if not (np.isfinite(by_error).all() and math.isfinite(point.leakage)):
            return self
        self.error = LogValue(math.log(point.E), by_error)
        self.leakage = LogValue(FLOOR, nothing)
        if leak and math.exp(FLOOR) < point.leakage:
            by_leak = self._chain(point.leakage_by_lam, point.leakage_by_variances, relative)
            self.leakage = LogValue(math.log(point.leakage), by_leak)
        return self

    def sensitivity(self, x: FloatArray) -> LogValue:
        """Log of the largest squared row norm Σ f²/σ², for labels in an interval of width 1."""
        variances, relative = self._variances(x)
        with np.errstate(divide="ignore", over="ignore"):
            ratios = self.columns.v / variances
        if not np.isfinite(ratios).all():
            return LogValue(FAR, np.zeros(x.size))
        total, parts = largest_row_norm(ratios, self.columns.w, self.n_features, self.model.alpha)
        return LogValue(math.log(total), self._chain(0.0, -parts / total, relative))

    def _variances(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """σ_i², and the share of each column in the mean power."""
        log_profile = self._basis @ x[2:]
        profile = np.exp(log_profile - log_profile.max())
        relative = self.columns.w * profile
        mean = float(relative.sum())
        return profile * (math.exp(x[1]) / mean), relative / mean

    def _chain(self, by_lam: float, by_variance: FloatArray, relative: FloatArray) -> FloatArray:
        out = np.empty(2 + self._basis.shape[1])
        out[0], out[1] = by_lam, by_variance.sum()
        out[2:] = (by_variance - out[1] * relative) @ self._basis
        return out
