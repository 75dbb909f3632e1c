"""The first lines of a report: what the guarantee means, and the numbers that matter, in words."""

from __future__ import annotations

import math

import numpy as np

from privasso.page import Page
from privasso.report._facts import FitFacts

#: What an attacker does not know and what they ask, by whether whole records are protected.
_SAID = {
    False: ("one person's label", "whether that label has a certain value"),
    True: ("one person's record", "whether that record was among the data"),
}
#: Rate of true alarms from which on a guarantee rules out little.
_LITTLE = 0.9
#: A test that accuses so many innocents is used to say what a guarantee means.
_FALSE = 0.05


def in_short(page: Page, facts: FitFacts) -> None:
    """Add the meaning of the guarantee and a table of the numbers that matter."""
    guarantee = facts.model.guarantee
    if guarantee.formal and guarantee.for_release:
        said = meaning(guarantee["epsilon"], guarantee["delta"], records=facts.records)
        page.paragraph(said)
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
    """What (ε, δ) means for somebody who tries to find out, at one rate of false alarms.

    The rate of true alarms is at most e^ε·false + δ, and at most 1 − e^(−ε)·(1 − false − δ).

    Examples
    --------
    >>> meaning(1.0, 1e-6, records=False)[-61:]
    'Of the cases in which it is yes, they then find at most 14 %.'
    >>> meaning(10.0, 1e-6, records=True).partition("then find ")[2]
    'possibly 99.996 %: at ε = 10 the guarantee rules out little for somebody who knows that much.'
    """
    above = math.exp(min(epsilon, 50.0)) * _FALSE + delta
    beside = 1.0 - math.exp(-epsilon) * (1.0 - _FALSE - delta)
    what, question = _SAID[records]
    said = (
        f"What the guarantee means: suppose that somebody knows all of the data except for {what}, "
        f"reads this model and asks {question}. They answer yes, wrongly, in {100 * _FALSE:.0f} % "
        "of the cases in which the answer is no. Of the cases in which it is yes, they then find "
    )
    bound = min(above, beside)
    if bound < _LITTLE:
        return said + f"at most {_percent(bound)} %."
    return said + (
        f"possibly {_percent(bound)} %: at ε = {epsilon:.3g} the guarantee rules out little for "
        "somebody who knows that much."
    )


def _percent(share: float) -> str:
    """A share in per cent, rounded up; near 100 as many digits as tell it from 100.

    Examples
    --------
    >>> _percent(0.1359), _percent(0.95270), _percent(0.9999569), _percent(1.0)
    ('14', '96', '99.996', '100')
    """
    rest = 100.0 * (1.0 - share)
    if rest < 1e-6:
        return "100"
    digits = max(0, -math.floor(math.log10(rest)))
    return f"{100.0 - math.floor(rest * 10.0**digits + 1e-9) / 10.0**digits:.{digits}f}"
