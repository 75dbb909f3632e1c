"""Optimal noise: which λ, how much noise, and how it is best spread over the columns."""

from privasso.design._file import SavedDesign, load_design, save_design
from privasso.design._label import label_sensitivity
from privasso.design._least import least_leakage_exponent
from privasso.design._mismatch import mismatched_state_evolution
from privasso.design._optimal import optimal_design
from privasso.design._result import Constraint, InfeasibleError, OptimalDesign, Tuned
from privasso.design._robustness import sensitivity

__all__ = [
    "Constraint",
    "InfeasibleError",
    "OptimalDesign",
    "SavedDesign",
    "Tuned",
    "label_sensitivity",
    "least_leakage_exponent",
    "load_design",
    "mismatched_state_evolution",
    "optimal_design",
    "save_design",
    "sensitivity",
]
