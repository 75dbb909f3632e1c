"""The HTML page about a fit."""

from privasso.report._column_noise import ColumnNoise, coefficient_noise, column_noise
from privasso.report._facts import FitFacts, fit_facts
from privasso.report._page import fit_page
from privasso.report._record_facts import record_facts, statistics_facts
from privasso.report._record_mechanism import RecordMechanism
from privasso.report._stability import Stability, stability_of

__all__ = [
    "ColumnNoise",
    "FitFacts",
    "RecordMechanism",
    "Stability",
    "coefficient_noise",
    "column_noise",
    "fit_facts",
    "fit_page",
    "record_facts",
    "stability_of",
    "statistics_facts",
]
