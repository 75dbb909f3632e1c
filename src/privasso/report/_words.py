"""A fit in words: what its intervals are about, and a paragraph for a paper."""

from __future__ import annotations

import math

from privasso.report._facts import FitFacts

#: What the coefficient is of which an interval is shown.
_TARGETS = {
    "least-squares": "least squares in the population",
    "huber": "a regression with residuals clipped at {:.3g} in the population",
    "logistic": "logistic regression in the population, in log odds",
}


def coefficient_cells(facts: FitFacts) -> dict[str, list[str]]:
    """What is known of each coefficient that is shown, column by column of a table."""
    model, shown = facts.model, facts.shown
    coef, noise = model.coef[shown], facts.coef_noise
    cells = {"coefficient": [f"{x:.5g}" for x in coef]}
    if facts.units is not None:
        cells[f"effect of its {facts.rise}"] = [f"{x:.4g}" for x in coef * facts.units[shown]]
    if model.intervals is not None:
        middle, ends = model.intervals.estimates()[shown].tolist(), model.confint()[shown].tolist()
        cells["estimate"] = [number(x) for x in middle]
        cells["95 % interval"] = [interval(low, high) for low, high in ends]
        if model.classes is not None:
            cells["odds ratio"] = [
                "" if math.isnan(x) else f"{_odds(x)}: {_odds(low)} to {_odds(high)}"
                for x, (low, high) in zip(middle, ends, strict=True)
            ]
    elif noise is not None:
        cells["its noise"] = [f"{x:.2g}" for x in noise[shown]]
    notes = [facts.notes[k] for k in shown]
    return {**cells, "note": notes} if any(notes) else cells


def interval_words(facts: FitFacts) -> list[str]:
    """What the intervals are about."""
    intervals = facts.model.intervals
    assert intervals is not None
    targets = list(intervals.laws)
    said = [
        "An interval holds, in 95 of 100 fits, the coefficient of "
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


_PROTECTED = {"label": "the label of one record", "record": "one record", "person": "one person"}
_CHANGED = {"emptied": "is replaced by an empty one", "replaced": "is replaced by another one"}
_MODEL = {
    False: "A linear model with an L1 penalty (LASSO, λ = {:.4g})",
    True: "A logistic regression with an L1 penalty (λ = {:.4g})",
}


def methods(facts: FitFacts) -> str | None:
    """What was done, in sentences to paste; None without a formal guarantee."""
    model, guarantee = facts.model, facts.model.guarantee
    if not guarantee.formal or guarantee.neighbours is None:
        return None
    logistic = model.classes is not None
    kept = "" if model.screened is None else f", after {len(model.screened)} of them were chosen"
    said = [
        f"{_MODEL[logistic].format(model.lam)} of {facts.target} on {model.n_features} columns and "
        f"{facts.n_rows} rows was fitted{kept} under differential privacy with "
        f"ε = {guarantee['epsilon']:g} and δ = {guarantee['delta']:g}, with privasso "
        f"{model.software}. Neighbouring data sets differ in that "
        f"{_PROTECTED[guarantee.neighbours.unit]} {_CHANGED[guarantee.neighbours.relation]}."
    ]
    if guarantee.label_bounds is not None and not logistic:
        low, high = guarantee.label_bounds
        said.append(f"The outcome was clipped to the public bounds {low:g} and {high:g}.")
    if facts.ranges is not None:
        said.append("Covariates were clipped to public bounds, too.")
    references = facts.all_references
    if references:
        listed = ", ".join(f"{column}: {level}" for column, level in references.items())
        said.append(f"Reference levels were {listed}.")
    if model.intervals is not None:
        words = _TARGETS[next(iter(model.intervals.laws))].format(model.intervals.kappa)
        said.append(
            f"Intervals of 95 % are for the coefficients of {words}. They follow from "
            "noisy sums of scores and of their products at the released coefficients, which are a "
            "part of the budget, and account for sampling, privacy noise, penalty and ridge."
        )
        if model.intervals.given:
            said.append("They are given the choice of columns.")
    return " ".join(said)
