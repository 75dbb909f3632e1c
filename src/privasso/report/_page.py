"""The report of a fit as one HTML page."""

from __future__ import annotations

import math

import numpy as np

from privasso.page import Page
from privasso.report._facts import FitFacts
from privasso.report._in_short import in_short
from privasso.report._outlook import outlook_section
from privasso.report._plots import (
    MOST,
    coefficient_figure,
    forecast_figure,
    influence_figure,
    noise_figure,
    path_figure,
)
from privasso.solvers import Status

#: What the noise of a coefficient is, by whether the LASSO ran on the best guess from the release.
_MEANING = {
    True: (
        "Its noise is the posterior standard deviation of the coefficient given the release, which "
        "includes the privacy noise and assumes a variance of the labels."
    ),
    False: (
        "Its noise is the standard deviation that the privacy noise alone gives the coefficient, "
        "with the columns found here; sampling error is not included."
    ),
}
_LOGISTIC = (
    "Its noise is the standard error, of sampling and of privacy noise together, with the columns "
    "found here."
)


#: What no forecast uses, by whether covariates are private.
_UNUSED = {True: "No record", False: "No label"}
_STANDARD_ERROR = (
    "that of sampling and privacy noise together, given which coefficients are not zero; the bias "
    "by λ is not part of it."
)


#: What the bars are where the noise of the coefficients is not released.
_SIMULATED_ERROR = (
    "How far these coefficients are from the truth is not released. The bars show the error that "
    "was usual in the simulated fits below: it includes the privacy noise, the sampling error and "
    "the shrinkage, and holds under the assumptions that are stated there. Coefficients of columns "
    "that are correlated are less certain."
)


def fit_page(facts: FitFacts) -> Page:
    """Build the report: guarantee, coefficients, noise, stability, forecast, path.

    Where covariates are not public and the guarantee does not cover the release, only the
    guarantee and the coefficients are shown.
    """
    guaranteed = facts.model.guarantee.for_release
    page = Page(f"{'Private LASSO' if guaranteed else 'LASSO'} for {facts.target}", "report")
    warning = facts.model.guarantee.warning
    if warning is not None:
        page.paragraph(warning, kind="warning")
    page.paragraph(_lead(facts), kind="lead")
    in_short(page, facts)
    _guarantee(page, facts)
    _coefficients(page, facts)
    if facts.columns is not None:
        _noise(page, facts)
    if facts.influence is not None:
        _influence(page, facts)
    if facts.mechanism is not None:
        _mechanism(page, facts)
    if facts.outlook is not None:
        outlook_section(page, facts)
    if facts.stability is not None:
        _stability(page, facts)
    if facts.forecast is not None:
        _forecast(page, facts)
    if facts.path is not None:
        _path(page, facts)
    _again(page, facts)
    return page


def _lead(facts: FitFacts) -> str:
    model = facts.model
    count = int(np.count_nonzero(model.coef))
    which = "coefficient is" if count == 1 else "coefficients are"
    what = "A sparse linear model for"
    if model.classes is not None:
        what = f"A sparse logistic regression, log odds of {model.classes[1]!r}, for"
    return (
        f"{what} {facts.target} from {facts.n_rows} rows and "
        f"{model.n_features} columns. At λ = {model.lam:.6g}, {count} {which} not zero; the "
        f"intercept is {model.intercept:.5g}."
    )


def _guarantee(page: Page, facts: FitFacts) -> None:
    guarantee = facts.model.guarantee
    page.heading("What is guaranteed" if guarantee.for_release else "What is stated")
    page.paragraph(guarantee.claim)
    page.subheading("What was released")
    page.items([text[0].upper() + text[1:] + "." for text in guarantee.released])
    if guarantee.assumptions:
        page.subheading("This holds provided that")
        page.items([text + "." for text in guarantee.assumptions])
    if facts.composition is not None:
        page.paragraph(facts.composition, kind="note")


