"""Optimal noise: which λ, how much noise, and how it is best spread over the columns."""

from privasso.design._budget import Budget, ScreenedDesign, Sparse
from privasso.design._correlated import CorrelatedDesign, CorrelatedObjectiveDesign
from privasso.design._limits import MaxAdvantage, MaxError, MaxLeakage, Target
from privasso.design._optimal import best_power, optimal_design
from privasso.design._result import (
    InfeasibleError,
    ObjectiveDesign,
    OptimalDesign,
    SavedDesign,
    TunedDesign,
    load_design,
    save_design,
)
from privasso.planning import OptimalShape, optimal_shape

__all__ = [
    "Budget",
    "CorrelatedDesign",
    "CorrelatedObjectiveDesign",
    "InfeasibleError",
    "MaxAdvantage",
    "MaxError",
    "MaxLeakage",
    "ObjectiveDesign",
    "OptimalDesign",
    "OptimalShape",
    "SavedDesign",
    "ScreenedDesign",
    "Sparse",
    "Target",
    "TunedDesign",
    "best_power",
    "load_design",
    "optimal_design",
    "optimal_shape",
    "save_design",
]
