"""Private LASSO for data whose columns have very different scales.

The names below are what most users type. Everything else is one dot further, in the submodules:
``pv.theory``, ``pv.noise``, ``pv.privacy`` and so on, which load when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from privasso._kernel_cache import prepare
from privasso._version import __version__

prepare()
del prepare

if TYPE_CHECKING:
    from privasso import (
        accounting,
        artefact,
        attacks,
        blocks,
        design,
        estimator,
        evaluation,
        exports,
        fit,
        forecast,
        ledger,
        model,
        noise,
        operators,
        privacy,
        problem,
        report,
        scales,
        solvers,
        theory,
    )
    from privasso.accounting import objective_delta
    from privasso.artefact import load, load_release, save, save_release
    from privasso.attacks import audit
    from privasso.design import (
        Budget,
        InfeasibleError,
        MaxAdvantage,
        MaxError,
        MaxLeakage,
        misspecification_table,
        optimal_design,
        optimal_shape,
    )
    from privasso.estimator import PrivateLasso, PrivateLogisticLasso, TableEncoder
    from privasso.evaluation import evaluate
    from privasso.fit import KeptRelease, PrivacyWarning, ReleasedModel
    from privasso.ledger import BudgetError, Ledger
    from privasso.model import Model
    from privasso.noise import Gram, Isotropic, NoiseDesign, PowerLaw, Shaped, Tabulated
    from privasso.privacy import Guarantee, LabelDP, OnAverage, RecordDP
    from privasso.problem import Huber, Logistic, Quantile, critical_lambda
    from privasso.scales import Constant, Empirical, LogNormal, ScaleLaw, Uniform
    from privasso.solvers import (
        NotConvergedError,
        SolveError,
        Status,
        UnboundedError,
        solve,
        solve_clipped,
        solve_many,
        solve_path,
    )
    from privasso.theory import (
        critical_noise,
        log_density,
        phase_diagram,
        privacy_loss,
        state_evolution,
        tradeoff,
    )

#: Public names and the submodules they come from.
_HOMES = {
    "accounting": ("objective_delta",),
    "artefact": ("load", "load_release", "save", "save_release"),
    "attacks": ("audit",),
    "design": (
        "Budget",
        "InfeasibleError",
        "MaxAdvantage",
        "MaxError",
        "MaxLeakage",
        "misspecification_table",
        "optimal_design",
        "optimal_shape",
    ),
    "estimator": ("PrivateLasso", "PrivateLogisticLasso", "TableEncoder"),
    "evaluation": ("evaluate",),
    "fit": ("KeptRelease", "PrivacyWarning", "ReleasedModel"),
    "ledger": ("BudgetError", "Ledger"),
    "model": ("Model",),
    "noise": ("Gram", "Isotropic", "NoiseDesign", "PowerLaw", "Shaped", "Tabulated"),
    "privacy": ("Guarantee", "LabelDP", "OnAverage", "RecordDP"),
    "problem": ("Huber", "Logistic", "Quantile", "critical_lambda"),
    "scales": ("Constant", "Empirical", "LogNormal", "ScaleLaw", "Uniform"),
    "solvers": (
        "NotConvergedError",
        "SolveError",
        "Status",
        "UnboundedError",
        "solve",
        "solve_clipped",
        "solve_many",
        "solve_path",
    ),
    "theory": (
        "critical_noise",
        "log_density",
        "phase_diagram",
        "privacy_loss",
        "state_evolution",
        "tradeoff",
    ),
}
_SUBMODULES = (*_HOMES, "blocks", "exports", "forecast", "operators", "report")
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Budget",
    "BudgetError",
    "Constant",
    "Empirical",
    "Gram",
    "Guarantee",
    "Huber",
    "InfeasibleError",
    "Isotropic",
    "KeptRelease",
    "LabelDP",
    "Ledger",
    "LogNormal",
    "Logistic",
    "MaxAdvantage",
    "MaxError",
    "MaxLeakage",
    "Model",
    "NoiseDesign",
    "NotConvergedError",
    "OnAverage",
    "PowerLaw",
    "PrivacyWarning",
    "PrivateLasso",
    "PrivateLogisticLasso",
    "Quantile",
    "RecordDP",
    "ReleasedModel",
    "ScaleLaw",
    "Shaped",
    "SolveError",
    "Status",
    "TableEncoder",
    "Tabulated",
    "UnboundedError",
    "Uniform",
    "__version__",
    "accounting",
    "artefact",
    "attacks",
    "audit",
    "blocks",
    "critical_lambda",
    "critical_noise",
    "design",
    "estimator",
    "evaluate",
    "evaluation",
    "exports",
    "fit",
    "forecast",
    "ledger",
    "load",
    "load_release",
    "log_density",
    "misspecification_table",
    "model",
    "noise",
    "objective_delta",
    "operators",
    "optimal_design",
    "optimal_shape",
    "phase_diagram",
    "privacy",
    "privacy_loss",
    "problem",
    "report",
    "save",
    "save_release",
    "scales",
    "solve",
    "solve_clipped",
    "solve_many",
    "solve_path",
    "solvers",
    "state_evolution",
    "theory",
    "tradeoff",
]


def __getattr__(name: str) -> Any:
    # Imports wait for first use: scikit-learn and scipy's optimisers take longer than the rest.
    if name in _SUBMODULES:
        return import_module(f"privasso.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'privasso' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"privasso.{_HOME_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
