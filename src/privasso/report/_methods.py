"""A paragraph for the methods section of a paper, from public facts."""

from __future__ import annotations

from privasso.report._facts import FitFacts

_PROTECTED = {"label": "the label of one record", "record": "one record", "person": "one person"}
_CHANGED = {
    "emptied": "is replaced by an empty one",
    "replaced": "is replaced by another one",
}
_MODEL = {
    False: "A linear model with an L1 penalty (LASSO, λ = {:.4g})",
    True: "A logistic regression with an L1 penalty (λ = {:.4g})",
}
_TARGETS = {
    "least-squares": "of least squares in the population",
    "huber": "of a regression with clipped residuals in the population",
    "logistic": "of logistic regression in the population, in log odds",
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
        target = next(iter(model.intervals.laws))
        said.append(
            f"Intervals of 95 % are for the coefficients {_TARGETS[target]}. They follow from "
            "noisy sums of scores and of their products at the released coefficients, which are a "
            "part of the budget, and account for sampling, privacy noise, penalty and ridge."
        )
        if model.intervals.given:
            said.append("They are given the choice of columns.")
    return " ".join(said)
