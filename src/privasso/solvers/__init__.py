"""Solvers of the perturbed LASSO: one file per algorithm, one `Solution` for all."""

from privasso._clock import Clock
from privasso.solvers._algorithm import Algorithm, Outcome, register
from privasso.solvers._amp import Amp
from privasso.solvers._amp_paper import AmpPaper, PaperRuns, amp_paper_many, paper_starts
from privasso.solvers._auto import Auto
from privasso.solvers._clipped import solve_clipped, solve_clipped_problem
from privasso.solvers._clipped_together import minimise_together
from privasso.solvers._coordinate_descent import CoordinateDescent
from privasso.solvers._exact_newton import (
    ExactProblem,
    minimise_exactly,
    minimise_further,
)
from privasso.solvers._exact_pass import (
    LABEL_BITS,
    ExactPass,
    PassSetting,
    PassState,
    entry_grid,
)
from privasso.solvers._exact_steps import FixedPoint
from privasso.solvers._gram import GramLasso
from privasso.solvers._long_newton import (
    LongProblem,
    exact_product,
    minimise_long,
)
from privasso.solvers._many import Solutions, solve_many, solve_path, solve_problems
from privasso.solvers._solution import (
    NotConvergedError,
    Solution,
    SolveError,
    Status,
    UnboundedError,
)
from privasso.solvers._solve import solve, solve_problem
from privasso.solvers._tuned import MOST_TOGETHER
from privasso.solvers._vamp import Vamp, VampTextbook

__all__ = [
    "LABEL_BITS",
    "MOST_TOGETHER",
    "Algorithm",
    "Amp",
    "AmpPaper",
    "Auto",
    "Clock",
    "CoordinateDescent",
    "ExactPass",
    "ExactProblem",
    "FixedPoint",
    "GramLasso",
    "LongProblem",
    "NotConvergedError",
    "Outcome",
    "PaperRuns",
    "PassSetting",
    "PassState",
    "Solution",
    "Solutions",
    "SolveError",
    "Status",
    "UnboundedError",
    "Vamp",
    "VampTextbook",
    "amp_paper_many",
    "entry_grid",
    "exact_product",
    "minimise_exactly",
    "minimise_further",
    "minimise_long",
    "minimise_together",
    "paper_starts",
    "register",
    "solve",
    "solve_clipped",
    "solve_clipped_problem",
    "solve_many",
    "solve_path",
    "solve_problem",
    "solve_problems",
]
