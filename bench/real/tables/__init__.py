"""Real tables that are installed with ordinary packages."""

from bench.real.tables.choose import REGISTRY, Entry, available, chosen, load
from bench.real.tables.table import Kind, Table

__all__ = ["REGISTRY", "Entry", "Kind", "Table", "available", "chosen", "load"]
