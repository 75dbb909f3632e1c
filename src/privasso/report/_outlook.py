"""What was predicted of a choice of columns, in words and as a table."""

from __future__ import annotations

from privasso._text import aligned
from privasso.planning import ScreeningOutlook

OUTLOOK_TITLES = (
    "columns with coefficients",
    "R² of chosen columns",
    "R² of all columns",
    "chance that one is chosen",
    "in common in two choices",
)


def outlook_lines(outlook: ScreeningOutlook) -> list[str]:
    """How columns are chosen, and the chances of missing one."""
    settings = outlook.settings
    rounds = "one round" if settings.further == 0 else f"{settings.further + 1} rounds"
    said = [
        f"Columns: {settings.columns} of {outlook.n_columns} are chosen, in {rounds}, for "
        f"{settings.share:g} of the squared sensitivity."
    ]
    if settings.components:
        said.append(
            f"Components: the first {settings.components} of the covariates are fitted, too."
        )
    said += [
        f"Chance to miss in the first round a column that explains {part:.0%}: {chance:.2f}."
        for part, chance in outlook.missed
    ]
    return said


def outlook_table(outlook: ScreeningOutlook) -> list[list[str]]:
    """A line for each number of columns with coefficients."""
    return [
        [str(one.n_true), *(f"{x:.2f}" for x in (one.screened, one.direct, one.found, one.common))]
        for one in outlook.lines
    ]


def outlook_text(outlook: ScreeningOutlook) -> str:
    """All of it for a terminal."""
    table = aligned([OUTLOOK_TITLES, *outlook_table(outlook)])
    return "\n".join([*outlook_lines(outlook), "\nPredicted", table, outlook.in_words()])
