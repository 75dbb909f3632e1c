"""The report of a fit as one HTML page."""

from __future__ import annotations

import numpy as np

from privasso.fit import CoefficientPath
from privasso.forecast import Forecast
from privasso.page import Page
from privasso.planning import ScreeningOutlook
from privasso.privacy import meaning
from privasso.report._columns import QUANTILES, ColumnNoise
from privasso.report._facts import FitFacts
from privasso.report._mechanism import OUTLOOK_TITLES, outlook_lines, outlook_table
from privasso.report._plots import (
    MOST,
    coefficient_figure,
    forecast_figure,
    noise_figure,
    path_figure,
)
from privasso.report._words import coefficient_cells, interval_words, methods
from privasso.solvers import Status

#: What no forecast uses, by whether covariates are private.
_UNUSED = {True: "No record", False: "No label"}
_ERROR = (
    "Its noise is its standard error, of sampling and of privacy noise together, given which "
    "coefficients are not zero; the bias by λ is not part of it. A coefficient below twice its "
    "noise says little."
)
#: Where the noise enters, by whether the minimiser of a perturbed objective was released.
_NOISY = {
    False: "to the products of the columns with the labels",
    True: "to the objective, whose minimiser was released; the figure shows what it amounts to in "
    "the products of the columns with the labels",
}
_DECIDED = (
    "All of this was decided before the data were read, from the number of rows and columns, the "
    "bounds and the budget. Values are clipped to the bounds of their columns, labels to theirs; "
    "how many were is not shown, because it depends on the data."
)
#: What is said where there are no intervals.
_NO_INTERVALS = (
    "The penalty and the noise shrink coefficients, so that these are for predictions; intervals "
    "for the coefficients of the population need a fit with --intervals."
)


def fit_page(facts: FitFacts) -> Page:
    """Build the report: guarantee, coefficients, noise, forecast, path.

    Where covariates are not public and the guarantee does not cover the release, only the
    guarantee and the coefficients are shown.
    """
    guaranteed = facts.model.guarantee.for_release
    page = Page(f"{'Private LASSO' if guaranteed else 'LASSO'} for {facts.target}", "report")
    warning = facts.model.guarantee.warning
    if warning is not None:
        page.paragraph(warning, kind="warning")
    page.paragraph(_lead(facts), kind="lead")
    if facts.model.guarantee.formal and guaranteed:
        page.paragraph(meaning(facts.model.guarantee))
    _guarantee(page, facts)
    _coefficients(page, facts)
    said = methods(facts)
    if said is not None:
        page.heading("For a methods section")
        page.paragraph(said)
    if facts.columns is not None:
        _noise(page, facts, facts.columns)
    if facts.mechanism is not None:
        page.heading("How it was fitted")
        page.paragraph(_DECIDED)
        page.table(["setting", "value"], [list(line) for line in facts.mechanism.lines()])
    if facts.outlook is not None:
        _outlook(page, facts, facts.outlook)
    if facts.forecast is not None:
        _forecast(page, facts, facts.forecast)
    if facts.path is not None:
        _path(page, facts, facts.path)
    _again(page, facts)
    return page


