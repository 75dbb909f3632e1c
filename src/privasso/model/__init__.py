"""The generative model of the data: sizes, sparsity, label noise, scales and correlations."""

from privasso.model._covariance import (
    COVARIANCE_NAMES,
    AutoRegressive,
    Blocks,
    ColumnCovariance,
    Factors,
    GivenCovariance,
    RandomEigenvectors,
    covariance_from_name,
)
from privasso.model._model import Model, RotatedModel, Sample, uniform_frame
from privasso.model._spectrum import (
    EmpiricalSpectrum,
    MarchenkoPastur,
    Orthogonal,
    PowerSpectrum,
    Spectrum,
    TwoLevel,
)

__all__ = [
    "COVARIANCE_NAMES",
    "AutoRegressive",
    "Blocks",
    "ColumnCovariance",
    "EmpiricalSpectrum",
    "Factors",
    "GivenCovariance",
    "MarchenkoPastur",
    "Model",
    "Orthogonal",
    "PowerSpectrum",
    "RandomEigenvectors",
    "RotatedModel",
    "Sample",
    "Spectrum",
    "TwoLevel",
    "covariance_from_name",
    "uniform_frame",
]
