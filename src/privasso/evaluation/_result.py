"""What an evaluation found, in numbers, as a table and in sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from privasso._types import Passed
from privasso.evaluation._linear import WITHIN
from privasso.evaluation._ratios import Estimate
from privasso.privacy import Guarantee

_SENTENCES = {
    "r2": "Predictions explain {} of the variance of the labels",
    "mae": "Predictions are off by {} on average",
    "mse": "The square of the error is {} on average",
    "rmse": "The root of the mean squared error is {}",
    "calibration intercept": "Labels exceed predictions by {} on average",
    "calibration slope": "Labels change by {} where predictions change by 1",
    "auc": "Of two records of different classes, the positive one has the larger score with the "
    "probability {}",
    "log-loss": "The mean logarithmic loss is {}",
    "accuracy": "The more probable class is the right one for {} of the records",
    WITHIN: "y lies within ± {} of the prediction for {:g} % of new rows",
}
#: With two classes these are about log odds.
_ODDS = {
    "calibration intercept": "Log odds are {} above those predicted, on average",
    "calibration slope": "Log odds change by {} where those predicted change by 1",
}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Metrics of a model with intervals, and the privacy statement; print it.

    Attributes
    ----------
    values : mapping of str to float
        The metrics; NaN where noise hides them.
    intervals : mapping of str to (float, float)
        Low and high of each metric of the population that rows were drawn from; ±inf where noise
        bounds nothing. For ``"prediction-interval"`` that of the distance that exactly so many new
        labels keep.
    level : float
        How often an interval holds the metric, rows and noise both drawn anew.
    coverage : float
        Which part of new labels is within the distance of ``"prediction-interval"``.
    n_rows : int
        Rows that were given.
    guarantee : Guarantee
        The privacy statement.
    """

    values: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    level: float
    coverage: float
    n_rows: int
    guarantee: Guarantee = field(repr=False)
    classes: bool = False

    @staticmethod
    def of(found: Mapping[str, Estimate], **others: Passed) -> Evaluation:
        """From estimates."""
        values = {name: one.value for name, one in found.items()}
        return Evaluation(
            values, {name: (one.low, one.high) for name, one in found.items()}, **others
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """One for each metric."""
        return tuple(map(self._sentence, self.values))

    def _sentence(self, name: str) -> str:
        value, (low, high) = self.values[name], self.intervals[name]
        said = {**_SENTENCES, **(_ODDS if self.classes else {})}[name]
        if math.isnan(value):
            return f"{name} cannot be told: noise hides it. More rows or a larger ε would show it."
        said = said.format(f"{value:.3g}", 100.0 * self.coverage)
        return f"{said} ({100.0 * self.level:g} % interval {low:.3g} to {high:.3g})."

    def __str__(self) -> str:
        lines = [f"{'metric':<24}{'value':>12}{'low':>12}{'high':>12}"]
        for name, value in self.values.items():
            low, high = self.intervals[name]
            lines.append(f"{name:<24}{value:>12.4g}{low:>12.4g}{high:>12.4g}")
        return "\n".join([*lines, "", *self.sentences, "", str(self.guarantee)])

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        metrics = {
            name: {"value": value, "low": self.intervals[name][0], "high": self.intervals[name][1]}
            for name, value in self.values.items()
        }
        return {
            "metrics": metrics,
            "level": self.level,
            "coverage": self.coverage,
            "n_rows": self.n_rows,
            "sentences": list(self.sentences),
            "guarantee": self.guarantee.to_dict(),
        }
