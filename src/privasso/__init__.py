"""Private LASSO for data whose columns have very different scales.

The names below are what most users type. Everything else is one dot further, in the submodules:
``pv.theory``, ``pv.noise``, ``pv.privacy`` and so on, which load when they are first used.
"""

from importlib import import_module

from privasso._threads import prepare_kernels
from privasso._version import __version__ as __version__

prepare_kernels()
del prepare_kernels

#: Public names and the submodules they come from; `__init__.pyi` has the same for type checkers.
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

__all__ = sorted([*_HOME_OF, *_SUBMODULES, "__version__"])  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    # Imports wait for first use: scikit-learn and scipy's optimisers take longer than the rest.
    if name in _SUBMODULES:
        return import_module(f"privasso.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'privasso' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"privasso.{_HOME_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
