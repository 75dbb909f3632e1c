"""Attacks on what a fit releases: the strongest one, and one that knows nothing of the program."""

from privasso.attacks._audit import audit
from privasso.attacks._black_box import black_box, traces
from privasso.attacks._command import audit_command
from privasso.attacks._result import Audit, Finding

__all__ = ["Audit", "Finding", "audit", "audit_command", "black_box", "traces"]
