"""What a claim of the paper is, with the test that decides on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from privasso.paper.figures import Tables

#: Two numbers agree if they differ by at most this many standard errors.
AGREE = 3.0


class ClaimVerdict(Enum):
    """What the tables of a run say about a claim.

    Examples
    --------
    >>> [verdict.value for verdict in ClaimVerdict]
    ['confirmed', 'partly', 'contradicted', 'not tested in this run']
    """

    CONFIRMED = "confirmed"
    PARTLY = "partly"
    CONTRADICTED = "contradicted"
    UNTESTED = "not tested in this run"


@dataclass(frozen=True)
class Numbers:
    """A small table of measured numbers, written as they are to be shown.

    Attributes
    ----------
    title : str
        What the table shows.
    columns : tuple of str
        Headings; the first one is that of the names of the rows.
    rows : tuple of tuples of str
        Cells.

    Examples
    --------
    >>> print(Numbers("Error", ("law", "E"), (("v1", "0.12"),)).markdown())
    Error:
    <BLANKLINE>
    | law | E |
    |---|---:|
    | v1 | 0.12 |
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        """Return the table as Markdown; columns of numbers are set flush right."""
        right = self.numeric()
        rule = "|".join("---:" if column in right else "---" for column in self.columns)
        lines = [f"{self.title}:", "", f"| {' | '.join(self.columns)} |", f"|{rule}|"]
        return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in self.rows)])

    def numeric(self) -> list[str]:
        """Return the headings of the columns whose cells all begin with a number."""
        return [
            column
            for column, cells in zip(self.columns, zip(*self.rows, strict=True), strict=False)
            if all(cell.lstrip("+−-")[:1].isdigit() or cell in ("none", "—") for cell in cells)
        ]

    def record(self) -> dict[str, Any]:
        """Return the table for a JSON file."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"title": self.title, "rows": rows}


@dataclass(frozen=True)
class Finding:
    """A verdict and the numbers on which it is based.

    Attributes
    ----------
    verdict : ClaimVerdict
    measured : str
        What was found, in one or two sentences.
    values : dict
        The numbers that decide, as JSON values.
    tables : tuple of Numbers
        The numbers by case, for readers.

    Examples
    --------
    >>> found = Finding(ClaimVerdict.CONFIRMED, "6 of 6 cases", {"cases": 6})
    >>> found.verdict.value, found.values
    ('confirmed', {'cases': 6})
    """

    verdict: ClaimVerdict
    measured: str
    values: dict[str, Any]
    tables: tuple[Numbers, ...] = ()


@dataclass(frozen=True)
class Claim:
    """One statement of the paper, in our words, with the test that decides on it.

    Attributes
    ----------
    key : str
        The letter that identifies it.
    statement : str
        What the paper says.
    section : str
        Where the paper says it.
    test : str
        What is measured, and the thresholds of the verdict.
    needs : tuple of str
        Names of the tables that the test reads.
    judge : callable
        From the tables to the finding.
    """

    key: str
    statement: str
    section: str
    test: str
    needs: tuple[str, ...]
    judge: Callable[[Tables], Finding]

    def decide(self, tables: Tables) -> Finding:
        """Apply the test; the claim is untested if a table is missing."""
        missing = [name for name in self.needs if name not in tables]
        if missing:
            figures = ", ".join(sorted({name.split("_")[0] for name in missing}))
            return Finding(ClaimVerdict.UNTESTED, f"needs {figures}", {})
        return self.judge(tables)

    def record(self, finding: Finding) -> dict[str, Any]:
        """Return the claim and a finding for a JSON file."""
        return {
            "key": self.key,
            "statement": self.statement,
            "section": self.section,
            "test": self.test,
            "verdict": finding.verdict.value,
            "measured": finding.measured,
            "values": finding.values,
            "tables": [table.record() for table in finding.tables],
        }


def verdict_of(share: float, *, confirmed: float = 0.95, contradicted: float = 0.5) -> ClaimVerdict:
    """Return the verdict for the share of cases in which a claim holds.

    Examples
    --------
    >>> [verdict_of(share).name for share in (1.0, 0.8, 0.2)]
    ['CONFIRMED', 'PARTLY', 'CONTRADICTED']
    """
    if share >= confirmed:
        return ClaimVerdict.CONFIRMED
    return ClaimVerdict.CONTRADICTED if share < contradicted else ClaimVerdict.PARTLY
