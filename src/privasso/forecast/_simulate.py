"""The distribution of R² over simulated fits."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, eq=False)
class Simulated:
    """R² on new rows of simulated fits; −∞ where a fit found no model.

    `effect_error` (N,): root mean square error of a coefficient times the range of its column;
    None where it is not computed.
    """

    r2: np.ndarray = field(repr=False)
    effect_error: np.ndarray | None = field(default=None, repr=False)

    @property
    def median(self) -> float:
        """The R² that half of the fits reach."""
        return float(np.quantile(self.r2, 0.5, method="inverted_cdf"))

    @property
    def interval(self) -> tuple[float, float]:
        """The middle 80 %: one fit of ten is below, and one above."""
        low, high = np.quantile(self.r2, [0.1, 0.9], method="inverted_cdf")
        return float(low), float(high)

    def part_of(self, best: Simulated) -> float:
        """The part of what the best fits of the same truths explain, at the median; at least 0."""
        return float(np.median(np.clip(self.r2, 0.0, None) / np.maximum(best.r2, 1e-9)))

    @property
    def positive(self) -> float:
        """Share of the fits that predict better than the mean label."""
        return float(np.mean(self.r2 > 0.0))
