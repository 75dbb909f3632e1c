"""Data files as tables of numbers, and which of their columns a model is fitted on."""

from privasso.tables._files import check_ending, open_table, table_bytes
from privasso.tables._table import Table

__all__ = ["Table", "check_ending", "open_table", "table_bytes"]
