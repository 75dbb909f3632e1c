"""The paper of Tanzawa and Sakata (2026), figure by figure and claim by claim."""

from privasso.reproduction._claims import Claim, Finding, Verdict
from privasso.reproduction._reproduce import Reproduction, reproduce
from privasso.reproduction._settings import Settings
from privasso.reproduction._studies import STUDIES
from privasso.reproduction._study import Study
from privasso.reproduction._verdicts import CLAIMS

__all__ = [
    "CLAIMS",
    "STUDIES",
    "Claim",
    "Finding",
    "Reproduction",
    "Settings",
    "Study",
    "Verdict",
    "reproduce",
]
