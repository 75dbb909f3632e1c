"""Privacy losses as values: δ for any ε, of one mechanism and of several together.

Pure functions of public numbers. Nothing here has seen data, and nothing draws noise.
"""

from privasso.accounting._beside import (
    BesideGaussian,
    delta_together,
    losses_from_list,
    losses_to_list,
    sensitivity_beside,
    together,
)
from privasso.accounting._choice_loss import ChoiceLoss
from privasso.accounting._composed import spent_epsilon, within_budget
from privasso.accounting._gaussian import (
    gaussian_delta,
    gaussian_epsilon,
    log_gaussian_delta,
    sensitivity_for,
)
from privasso.accounting._loss import ApproximateLoss, GaussianLoss, Loss, true_alarms
from privasso.accounting._objective import Neighbours, Slope, objective_delta
from privasso.accounting._objective_loss import (
    InexactLoss,
    ObjectiveLoss,
    check_coverable,
    least_delta,
    objective_epsilon,
    objective_sensitivity,
    shift_epsilon,
)

__all__ = [
    "ApproximateLoss",
    "BesideGaussian",
    "ChoiceLoss",
    "GaussianLoss",
    "InexactLoss",
    "Loss",
    "Neighbours",
    "ObjectiveLoss",
    "Slope",
    "check_coverable",
    "delta_together",
    "gaussian_delta",
    "gaussian_epsilon",
    "least_delta",
    "log_gaussian_delta",
    "losses_from_list",
    "losses_to_list",
    "objective_delta",
    "objective_epsilon",
    "objective_sensitivity",
    "sensitivity_beside",
    "sensitivity_for",
    "shift_epsilon",
    "spent_epsilon",
    "together",
    "true_alarms",
    "within_budget",
]
