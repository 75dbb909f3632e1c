"""Solvers of the perturbed LASSO: one algorithm a file, one `Solution` for all."""

from privasso.solvers._amp import AmpState
from privasso.solvers._amp_paper_many import amp_paper_many, paper_starts
from privasso.solvers._many import Solutions, solve_many
from privasso.solvers._solution import (
    NotConvergedError,
    Solution,
    SolveError,
    Status,
    Step,
    UnboundedError,
)
from privasso.solvers._solve import solve, solve_problem

__all__ = [
    "AmpState",
    "NotConvergedError",
    "Solution",
    "Solutions",
    "SolveError",
    "Status",
    "Step",
    "UnboundedError",
    "amp_paper_many",
    "paper_starts",
    "solve",
    "solve_many",
    "solve_problem",
]
