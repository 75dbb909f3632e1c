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
from privasso.solvers import _tuned as tuned
from privasso.solvers._exact_pass import (
    CURVED_BITS,
    ENTRY_BITS,
    PassSetting,
    PassState,
    Sums,
    pulled,
    whole_numbers,
)
from privasso.solvers._exact_steps import ExactPoint, FixedPoint, Steps
from privasso.solvers._long_newton import LongProblem, LongSums, minimise_long
from privasso.solvers._long_sums import long_bits

#: Largest prediction relative to κ for which the clipped residuals are certainly right.
_LARGEST = 2.0**90
#: More than rounding makes of a few numbers.
_SLACK = 1.0 + 1e-12


@dataclass(frozen=True, eq=False)
class ExactProblem:
    """P but for its rows.

    - `setting`: columns, grids and κ.
    - `n_rows`: M.
    - `radius`: no row is longer.
    - `ridge`: Λ.
    - `eta`, `thresholds` (N,): η and λω.
    """

    setting: PassSetting
    n_rows: int
    radius: float
    ridge: float
    eta: np.ndarray = field(repr=False)
    thresholds: np.ndarray = field(repr=False)

    @property
    def lost(self) -> float:
        """What the rounding of the pulls of all rows can add to a gradient.

        A residual is the sum of at most four digits, each rounded by at most half a unit.
        """
        return 2.0 * self.n_rows * self.radius * math.ldexp(1.0, -self.setting.unit)

    def point_bits(self, distance: float) -> int:
        """Bits after the point of x, so that rounding x to them is a small part of a distance."""
        steep = self.n_rows * self.radius**2 + self.ridge
        part = distance * self.ridge / (steep * math.sqrt(self.setting.n_columns))
        return max(48, math.ceil(-math.log2(part)) + 4)


@dataclass(frozen=True, eq=False)
class ExactSolution:
    """The minimiser to within `distance`, in the Euclidean norm, and how it was found.

    `distance`: upper bound of ‖x − x̂‖: ‖g‖/Λ for a subgradient g of P at x. `n_passes`: passes
    over the rows, the first included.
    """

    x: FixedPoint
    distance: float
    n_passes: int


def minimise_exactly(
    problem: ExactProblem,
    first: Sums,
    next_pass: Callable[[PassState], Sums],
    distance: float,
) -> ExactSolution:
    """Minimise P until x is certainly within `distance` of the minimiser, if that can be reached.

    Where it cannot, by rounding or within sixty passes, `minimise_further` goes on.

    `first`: sums of a pass at x = 0 with ``fresh=True``; they do not depend on η. `next_pass`:
    returns the sums of a pass over the same rows. `distance`: the distance at which to stop.
    """
    n = problem.setting.n_columns
    # Where rounding alone is beyond several distances, it is of no use to go on.
    if problem.lost > tuned.EXACT_HOPELESS * distance * problem.ridge:
        distance = 2.0 * problem.lost / problem.ridge
    with one_thread():
        run = _Run(problem, first, next_pass)
        here = run.point(FixedPoint((0,) * n, problem.point_bits(distance)), first)
        best, reached = here, run.distance(here)
        while reached > distance and run.n_passes < tuned.EXACT_PASSES:
            here = run.step(here)
            found = run.distance(here)
            if found < reached:
                best, reached = here, found
    return ExactSolution(best.x, reached, run.n_passes)


