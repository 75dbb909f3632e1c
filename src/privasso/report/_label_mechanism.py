"""The noise of a fit of labels, known before any is read, as numbers and in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privasso._text import escaped
from privasso.fit import LabelPlan
from privasso.noise import Noise, NoiseDesign, noise_to_dict
from privasso.report._column_noise import ColumnNoise, column_noise

#: What is shown of numbers that each column has.
QUANTILES = {
    "smallest": 0.0,
    "lower quartile": 0.25,
    "median": 0.5,
    "upper quartile": 0.75,
    "largest": 1.0,
}


@dataclass(frozen=True, eq=False)
class LabelMechanism:
    """How labels become a release; no number here depends on a label.

    - `plan`: the plan of the fit.
    - `names`: names of the columns.
    """

    plan: LabelPlan = field(repr=False)
    names: Sequence[str]

    @property
    def columns(self) -> ColumnNoise:
        """The noise of each column."""
        return column_noise(self.plan.rows, self.plan.calibration.covariance)

    @property
    def constant(self) -> list[str]:
        """Columns without data, whose coefficients are zero."""
        live = self.plan.rows.live
        return [name for name, lives in zip(self.names, live, strict=True) if not lives]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; those of a perturbed objective are for labels of range 1."""
        rows, made, noise = self.plan.rows, self.plan.calibration, self.plan.noise
        perturbed = None
        if made.objective is not None:
            keys = ("c", "kappa", "ridge", "sigma", "t")
            perturbed = {key: getattr(made.objective, key) for key in keys}
        return {
            "columns_without_data": self.constant,
            "noise": {**(noise_to_dict(noise) or {}), **_spread(made.covariance.sigma)},
            "shrunk_rows": made.shrunk[0],
            "mean_weight_of_shrunk_rows": made.shrunk[1],
            "mu": made.mu,
            "perturbed_objective": perturbed,
            "noise_of_label_sum": made.sigma_sum if rows.centred else None,
            "in_label_units": _spread(self.columns.in_label_units[rows.live]),
        }

    def sentences(self) -> list[str]:
        """What is done to rows and labels, in words."""
        made, shrunk = self.plan.calibration, self.plan.calibration.shrunk
        said = [f"Noise: {noise_words(self.plan.noise)}."]
        if self.constant:
            shown = escaped(", ".join(self.constant))
            said.insert(0, f"Constant, with coefficient zero: {shown}.")
        if shrunk[0]:
            said.append(
                f"Rows shrunk with their labels: {shrunk[0]}, on average by the factor "
                f"{shrunk[1]:.2g}."
            )
        if made.mu is not None:
            said.append(
                "Sensitivity: changing one label within its bounds moves the release by at most "
                f"μ = {made.mu:.4g} standard deviations of its noise."
            )
        if made.objective is not None:
            x = made.objective
            said.append(
                f"Mechanism: objective perturbation. Residuals beyond {x.kappa:.2g} of the range "
                f"of the labels are clipped, and the ridge is {x.ridge:.3g} (t = {x.t:.3g}); one "
                f"label moves the gradient by at most c = {x.c:.4g} standard deviations of the "
                "noise."
            )
        return said

    def table(self) -> list[list[str]]:
        """A line for each number that columns have, with its `QUANTILES`."""
        live, columns = self.plan.rows.live, self.columns
        lines = {
            "scale of the column": columns.scale[live],
            "noise in its entry of Fᵀy": self.plan.calibration.covariance.sigma,
            "effect on a prediction, label units": columns.in_label_units[live],
        }
        return [
            [what, *(f"{_spread(values)[word]:.3g}" for word in QUANTILES)]
            for what, values in lines.items()
        ]


def noise_words(noise: Noise | None) -> str:
    """The noise in words."""
    if noise is None:
        return "of a design that the file does not describe"
    of = " (v: squared scale)" if isinstance(noise, NoiseDesign) else ""
    return f"{noise.in_words()}{of}, root mean variance {noise.sigma:.4g}"


def _spread(values: np.ndarray) -> dict[str, float]:
    found = {word: float(np.quantile(values, q)) for word, q in QUANTILES.items()}
    return {**found, "root_mean_square": float(np.sqrt(np.mean(values**2)))}
