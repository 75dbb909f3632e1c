"""Data files as tables of numbers, and which of their columns a model is fitted on."""

from privasso.tables._open import open_table
from privasso.tables._select import feature_names
from privasso.tables._table import Table
from privasso.tables._write import check_ending, table_bytes

__all__ = ["Table", "check_ending", "feature_names", "open_table", "table_bytes"]
