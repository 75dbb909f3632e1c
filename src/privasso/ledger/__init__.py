"""A privacy budget that several releases of the same labels share."""

from privasso.ledger._book import BudgetError, Entry
from privasso.ledger._ledger import Ledger

__all__ = ["BudgetError", "Entry", "Ledger"]
