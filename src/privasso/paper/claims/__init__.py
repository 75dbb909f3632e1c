"""The claims of the paper, each with the test that decides on it from the tables of a run."""

from privasso.paper.claims import _algorithm, _columns, _correlated, _error, _privacy  # noqa: F401  they declare claims
from privasso.paper.claims._claim import (
    NOTATION,
    REGISTRY,
    ClaimVerdict,
    Decided,
    Finding,
    Numbers,
    count_verdicts,
    markdown,
    parted,
)
from privasso.paper.figures import Tables

#: The claims, in the order of their letters.
CLAIMS = tuple(sorted(REGISTRY, key=lambda claim: claim.key))


def decide(tables: Tables) -> Decided:
    """Apply the test of every claim to the tables of a run."""
    return [(claim, claim.decide(tables)) for claim in CLAIMS]


__all__ = [
    "CLAIMS", "NOTATION", "ClaimVerdict", "Decided", "Finding", "Numbers", "count_verdicts",
    "decide", "markdown", "parted",
]  # fmt: skip
