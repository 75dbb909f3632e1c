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

__version__ = "0.1.0"

__all__ = [
    "Constant",
    "Empirical",
    "Gram",
    "Isotropic",
    "LogNormal",
    "Model",
    "NoiseDesign",
    "NotConvergedError",
    "PowerLaw",
    "Problem",
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
    "solve",
    "solve_many",
    "solve_problem",
]
