"""The page that shows the whole reproduction."""

from __future__ import annotations

import privasso as pv
from privasso.page import Page
from privasso.paper._drawing import Drawn
from privasso.paper.claims import NOTATION, ClaimVerdict, Decided, count_verdicts
from privasso.paper.figures import ALPHA, FIGURES, RHO, SIGMA_XI, Settings

TITLE = "Stabilizing private LASSO: the paper, reproduced"
CLASSES = {
    ClaimVerdict.CONFIRMED.value: "good",
    ClaimVerdict.PARTLY.value: "middling",
    ClaimVerdict.CONTRADICTED.value: "bad",
}


def page(settings: Settings, drawn: list[Drawn], claims: Decided) -> Page:
    """Return the page: verdicts first, then each figure with its caption, then all numbers."""
    out = Page(TITLE)
    out.paragraph(
        "Every figure and claim of Tanzawa and Sakata, “Stabilizing Private LASSO under "
        "Heterogeneous Covariates via Anisotropic Objective Perturbation” (arXiv 2605.01492), "
        "computed again and tested.",
        kind="lead",
    )
    out.paragraph(count_verdicts(claims))
    out.paragraph(scope(settings), kind="warning" if settings.name != "full" else "note")
    out.heading("Claims")
    out.paragraph(NOTATION)
    out.table(
        ["", "verdict", "claim", "section"],
        [
            [claim.key, finding.verdict.value, claim.statement, claim.section]
            for claim, finding in claims
        ],
        classes=CLASSES,
    )
    for figure, picture, caption in drawn:
        out.heading(figure.title)
        out.image(picture, caption, description=figure.title)
    out.heading("The numbers, claim by claim")
    out.paragraph("Each verdict is computed from the tables of this run by the rule that is given.")
    for claim, finding in claims:
        out.subheading(f"{claim.key}: {finding.verdict.value}")
        out.paragraph(claim.statement)
        out.paragraph(f"Test: {claim.test}", kind="note")
        out.paragraph(f"Measured: {finding.measured}")
        for numbers in finding.tables:
            out.paragraph(f"{numbers.title}:", kind="note")
            out.table(numbers.columns, numbers.rows, numeric=numbers.numeric())
    out.heading("How to repeat this")
    out.code(command(settings, [figure.name for figure, _, _ in drawn]))
    out.paragraph(
        "Tables (CSV and Parquet), figures (PDF and PNG), claims.json and manifest.json are in the "
        "same folder as this page. The same seed gives the same tables, byte for byte, for any "
        "number of jobs. After an interruption the same command continues where it stopped."
    )
    return out


def scope(settings: Settings) -> str:
    """Say what was computed, and what was made smaller than in the paper."""
    text = (
        f"privasso {pv.__version__}, α = {ALPHA:g}, ρ = {RHO:g}, σ_ξ = {SIGMA_XI:g}, N = "
        f"{settings.n_features} columns, {settings.samples} data sets per point (correlated "
        f"columns: N = {settings.correlated_features}, {settings.correlated_samples} data sets), "
        f"seed {settings.seed}."
    )
    if settings.name != "full":
        text = (
            f"A {settings.name} run: smaller data, fewer data sets and coarser grids than the full "
            "one (N = 1000, 100 data sets per point). Its verdicts are provisional. " + text
        )
    return text


def command(settings: Settings, figures: list[str]) -> str:
    """Return the command line that repeats a run."""
    words = ["privasso", "reproduce"]
    words += figures if len(figures) < len(FIGURES) else []
    words += ["--quick"] if settings.name == "quick" else []
    return " ".join([*words, f"--samples {settings.samples}", f"--seed {settings.seed}"])
