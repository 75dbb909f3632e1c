"""Predictions without data: error, sparsity, stability and privacy of the private LASSO."""

from privasso.theory._density import log_density, privacy_loss
from privasso.theory._fixed_point import FixedPoint, FixedPointStatus
from privasso.theory._points import QuadratureWarning
from privasso.theory._stability import critical_lambda_ratio, critical_noise
from privasso.theory._state_evolution import state_evolution
from privasso.theory._tradeoff import phase_diagram, tradeoff

__all__ = [
    "FixedPoint",
    "FixedPointStatus",
    "QuadratureWarning",
    "critical_lambda_ratio",
    "critical_noise",
    "log_density",
    "phase_diagram",
    "privacy_loss",
    "state_evolution",
    "tradeoff",
]
