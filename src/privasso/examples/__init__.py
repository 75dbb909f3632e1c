"""Worked examples: what private fits predict at each ε, on real and simulated data."""

from privasso.examples._compare import METHODS, compare_methods, summarise
from privasso.examples._data import (
    DIABETES_RANGES,
    Split,
    diabetes_columns,
    diabetes_splits,
    simulated_splits,
)
from privasso.examples._figure import comparison_figure

__all__ = [
    "DIABETES_RANGES",
    "METHODS",
    "Split",
    "compare_methods",
    "comparison_figure",
    "diabetes_columns",
    "diabetes_splits",
    "simulated_splits",
    "summarise",
]
