"""Kinds of privacy: what is protected and how much, and what may be claimed about it."""

from privasso.privacy._column_bounds import PRIVATE
from privasso.privacy._composition import check_same_neighbours, compose, formal_loss
from privasso.privacy._guarantee import Guarantee
from privasso.privacy._kind import Formal, Privacy, Scales, Terms, check_kind
from privasso.privacy._label_dp import LabelDP
from privasso.privacy._meaning import meaning
from privasso.privacy._on_average import OnAverage
from privasso.privacy._record_budget import FormalBudget, RecordBudget
from privasso.privacy._record_dp import RecordDP
from privasso.privacy._words import exactly, rounded_down, rounded_up

__all__ = [
    "PRIVATE",
    "Formal",
    "FormalBudget",
    "Guarantee",
    "LabelDP",
    "OnAverage",
    "Privacy",
    "RecordBudget",
    "RecordDP",
    "Scales",
    "Terms",
    "check_kind",
    "check_same_neighbours",
    "compose",
    "exactly",
    "formal_loss",
    "meaning",
    "rounded_down",
    "rounded_up",
]
