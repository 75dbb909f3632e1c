"""The generative model of the data: sizes, sparsity, label noise, column scales and spectrum."""

from privasso.model._model import Model, Sample
from privasso.model._rotated import RotatedModel, uniform_frame
from privasso.model._spectrum import (
    EmpiricalSpectrum,
    MarchenkoPastur,
    Orthogonal,
    PowerSpectrum,
    Spectrum,
    TwoLevel,
)

__all__ = [
    "EmpiricalSpectrum",
    "MarchenkoPastur",
    "Model",
    "Orthogonal",
    "PowerSpectrum",
    "RotatedModel",
    "Sample",
    "Spectrum",
    "TwoLevel",
    "uniform_frame",
]
