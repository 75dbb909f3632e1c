"""What every solver returns: a point, a status and the evidence for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import numpy as np


class Status(Enum):
    """How a solve ended.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> pv.solve(np.eye(2), np.array([3.0, 0.1]), lam=1.0).status is pv.Status.CONVERGED
    True
    """

    CONVERGED = "converged"
    """x is the minimiser; `Solution.kkt` and `Solution.gap` prove it.

    Where rounding errors alone exceed ``tol``, `Solution.rounding_limited` says so.
    """
    UNBOUNDED = "unbounded"
    """No minimiser exists; `Solution.ray` proves it."""
    FIXED_POINT = "fixed_point"
    """x is a fixed point of the algorithm, but not the minimiser; `Solution.kkt` says how far off.

    This is how the literal Algorithm 1 of the paper (``"amp-paper"``) ends. It is what that
    algorithm is meant to find, so `solve` does not raise an error.
    """
    MAX_ITER = "max_iter"
    """The algorithm stopped before x met the tolerance; `Solution.kkt` says how far off it is."""
    TIME_LIMIT = "time_limit"
    """The time was over before x met the tolerance; `Solution.kkt` says how far off it is."""
    DIVERGED = "diverged"
    """The iterates grew without bound, but nothing proves that the problem has no minimiser."""


class Step(NamedTuple):
    """One entry of `Solution.history`."""

    phase: str
    """``"amp"``, ``"vamp"`` or ``"working set"``."""
    n_active: int
    """Number of coefficients that are not zero."""
    change: float
    """AMP: relative size of the undamped step. Working set: KKT violation divided by λ."""
    s_theta: float
    """AMP: the variance parameter, V of state evolution. Working set: columns in the set / M."""


class ComparesFields:
    """Equality of dataclasses with arrays: two are equal if all their fields are.

    Arrays are equal if all their entries are, exactly; NaN equals NaN. As with arrays, there is no
    hash.
    """

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return _equal(vars(self), vars(other))


def _equal(a: object, b: object) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_equal(a[key], b[key]) for key in a)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    x, y = np.asarray(a), np.asarray(b)
    return x.shape == y.shape and bool(np.all((x == y) | ((x != x) & (y != y))))


@dataclass(frozen=True, eq=False)
class Solution(ComparesFields):
    """The answer to one perturbed LASSO.

    Two solutions are equal (``==``) if all their attributes are, to the last digit.

    Attributes
    ----------
    x : ndarray, shape (N,)
        CONVERGED: the minimiser. FIXED_POINT: the fixed point. MAX_ITER, TIME_LIMIT and DIVERGED:
        the last iterate. UNBOUNDED: NaN in every entry, as there is no minimiser.
    status : Status
        How the solve ended.
    n_iter : int
        Iterations of the algorithm (AMP iterations plus rounds of the working set).
    n_passes : float
        How often F was read; a part of its columns counts as that part of a pass.
    kkt : float
        Largest violation of an optimality condition at x, divided by λ; ``inf`` for UNBOUNDED and
        DIVERGED.
    kkt_beyond_rounding : float
        The same without violations that one rounding of x explains (see `Certificate`). This
        number is compared with ``tol``.
    gap : float
        Duality gap in units of the objective; ``inf`` if no feasible point of the dual is known.
    method : str
        The algorithm that found x or the ray: ``"amp"``, ``"amp-paper"`` or ``"cd"``. With
        ``method="auto"`` it is ``"auto"`` if no algorithm had to run, because a zero column
        already shows that the problem is unbounded.
    history : tuple of Step
        One entry for each iteration.
    ray : ndarray or None
        For UNBOUNDED: d with Fd = 0 and λ‖d‖₁ < bᵀd.
    message : str
        What happened and what to do about it.
    rounding_limited : bool
        Whether `kkt` exceeds ``tol`` although the status is CONVERGED: double precision cannot
        show a smaller violation on this F, and `kkt_beyond_rounding` does not exceed ``tol``.
    distance : float
        Upper bound of ‖x − x̂‖_Q, x̂ the exact minimiser, rounding included. Only a problem with
        a ridge Q has one (`solve_clipped`); infinite for others.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> found = pv.solve(np.eye(2), [3.0, 0.5], lam=1.0)
    >>> found.x, found.status, found.kkt <= 1e-8
    (array([2., 0.]), <Status.CONVERGED: 'converged'>, True)
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
    rounding_limited: bool = False
    distance: float = float("inf")


class SolveError(RuntimeError):
    """A solve failed. `solution` holds what was found.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> try:
    ...     pv.solve(np.ones((1, 2)), np.ones(1), lam=0.1, eta=np.array([1.0, -1.0]))
    ... except pv.SolveError as error:
    ...     print(error.solution.status.name)
    UNBOUNDED
    """

    def __init__(self, solution: Solution) -> None:
        super().__init__(solution.message)
        self.solution = solution


class UnboundedError(SolveError):
    """The objective has no minimiser; `solution.ray` is the proof.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> F, eta = np.ones((1, 2)), np.array([1.0, -1.0])
    >>> try:
    ...     pv.solve(F, np.ones(1), lam=0.1, eta=eta)
    ... except pv.UnboundedError as error:
    ...     ray = error.solution.ray
    >>> bool(abs(F @ ray) < 1e-9), bool(eta @ ray + 0.1 * abs(ray).sum() < 0)
    (True, True)
    """


class NotConvergedError(SolveError):
    """The algorithm stopped before it found a minimiser that it can prove to be one.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> rng = np.random.default_rng(0)
    >>> F, y = rng.standard_normal((30, 40)), rng.standard_normal(30)
    >>> pv.solve(F, y, 0.01, method="cd", time_limit=1e-9, throw=False).status.name
    'TIME_LIMIT'
    >>> pv.solve(F, y, 0.01, method="cd", time_limit=1e-9)
    Traceback (most recent call last):
    privasso.solvers._solution.NotConvergedError: The time limit was over before cd converged: ...
    """


def raise_on_failure(solution: Solution) -> Solution:
    """Return a solution that is what its algorithm looks for; raise the error that fits others."""
    if solution.status in (Status.CONVERGED, Status.FIXED_POINT):
        return solution
    if solution.status is Status.UNBOUNDED:
        raise UnboundedError(solution)
    raise NotConvergedError(solution)
