"""Optimal noise: which λ, how much noise, and how it is best spread over the columns."""

from privasso.design._budget import Budget
from privasso.design._clipped_rows import clipped_settings, row_roots
from privasso.design._components import PrincipalComponents, column_blocks, standardised
from privasso.design._correlated import CorrelatedDesign
from privasso.design._correlated_objective import CorrelatedObjectiveDesign
from privasso.design._file import SavedDesign, load_design, save_design
from privasso.design._least import least_leakage_exponent
from privasso.design._limits import MaxAdvantage, MaxError, MaxLeakage
from privasso.design._misspecification import misspecification_table
from privasso.design._objective_result import ObjectiveDesign
from privasso.design._optimal import optimal_design
from privasso.design._release_shape import release_shape
from privasso.design._result import InfeasibleError, OptimalDesign, TunedDesign
from privasso.design._rows_needed import rows_needed
from privasso.design._screened import ScreenedDesign, Sparse
from privasso.design._shape import OptimalShape, optimal_shape
from privasso.design._shrink import best_shrink
from privasso.design._whitened import whitened_moments

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
    "PrincipalComponents",
    "SavedDesign",
    "ScreenedDesign",
    "Sparse",
    "TunedDesign",
    "best_shrink",
    "clipped_settings",
    "column_blocks",
    "least_leakage_exponent",
    "load_design",
    "misspecification_table",
    "optimal_design",
    "optimal_shape",
    "release_shape",
    "row_roots",
    "rows_needed",
    "save_design",
    "standardised",
    "whitened_moments",
]
