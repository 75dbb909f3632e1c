"""The claims of the paper, each with the test that decides on it from the tables of a run."""

from privasso.paper.claims._claim import Claim, ClaimVerdict, Finding, Numbers
from privasso.paper.claims._claims import (
    CLAIMS,
    NOTATION,
    Decided,
    count_verdicts,
    decide,
    markdown,
)

__all__ = [
    "CLAIMS",
    "NOTATION",
    "Claim",
    "ClaimVerdict",
    "Decided",
    "Finding",
    "Numbers",
    "count_verdicts",
    "decide",
    "markdown",
]
