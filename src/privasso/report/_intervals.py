"""Intervals of a fit, in the report."""

from __future__ import annotations

import math

from privasso.report._facts import FitFacts

#: What the coefficient is of which an interval is shown.
_TARGETS = {
    "least-squares": "that least squares would give in the population",
    "huber": "that a regression with residuals clipped at {:.3g} would give in the population",
    "logistic": "that logistic regression would give in the population, in log odds",
}


def interval_cells(facts: FitFacts) -> dict[str, list[str]]:
    """Estimates and intervals of 95 % of the columns that are shown."""
    model, cells = facts.model, {}
    assert model.intervals is not None
    middle = model.intervals.estimates()[facts.shown].tolist()
    ends = model.confint()[facts.shown].tolist()
    cells["estimate"] = [number(x) for x in middle]
    cells["95 % interval"] = [interval(low, high) for low, high in ends]
    if model.classes is not None:
        cells["odds ratio"] = [
            "" if math.isnan(x) else f"{_odds(x)}: {_odds(low)} to {_odds(high)}"
            for x, (low, high) in zip(middle, ends, strict=True)
        ]
    return cells


def interval_words(facts: FitFacts) -> list[str]:
    """What the intervals are about."""
    intervals = facts.model.intervals
    assert intervals is not None
    targets = list(intervals.laws)
    said = [
        "An interval holds, in 95 of 100 fits, the coefficient "
        f"{_TARGETS[targets[0]].format(intervals.kappa)}, without penalty and ridge. Sampling, "
        "privacy noise and clipping are part of it; the estimate is its middle. The coefficient of "
        "the model itself is shrunk, for predictions."
    ]
    if intervals.given:
        said.append(
            "Columns were chosen first: intervals are about the model of the chosen columns."
        )
    if len(targets) > 1:
        others = ", ".join(targets[1:])
        said.append(f"The model file has intervals for another target, too: {others}.")
    return said


def interval(low: float, high: float) -> str:
    """Both ends, or nothing.

    >>> interval(-1.0, 2.5), interval(math.nan, math.nan)
    ('-1 to 2.5', '')
    """
    return "" if math.isnan(low) else f"{number(low)} to {number(high)}"


def number(x: float) -> str:
    """With as many digits as an interval deserves."""
    return "" if math.isnan(x) else f"{x:.4g}"


def _odds(x: float) -> str:
    return f"{math.exp(min(x, 700.0)):.3g}"
