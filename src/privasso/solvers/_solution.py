"""What every solver returns: a point, a status and the evidence for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import numpy as np


class Status(Enum):
    """How a solve ended."""

    CONVERGED = "converged"
    """x is the minimiser; `Solution.kkt` and `Solution.gap` prove it."""
    UNBOUNDED = "unbounded"
    """No minimiser exists; `Solution.ray` proves it."""
    MAX_ITER = "max_iter"
    """The iteration limit came first; `Solution.kkt` says how far x is."""
    DIVERGED = "diverged"
    """The algorithm diverged although the problem may be fine."""


class Step(NamedTuple):
    """One line of `Solution.history`."""

    phase: str
    """``"amp"`` or ``"working set"``."""
    n_active: int
    """Coefficients away from zero."""
    change: float
    """AMP: relative size of the undamped step. Working set: KKT violation divided by λ."""
    s_theta: float
    """AMP: the variance parameter, V of state evolution. Working set: columns in the set / M."""


@dataclass(frozen=True)
class Solution:
    """The answer to one perturbed LASSO.

    Attributes
    ----------
    x : ndarray, shape (N,)
        The minimiser when `status` is CONVERGED; otherwise the last iterate.
    status : Status
        How the solve ended.
    n_iter : int
        Iterations of the algorithm (AMP iterations plus rounds of the working set).
    n_passes : float
        How often F was read, counting a part of its columns as that part of a pass.
    kkt : float
        Largest violation of an optimality condition, divided by λ.
    kkt_beyond_rounding : float
        The same without violations that one rounding of x explains (see `Certificate`); this
        is what is compared with ``tol``.
    gap : float
        Duality gap in units of the objective, ``inf`` where no dual point is known.
    method : str
        The algorithm that produced x: ``"amp"``, ``"amp-paper"`` or ``"cd"``.
    history : tuple of Step
        One entry for each iteration.
    ray : ndarray or None
        For UNBOUNDED: d with Fd = 0 and λ‖d‖₁ < bᵀd.
    message : str
        What happened and what to do about it.
    """

    x: np.ndarray = field(repr=False)
    status: Status
    n_iter: int
    n_passes: float
    kkt: float
    kkt_beyond_rounding: float
    gap: float
    method: str
    history: tuple[Step, ...] = field(repr=False, default=())
    ray: np.ndarray | None = field(repr=False, default=None)
    message: str = ""


class SolveError(RuntimeError):
    """A solve did not end in a certified minimiser. `solution` holds what was found."""

    def __init__(self, solution: Solution) -> None:
        super().__init__(solution.message)
        self.solution = solution


class UnboundedError(SolveError):
    """The objective has no minimiser; `solution.ray` is the proof."""


class NotConvergedError(SolveError):
    """The algorithm stopped before it could certify a minimiser."""


def raise_on_failure(solution: Solution) -> Solution:
    """Return a converged solution; raise the error that fits any other."""
    if solution.status is Status.CONVERGED:
        return solution
    if solution.status is Status.UNBOUNDED:
        raise UnboundedError(solution)
    raise NotConvergedError(solution)