def _coefficients(page: Page, facts: FitFacts) -> None:
    page.heading("Coefficients")
    support = facts.support
    if support.size == 0:
        page.paragraph(
            "Every coefficient is zero: at this λ the model predicts the intercept for everybody. "
            "The noise may be too strong for any coefficient."
        )
        return
    coef, units, noise = facts.model.coef, facts.units, facts.coef_noise
    if units is not None and noise is None:
        page.paragraph(
            "Those that are not zero, the largest effect first. The effect is the coefficient "
            f"times the {facts.unit_words}, in {_label_unit(facts)}."
            + ("" if facts.effect_error is None else f" {_SIMULATED_ERROR}")
        )
        bars = "" if facts.effect_error is None else "; bars are twice the simulated error"
        page.figure(
            coefficient_figure(facts),
            (f"The {MOST} largest effects" if support.size > MOST else "All effects") + f"{bars}.",
            description="Effects of the columns",
        )
        page.table(
            ["column", "coefficient", "effect"],
            [[facts.names[k], f"{coef[k]:.5g}", f"{coef[k] * units[k]:.4g}"] for k in support],
            numeric=["coefficient", "effect"],
        )
        return
    if units is None or noise is None:
        page.paragraph("Those that are not zero, the largest first, in the units of the data.")
        page.table(
            ["column", "coefficient"],
            [[facts.names[k], f"{coef[k]:.5g}"] for k in support],
            numeric=["coefficient"],
        )
        return
    page.paragraph(
        "Those that are not zero, the largest effect first. The effect is the coefficient times "
        f"the {facts.unit_words}, in {_label_unit(facts)}. {_meaning(facts)} A coefficient below "
        "twice its noise says little."
    )
    page.figure(
        coefficient_figure(facts),
        (f"The {MOST} largest effects" if support.size > MOST else "All effects")
        + "; bars are two standard deviations of their noise.",
        description="Effects of the columns with error bars",
    )
    heads = ["coefficient", "its noise", "effect", "coefficient / noise"]
    shown = facts.columns is not None and facts.model.classes is None
    errors = facts.model.coef_se if shown else None
    rows = []
    for k in support:
        ratio = abs(coef[k]) / noise[k] if noise[k] > 0.0 else math.inf
        cells = [f"{coef[k]:.5g}", f"{noise[k]:.2g}", f"{coef[k] * units[k]:.4g}", f"{ratio:.1f}"]
        more = [] if errors is None else [f"{errors[k]:.2g}"]
        rows.append([facts.names[k], *cells, *more])
    if errors is not None:
        heads.append("standard error")
        page.paragraph(f"The standard error is {_STANDARD_ERROR}")
    page.table(["column", *heads], rows, numeric=heads)


def _label_unit(facts: FitFacts) -> str:
    return "units of the labels" if facts.model.classes is None else "log odds"


def _meaning(facts: FitFacts) -> str:
    """What the noise of a coefficient is."""
    if facts.model.classes is not None:
        return _LOGISTIC
    errors = f"Its noise is its standard error, {_STANDARD_ERROR}"
    return errors if facts.columns is None else _MEANING[facts.model.denoised]


def _mechanism(page: Page, facts: FitFacts) -> None:
    assert facts.mechanism is not None
    page.heading("How it was fitted")
    page.paragraph(
        "All of this was decided before the data were read, from the number of rows and columns, "
        "the bounds and the budget. Values are clipped to the bounds of their columns, labels to "
        "theirs; how many were is not shown, because it depends on the data."
    )
    page.table(["setting", "value"], [list(line) for line in facts.mechanism.lines()], numeric=[])


def _noise(page: Page, facts: FitFacts) -> None:
    columns = facts.columns
    assert columns is not None
    page.heading("The noise on each column")
    page.paragraph(
        "Noise was added once, to the products of the columns with the labels. The design decides "
        "how it follows the scale of a column; the guarantee decides its level. A column with "
        "little noise for its size has a large share of the sensitivity and raises the level of "
        "the noise on all columns."
    )
    page.figure(
        noise_figure(facts),
        (f"The {MOST} columns" if np.count_nonzero(columns.sigma) > MOST else "All columns")
        + ", the largest share of the sensitivity first.",
        description="Noise and share of the sensitivity of each column, by name",
    )
    live = columns.scale > 0.0
    words = ["smallest", "median", "largest"]
    spread = [
        [label, *(f"{x:.3g}" for x in np.quantile(values[live], [0.0, 0.5, 1.0]))]
        for label, values in (
            ("scale of the column", columns.scale),
            ("noise σ in its entry of Fᵀy", columns.sigma),
            ("effect of that noise on a prediction, label units", columns.in_label_units),
        )
    ]
    page.table(["over the columns", *words], spread, numeric=words)
    if not live.all():
        dead = [name for name, alive in zip(facts.names, live, strict=True) if not alive]
        shown = ", ".join(dead[:10]) + (" …" if len(dead) > 10 else "")
        page.paragraph(
            f"Constant columns say nothing about the labels and get no noise: {shown}.", kind="note"
        )


