"""Worked examples: the same guarantee bought in different ways, on real and simulated data."""

from privasso.examples._data import Split, diabetes_columns, diabetes_splits, simulated_splits
from privasso.examples._figure import study_figure
from privasso.examples._study import METHODS, study, summary

__all__ = [
    "METHODS",
    "Split",
    "diabetes_columns",
    "diabetes_splits",
    "simulated_splits",
    "study",
    "study_figure",
    "summary",
]