class _Run(Steps):
    def __init__(
        self, problem: ExactProblem, first: Sums, next_pass: Callable[[PassState], Sums]
    ) -> None:
        super().__init__(problem.thresholds)
        self.problem, self._next = problem, next_pass
        self._curved = self._everything = first["curved"]
        self._free = max(tuned.EXACT_LEAST_FREE, float(first["free"][0]) / problem.n_rows)
        self._known_at: FixedPoint | None = None
        self.n_passes = 1
        self._eta = [Fraction(e) for e in problem.eta.tolist()]
        self._finest = math.lcm(*(one.denominator for one in (*self._eta, *self.penalty)))

    def point(self, x: FixedPoint, sums: Sums) -> ExactPoint:
        """The exact gradient Λx + η − Σψf at x."""
        setting, ridge = self.problem.setting, Fraction(self.problem.ridge)
        pull_unit, step = 1 << (setting.unit + setting.grid), ridge.denominator << x.bits
        scale = math.lcm(self._finest, pull_unit, step)
        steep, pull = ridge.numerator * (scale // step), scale // pull_unit
        gradient = [
            steep * k + eta.numerator * (scale // eta.denominator) - pull * p
            for k, eta, p in zip(x.whole, self._eta, pulled(sums["pull"]), strict=True)
        ]
        return ExactPoint(x, gradient, scale, x.values)

    def distance(self, at: ExactPoint) -> float:
        """‖g‖/Λ, with what the rounding of the pulls of all rows can add to ‖g‖."""
        problem = self.problem
        largest = _LARGEST * problem.setting.loss.kappa
        if problem.radius * float(np.linalg.norm(at.values)) > largest:
            return math.inf  # predictions that the integers of a pass may not hold
        size = float(np.linalg.norm(self.residual(at)))
        return (size + problem.lost) / problem.ridge * _SLACK

    def step(self, at: ExactPoint) -> ExactPoint:
        """Return a point where P is lower, and the matrix of second derivatives there."""
        # Of the first point it is known how many rows count there, but not which.
        curved = self._free * self._everything if self._known_at is None else self._curved
        direction, zeros = self.direction(at, self._hessian(curved))
        start = self.slope(at, direction, sign=1)
        # So far the slope is certainly not positive: with all rows it rises the most.
        low = min(-start / self._steepness(self._everything, direction), 1.0)
        length = 1.0
        while True:
            moved = self.moved(at, length * direction, zeros if length == 1.0 else None)
            there = self._passed(moved)
            slope = self.slope(there, direction, sign=-1)
            if slope <= tuned.EXACT_TURNED * abs(start) or self.n_passes >= tuned.EXACT_PASSES:
                return there
            # Rows that are alike change sides together, and then the slope bends sharply. How
            # steep it is at the far end tells where it was zero, if it did not bend before that.
            shorter = length - slope / self._steepness(self._curved, direction)
            length = shorter if shorter > low else math.sqrt(low * length)

    def _steepness(self, curved: np.ndarray, direction: np.ndarray) -> float:
        """The second derivative of P along the direction."""
        return float(direction @ self._hessian(curved) @ direction)

    def _passed(self, x: FixedPoint) -> ExactPoint:
        sums = self._next(PassState(x, self._known_at))
        self.n_passes += 1
        self._known_at = x
        if "curved" in sums:
            self._curved = self._curved + sums["curved"]
        return self.point(x, sums)

    def _hessian(self, curved: np.ndarray) -> np.ndarray:
        return _unscaled(curved, self.problem.setting) + self.problem.ridge * np.eye(len(self._eta))


def _unscaled(curved: np.ndarray, setting: PassSetting) -> np.ndarray:
    """A matrix of second derivatives from the integers of a pass."""
    return curved * 2.0 ** (2 * (ENTRY_BITS - CURVED_BITS - setting.grid))


def minimise_further(
    problem: ExactProblem,
    next_pass: Callable[[PassState], Sums],
    start: FixedPoint,
    distance: float,
) -> ExactSolution:
    """Go on where `minimise_exactly` did not get close enough, with longer integers.

    The clipped residuals of these passes are not rounded, and every step lowers P; see
    `minimise_long`. They take more time each.

    `problem`, `next_pass`, `distance`: as in `minimise_exactly`.
    """
    setting = problem.setting

    def sums(x: FixedPoint) -> LongSums:
        found, p = next_pass(PassState(x, long=True)), long_bits(x)

        def matrices(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            take = np.ix_(columns, columns)
            below, above = (_unscaled(found[name][take], setting) for name in ("below", "above"))
            return below, above

        pull = [Fraction(k, 1 << (p + setting.grid)) for k in whole_numbers(found["pull"])]
        return LongSums(pull, Fraction(whole_numbers(found["value"])[0], 1 << (2 * p)), matrices)

    lengths = problem.n_rows * problem.radius
    eta = [Fraction(e) for e in problem.eta.tolist()]
    long = LongProblem(
        sums, lengths, lengths * problem.radius + problem.ridge, problem.ridge, eta,
        problem.thresholds,
    )  # fmt: skip
    x, reached, n_points = minimise_long(long, start, distance)
    return ExactSolution(x, reached, n_points)
