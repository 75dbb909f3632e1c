"""Which coefficients say nothing, by public noise levels alone."""

from __future__ import annotations

import numpy as np

from privasso.fit import Plan
from privasso.report._column_noise import ColumnNoise
from privasso.report._mechanism import RecordMechanism

#: What is noted of a coefficient that noise alone would produce, and of one of a column of zeros
#: and ones that it would produce if hardly any row had a one.
ZERO = "cannot be told from zero"
RARE = "cannot be told from zero if few rows have it"
#: A coefficient is noted that is not larger than so many deviations of the noise.
_TWICE = 2.0
#: What is supposed of the deviation of a column with other values, as a part of its range.
_SPREAD = 1.0 / 8.0


def noise_of_columns(columns: ColumnNoise) -> np.ndarray:
    """Deviation that noise alone gives the coefficient of each public column, if by itself."""
    scale = np.where(columns.scale > 0.0, columns.scale, 1.0)
    return columns.in_label_units / scale


def noise_of_records(
    plan: Plan, mechanism: RecordMechanism, ranges: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """The same of private columns in a perturbed objective, and which may be nearly empty.

    The gradient has noise σ, and a coefficient has that over its curvature and the ridge. Columns
    of zeros and ones may have next to no curvature: how many rows have a one is private.
    """
    if "sigma" not in mechanism.numbers or "ridge" not in mechanism.numbers:
        return None
    sigma, ridge = mechanism.numbers["sigma"], mechanism.numbers["ridge"]
    given = getattr(plan.asking, "indicators", None)
    rare = np.zeros(ranges.size, dtype=bool) if given is None else np.asarray(given, dtype=bool)
    # Columns are in units of half their range, those of zeros and ones in units of their range.
    unit = np.where(rare, ranges, 0.5 * ranges)
    bend = 0.25 if mechanism.name == "logistic" else 1.0
    curvature = np.where(rare, 0.0, bend * plan.shape[0] * (2.0 * _SPREAD) ** 2)
    noise = mechanism.label_width * sigma / (curvature + ridge)
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
