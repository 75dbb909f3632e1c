"""Private LASSO for data whose columns have very different scales."""

from privasso.model import Model, Sample
from privasso.noise import Gram, Isotropic, NoiseDesign, PowerLaw
from privasso.problem import Problem, critical_lambda
from privasso.scales import Constant, Empirical, LogNormal, ScaleLaw, Uniform
from privasso.solvers import (
    NotConvergedError,
    Solution,
    Solutions,
    SolveError,
    Status,
    UnboundedError,
    solve,
    solve_many,
    solve_problem,
)
from privasso.theory import (
    FixedPoint,
    FixedPointStatus,
    QuadratureWarning,
    critical_lambda_ratio,
    critical_noise,
    log_density,
    phase_diagram,
    privacy_loss,
    state_evolution,
    tradeoff,
)

__version__ = "0.1.0"

__all__ = [
    "Constant",
    "Empirical",
    "FixedPoint",
    "FixedPointStatus",
    "Gram",
    "Isotropic",
    "LogNormal",
    "Model",
    "NoiseDesign",
    "NotConvergedError",
    "PowerLaw",
    "Problem",
    "QuadratureWarning",
    "Sample",
    "ScaleLaw",
    "Solution",
    "Solutions",
    "SolveError",
    "Status",
    "UnboundedError",
    "Uniform",
    "__version__",
    "critical_lambda",
    "critical_lambda_ratio",
    "critical_noise",
    "log_density",
    "phase_diagram",
    "privacy_loss",
    "solve",
    "solve_many",
    "solve_problem",
    "state_evolution",
    "tradeoff",
]
