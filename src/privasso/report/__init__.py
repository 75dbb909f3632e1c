"""The HTML page about a fit."""

from privasso.report._column_noise import ColumnNoise, coefficient_noise, column_noise
from privasso.report._facts import FitFacts, facts_of
from privasso.report._intervals import interval, interval_words
from privasso.report._mechanism import mechanism_of, noise_words
from privasso.report._outlook import outlook_text
from privasso.report._page import fit_page
from privasso.report._stability import stability_of

__all__ = [
    "ColumnNoise",
    "FitFacts",
    "coefficient_noise",
    "column_noise",
    "facts_of",
    "fit_page",
    "interval",
    "interval_words",
    "mechanism_of",
    "noise_words",
    "outlook_text",
    "stability_of",
]
