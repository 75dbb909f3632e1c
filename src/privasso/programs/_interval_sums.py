"""Noisy sums at coefficients that were released, and the intervals that follow from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from privasso.programs._interval_frames import (
    ROUNDED,
    SCALES,
    LabelFrame,
    Placed,
    RecordFrame,
)
from privasso.programs._intervals import Intervals, Target
from privasso.programs._laws import FEW, NEVER, Law, at_level
from privasso.programs._one_step import CLEAR, OneStep
from privasso.programs._point import ClippedSlope, LogisticSlope, Point, Slope
from privasso.programs._scores import STEPS, ResidualSums, RowCounts, ScoreSums, exceeded_by
from privasso.programs._tails import tail_end
from privasso.queries import Ask, Neighbours, NoisySum, made_up

#: Parts of the squared sensitivity: for sizes of residuals, and of each target for curvatures,
#: scores and squared scores; and without curvatures, where these are public.
_SIZES, _SHARES, _PUBLIC = 0.06, (0.45, 0.43, 0.12), (0.0, 0.8, 0.2)
#: How the rest is shared where there are two targets.
_WEIGHTS: dict[Target, float] = {"huber": 0.35, "least-squares": 0.65, "logistic": 1.0}
#: Rows are counted by their squared lengths, in units of the mean one.
_LENGTHS = tuple(2.0 ** (0.5 * k) for k in range(-2, 13))
#: What clipped residuals may change a score by, as a part of its deviation, of sampling and of
#: noise; how many rows are shrunk, in units of that deviation; and how many times as large as usual
#: ones clipped residuals are.
_CLIPPED, _SHRUNK, _LARGE = 1.0, 1.0, 5.0
#: Where public rows are farther away than this, see `OneStep`, a few residuals that are clipped may
#: move a coefficient, and no law is supposed for those that noise hides.
_FAR = 3.0


@dataclass(frozen=True, eq=False)
class IntervalProgram:
    """What is asked for intervals, beside a fit.

    Attributes
    ----------
    frame : Frame
        The coordinates.
    mu : float
        Sensitivity of all answers together.
    neighbours : Neighbours
        How data sets differ.
    targets : tuple of str
        What there are to be intervals for.
    y_bounds : (float, float)
        Bounds of the labels.
    kappa : float
        Where the Huber target clips residuals, as a part of the range of the labels.
    """

    frame: LabelFrame | RecordFrame
    mu: float
    neighbours: Neighbours
    targets: tuple[Target, ...]
    y_bounds: tuple[float, float]
    kappa: float

    def __call__(self, ask: Ask, coef: np.ndarray, intercept: float) -> IntervalSums:
        """Ask at coefficients that were released."""
        placed = self.frame.settled(ask, self.mu, self.neighbours)
        point = Point(coef, intercept, self.y_bounds, self.frame.cut, self.neighbours.empties)
        public = placed.curvature is not None
        measured = "least-squares" in self.targets
        left = 1.0 - (0.0 if public else SCALES) - (_SIZES if measured or not public else 0.0)
        total = sum(_WEIGHTS[target] for target in self.targets)
        mus = {t: self.mu * math.sqrt(left * _WEIGHTS[t] / total) for t in self.targets}
        clip, radius, shrunk = self._sizes(
            ask, placed, point if measured else None, mus[self.targets[0]]
        )
        width = 1.0 if "logistic" in self.targets else self.y_bounds[1] - self.y_bounds[0]
        steps: dict[Target, tuple[np.ndarray, OneStep]] = {}
        for target in self.targets:
            slope, base = self._slope(target, clip), None
            if steps:  # from the minimiser for squared residuals it is not far to another one
                base = steps["least-squares"][1]
                point = placed.moved(point, base.likely(), width)
            step = self._step(ask, placed, point, slope, (radius, shrunk), mus[target], base)
            steps[target] = point.coef, step
        return IntervalSums(placed, steps, width, width * self.kappa)

    def outlook(self, n_rows: int, deviation: float) -> Outlook:
        """What may be expected of the first target, for residuals of a deviation.

        It is for uncorrelated columns. Private rows count as twice as long as the mean at most.
        """
        frame, public = self.frame, isinstance(self.frame, LabelFrame)
        if isinstance(frame, LabelFrame):
            placed = made_up(lambda a: frame.settled(a, self.mu, self.neighbours), n_rows)
            n, square = placed.unit.size, float(np.mean(1.0 / placed.unit))
        else:
            n = len(frame.bounds) + frame.intercept
            square = 2.0 * n
        left = 1.0 - _SIZES - (0.0 if public else SCALES)
        part = left * _WEIGHTS[self.targets[0]] / sum(_WEIGHTS[one] for one in self.targets)
        mu = self.mu * math.sqrt(part)
        size = self._slope(self.targets[0], min(1.0, _LARGE * deviation)).largest
        noise = math.sqrt(square) * size / (mu * math.sqrt((_PUBLIC if public else _SHARES)[1]))
        plain = 2.0 * at_level(0.95) * deviation / math.sqrt(n_rows)
        length = plain * math.hypot(1.0, noise / (deviation * math.sqrt(n_rows)))
        hidden = CLEAR * square / (mu * math.sqrt(_SHARES[0]))
        return Outlook(length, plain, 1.0 if public else hidden / n_rows)

    def _slope(self, target: Target, clip: float) -> Slope:
        if target == "logistic":
            return LogisticSlope()
        huber = target == "huber"
        return ClippedSlope(self.kappa if huber else clip, huber)

    def _sizes(
        self, ask: Ask, placed: Placed, point: Point | None, mu: float
    ) -> tuple[float, float, float]:
        """Where hardly any residual is clipped and hardly any row is shrunk, and how many are.

        It is found from noisy counts. The lengths of public rows are known. `mu` is the sensitivity
        for the first target.
        """
        public, neighbours = placed.curvature is not None, self.neighbours
        scores = mu * math.sqrt((_PUBLIC if public else _SHARES)[1])
        asked = (point is not None) + (not public)
        share, clip, radius = self.mu * math.sqrt(_SIZES / max(asked, 1)), 1.0, ROUNDED
        shrunk = 0.0
        unit = math.sqrt(ask.n_rows * float(np.mean(placed.unit)))
        if not public:
            steps = tuple(placed.square * x for x in _LENGTHS)
            counts = RowCounts(placed.rows, steps, self.frame.columns)
            query = NoisySum(counts, share, neighbours)
            above, noise = counts.above(ask(query)), _noise_of(query, counts.unit)
            shrunk = _SHRUNK * math.hypot(unit, _LARGE * math.sqrt(placed.square) / scores)
            radius = math.sqrt(exceeded_by(steps, above, noise, shrunk))
        if point is not None:
            sums = ResidualSums(point, placed.rows, radius, self.frame.columns)
            query = NoisySum(sums, share, neighbours)
            above, noise = sums.above(ask(query)), _noise_of(query, sums.unit)
            allowed = _CLIPPED * math.hypot(unit / (_LARGE * radius), 1.0 / scores)
            clip = exceeded_by(STEPS, above, noise, allowed)
            if float(np.max(placed.far)) < _FAR:
                # What all lengths add up to, of which the mean square is known.
                square = float(np.sum(placed.unit)) if public else placed.square
                part = min(square / radius**2, 1.0)
                total = ask.n_rows * part, ask.n_rows * math.sqrt(part)
                clip = min(clip, tail_end(STEPS, above, noise, allowed, total))
        return clip, radius, shrunk

    def _step(
        self,
        ask: Ask,
        placed: Placed,
        point: Point,
        slope: Slope,
        size: tuple[float, float],
        mu: float,
        before: OneStep | None,
    ) -> OneStep:
        """Ask for the sums of one target; `before` are those of squared residuals, if any.

        `size` is the largest length of a row, and about how many rows are longer.
        """
        radius, shrunk = size
        known, base = None, None if before is None else (before.H, before.H_noise)
        if placed.curvature is not None:
            known = placed.curvature(point if isinstance(slope, LogisticSlope) else None)
            base = known, np.zeros_like(known)
        counted = isinstance(slope, ClippedSlope) and slope.huber
        asked = known is None or counted
        sums = ScoreSums(
            placed.rows,
            placed.rows.n_columns,
            point,
            slope,
            radius,
            _SHARES if asked else _PUBLIC,
            self.frame.columns,
        )
        query = NoisySum(sums, mu, self.neighbours)
        H, s, V = sums.split(ask(query))
        H_noise, s_noise, V_noise = sums.split(query.deviations)
        if H is None or H_noise is None:
            assert known is not None
            H, H_noise = known, np.zeros_like(known)
        base = base if counted else None
        noises = H_noise, s_noise, V_noise
        most, whole = (slope.prior, slope.most), None
        if placed.curvature is None and isinstance(slope, ClippedSlope) and (base or not counted):
            # No shrunk row loses more of an entry than its largest square.
            whole = np.vstack([ask.n_rows * placed.whole, shrunk * placed.reach**2])
        size = (shrunk, radius**2)
        square = before.mean_square(before.curvature()) if before else None
        return OneStep(H, s, V, *noises, placed.unit, *most, base, placed.far, whole, size, square)


def _noise_of(query: NoisySum, unit: int) -> float:
    """The deviation of the noise in each sum."""
    return math.ldexp(float(query.deviations[0]), -unit)


@dataclass(frozen=True)
class Outlook:
    """What may be expected of intervals of 95 %.

    - `length`: of an interval, for labels of range 1 and per deviation of a column; `plain`: of
      that without privacy.
    - `more`: how many times as many rows are needed before any can be given, if above one.
    """

    length: float
    plain: float
    more: float


@dataclass(frozen=True, eq=False)
class IntervalSums:
    """The answers, and what turns them into intervals.

    Attributes
    ----------
    placed : Placed
        In which coordinates.
    steps : mapping of target to (ndarray, OneStep)
        At which coefficients the sums were taken, and the sums.
    width : float
        Coefficients are in this unit of the labels.
    kappa : float
        As in `Intervals`.
    """

    placed: Placed
    steps: Mapping[Target, tuple[np.ndarray, OneStep]] = field(repr=False)
    width: float
    kappa: float

    def intervals(self) -> Intervals:
        """The laws of the coefficients."""
        laws: dict[Target, Law] = {}
        for target, (coef, step) in self.steps.items():
            law = step.law(self.placed.into)
            few = self.placed.few
            if few is None or target == "huber":
                few = np.zeros(coef.size, dtype=bool)
            laws[target] = replace(
                law,
                quantiles=coef[:, None] + self.width * law.quantiles,
                unknown=law.unknown | self.placed.unknown | few,
                more=np.where(self.placed.unknown, NEVER, np.where(few, FEW, law.more)),
            )
        return Intervals(laws, self.kappa)
