"""What a fit can be expected to do, and the page that says what it did."""

from privasso.report._columns import Columns, coefficient_noise, columns_of
from privasso.report._facts import FitFacts
from privasso.report._forecast import Assumptions, Forecast, compare, forecast
from privasso.report._page import fit_page
from privasso.report._stability import Stability, stability_of

__all__ = [
    "Assumptions",
    "Columns",
    "FitFacts",
    "Forecast",
    "Stability",
    "coefficient_noise",
    "columns_of",
    "compare",
    "fit_page",
    "forecast",
    "stability_of",
]
