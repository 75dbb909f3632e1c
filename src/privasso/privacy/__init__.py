"""Kinds of privacy: what is protected and how much, and what may be claimed about it."""

from privasso.privacy._composition import check_same_neighbours, compose, formal_loss, meaning
from privasso.privacy._guarantee import Guarantee
from privasso.privacy._kind import (
    PRIVATE,
    Formal,
    FormalBudget,
    Privacy,
    RecordBudget,
    Scales,
    Terms,
    check_kind,
)
from privasso.privacy._label_dp import LabelDP
from privasso.privacy._on_average import OnAverage
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
