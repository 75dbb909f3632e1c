"""The figures of the paper and seven more: their simulations, tables, drawings and captions."""

from privasso.paper.figures._correlated import CORRELATED, CORRELATIONS, GRAMS, NAMES, gain
from privasso.paper.figures._curves import RANGE, TIE, compare
from privasso.paper.figures._figure import LAW_NAMES, LOOKS, PaperFigure, Tables, shown
from privasso.paper.figures._grids import (
    FIG3,
    FIG4,
    PROBE,
    failure_level,
    half_level,
    probe_ratio,
    smallest_lambda,
)
from privasso.paper.figures._illustrations import FIG1, FIG2
from privasso.paper.figures._map import MAP
from privasso.paper.figures._settings import ALPHA, LAMS, RHO, SIGMA_XI, Settings
from privasso.paper.figures._similar import OTHERS, SIMILAR
from privasso.paper.figures._sizes import KKT, TAIL, kkt_curve, slope
from privasso.paper.figures._small import RATIO, SMALL
from privasso.paper.figures._tradeoffs import (
    FIG5,
    LEAKAGE,
    MEASURES,
    deviations,
    largest_data,
    measured_over,
)

#: All figures by name, those of the paper first.
FIGURES = {
    figure.name: figure
    for figure in (
        FIG1,
        FIG2,
        FIG3,
        FIG4,
        FIG5,
        SIMILAR,
        SMALL,
        MAP,
        KKT,
        LEAKAGE,
        TAIL,
        CORRELATED,
    )
}

__all__ = [
    "ALPHA", "CORRELATIONS", "FIGURES", "GRAMS", "LAMS", "LAW_NAMES", "LOOKS", "MEASURES", "NAMES",
    "OTHERS", "PROBE", "RANGE", "RATIO", "RHO", "SIGMA_XI", "TIE", "PaperFigure", "Settings",
    "Tables", "compare", "deviations", "failure_level", "gain", "half_level", "kkt_curve",
    "largest_data", "measured_over", "probe_ratio", "shown", "slope", "smallest_lambda",
]  # fmt: skip
