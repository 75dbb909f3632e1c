"""A clipped problem to any accuracy: Newton's method with an exact gradient and an exact objective.

    P(x) = Σ_μ w_μ ℓ(y_μ, f_μᵀx) + Σ_i t_i|x_i| + (Λ/2)‖Lᵀx‖² + ηᵀx.

P is strongly convex, so that ‖Lᵀ(x − x̂)‖ ≤ ‖L⁻¹g‖/Λ for any subgradient g at x: whoever knows the
gradient to enough digits can prove any distance to the minimiser x̂. Here it is known to as many as
are asked for (`row_sums`), and only the steps are computed in double precision.

A step minimises a quadratic model of P. Its matrix is the second derivative at x or, where that
one promises too much, a mean of it and of the matrix of the parabolas above the losses, with which
a step never raises P. A step is taken if it lowers P, so that no point comes back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from privasso._blas import one_thread
from privasso.problem import Loss
from privasso.solvers import _tuned as tuned
from privasso.solvers._exact_steps import ExactPoint, FixedPoint, Steps
from privasso.solvers._long_sums import MOST_ROWS, OFF, long_bits, row_sums

#: More than rounding makes of a few numbers.
_SLACK = 1.0 + 1e-9


@dataclass(frozen=True, eq=False)
class LongSums:
    """What the rows add at a point.

    `pull`: Σ wψf. `value`: Σ wℓ. `matrices`: returns, for some columns, Σ w·ℓ''·ffᵀ and the same
    for the parabolas above the losses.
    """

    pull: list[Fraction]
    value: Fraction
    matrices: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class LongProblem:
    """P, and its rows as a function of a point.

    - `sums`: sums over the rows at a point.
    - `lengths`: at least Σ_μ‖f_μ‖.
    - `steep`: at least the largest second derivative of the smooth part.
    - `ridge`: Λ.
    - `eta`: η.
    - `thresholds` (N,): t.
    - `factor` (N, N): L; the identity by default.
    """

    sums: Callable[[FixedPoint], LongSums] = field(repr=False)
    lengths: float
    steep: float
    ridge: float
    eta: list[Fraction] = field(repr=False)
    thresholds: np.ndarray = field(repr=False)
    factor: np.ndarray | None = field(default=None, repr=False)

    @staticmethod
    def of_rows(
        G: np.ndarray,
        y: np.ndarray,
        loss: Loss,
        weights: np.ndarray | None,
        ridge: float,
        eta: list[Fraction],
        thresholds: np.ndarray,
        factor: np.ndarray | None = None,
    ) -> LongProblem:
        """P of rows in memory, with their weights w."""
        squares = np.einsum("ij,ij->i", G, G)
        heavy = squares if weights is None else weights * squares
        curved = loss.curvature_bound * float(np.sum(heavy))
        bent = ridge * (1.0 if factor is None else float(np.linalg.norm(factor)) ** 2)
        return LongProblem(
            _rows_in_memory(G, y, loss, weights),
            float(np.sum(np.sqrt(squares))) * _SLACK,
            (curved + bent) * _SLACK,
            ridge,
            eta,
            thresholds,
            factor,
        )

    @cached_property
    def per_gradient(self) -> float:
        """Upper bound of ‖Lᵀ(x − x̂)‖/‖g‖: ‖L⁻¹‖/Λ, the norm being at most that of Frobenius."""
        if self.factor is None:
            return _SLACK / self.ridge
        inverse = np.linalg.inv(self.factor)
        return float(np.linalg.norm(inverse)) * (1.0 + 1e-6) / self.ridge * _SLACK

    def point_bits(self, distance: float) -> int:
        """Bits after the point of x, so that rounding x to them is a small part of a distance."""
        part = self.steep * self.per_gradient * math.sqrt(len(self.eta)) / distance
        return max(48, math.ceil(math.log2(part)) + 8)

    def ridged(self, x: FixedPoint) -> list[Fraction]:
        """ΛLLᵀx."""
        own = [Fraction(k, 1 << x.bits) for k in x.whole]
        if self.factor is not None:
            own = exact_product(self.factor, exact_product(self.factor.T, own))
        return [Fraction(self.ridge) * v for v in own]


def exact_product(A: np.ndarray, x: list[Fraction]) -> list[Fraction]:
    """Ax without rounding."""
    rows = ([(Fraction(a), v) for a, v in zip(row, x, strict=True) if a] for row in A.tolist())
    return [sum((a * v for a, v in row), Fraction(0)) for row in rows]


def _rows_in_memory(
    G: np.ndarray, y: np.ndarray, loss: Loss, weights: np.ndarray | None
) -> Callable[[FixedPoint], LongSums]:
    """The sums over rows that are in memory, as a function of x."""
    largest = float(np.max(np.abs(G), initial=2.0**-1000))
    grid = 20 - math.frexp(largest)[1]

    def sums(x: FixedPoint) -> LongSums:
        n, p = G.shape[1], long_bits(x)
        pull, value = [Fraction(0)] * n, 0
        bent: list[tuple[np.ndarray, np.ndarray]] = []
        for start in range(0, len(y), MOST_ROWS):
            take = slice(start, start + MOST_ROWS)
            own = None if weights is None else weights[take]
            found = row_sums(G[take], y[take], own, loss, x, grid)
            unit = 1 << (p + found.grid)
            pull = [a + Fraction(k, unit) for a, k in zip(pull, found.pull, strict=True)]
            value += found.value
            bent.append((found.curvature, found.above))

        def matrices(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            few = G if columns.size == n else G[:, columns]
            below, above = (np.concatenate(parts) for parts in zip(*bent, strict=True))
            return few.T @ (below[:, None] * few), few.T @ (above[:, None] * few)

        return LongSums(pull, Fraction(value, 1 << (2 * p)), matrices)

    return sums


def minimise_long(
    problem: LongProblem, start: FixedPoint, distance: float
) -> tuple[FixedPoint, float, int]:
    """Minimise P until ‖Lᵀ(x − x̂)‖ is certainly at most `distance`; see `LongProblem`.

    Returns x, the distance that is certain, and the number of points at which the rows were read.
    """
    with one_thread():
        run = _Run(problem)
        here = run.point(start.with_bits(problem.point_bits(distance)))
        best, reached = here, run.distance(here)
        while reached > distance and run.n_points < tuned.LONG_POINTS:
            here = run.step(here)
            if here is None:
                break
            found = run.distance(here)
            if found < reached:
                best, reached = here, found
    return best.x, reached, run.n_points


@dataclass(frozen=True, eq=False)
class _Point(ExactPoint):
    """A point with P and the matrices of its rows."""

    objective: Fraction
    sums: LongSums


class _Run:
    def __init__(self, problem: LongProblem) -> None:
        self.problem, self.steps = problem, Steps(problem.thresholds)
        self.n_points = 0
        self._share = 0.0

    def point(self, x: FixedPoint) -> _Point:
        problem = self.problem
        self.n_points += 1
        sums, ridged = problem.sums(x), problem.ridged(x)
        own = [Fraction(k, 1 << x.bits) for k in x.whole]
        terms = zip(ridged, problem.eta, sums.pull, strict=True)
        exact = [ridge + eta - pull for ridge, eta, pull in terms]
        scale = math.lcm(*(one.denominator for one in (*exact, *self.steps.penalty)))
        gradient = [one.numerator * (scale // one.denominator) for one in exact]
        parts = zip(own, ridged, problem.eta, self.steps.penalty, strict=True)
        terms = (v * (r / 2 + e) + t * abs(v) for v, r, e, t in parts)
        return _Point(x, gradient, scale, x.values, sums.value + sum(terms, Fraction(0)), sums)

    def distance(self, at: _Point) -> float:
        """What the smallest subgradient proves, with what rounding can add to it."""
        size = float(np.linalg.norm(self.steps.residual(at)))
        lost = OFF * self.problem.lengths * math.ldexp(1.0, -long_bits(at.x))
        return (size + lost) * self.problem.per_gradient * _SLACK

    def step(self, at: _Point) -> _Point | None:
        """The next point, where P is lower; None if no step leads to one."""
        columns = np.flatnonzero(self._undecided(at))
        below, above = at.sums.matrices(columns)
        sub = Steps(self.problem.thresholds[columns])
        few = ExactPoint(
            FixedPoint(tuple(at.x.whole[k] for k in columns), at.x.bits),
            [at.gradient[k] for k in columns],
            at.scale,
            at.values[columns],
        )
        while self.n_points < tuned.LONG_POINTS:
            share = self._share
            H = below + min(share, 1.0) * (above - below) + self._ridge(columns)
            if share > 1.0:  # rounding has left the matrix above below the losses
                H = H + (share - 1.0) * float(np.trace(H)) / len(H) * np.eye(len(H))
            step, zeros = sub.direction(few, H)
            moved = list(at.x.whole)
            for k, value in zip(columns, sub.moved(few, step, zeros).whole, strict=True):
                moved[k] = value
            promised = -sub.slope(few, step, sign=1)
            if tuple(moved) == at.x.whole:
                return None
            there, gained = at, -math.inf
            if promised > 0.0:
                there = self.point(FixedPoint(tuple(moved), at.x.bits))
                gained = float(at.objective - there.objective) / (0.5 * promised)
            if gained < tuned.LONG_POOR:
                self._share = max(tuned.LONG_CHANGE * share, tuned.LONG_FIRST)
            elif gained > tuned.LONG_GOOD:
                self._share = share / tuned.LONG_CHANGE if share > tuned.LONG_FIRST else 0.0
            if gained >= tuned.LONG_LEAST:
                return there
        return None

    def _undecided(self, at: _Point) -> np.ndarray:
        """Coefficients that are not zero, or would not stay so."""
        return np.array([s != 0 or t == 0 or abs(g) > t for g, t, s in self.steps.gradient(at)])

    def _ridge(self, columns: np.ndarray) -> np.ndarray:
        factor = self.problem.factor
        if factor is None:
            return self.problem.ridge * np.eye(columns.size)
        own = factor[columns]
        return self.problem.ridge * (own @ own.T)