def _lead(facts: FitFacts) -> str:
    """The numbers that matter, in sentences."""
    model, support = facts.model, facts.support
    what = "A sparse linear model for"
    if model.classes is not None:
        what = f"A sparse logistic regression, log odds of {model.classes[1]!r}, for"
    said = (
        f"{what} {facts.target} from {facts.n_rows} rows and {model.n_features} columns. At "
        f"λ = {model.lam:.6g} the intercept is {model.intercept:.5g}, and "
        f"{np.count_nonzero(model.coef)} of the coefficients are not zero"
    )
    if model.intervals is not None:
        clear = sum(not note for note in facts.notes)
        said += f"; {clear} of {model.n_features} intervals of 95 % do not hold zero"
    elif facts.coef_noise is not None and support.size:
        clear = np.abs(model.coef[support]) > 2.0 * facts.coef_noise[support]
        said += f", {np.sum(clear)} of them larger than twice their noise"
    if facts.forecast is not None:
        expected = facts.forecast.outcome
        low, high = expected.interval
        said += (
            f". The forecast of R² on new rows was {expected.median:.2f} ({low:.2f} to {high:.2f} "
            "in 8 of 10 fits)"
        )
    return f"{said}."


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
    """A figure where effects have a unit, and a table with what is known of each coefficient."""
    page.heading("Coefficients")
    shown, intervals = facts.shown, facts.model.intervals
    if facts.support.size == 0:
        page.paragraph(
            "Every coefficient is zero: at this λ the model predicts the intercept for everybody. "
            "The noise may be too strong for any coefficient."
        )
    if shown.size == 0:
        return
    cells, said = coefficient_cells(facts), []
    which = "All" if intervals is not None else "Those that are not zero"
    if facts.units is None:
        said.append(f"{which}, the largest first, in the units of the data.")
    else:
        unit = "units of the labels" if facts.model.classes is None else "log odds"
        said.append(
            f"{which}, the largest effect first. The effect is the coefficient times the "
            f"{facts.rise} of its column, in {unit}."
        )
    if intervals is not None:
        said += interval_words(facts)
    else:
        said += [_ERROR, _NO_INTERVALS] if facts.coef_noise is not None else [_NO_INTERVALS]
    page.paragraph(" ".join(said))
    if facts.units is not None:
        bars = "intervals of 95 %" if intervals is not None else "twice their noise"
        which = f"The {MOST} largest effects" if shown.size > MOST else "All effects"
        page.figure(
            coefficient_figure(facts), f"{which}; bars are {bars}, where known.",
            description="Effects of the columns",
        )  # fmt: skip
    names = [facts.names[k] for k in shown]
    numeric = [head for head in cells if head not in ("95 % interval", "odds ratio", "note")]
    page.table(["column", *cells], zip(names, *cells.values(), strict=True), numeric=numeric)
    references = [f"{column}: {level}" for column, level in facts.all_references.items()]
    if references:
        page.paragraph(f"Levels are compared with {', '.join(references)}.", kind="note")


def _noise(page: Page, facts: FitFacts, columns: ColumnNoise) -> None:
    page.heading("The noise on each column")
    page.paragraph(
        f"Noise was added once, {_NOISY[facts.perturbed]}. The design decides how it follows the "
        "scale of a column; the guarantee decides its level. A column with little noise for its "
        "size has a large share of the sensitivity and raises the level of the noise on all "
        "columns."
    )
    page.figure(
        noise_figure(facts),
        (f"The {MOST} columns" if np.count_nonzero(columns.sigma) > MOST else "All columns")
        + ", the largest share of the sensitivity first.",
        description="Noise and share of the sensitivity of each column, by name",
    )
    words, live = list(QUANTILES), columns.live
    page.table(["over the columns", *words], columns.table(), numeric=words)
    if not live.all():
        dead = [name for name, alive in zip(facts.names, live, strict=True) if not alive]
        shown = ", ".join(dead[:10]) + (" …" if len(dead) > 10 else "")
        page.paragraph(
            f"Constant columns say nothing about the labels and get no noise: {shown}.", kind="note"
        )


def _outlook(page: Page, facts: FitFacts, outlook: ScreeningOutlook) -> None:
    page.heading("The choice of columns")
    names = facts.screened_names
    if names is not None:
        page.paragraph(f"Columns that were chosen with noise: {', '.join(names)}.")
    page.items(outlook_lines(outlook))
    page.paragraph(
        f"{outlook.in_words()} The last column is the part of the chosen columns that two "
        "choices from the same simulated table have in common: where it is small, another draw of "
        "the noise would have chosen other columns."
    )
    page.table(OUTLOOK_TITLES, outlook_table(outlook), numeric=OUTLOOK_TITLES)


def _forecast(page: Page, facts: FitFacts, forecast: Forecast) -> None:
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
    heads = ["median", "8 of 10 fits", "above 0", "kept of R² without privacy"]
    page.table(["fit", *heads], [list(line) for line in forecast.lines()], numeric=heads)
    page.paragraph(
        f"{forecast.in_words()} Other coefficients or labels behave differently.", kind="note"
    )
    page.paragraph(
        "What this model reaches is not shown: its R² on the data of the fit would say something "
        "about the labels beyond the guarantee. Compare predictions with labels that are public or "
        "that were kept out of the fit."
    )


def _path(page: Page, facts: FitFacts, path: CoefficientPath) -> None:
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
            f"Each coefficient times the {facts.rise} of its column.",
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
