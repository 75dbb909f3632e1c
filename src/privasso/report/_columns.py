"""The noise of each column and of each coefficient, by public numbers alone."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from privasso.fit import Plan
from privasso.noise import Covariance
from privasso.operators import Covariates

#: What is shown of numbers that each column has.
QUANTILES = {
    "smallest": 0.0,
    "lower quartile": 0.25,
    "median": 0.5,
    "upper quartile": 0.75,
    "largest": 1.0,
}
#: What is noted of a coefficient that noise alone would produce, and of one of a column of zeros
#: and ones that it would produce if hardly any row had a one.
ZERO = "cannot be told from zero"
RARE = "cannot be told from zero if few rows have it"
#: A coefficient is noted that is not larger than so many deviations of the noise.
_TWICE = 2.0
#: What is supposed of the deviation of a column with other values, as a part of its range.
_SPREAD = 1.0 / 8.0


@dataclass(frozen=True, eq=False)
class ColumnNoise:
    """Scale and noise of each column, which must be public.

    - `scale` (N,): root mean square of the (centred) column, ‖F_i‖/√M.
    - `sigma` (N,): standard deviation of the noise in its entry of b; zero for a column without
      data.
    - `share` (N,): its share of the squared sensitivity, on average over the rows: ‖F_i‖²·(Σ⁻¹)_ii
      divided by the sum over the columns.
    - `in_label_units` (N,): effect of the noise of a column on a prediction: the noise of the
      coefficient of an uncorrelated column, σ_i/‖F_i‖², times its scale. Zero for a column without
      data.
    """

    scale: np.ndarray = field(repr=False)
    sigma: np.ndarray = field(repr=False)
    share: np.ndarray = field(repr=False)
    in_label_units: np.ndarray = field(repr=False)

    @property
    def live(self) -> np.ndarray:
        """Which columns have data."""
        return self.scale > 0.0

    @property
    def alone(self) -> np.ndarray:
        """Deviation that noise alone gives the coefficient of each column, if by itself."""
        return self.in_label_units / np.where(self.live, self.scale, 1.0)

    def table(self) -> list[list[str]]:
        """A line for each number that columns have, with its `QUANTILES`."""
        lines = {
            "scale of the column": self.scale,
            "noise in its entry of Fᵀy": self.sigma,
            "effect on a prediction, label units": self.in_label_units,
        }
        return [
            [what, *(f"{x:.3g}" for x in quantiles(values[self.live]).values())]
            for what, values in lines.items()
        ]

    def in_words(self) -> str:
        """The effect of the noise on predictions, in words."""
        found = quantiles(self.in_label_units[self.live])
        return (
            "Effect of the noise of one column on a prediction, in label units: median "
            f"{found['median']:.3g}, from {found['smallest']:.3g} to {found['largest']:.3g} (for "
            "uncorrelated columns)."
        )


def quantiles(values: np.ndarray) -> dict[str, float]:
    """The `QUANTILES` of numbers, by their names."""
    return {word: float(np.quantile(values, q)) for word, q in QUANTILES.items()}


def column_noise(rows: Covariates, covariance: Covariance) -> ColumnNoise:
    """Describe the columns under noise of this covariance, which is over the live ones."""
    norms = np.sqrt(rows.squares)
    sigma, part, own = np.zeros_like(norms), np.zeros_like(norms), np.zeros_like(norms)
    sigma[rows.live] = covariance.sigma
    part[rows.live] = rows.squares[rows.live] * covariance.precisions
    own[rows.live] = covariance.sigma / norms[rows.live]
    total = part.sum()
    known = np.isfinite(total) and total > 0.0
    return ColumnNoise(
        scale=norms / np.sqrt(rows.shape[0]),
        sigma=sigma,
        share=part / total if known else np.zeros_like(part),
        in_label_units=own / np.sqrt(rows.shape[0]),
    )


def noise_of_records(
    plan: Plan, name: str, numbers: dict[str, float], ranges: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Deviation that noise alone gives coefficients of private columns, and which may be empty.

    It is for a perturbed objective.

    The gradient has noise σ, and a coefficient has that over its curvature and the ridge. Columns
    of zeros and ones may have next to no curvature: how many rows have a one is private.
    """
    if "sigma" not in numbers or "ridge" not in numbers:
        return None
    given = getattr(plan.asking, "indicators", None)
    rare = np.zeros(ranges.size, dtype=bool) if given is None else np.asarray(given, dtype=bool)
    # Columns are in units of half their range, those of zeros and ones in units of their range.
    unit = np.where(rare, ranges, 0.5 * ranges)
    bend = 0.25 if name == "logistic" else 1.0
    curvature = np.where(rare, 0.0, bend * plan.shape[0] * (2.0 * _SPREAD) ** 2)
    width = plan.options.privacy.label_width or 1.0
    noise = width * numbers["sigma"] / (curvature + numbers["ridge"])
    return np.divide(noise, unit, out=np.full(unit.size, np.inf), where=unit > 0.0), rare


def notes(coef: np.ndarray, noise: np.ndarray | None, rare: np.ndarray | None) -> list[str]:
    """What is noted of each coefficient; nothing of those that are zero.

    >>> notes(np.array([0.0, 1.0, 3.0]), np.array([1.0, 1.0, 1.0]), None)
    ['', 'cannot be told from zero', '']
    """
    if noise is None:
        return [""] * coef.size
    lost = (coef != 0.0) & (np.abs(coef) <= _TWICE * noise)
    few = np.zeros(coef.size, dtype=bool) if rare is None else rare
    return [
        "" if not one else RARE if seldom else ZERO
        for one, seldom in zip(lost.tolist(), few.tolist(), strict=True)
    ]
