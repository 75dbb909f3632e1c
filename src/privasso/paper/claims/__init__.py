"""The claims of the paper, each with the test that decides on it from the tables of a run."""

from privasso.paper.claims import _algorithm, _correlated, _privacy
from privasso.paper.claims._claim import (
    NOTATION,
    Claim,
    ClaimVerdict,
    Decided,
    Finding,
    Numbers,
    count_verdicts,
    markdown,
)
from privasso.paper.figures import Tables

#: The claims, in the order of their letters.
CLAIMS: tuple[Claim, ...] = tuple(
    sorted(
        (
            value
            for module in (_algorithm, _privacy, _correlated)
            for value in vars(module).values()
            if isinstance(value, Claim)
        ),
        key=lambda claim: claim.key,
    )
)


def decide(tables: Tables) -> Decided:
    """Apply the test of every claim to the tables of a run."""
    return [(claim, claim.decide(tables)) for claim in CLAIMS]


__all__ = [
    "CLAIMS", "NOTATION", "Claim", "ClaimVerdict", "Decided", "Finding", "Numbers",
    "count_verdicts", "decide", "markdown",
]  # fmt: skip
