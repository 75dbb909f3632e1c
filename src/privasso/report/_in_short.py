"""The first lines of a report: what the guarantee means, and the numbers that matter, in words."""

from __future__ import annotations

import numpy as np

from privasso.page import Page
from privasso.privacy import meaning
from privasso.report._facts import FitFacts


def in_short(page: Page, facts: FitFacts) -> None:
    """Add the meaning of the guarantee and a table of the numbers that matter."""
    guarantee = facts.model.guarantee
    if guarantee.formal and guarantee.for_release:
        page.paragraph(meaning(guarantee))
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
