"""The first lines of a report: what the guarantee means, and the numbers that matter, in words."""

from __future__ import annotations

import math

import numpy as np

from privasso.page import Page
from privasso.report._facts import FitFacts

#: A test that accuses so many innocents is used to say what a guarantee means.
_FALSE = 0.05


def in_short(page: Page, facts: FitFacts) -> None:
    """Add the meaning of the guarantee and a table of the numbers that matter."""
    guarantee = facts.model.guarantee
    if guarantee.formal and guarantee.for_release:
        records = facts.columns is None
        page.paragraph(meaning(guarantee["epsilon"], guarantee["delta"], records=records))
    model = facts.model
    rows = [
        ["rows and columns", f"{facts.n_rows} and {model.n_features}"],
        ["coefficients that are not zero", f"{np.count_nonzero(model.coef)} of {model.n_features}"],
    ]
    if facts.coef_noise is not None and facts.support.size:
        noise = facts.coef_noise[facts.support]
        clear = int(np.sum(np.abs(model.coef[facts.support]) > 2.0 * noise))
        rows.append(["of these, larger than twice their noise", str(clear)])
    if facts.forecast is not None:
        low, high = facts.forecast.outcome.interval
        rows.append(
            [
                "R² on new rows that was to be expected",
                f"{facts.forecast.outcome.median:.2f} ({low:.2f} to {high:.2f} in 8 of 10 fits)",
            ]
        )
    page.table(["in short", "value"], rows)


def meaning(epsilon: float, delta: float, *, records: bool) -> str:
    """What (ε, δ) means for somebody who tries to find out: true ≤ e^ε·false + δ.

    Examples
    --------
    >>> meaning(1.0, 1e-6, records=False)[-83:]
    'so in 5 % of the cases where it has another, is right in at most 14 % of the cases.'
    >>> "no bound" in meaning(10.0, 1e-6, records=True)
    True
    """
    reach = math.exp(min(epsilon, 50.0)) * _FALSE + delta
    whom = "a person's record was among the data" if records else "a person's label has some value"
    other = "it was not" if records else "it has another"
    said = (
        "What the guarantee means: suppose that somebody knows everything about the data but one "
        f"{'record' if records else 'label'}, reads this model and guesses whether {whom}. A rule "
        f"that says so in {_FALSE:.0%} of the cases where {other}, is right in "
    ).replace("5%", "5 %")
    if reach >= 1.0:
        return said + f"possibly all cases: at ε = {epsilon:.3g} there is no bound for this rule."
    percent = math.ceil(100.0 * reach - 1e-9)
    return said + f"at most {percent} % of the cases."
