"""Attacks on what a fit releases: the strongest one, and one that knows nothing of the program."""

from privasso.attacks._audit import audit
from privasso.attacks._black_box import black_box
from privasso.attacks._result import Audit, Finding

__all__ = ["Audit", "Finding", "audit", "black_box"]
