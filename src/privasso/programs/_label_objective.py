"""Objective perturbation for labels: noise in proportion to a residual, not to a label.

In coordinates in which the noise Σ₀ of the release is the identity, rows g_μ = √w_μ Σ₀^(−½) f_μ
have a length of at most 1. The mechanism publishes the minimiser û of

    Σ_μ ℓ_κ(√w_μ (y_μ − c) − g_μᵀu) + (Λ/2)‖u‖² + ηᵀu,   η ~ N(0, σ²I).

Its optimality condition is Λû + η = Σ_μ ψ_μ g_μ, ψ_μ the clipped residuals. With public rows

    b = (GᵀG + Λ)û = Gᵀ(√w(y − c)) − η − Σ_μ (r_μ − ψ_μ) g_μ

is computed from û alone, r_μ the residuals. Where none is clipped, it is the product of rows and
labels with Gaussian noise of deviation σ ∝ κ, against the range of the labels where the products
themselves are released. So everything that uses such a release works for it too.

Where residuals are clipped the last entry of b is about the median of the labels rather than their
mean. A noisy mean of the labels then corrects it; see `Level`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from privasso.operators import Covariates
from privasso.privacy import LabelDP
from privasso.programs._intercept import FromMean, Level
from privasso.programs._label_rows import LabelMap, as_release
from privasso.programs._program import Program
from privasso.programs._release import Calibration, Release
from privasso.queries import Ask, ObjectiveNoise, PerturbedMinimiser


@dataclass(frozen=True, eq=False)
class ObjectiveProgram(Program):
    """Ask for the minimiser, and for the mean of the labels where that corrects the intercept."""

    rows: Covariates = field(repr=False)
    calibration: Calibration
    noise: ObjectiveNoise
    privacy: LabelDP
    view: LabelMap
    level: Level | None

    again = True

    @property
    def kappa(self) -> float:
        """Of the objective."""
        return self.noise.kappa

    def __call__(self, ask: Ask, lam: float = 0.0) -> Release:
        """The minimiser as products of rows and labels."""
        noise, made = self.noise, self.view.rows
        free = np.zeros(made.n_columns)
        u = ask(PerturbedMinimiser(self.view, noise, 0.0, free))
        white = (made.normal_product(self._moments, u) + noise.ridge * u) / noise.sigma
        off = 0.0
        if self.level is not None and made.ones is not None:
            # Rows count as in the fit, so that one far from all others, which is shrunk, does not
            # decide the mean. No weight is larger than 1, so that no label moves the sum by more.
            weights, total = self.calibration.weights, float(self.rows.shape[0])
            total = total if weights is None else float(np.sum(np.minimum(weights, 1.0)))
            mean = self.calibration.sigma_sum * float(white[-1]) / total / self.privacy.units
            off = self.level.correction(
                ask,
                FromMean(made.ones, mean),
                view=self.view,
                n_rows=total,
            )
        bounds, unit = self.privacy.y_bounds, self.privacy.unit
        return as_release(self.rows, bounds, self.calibration, white, unit, level=off)

    @cached_property
    def _moments(self) -> np.ndarray:
        return self.rows.moments(self.calibration.weights, ones=self.rows.centred)