def _influence(page: Page, facts: FitFacts) -> None:
    influence = facts.influence
    assert influence is not None
    page.heading("How much one row can matter")
    page.paragraph(
        "The noise must hide the label of the row that could move the release most. Where a few "
        "rows reach much further than the others, they set the noise for all; shrinking such rows "
        "beforehand, or leaving columns with extreme values out, lowers it. This depends on the "
        f"covariates alone. Half of the rows have at most {np.median(influence):.0%} of the "
        f"largest influence, and {np.mean(influence > 0.9):.0%} of them more than 90 % of it."
    )
    page.figure(
        influence_figure(facts),
        "Rows by how much their labels can move the release.",
        description="Histogram of the influence of the rows",
    )


def _stability(page: Page, facts: FitFacts) -> None:
    assert facts.stability is not None
    page.heading("Stability")
    page.paragraph(facts.stability.sentence(facts.model.lam))


def _forecast(page: Page, facts: FitFacts) -> None:
    forecast = facts.forecast
    assert forecast is not None
    page.heading("What could be expected")
    page.paragraph(
        f"R² on new rows of {forecast.fits} simulated fits on {forecast.on}, and what a change "
        f"of the fit would bring. {_UNUSED[facts.records]} was used for this: it is what "
        "could be known before the fit, not a property of this model."
    )
    if np.isfinite(forecast.outcome.median):
        page.figure(
            forecast_figure(facts),
            "Median, and the range of 8 of 10 simulated fits.",
            description="Forecast of R² for the fit as planned and for changes of it",
        )
    heads = ["median", "8 of 10 fits", "above 0"]
    page.table(["fit", *heads], [list(line) for line in forecast.lines()], numeric=heads)
    page.paragraph(
        f"{forecast.in_words()} Other coefficients or labels behave differently.",
        kind="note",
    )
    page.paragraph(
        "What this model reaches is not shown: its R² on the data of the fit would say something "
        "about the labels beyond the guarantee. Compare predictions with labels that are public or "
        "that were kept out of the fit."
    )


def _path(page: Page, facts: FitFacts) -> None:
    path = facts.path
    assert path is not None
    page.heading("Other values of λ")
    page.paragraph("The whole path is computed from the same release and costs no further privacy.")
    for status, what in (
        (Status.UNBOUNDED, "no minimiser exists"),
        (Status.MAX_ITER, "the solver did not reach its accuracy, and nothing is shown"),
        (Status.DIVERGED, "the solver diverged, and nothing is shown"),
    ):
        count = int(np.sum(path.status == status))
        if count:
            page.paragraph(f"At {count} of the {path.lams.size} values of λ {what}.", kind="note")
    if np.nan_to_num(path.coef).any():
        page.figure(
            path_figure(facts),
            f"Each coefficient times the {facts.unit_words}.",
            description="Coefficient paths",
        )
    else:
        page.paragraph("Every coefficient is zero along the path.")


def _again(page: Page, facts: FitFacts) -> None:
    page.heading("How to repeat it")
    if "--from-release" in facts.command:
        said = (
            "This command made the model from a kept release. It reads no labels and costs nothing."
        )
    else:
        spends = " and spends the budget once more" if facts.model.guarantee.formal else ""
        said = f"This command made the model. Running it again draws new noise{spends}."
    page.paragraph(said)
    page.code(facts.command)
    if facts.resolve is not None:
        page.paragraph("Another λ from the same release, without labels and at no cost:")
        page.code(facts.resolve)
    page.paragraph(f"privasso {facts.model.software}", kind="note")
