"""Worked examples: methods with the same guarantee compared, on real and simulated data."""

from privasso.examples._compare import compare_methods, comparison_figure, summarise
from privasso.examples._data import (
    METHODS,
    Split,
    diabetes_columns,
    diabetes_splits,
    simulated_splits,
)

__all__ = [
    "METHODS",
    "Split",
    "compare_methods",
    "comparison_figure",
    "diabetes_columns",
    "diabetes_splits",
    "simulated_splits",
    "summarise",
]
