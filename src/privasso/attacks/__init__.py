"""The strongest attacks on what a fit releases."""

from privasso.attacks._audit import audit
from privasso.attacks._result import Audit, Finding

__all__ = ["Audit", "Finding", "audit"]
