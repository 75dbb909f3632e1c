"""Laws of the column scale s: how to draw it, integrate over it and take its moments."""

from privasso.scales._constant import Constant
from privasso.scales._empirical import Empirical
from privasso.scales._law import ScaleLaw
from privasso.scales._lognormal import LogNormal
from privasso.scales._uniform import Uniform

__all__ = ["Constant", "Empirical", "LogNormal", "ScaleLaw", "Uniform"]
