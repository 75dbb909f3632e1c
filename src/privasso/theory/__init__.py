"""Predictions without data: error, sparsity, stability and privacy of the private LASSO."""

from privasso.theory._attack import Attack
from privasso.theory._choice import log_set_probability, selection_chances
from privasso.theory._correlated_leakage import information_bound
from privasso.theory._density import (
    clipped_log_densities,
    log_density,
    membership_losses,
    privacy_loss,
)
from privasso.theory._draws import noise_level
from privasso.theory._fixed_point import FixedPoint, FixedPointStatus
from privasso.theory._gradient import Leakage, clipped_moments, clipped_point, point_gradients
from privasso.theory._points import QuadratureWarning
from privasso.theory._sensitivity import label_sensitivity, largest_row_norm
from privasso.theory._stability import correlated_edge, critical_lambda_ratio, critical_noise
from privasso.theory._state_evolution import (
    mismatched_state_evolution,
    state_evolution,
    with_scale_error,
)
from privasso.theory._tradeoff import phase_diagram, tradeoff

__all__ = [
    "Attack",
    "FixedPoint",
    "FixedPointStatus",
    "Leakage",
    "QuadratureWarning",
    "clipped_log_densities",
    "clipped_moments",
    "clipped_point",
    "correlated_edge",
    "critical_lambda_ratio",
    "critical_noise",
    "information_bound",
    "label_sensitivity",
    "largest_row_norm",
    "log_density",
    "log_set_probability",
    "membership_losses",
    "mismatched_state_evolution",
    "noise_level",
    "phase_diagram",
    "point_gradients",
    "privacy_loss",
    "selection_chances",
    "state_evolution",
    "tradeoff",
    "with_scale_error",
]
