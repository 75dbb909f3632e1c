"""Worked examples: methods with the same guarantee compared, on real and simulated data."""

from privasso.examples._compare import compare_methods, summarise
from privasso.examples._data import Split, diabetes_columns, diabetes_splits, simulated_splits
from privasso.examples._figure import comparison_figure
from privasso.examples._methods import METHODS

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
