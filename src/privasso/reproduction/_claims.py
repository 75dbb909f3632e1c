"""A claim of the paper, the test it is put to, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from privasso.reproduction._study import Tables


class Verdict(Enum):
    """What the tables say about a claim."""

    CONFIRMED = "confirmed"
    PARTLY = "partly"
    CONTRADICTED = "contradicted"
    UNTESTED = "not tested in this run"


@dataclass(frozen=True)
class Finding:
    """A verdict and the numbers it rests on.

    Attributes
    ----------
    verdict : Verdict
    measured : str
        The numbers, as a sentence.
    values : dict
        The same numbers for machines.
    """

    verdict: Verdict
    measured: str
    values: dict[str, Any]


@dataclass(frozen=True)
class Claim:
    """One statement of the paper, in our words, with the test that decides on it.

    Attributes
    ----------
    key : str
        Letter by which it is referred to.
    statement : str
        What the paper says.
    section : str
        Where it says so.
    test : str
        What is measured, and the thresholds of the verdict.
    needs : tuple of str
        Names of the tables that the test reads.
    judge : callable
        Tables to finding.
    """

    key: str
    statement: str
    section: str
    test: str
    needs: tuple[str, ...]
    judge: Callable[[Tables], Finding]

    def decide(self, tables: Tables) -> Finding:
        """Apply the test, or say that its tables were not computed."""
        missing = [name for name in self.needs if name not in tables]
        if missing:
            figures = ", ".join(sorted({name.split("_")[0] for name in missing}))
            return Finding(Verdict.UNTESTED, f"needs {figures}", {})
        return self.judge(tables)

    def record(self, finding: Finding) -> dict[str, Any]:
        """Return claim and finding for a JSON file."""
        return {
            "key": self.key,
            "statement": self.statement,
            "section": self.section,
            "test": self.test,
            "verdict": finding.verdict.value,
            "measured": finding.measured,
            "values": finding.values,
        }


def verdict(holds: float, *, confirmed: float = 0.95, contradicted: float = 0.5) -> Verdict:
    """Verdict on a share of cases in which a claim holds.

    Examples
    --------
    >>> [verdict(share).name for share in (1.0, 0.8, 0.2)]
    ['CONFIRMED', 'PARTLY', 'CONTRADICTED']
    """
    if holds >= confirmed:
        return Verdict.CONFIRMED
    return Verdict.CONTRADICTED if holds < contradicted else Verdict.PARTLY


def markdown(claims: Iterable[tuple[Claim, Finding]], header: str) -> str:
    """Return the claims as a Markdown page: a table of verdicts, then each test and its numbers."""
    claims = list(claims)
    lines = ["# What the paper claims, and what was measured", "", header, ""]
    lines += ["| | Claim | Section | Verdict |", "|---|---|---|---|"]
    lines += [
        f"| {claim.key} | {claim.statement} | {claim.section} | **{finding.verdict.value}** |"
        for claim, finding in claims
    ]
    for claim, finding in claims:
        lines += [
            "",
            f"## {claim.key}: {finding.verdict.value}",
            "",
            f"*Claim* ({claim.section}): {claim.statement}",
            "",
            f"*Test*: {claim.test}",
            "",
            f"*Measured*: {finding.measured}",
        ]
    return "\n".join(lines) + "\n"
