"""The generative model of the data: sizes, sparsity, label noise and column scales."""

from privasso.model._model import Model, Sample

__all__ = ["Model", "Sample"]
