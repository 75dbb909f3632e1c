"""The HTML page about a fit."""

from privasso.report._column_noise import ColumnNoise, coefficient_noise, column_noise
from privasso.report._facts import FitFacts, fit_facts
from privasso.report._page import fit_page
from privasso.report._stability import Stability, stability_of

__all__ = [
    "ColumnNoise",
    "FitFacts",
    "Stability",
    "coefficient_noise",
    "column_noise",
    "fit_facts",
    "fit_page",
    "stability_of",
]
