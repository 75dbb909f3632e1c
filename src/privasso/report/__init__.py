"""The HTML page about a fit."""

from privasso.report._columns import column_noise
from privasso.report._facts import FitFacts, facts_of
from privasso.report._mechanism import mechanism_of, noise_words, outlook_text
from privasso.report._page import fit_page
from privasso.report._words import coefficient_cells, interval_words

__all__ = [
    "FitFacts",
    "coefficient_cells",
    "column_noise",
    "facts_of",
    "fit_page",
    "interval_words",
    "mechanism_of",
    "noise_words",
    "outlook_text",
]
