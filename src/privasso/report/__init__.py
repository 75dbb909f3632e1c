"""The HTML page about a fit."""

from privasso.report._column_noise import ColumnNoise, coefficient_noise, column_noise
from privasso.report._facts import FitFacts, fit_facts
from privasso.report._facts_of import facts_of
from privasso.report._label_mechanism import QUANTILES, LabelMechanism, noise_words
from privasso.report._outlook import (
    OUTLOOK_TITLES,
    outlook_lines,
    outlook_table,
)
from privasso.report._page import fit_page
from privasso.report._record_mechanism import RecordMechanism
from privasso.report._stability import stability_of

__all__ = [
    "OUTLOOK_TITLES",
    "QUANTILES",
    "ColumnNoise",
    "FitFacts",
    "LabelMechanism",
    "RecordMechanism",
    "coefficient_noise",
    "column_noise",
    "facts_of",
    "fit_facts",
    "fit_page",
    "noise_words",
    "outlook_lines",
    "outlook_table",
    "stability_of",
]
