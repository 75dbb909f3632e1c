"""The figures of the paper and five more: their simulations, tables, drawings and captions."""

from privasso.paper.figures._correlated import CORRELATED, CORRELATIONS, GRAMS, NAMES, gain
from privasso.paper.figures._fig1 import FIG1
from privasso.paper.figures._fig2 import FIG2
from privasso.paper.figures._fig3 import FIG3, failure_level
from privasso.paper.figures._fig4 import FIG4, PROBE, smallest_lambda
from privasso.paper.figures._fig5 import FIG5, MEASURES
from privasso.paper.figures._figure import PaperFigure, Tables
from privasso.paper.figures._frontier import RANGE, TIE, compare
from privasso.paper.figures._kkt import KKT, kkt_curve, slope
from privasso.paper.figures._leakage import LEAKAGE, largest_data, measured_over
from privasso.paper.figures._looks import LAW_NAMES, LOOKS
from privasso.paper.figures._map import MAP
from privasso.paper.figures._settings import ALPHA, LAMS, RHO, SIGMA_XI, Settings
from privasso.paper.figures._strip import shown
from privasso.paper.figures._tail import TAIL

#: All figures by name, those of the paper first.
FIGURES = {
    figure.name: figure
    for figure in (FIG1, FIG2, FIG3, FIG4, FIG5, MAP, KKT, LEAKAGE, TAIL, CORRELATED)
}

__all__ = [
    "ALPHA",
    "CORRELATIONS",
    "FIGURES",
    "GRAMS",
    "LAMS",
    "LAW_NAMES",
    "LOOKS",
    "MEASURES",
    "NAMES",
    "PROBE",
    "RANGE",
    "RHO",
    "SIGMA_XI",
    "TIE",
    "PaperFigure",
    "Settings",
    "Tables",
    "compare",
    "failure_level",
    "gain",
    "kkt_curve",
    "largest_data",
    "measured_over",
    "shown",
    "slope",
    "smallest_lambda",
]
