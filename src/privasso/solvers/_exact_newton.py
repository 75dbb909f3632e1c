"""The clipped-residual LASSO over rows that are anywhere: Newton's method with exact sums.

    P(x) = Σ_μ ℓ_κ(y_μ − f_μᵀx) + λ Σ_i ω_i|x_i| + (Λ/2)‖x‖² + ηᵀx.

Each step needs one pass over the rows, which returns integers (`ExactPass`), so that the gradient
at x is known exactly, and x is the same to the last bit for any cut and order of the rows. At first
every row counts in the matrix of second derivatives, as if nothing were clipped; a step with that
matrix never goes too far. From then on each pass reports which rows changed sides, and the matrix
is exact for the present point. A step along which the slope turns up too much is shortened.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from privasso._blas import one_thread
from privasso.solvers._clipped_quadratic import cholesky, minimise_quadratic
from privasso.solvers._exact_pass import (
    CURVED_BITS,
    ENTRY_BITS,
    FixedPoint,
    PassSetting,
    PassState,
    Sums,
    pulled,
)

_MAX_PASSES = 60
#: Most a slope may have turned up at the end of a step, relative to its start.
_TURNED = 0.5
#: Accuracy of a step.
_TOL = 1e-10
#: Largest prediction relative to κ for which the clipped residuals are certainly right.
_LARGEST = 2.0**40
#: More than rounding makes of a few numbers.
_SLACK = 1.0 + 1e-12


@dataclass(frozen=True, eq=False)
class ExactProblem:
    """P but for its rows.

    Attributes
    ----------
    setting : PassSetting
        Columns, grids and κ.
    n_rows : int
        M.
    radius : float
        No row is longer.
    ridge : float
        Λ.
    eta, thresholds : ndarray of shape (N,)
        η and λω.

    Examples
    --------
    >>> setting = PassSetting.of(n_columns=1, grid=19, kappa=0.25)
    >>> problem = ExactProblem(setting, 2, 1.0, 0.5, np.zeros(1), np.zeros(1))
    >>> problem.point_bits(1e-6), problem.point_bits(1e-18)  # a smaller distance takes more bits
    (48, 67)
    """

    setting: PassSetting
    n_rows: int
    radius: float
    ridge: float
    eta: np.ndarray = field(repr=False)
    thresholds: np.ndarray = field(repr=False)

    def point_bits(self, distance: float) -> int:
        """Bits after the point of x, so that rounding x to them is a small part of a distance."""
        steep = self.n_rows * self.radius**2 + self.ridge
        part = distance * self.ridge / (steep * math.sqrt(self.setting.n_columns))
        return max(48, math.ceil(-math.log2(part)) + 4)


@dataclass(frozen=True, eq=False)
class ExactSolution:
    """The minimiser to within `distance`, in the Euclidean norm, and how it was found.

    Attributes
    ----------
    x : FixedPoint
        The point.
    distance : float
        Upper bound of ‖x − x̂‖: ‖g‖/Λ for a subgradient g of P at x.
    n_passes : int
        Passes over the rows, the first included.

    Examples
    --------
    >>> found = ExactSolution(FixedPoint((1, -3), 2), distance=1e-12, n_passes=4)
    >>> found.x.values  # 1/4 and −3/4
    array([ 0.25, -0.75])
    """

    x: FixedPoint
    distance: float
    n_passes: int


@dataclass(frozen=True, eq=False)
class _Point:
    """A point with the exact gradient of the smooth part."""

    x: FixedPoint
    gradient: list[Fraction]
    values: np.ndarray


def minimise_exactly(
    problem: ExactProblem,
    first: Sums,
    next_pass: Callable[[PassState], Sums],
    distance: float,
) -> ExactSolution:
    """Minimise P until x is certainly within `distance` of the minimiser, if that can be reached.

    Parameters
    ----------
    problem : ExactProblem
    first : Sums
        Sums of a pass at x = 0 with ``fresh=True``; they do not depend on η.
    next_pass : callable
        Returns the sums of a pass over the same rows.
    distance : float
        The distance at which to stop.

    Examples
    --------
    >>> from privasso.solvers._exact_pass import ExactPass
    >>> rows, labels = np.array([[1.0], [0.5]]), np.array([0.25, 0.5])
    >>> setting = PassSetting.of(1, 19, 0.25)
    >>> one = ExactPass(setting)
    >>> problem = ExactProblem(setting, 2, 1.0, 0.5, np.zeros(1), np.zeros(1))
    >>> first = one([(rows, labels)], PassState(FixedPoint((0,), 70), fresh=True))
    >>> found = minimise_exactly(problem, first, lambda s: one([(rows, labels)], s), 1e-15)
    >>> float(found.x.values[0]), found.distance <= 1e-15  # (1/4 + κ/2)/(1 + Λ)
    (0.25, True)
    """
    n = problem.setting.n_columns
    bits = problem.point_bits(distance)
    with one_thread():
        run = _Run(problem, first["curved"], next_pass)
        here = run.point(FixedPoint((0,) * n, bits), first)
        best, reached = here, run.distance(here)
        while reached > distance and run.n_passes < _MAX_PASSES:
            here = run.step(here)
            found = run.distance(here)
            if found < reached:
                best, reached = here, found
    return ExactSolution(best.x, reached, run.n_passes)


class _Run:
    def __init__(
        self, problem: ExactProblem, curved: np.ndarray, next_pass: Callable[[PassState], Sums]
    ) -> None:
        self.problem, self._next = problem, next_pass
        self._curved = self._everything = curved
        self._known_at: FixedPoint | None = None
        self.n_passes = 1
        self._penalty = [Fraction(t) for t in problem.thresholds.tolist()]
        self._eta = [Fraction(e) for e in problem.eta.tolist()]

    def point(self, x: FixedPoint, sums: Sums) -> _Point:
        """The exact gradient Λx + η − Σψf at x."""
        problem, setting = self.problem, self.problem.setting
        ridge, unit, pull_unit = Fraction(problem.ridge), 1 << x.bits, setting.unit + setting.grid
        gradient = [
            ridge * Fraction(k, unit) + eta - Fraction(p, 1) / Fraction(2) ** pull_unit
            for k, eta, p in zip(x.whole, self._eta, pulled(sums["pull"]), strict=True)
        ]
        return _Point(x, gradient, x.values)

    def residual(self, at: _Point) -> np.ndarray:
        """The subgradient of P with the smallest entries, each correctly rounded."""
        return np.array(
            [
                float(g + t * ((k > 0) - (k < 0)) if k else max(g - t, 0) + min(g + t, 0))
                for g, t, k in zip(at.gradient, self._penalty, at.x.whole, strict=True)
            ]
        )

    def distance(self, at: _Point) -> float:
        """‖g‖/Λ, with what the rounding of the pulls of all rows can add to ‖g‖."""
        problem = self.problem
        if problem.radius * float(np.linalg.norm(at.values)) > _LARGEST * problem.setting.clip:
            return math.inf  # predictions that the integers of a pass may not hold
        size = float(np.linalg.norm(self.residual(at)))
        # A residual is the sum of at most four digits, each rounded by at most half a unit.
        pulls = 2.0 * problem.n_rows * problem.radius * math.ldexp(1.0, -problem.setting.unit)
        return (size + pulls) / problem.ridge * _SLACK

    def step(self, at: _Point) -> _Point:
        """Return a point where P is lower, and the matrix of second derivatives there."""
        direction, zeros = self._direction(at)
        start = self._slope(at, direction, sign=1)
        # So far the slope is certainly not positive: with all rows it rises the most.
        low = min(-start / self._steepness(self._everything, direction), 1.0)
        length = 1.0
        while True:
            moved = self._moved(at, length * direction, zeros if length == 1.0 else None)
            there = self._passed(moved)
            slope = self._slope(there, direction, sign=-1)
            if slope <= _TURNED * abs(start) or self.n_passes >= _MAX_PASSES:
                return there
            # Rows that are alike change sides together, and then the slope bends sharply. How
            # steep it is at the far end tells where it was zero, if it did not bend before that.
            shorter = length - slope / self._steepness(self._curved, direction)
            length = shorter if shorter > low else math.sqrt(low * length)

    def _steepness(self, curved: np.ndarray, direction: np.ndarray) -> float:
        """The second derivative of P along the direction."""
        return float(direction @ self._hessian(curved) @ direction)

    def _passed(self, x: FixedPoint) -> _Point:
        sums = self._next(PassState(x, self._known_at))
        self.n_passes += 1
        self._known_at = x
        if "curved" in sums:
            self._curved = self._curved + sums["curved"]
        return self.point(x, sums)

    def _hessian(self, curved: np.ndarray) -> np.ndarray:
        scale = 2.0 ** (2 * (ENTRY_BITS - CURVED_BITS - self.problem.setting.grid))
        return curved * scale + self.problem.ridge * np.eye(len(self._eta))

    def _direction(self, at: _Point) -> tuple[np.ndarray, np.ndarray | None]:
        """The step of the quadratic model, and which coefficients it sets to zero."""
        H, thresholds = self._hessian(self._curved), self.problem.thresholds
        x = at.values
        sign = np.array([(k > 0) - (k < 0) for k in at.x.whole], dtype=np.float64)
        # Around x the penalty of every coefficient that is not zero is linear, and what remains
        # are small numbers: the step has all its digits, however small it is.
        total = [g + t * int(s) for g, t, s in zip(at.gradient, self._penalty, sign, strict=True)]
        slopes = np.array([float(g) for g in total])
        free = np.where(sign == 0.0, thresholds, 0.0)
        d = minimise_quadratic(H, -slopes, free, np.zeros_like(x), _TOL)
        if not np.any((sign != 0.0) & (thresholds > 0.0) & (sign * (x + d) <= 0.0)):
            return self._polished(H, slopes, free, d), None
        gradient = np.array([float(g) for g in at.gradient])
        target = minimise_quadratic(H, H @ x - gradient, thresholds, x, _TOL)
        return target - x, target == 0.0

    @staticmethod
    def _polished(H: np.ndarray, slopes: np.ndarray, free: np.ndarray, d: np.ndarray) -> np.ndarray:
        """The step on its support by one solve, unless a sign changes."""
        active = np.flatnonzero((d != 0.0) | (free == 0.0))
        factor = cholesky(H, active) if active.size else None
        if factor is None:
            return d
        better = np.zeros_like(d)
        better[active] = -factor.solve(slopes[active] + free[active] * np.sign(d[active]))
        return d if np.any((free > 0.0) & (better * d < 0.0)) else better

    def _moved(self, at: _Point, step: np.ndarray, zeros: np.ndarray | None) -> FixedPoint:
        """X + step on the grid of x; where `zeros` says so, exactly zero."""
        unit = at.x.bits
        steps = [round(Fraction(d) * (1 << unit)) for d in step.tolist()]
        moved = [k + d for k, d in zip(at.x.whole, steps, strict=True)]
        if zeros is not None:
            moved = [0 if z else k for k, z in zip(moved, zeros.tolist(), strict=True)]
        return FixedPoint(tuple(moved), unit)

    def _slope(self, at: _Point, direction: np.ndarray, *, sign: int) -> float:
        """The derivative of P along the direction, from the right (1) or from the left (−1)."""
        total = Fraction(0)
        parts = zip(at.gradient, self._penalty, at.x.whole, direction.tolist(), strict=True)
        for g, t, k, d in parts:
            if d:
                side = (k > 0) - (k < 0) or (sign if d > 0 else -sign)
                total += Fraction(d) * (g + t * side)
        return float(total)
