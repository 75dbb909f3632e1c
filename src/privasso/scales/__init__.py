"""Laws of the column scale s: how to draw it, integrate over it and take its moments."""

from privasso.scales._constant import Constant
from privasso.scales._empirical import Empirical
from privasso.scales._law import ScaleLaw
from privasso.scales._lognormal import LogNormal
from privasso.scales._names import LAW_NAMES, law_from_name
from privasso.scales._uniform import Uniform

__all__ = [
    "LAW_NAMES",
    "Constant",
    "Empirical",
    "LogNormal",
    "ScaleLaw",
    "Uniform",
    "law_from_name",
]
