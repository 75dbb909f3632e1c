"""Private LASSO for data whose columns have very different scales."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from privasso.guarantee import Guarantee
from privasso.mechanism import (
    LabelDP,
    OnAverage,
    Release,
    gaussian_delta,
    gaussian_epsilon,
    release_labels,
    sensitivity_for,
)
from privasso.model import Model, Sample
from privasso.noise import Gram, Isotropic, NoiseDesign, PowerLaw, Tabulated
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

if TYPE_CHECKING:
    from privasso.artefact import ArtefactError, ReleasedModel, load, save
    from privasso.design import (
        InfeasibleError,
        OptimalDesign,
        misspecification_table,
        optimal_design,
    )
    from privasso.estimator import CoefficientPath, PrivateLasso

__version__ = "0.1.0"

# These need scikit-learn or scipy's optimisers, whose imports take as long as everything else: they
# wait for first use.
_ON_DEMAND = {
    "ArtefactError": "privasso.artefact",
    "CoefficientPath": "privasso.estimator",
    "InfeasibleError": "privasso.design",
    "OptimalDesign": "privasso.design",
    "PrivateLasso": "privasso.estimator",
    "ReleasedModel": "privasso.artefact",
    "load": "privasso.artefact",
    "misspecification_table": "privasso.design",
    "optimal_design": "privasso.design",
    "save": "privasso.artefact",
}

__all__ = [
    "ArtefactError",
    "CoefficientPath",
    "Constant",
    "Empirical",
    "FixedPoint",
    "FixedPointStatus",
    "Gram",
    "Guarantee",
    "InfeasibleError",
    "Isotropic",
    "LabelDP",
    "LogNormal",
    "Model",
    "NoiseDesign",
    "NotConvergedError",
    "OnAverage",
    "OptimalDesign",
    "PowerLaw",
    "PrivateLasso",
    "Problem",
    "QuadratureWarning",
    "Release",
    "ReleasedModel",
    "Sample",
    "ScaleLaw",
    "Solution",
    "Solutions",
    "SolveError",
    "Status",
    "Tabulated",
    "UnboundedError",
    "Uniform",
    "__version__",
    "critical_lambda",
    "critical_lambda_ratio",
    "critical_noise",
    "gaussian_delta",
    "gaussian_epsilon",
    "load",
    "log_density",
    "misspecification_table",
    "optimal_design",
    "phase_diagram",
    "privacy_loss",
    "release_labels",
    "save",
    "sensitivity_for",
    "solve",
    "solve_many",
    "solve_problem",
    "state_evolution",
    "tradeoff",
]


def __getattr__(name: str) -> Any:
    if name not in _ON_DEMAND:
        raise AttributeError(f"module 'privasso' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_ON_DEMAND[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
