"""Worked examples: what private fits predict at each ε, on real and simulated data."""

from privasso.examples._compare import METHODS, compare_methods, comparison_figure, summarise
from privasso.examples._data import (
    DIABETES_RANGES,
    Split,
    diabetes_columns,
    diabetes_splits,
    simulated_splits,
)

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
