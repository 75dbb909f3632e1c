"""What a claim of the paper is, how a test decides on it, and how the verdicts are written."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np
import polars as pl

from privasso._types import Json
from privasso.paper._figure import LAWS, Tables

#: Two numbers agree if they differ by at most this many standard errors.
AGREE = 3.0
#: The symbols that the claims and their tests use.
NOTATION = (
    "v1: uniform scales of the columns; v2: log-normal scales. E: error of prediction on a new "
    "record; ρ̂: share of nonzero coefficients; α: rows per column; λ: regularisation; σ_η: level "
    "of the privacy noise; N: columns; C: covariance of the columns, diagonal in the paper. "
    "Algorithm 1: the AMP of the paper, exactly as printed there."
)

#: Rows of a table, each a mapping from headings to cells.
Cells = list[dict[str, str]]


class ClaimVerdict(Enum):
    """What the tables of a run say about a claim."""

    CONFIRMED = "confirmed"
    PARTLY = "partly"
    UNDECIDED = "undecided"
    CONTRADICTED = "contradicted"
    UNTESTED = "not tested in this run"


@dataclass(frozen=True)
class Numbers:
    """A small table of measured numbers, written as they are to be shown; names come first."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, title: str, rows: Cells) -> Numbers:
        """Make the table of rows that give each cell under its heading."""
        return cls(title, tuple(rows[0]), tuple(tuple(row.values()) for row in rows))

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

    def record(self) -> dict[str, object]:
        """Return the table for a JSON file."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"title": self.title, "rows": rows}


@dataclass(frozen=True)
class Finding:
    """A verdict, what was measured in a sentence, the deciding values, and tables for readers."""

    verdict: ClaimVerdict
    measured: str
    values: dict[str, Json]
    tables: tuple[Numbers, ...] = ()


def found(
    verdict: ClaimVerdict, measured: str, values: dict[str, Json], *tables: tuple[str, Cells]
) -> Finding:
    """A finding with tables given as title and rows; a table without rows is left out."""
    shown = tuple(Numbers.of(title, rows) for title, rows in tables if rows)
    return Finding(verdict, measured, values, shown)


@dataclass(frozen=True)
class Claim:
    """One statement of the paper, in our words, with the test that decides on it.

    `test` says what is measured, and the thresholds of the verdict. `judge` computes the finding
    from the tables that `needs` names. The paper does not make a claim that is `ours`.
    """

    key: str
    statement: str
    section: str
    test: str
    needs: list[str]
    judge: Callable[..., Finding]
    ours: bool = False

    def decide(self, tables: Tables) -> Finding:
        """Apply the test; the claim is untested if a table is missing."""
        missing = [name for name in self.needs if name not in tables]
        if missing:
            figures = ", ".join(sorted({name.split("_")[0] for name in missing}))
            return Finding(ClaimVerdict.UNTESTED, f"needs {figures}", {})
        return self.judge(*(tables[name] for name in self.needs))

    def record(self, finding: Finding) -> dict[str, object]:
        """Return the claim and a finding for a JSON file."""
        return {
            **{
                name: getattr(self, name)
                for name in ("key", "statement", "section", "ours", "test")
            },
            "verdict": finding.verdict.value,
            "measured": finding.measured,
            "values": finding.values,
            "tables": [table.record() for table in finding.tables],
        }


Decided = list[tuple[Claim, Finding]]


#: What the claims say, by their letters.
_DECLARED = tomllib.loads(Path(__file__).with_name("claims.toml").read_text(encoding="utf-8"))
#: All claims; the modules that decide on them add them here.
REGISTRY: list[Claim] = []


def claim(key: str, **numbers: float) -> Callable[[Callable[..., Finding]], Callable[..., Finding]]:
    """Let the function below decide on a declared claim, with the numbers that its test names."""

    def declare(judge: Callable[..., Finding]) -> Callable[..., Finding]:
        declared = dict(_DECLARED[key])
        test = declared.pop("test").format(**numbers)
        REGISTRY.append(Claim(key, judge=judge, test=test, **declared))
        return judge

    return declare


def verdict_of(share: float) -> ClaimVerdict:
    """The verdict for the share of cases in which a claim holds: 95 % confirm, < 50 % refute."""
    if share >= 0.95:
        return ClaimVerdict.CONFIRMED
    return ClaimVerdict.CONTRADICTED if share < 0.5 else ClaimVerdict.PARTLY


def weaker(*verdicts: ClaimVerdict) -> ClaimVerdict:
    """The verdict that says least in favour, the last of the list confirmed … contradicted."""
    order = list(ClaimVerdict)
    return max(verdicts, key=order.index)


def verdict_if(confirmed: bool, partly: bool) -> ClaimVerdict:
    """The verdict of two conditions, of which the second is weaker."""
    if confirmed:
        return ClaimVerdict.CONFIRMED
    return ClaimVerdict.PARTLY if partly else ClaimVerdict.CONTRADICTED


def parted(claims: Decided) -> dict[str, Decided]:
    """The claims of the paper, and those that we add, under what they are called."""
    return {
        name: part
        for name, ours in (("Claims of the paper", False), ("Claims that we add", True))
        if (part := [(claim, finding) for claim, finding in claims if claim.ours is ours])
    }


def count_verdicts(claims: Decided) -> str:
    """Count the verdicts, those of the paper's own claims first."""
    sentences = []
    for name, part in parted(claims).items():
        verdicts = [finding.verdict for _, finding in part]
        counts = {kind.value: verdicts.count(kind) for kind in ClaimVerdict}
        listed = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
        sentences.append(f"{name}: {len(part)}, of which {listed}.")
    return " ".join(sentences)


def markdown(claims: Decided, header: str) -> str:
    """Return a Markdown page: tables of the verdicts, then each test and its numbers."""
    lines = ["# What the paper claims, and what was measured", "", header, "", NOTATION]
    for name, part in parted(claims).items():
        lines += ["", f"## {name}", "", "| | Claim | Section | Verdict |", "|---|---|---|---|"]
        lines += [
            f"| {claim.key} | {claim.statement} | {claim.section} | **{finding.verdict.value}** |"
            for claim, finding in part
        ]
    lines += ["", "## The numbers"]
    for claim, finding in claims:
        parts = (
            f"### {claim.key}: {finding.verdict.value}",
            f"*Test*: {claim.test}",
            f"*Measured*: {finding.measured}",
            *(table.markdown() for table in finding.tables),
        )
        for part in parts:
            lines += ["", part]
    return "\n".join(lines) + "\n"


def groups(points: pl.DataFrame, *by: str) -> Iterator[tuple[tuple[Json, ...], pl.DataFrame]]:
    """Groups of rows with the same law and the same values of `by`, in a fixed order."""
    ordered = points.sort("law", *by, descending=[True] + [False] * len(by))
    return iter(ordered.group_by("law", *by, maintain_order=True))


def finite(value: float) -> float | None:
    """The number for a JSON file; None if it is infinite or does not exist."""
    return float(value) if np.isfinite(value) else None


def ratio(above: float, below: float) -> str:
    """A ratio in words."""
    return f"{above / below:.2f}" if np.isfinite(above) and np.isfinite(below) else "—"


def levels(at: tuple[str, float], pair: list[float], digits: str = "") -> dict[str, str]:
    """A row with the noise levels of the two designs and their ratio, for a law and a λ."""
    words = [f"{x:{digits}g}" if np.isfinite(x) else "none" for x in pair]
    case = {"law": LAWS[at[0]].name, "λ": f"{at[1]:g}"}
    return case | {"isotropic": words[0], "Gram-based": words[1], "ratio": ratio(*pair[::-1])}
