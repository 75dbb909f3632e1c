"""All claims of the paper: decide on them, count the verdicts, write them as Markdown."""

from __future__ import annotations

from privasso.paper.claims._claim import Claim, ClaimVerdict, Finding
from privasso.paper.claims._correlated import CORRELATED_CLAIMS
from privasso.paper.claims._error import ERROR_CLAIMS
from privasso.paper.claims._privacy import PRIVACY_CLAIMS
from privasso.paper.claims._theory import THEORY_CLAIMS
from privasso.paper.figures import Tables

#: The claims, in the order of their letters.
CLAIMS: tuple[Claim, ...] = tuple(
    sorted(
        (*ERROR_CLAIMS, *THEORY_CLAIMS, *PRIVACY_CLAIMS, *CORRELATED_CLAIMS),
        key=lambda claim: claim.key,
    )
)

#: The symbols that the claims and their tests use.
NOTATION = (
    "v1: uniform scales of the columns; v2: log-normal scales. E: error of prediction on a new "
    "record; ρ̂: share of nonzero coefficients; α: rows per column; λ: regularisation; σ_η: level "
    "of the privacy noise; N: columns; C: covariance of the columns, diagonal in the paper. "
    "Algorithm 1: the AMP of the paper, exactly as printed there."
)

Decided = list[tuple[Claim, Finding]]


def decide(tables: Tables) -> Decided:
    """Apply the test of every claim to the tables of a run."""
    return [(claim, claim.decide(tables)) for claim in CLAIMS]


def count_verdicts(claims: Decided) -> str:
    """Count the verdicts in one sentence.

    Examples
    --------
    >>> count_verdicts(decide({}))
    '17 claims: 17 not tested in this run.'
    """
    verdicts = [finding.verdict for _, finding in claims]
    counts = {kind.value: verdicts.count(kind) for kind in ClaimVerdict}
    listed = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    return f"{len(verdicts)} claims: {listed}."


def markdown(claims: Decided, header: str) -> str:
    """Return a Markdown page: a table of the verdicts, then each test and its numbers."""
    lines = ["# What the paper claims, and what was measured", "", header, "", NOTATION, ""]
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
        for table in finding.tables:
            lines += ["", table.markdown()]
    return "\n".join(lines) + "\n"
