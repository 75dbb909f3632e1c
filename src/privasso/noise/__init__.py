"""Designs of the privacy noise: how its variance is shared out among the columns."""

from privasso.noise._design import NoiseDesign
from privasso.noise._names import design_from_name
from privasso.noise._power import Gram, Isotropic, PowerLaw
from privasso.noise._tabulated import Tabulated

__all__ = ["Gram", "Isotropic", "NoiseDesign", "PowerLaw", "Tabulated", "design_from_name"]
