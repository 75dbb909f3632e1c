"""The page that shows the whole reproduction."""

from __future__ import annotations

from collections.abc import Iterable

import privasso as pv
from privasso.page import Page
from privasso.reproduction._claims import Claim, Finding, Verdict
from privasso.reproduction._settings import ALPHA, RHO, SIGMA_XI, Settings
from privasso.reproduction._study import Study

TITLE = "Stabilizing private LASSO: the paper, reproduced"
CLASSES = {
    Verdict.CONFIRMED.value: "good",
    Verdict.PARTLY.value: "middling",
    Verdict.CONTRADICTED.value: "bad",
}


def page(
    settings: Settings,
    drawn: Iterable[tuple[Study, bytes, str]],
    claims: Iterable[tuple[Claim, Finding]],
) -> Page:
    """Return the page: claims first, then each figure with its finding.

    `drawn` holds each study with its picture (PNG) and caption.
    """
    drawn, claims = list(drawn), list(claims)
    out = Page(TITLE)
    out.paragraph(
        "Every figure and claim of Tanzawa and Sakata, “Stabilizing Private LASSO under "
        "Heterogeneous Covariates via Anisotropic Objective Perturbation” (arXiv 2605.01492), "
        "computed again and put to a test.",
        kind="lead",
    )
    out.paragraph(summary(claims))
    out.paragraph(scope(settings), kind="warning" if settings.name != "full" else "note")
    out.heading("Claims")
    out.table(
        ["", "claim", "section", "verdict", "measured"],
        [
            [claim.key, claim.statement, claim.section, finding.verdict.value, finding.measured]
            for claim, finding in claims
        ],
        classes=CLASSES,
    )
    for study, picture, caption in drawn:
        out.heading(study.title)
        out.image(picture, caption, description=study.title)
    out.heading("The tests")
    out.paragraph(
        "Verdicts are computed from the tables by these rules; a rule can come out either way."
    )
    out.table(["", "test"], [[claim.key, claim.test] for claim, _ in claims])
    out.heading("How to repeat this")
    out.code(command(settings, [study.name for study, _, _ in drawn]))
    out.paragraph(
        "Tables (CSV and Parquet), figures (PDF and PNG), claims.json and manifest.json lie beside "
        "this page. The same seed gives the same tables, byte for byte, whatever the number of "
        "jobs; a run that was interrupted goes on where it stopped."
    )
    return out


def summary(claims: Iterable[tuple[Claim, Finding]]) -> str:
    """Count the verdicts in one sentence."""
    verdicts = [finding.verdict for _, finding in claims]
    counts = [f"{verdicts.count(kind)} {kind.value}" for kind in Verdict if verdicts.count(kind)]
    return f"{len(verdicts)} claims: {', '.join(counts)}."


def scope(settings: Settings) -> str:
    """Say what was computed, and what was made smaller than in the paper."""
    text = (
        f"privasso {pv.__version__}, α = {ALPHA:g}, ρ = {RHO:g}, σ_ξ = {SIGMA_XI:g}, N = "
        f"{settings.n_features} columns, {settings.samples} data sets a point, seed "
        f"{settings.seed}."
    )
    if settings.name != "full":
        text = (
            f"A {settings.name} run: smaller data, fewer data sets and coarser grids than the full "
            "one (N = 1000, 100 data sets a point). Its verdicts are provisional. " + text
        )
    return text


def command(settings: Settings, figures: list[str]) -> str:
    """Return the command line that repeats a run."""
    from privasso.reproduction._studies import STUDIES

    words = ["privasso", "reproduce"]
    words += figures if len(figures) < len(STUDIES) else []
    words += ["--quick"] if settings.name == "quick" else []
    return " ".join([*words, f"--samples {settings.samples}", f"--seed {settings.seed}"])
