"""Data files as columns of numbers and levels, and which of them a model is fitted on."""

from privasso.tables._files import NUMBERS, check_ending, open_table, table_bytes
from privasso.tables._numbers import BedTable
from privasso.tables._table import Table, check_labels

__all__ = [
    "NUMBERS",
    "BedTable",
    "Table",
    "check_ending",
    "check_labels",
    "open_table",
    "table_bytes",
]
