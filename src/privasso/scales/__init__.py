"""Laws of the column scale s: how to draw it, integrate over it and take its moments."""

from privasso.scales._law import ScaleLaw
from privasso.scales._laws import LAW_NAMES, Constant, Empirical, LogNormal, Uniform, law_from_name

__all__ = [
    "LAW_NAMES",
    "Constant",
    "Empirical",
    "LogNormal",
    "ScaleLaw",
    "Uniform",
    "law_from_name",
]
