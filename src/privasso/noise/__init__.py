"""Privacy noise: designs, which give its variances as a function of scale, and covariances."""

from typing import TypeAlias

from privasso.noise._covariance import Covariance
from privasso.noise._design import NoiseDesign
from privasso.noise._diagonal import Diagonal
from privasso.noise._documents import (
    covariance_from_dict,
    covariance_to_dict,
    noise_from_dict,
    noise_to_dict,
)
from privasso.noise._factored import Factored
from privasso.noise._matrix_power import MatrixPower
from privasso.noise._names import column_noise_from_name, noise_from_name
from privasso.noise._power import Gram, Isotropic, PowerLaw
from privasso.noise._shaped import Shaped
from privasso.noise._tabulated import Tabulated

#: How the noise of a release is spread: a function of the scales, or fitted to all rows.
Noise: TypeAlias = NoiseDesign | Shaped

__all__ = [
    "Covariance",
    "Diagonal",
    "Factored",
    "Gram",
    "Isotropic",
    "MatrixPower",
    "Noise",
    "NoiseDesign",
    "PowerLaw",
    "Shaped",
    "Tabulated",
    "column_noise_from_name",
    "covariance_from_dict",
    "covariance_to_dict",
    "noise_from_dict",
    "noise_from_name",
    "noise_to_dict",
]
