"""All claims, in the order in which the paper makes them."""

from __future__ import annotations

from privasso.reproduction._claims import Claim, Finding
from privasso.reproduction._claims_error import ERROR_CLAIMS
from privasso.reproduction._claims_privacy import PRIVACY_CLAIMS
from privasso.reproduction._claims_theory import THEORY_CLAIMS
from privasso.reproduction._study import Tables

CLAIMS: tuple[Claim, ...] = tuple(
    sorted((*ERROR_CLAIMS, *THEORY_CLAIMS, *PRIVACY_CLAIMS), key=lambda claim: claim.key)
)


def decide(tables: Tables) -> list[tuple[Claim, Finding]]:
    """Apply every test to the tables of a run."""
    return [(claim, claim.decide(tables)) for claim in CLAIMS]
