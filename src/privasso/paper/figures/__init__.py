"""The figures of the paper and seven more: their simulations, tables, drawings and captions."""

from privasso.paper.figures._curves import RANGE, TIE, compare
from privasso.paper.figures._existence import CORRELATED, CORRELATIONS, GRAMS, MAP, NAMES, gain
from privasso.paper.figures._figure import (
    ALPHA,
    DESIGNS,
    LAWS,
    LOOKS,
    RHO,
    SIGMA_XI,
    PaperFigure,
    Settings,
    Tables,
    shown,
)  # fmt: skip
from privasso.paper.figures._grids import (
    FIG3,
    FIG4,
    OTHERS,
    PROBE,
    SIMILAR,
    failure_level,
    half_level,
    probe_ratio,
    smallest_lambda,
)  # fmt: skip
from privasso.paper.figures._illustrations import FIG1, FIG2, RATIO, SMALL
from privasso.paper.figures._sizes import KKT, TAIL, kkt_curve, slope
from privasso.paper.figures._tradeoffs import (
    FIG5,
    LEAKAGE,
    MEASURES,
    deviations,
    largest_data,
    measured_over,
)  # fmt: skip

_ALL = (FIG1, FIG2, FIG3, FIG4, FIG5, SIMILAR, SMALL, MAP, KKT, LEAKAGE, TAIL, CORRELATED)
#: All figures by name, those of the paper first.
FIGURES = {figure.name: figure for figure in _ALL}

__all__ = [
    "ALPHA", "CORRELATIONS", "DESIGNS", "FIGURES", "GRAMS", "LAWS", "LOOKS",
    "MEASURES", "NAMES", "OTHERS", "PROBE", "RANGE", "RATIO", "RHO", "SIGMA_XI", "TIE",
    "PaperFigure", "Settings", "Tables", "compare", "deviations", "failure_level", "gain",
    "half_level", "kkt_curve", "largest_data", "measured_over", "probe_ratio", "shown", "slope",
    "smallest_lambda",
]  # fmt: skip
