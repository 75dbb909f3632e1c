"""What was predicted of a choice of columns, as lines and a table."""

from __future__ import annotations

from privasso.fit import ReleasedModel, ScreenedLabelPlan
from privasso.page import Page
from privasso.planning import ScreeningOutlook
from privasso.report._facts import FitFacts

OUTLOOK_TITLES = (
    "columns with coefficients",
    "R² of chosen columns",
    "R² of all columns",
    "chance that one is chosen",
    "in common in two choices",
)


def outlook_lines(outlook: ScreeningOutlook) -> list[tuple[str, str]]:
    """How columns are chosen, and the chances of missing one."""
    settings = outlook.settings
    rounds = "one round" if settings.further == 0 else f"{settings.further + 1} rounds"
    return [
        (
            "Columns",
            f"{settings.columns} of {outlook.n_columns} are chosen, in {rounds}, for "
            f"{settings.share:g} of the squared sensitivity",
        ),
        *(
            [("Components", f"the first {settings.components} of the covariates are fitted, too")]
            if settings.components
            else []
        ),
        *(
            (
                f"Chance to miss in the first round a column that explains {part:.0%}",
                f"{chance:.2f}",
            )
            for part, chance in outlook.missed
        ),
    ]


def outlook_table(outlook: ScreeningOutlook) -> list[list[str]]:
    """A line for each number of columns with coefficients."""
    return [
        [
            str(one.n_true),
            f"{one.screened:.2f}",
            f"{one.direct:.2f}",
            f"{one.found:.2f}",
            f"{one.common:.2f}",
        ]
        for one in outlook.lines
    ]


def screened_facts(
    model: ReleasedModel, plan: ScreenedLabelPlan, *, command: str, target: str
) -> FitFacts:
    """Collect what may be shown of a fit of labels on chosen columns."""
    privacy = plan.options.privacy
    return FitFacts(
        model=model,
        target=target,
        n_rows=plan.X.shape[0],
        command=command,
        composition=(
            "Further fits on the same labels, at another λ too, add to the loss; a ledger keeps "
            "count of them."
        ),
        label_width=privacy.label_width,
        outlook=plan.outlook,
    )


def outlook_section(page: Page, facts: FitFacts) -> None:
    """Which columns were chosen, and what was predicted before."""
    assert facts.outlook is not None
    page.heading("The choice of columns")
    names = facts.screened_names
    if names is not None:
        page.paragraph(f"Columns that were chosen with noise: {', '.join(names)}.")
    page.items([f"{what}: {value}." for what, value in outlook_lines(facts.outlook)])
    page.paragraph(
        f"{facts.outlook.in_words()} The last column is the part of the chosen columns that two "
        "choices from the same simulated table have in common: where it is small, another draw of "
        "the noise would have chosen other columns."
    )
    page.table(list(OUTLOOK_TITLES), outlook_table(facts.outlook), numeric=list(OUTLOOK_TITLES))
