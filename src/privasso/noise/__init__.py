"""Privacy noise: designs, which give its variances as a function of scale, and covariances."""

from typing import TypeAlias

from privasso.noise._covariance import Covariance, Diagonal
from privasso.noise._designs import Gram, Isotropic, NoiseDesign, PowerLaw, Shaped, Tabulated
from privasso.noise._factored import Factored, MatrixPower
from privasso.noise._written import (
    column_noise_from_name,
    covariance_from_dict,
    covariance_to_dict,
    noise_from_dict,
    noise_from_name,
    noise_to_dict,
)

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
