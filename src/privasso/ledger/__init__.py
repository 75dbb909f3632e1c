"""A privacy budget that several releases of the same labels share."""

from privasso.ledger._book import Book, BudgetError, Entry, summary
from privasso.ledger._ledger import Ledger

__all__ = ["Book", "BudgetError", "Entry", "Ledger", "summary"]
