"""Intervals for the coefficients of a fit that was released, from a few noisy sums."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from privasso._documents import DocumentError, Fields
from privasso._validation import probability
from privasso.operators import Covariates, Whitening
from privasso.programs._estimate import ScaleSums, noisy_scales
from privasso.programs._one_step import NEVER, POINTS, Law, OneStep, at_level
from privasso.programs._records import half_ranges
from privasso.programs._scores import (
    STEPS,
    ClippedSlope,
    FarMoments,
    LogisticSlope,
    LongestRow,
    Point,
    PublicCurvature,
    ResidualSums,
    RowCounts,
    ScoreSums,
    Slope,
    StandardRows,
    TurnedRows,
    exceeded_by,
)
from privasso.queries import Ask, Neighbours, NoisySum, made_up

Target: TypeAlias = Literal["huber", "least-squares", "logistic"]
#: Parts of the squared sensitivity: for scales of private columns, for sizes of residuals, and of
#: each target for curvatures, scores and squared scores; and without curvatures, where these are
#: public.
_SCALES, _SIZES, _SHARES, _PUBLIC = 0.15, 0.06, (0.45, 0.43, 0.12), (0.0, 0.8, 0.2)
#: How the rest is shared where there are two targets.
_WEIGHTS: dict[Target, float] = {"huber": 0.35, "least-squares": 0.65, "logistic": 1.0}
#: Columns are divided by this power of their scales: rare levels, which make rows long, keep most
#: of their weight.
_POWER = 0.75
#: Rows are counted by their squared lengths, in units of the mean one.
_LENGTHS = tuple(2.0 ** (0.5 * k) for k in range(-2, 13))
#: What clipped residuals may change a score by, as a part of its deviation, of sampling and of
#: noise; how many rows are shrunk, in units of that deviation; and how many times as large as usual
#: ones clipped residuals are.
_CLIPPED, _SHRUNK, _LARGE = 1.0, 1.0, 5.0
#: Eigenvalues of correlations below this, times the number of columns, count as zero.
_LEAST = 1e-9
#: Eigenvalues are raised to this part of the largest for the shape of noise.
_FLAT = 1e-10
#: Rounding of the lengths of public rows.
_ROUNDED = 1.0 + 1e-6


#: Why there is no interval.
_NEVER = "no interval: it does not vary by itself, or was not chosen"
_MORE = "no interval: needs {} × the rows"


@dataclass(frozen=True, eq=False)
class Intervals:
    """Laws of coefficients, for each target: what a fit would estimate without penalty and ridge.

    Attributes
    ----------
    laws : mapping of target to Law
        In the units of the coefficients.
    kappa : float
        Where the residuals of the Huber target are clipped, in the units of the labels.
    given : bool
        Whether columns were chosen first; then intervals are about the model of these columns.
    """

    laws: Mapping[Target, Law] = field(repr=False)
    kappa: float
    given: bool = False

    def confint(
        self, level: float = 0.95, target: str | None = None, *, simultaneous: bool = False
    ) -> np.ndarray:
        """Low and high of each coefficient, of shape (n, 2); NaN where none can be given.

        Parameters
        ----------
        level : float
            How often an interval holds the coefficient of the population.
        target : "least-squares", "huber" or "logistic"
            Whose coefficient it is.
        simultaneous : bool
            Whether all intervals are to hold at once so often.
        """
        z, law = at_level(probability("level", level)), self.law(target)
        if simultaneous:
            z = float(np.interp(z, POINTS[POINTS > 0.0], law.together))
        if z > POINTS[-1]:
            raise ValueError("level is too close to one; choose one below 0.999999")
        ends = [[np.interp(s * z, POINTS, q) for s in (-1.0, 1.0)] for q in law.quantiles]
        return np.where(law.unknown[:, None], np.nan, np.array(ends).reshape(-1, 2))

    def reasons(self, target: str | None = None) -> list[str]:
        """Why a coefficient has no interval, in words; empty for one that has."""
        law = self.law(target)
        return [
            "" if not gone else _MORE.format(_rounded(more)) if more < NEVER else _NEVER
            for gone, more in zip(law.unknown.tolist(), law.more.tolist(), strict=True)
        ]

    def estimates(self, target: str | None = None) -> np.ndarray:
        """The middle of each law: the coefficient without penalty and ridge; NaN if unknown."""
        law = self.law(target)
        return np.where(law.unknown, np.nan, law.quantiles[:, POINTS.size // 2])

    def law(self, target: str | None) -> Law:
        """That of a target, or of the first one."""
        known = list(self.laws)
        found = known[0] if target is None else target
        if found not in known:
            raise ValueError(
                f"target must be one of {', '.join(map(repr, known))}, for which this fit has "
                f"intervals, not {target!r}"
            )
        return self.laws[found]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        laws = {
            name: {
                "quantiles": law.quantiles.ravel().tolist(),
                "unknown": law.unknown.astype(int).tolist(),
                "more": law.more.tolist(),
                "together": law.together.tolist(),
            }
            for name, law in self.laws.items()
        }
        return {"kappa": self.kappa, "given": self.given, "laws": laws}

    @classmethod
    def from_dict(cls, values: object, n: int) -> Intervals:
        """Rebuild what `to_dict` wrote for n coefficients; anything else raises `DocumentError`."""
        fields = Fields(values, "the intervals")
        named = fields.inner("laws")
        known: dict[str, Target] = {one: one for one in _WEIGHTS}
        laws = {}
        for name in named.names():
            if name not in known:
                raise DocumentError(f"intervals have the unknown target {name!r:.60}")
            laws[known[name]] = _law(named.inner(name), n)
        found = cls(laws, fields.number("kappa", above=0.0), fields.flag("given"))
        if not laws:
            raise DocumentError("intervals need a target")
        fields.end()
        return found

    def selected(self, at: np.ndarray) -> Intervals:
        """Those of some of the coefficients."""
        laws = {
            name: replace(
                law, quantiles=law.quantiles[at], unknown=law.unknown[at], more=law.more[at]
            )
            for name, law in self.laws.items()
        }
        return replace(self, laws=laws)

    def widened(self, at: np.ndarray, size: int) -> Intervals:
        """Those of a larger model, in which the others have none."""
        laws = {}
        for name, law in self.laws.items():
            quantiles, unknown = np.zeros((size, POINTS.size)), np.ones(size, dtype=bool)
            quantiles[at], unknown[at] = law.quantiles, law.unknown
            more = np.full(size, NEVER)
            more[at] = law.more
            laws[name] = replace(law, quantiles=quantiles, unknown=unknown, more=more)
        return replace(self, laws=laws, given=True)


def made_up_intervals(targets: tuple[Target, ...], n: int, number: float) -> Intervals:
    """Some for n coefficients whose numbers are all the same, which take room in a file."""
    law = Law(
        np.full((n, POINTS.size), number),
        np.ones(n, dtype=bool),
        np.full(n, abs(number)),
        np.full(int(np.sum(POINTS > 0.0)), number),
    )
    return Intervals(dict.fromkeys(targets, law), abs(number))


def _rounded(more: float) -> str:
    """A factor with one digit more than is known.

    >>> _rounded(1.234), _rounded(57.3)
    ('1.3', '60')
    """
    step = 10.0 ** (math.floor(math.log10(max(more, 1.0))) - (more < 10.0))
    return f"{math.ceil(max(more, 1.0) / step - 1e-9) * step:g}"


def _law(fields: Fields, n: int) -> Law:
    """One that `Intervals.to_dict` wrote."""
    quantiles = fields.numbers("quantiles", n * POINTS.size).reshape(n, POINTS.size)
    if np.any(np.diff(quantiles, axis=1) < 0.0):
        raise DocumentError("quantiles must increase")
    unknown, more = fields.numbers("unknown", n) > 0.0, fields.numbers("more", n, least=0.0)
    together = fields.numbers("together", POINTS[POINTS > 0.0].size)
    fields.end()
    return Law(quantiles, unknown, more, together)


class Frame(ABC):
    """The coordinates in which scores are summed.

    Attributes
    ----------
    cut : ndarray of shape (N, 2) or None
        Bounds that covariates are clipped to, where these are private.
    columns : ndarray of int or None
        The columns of the records, if not all.
    """

    cut: np.ndarray | None = None
    columns: np.ndarray | None = None

    @abstractmethod
    def settled(self, ask: Ask, mu: float, neighbours: Neighbours) -> Placed:
        """What they are, after questions of this sensitivity if they are not public."""


@dataclass(frozen=True, eq=False)
class Placed:
    """Coordinates that are public now.

    Attributes
    ----------
    rows : callable
        Makes rows of records.
    square : float
        Mean squared length of a row, or the largest one where rows are public.
    unit : ndarray of shape (d,)
        Mean squares of their entries, as far as is known.
    into : ndarray of shape (N, d)
        Coefficients, of those of the rows.
    origin : ndarray of shape (N,)
        What is zero in the rows.
    offset : ndarray of shape (d,)
        What is added to all rows.
    unknown : ndarray of bool, of shape (N,)
        Columns that are combinations of others, or constant: they have no coefficient of their own.
    curvature : callable or None
        That of squared residuals for None, or of a logistic regression at a point, where rows are
        public.
    """

    rows: Any
    square: float
    unit: np.ndarray = field(repr=False)
    into: np.ndarray = field(repr=False)
    origin: np.ndarray = field(repr=False)
    offset: np.ndarray = field(repr=False)
    unknown: np.ndarray = field(repr=False)
    curvature: Callable[[Point | None], np.ndarray] | None = field(default=None, repr=False)

    def moved(self, point: Point, step: np.ndarray, width: float) -> Point:
        """The point after a step in the coordinates of the rows, of labels of range 1."""
        change = width * (self.into @ step)
        level = width * float(self.offset @ step) - float(self.origin @ change)
        return replace(point, coef=point.coef + change, intercept=point.intercept + level)


@dataclass(frozen=True, eq=False)
class RecordFrame(Frame):
    """Private columns, in units of scales that are found with noise.

    Attributes
    ----------
    bounds : ndarray of shape (N, 2)
        Bounds of the columns.
    intercept : bool
        Whether there is a column of ones.
    columns : ndarray of int or None
        The columns of the records, if not all.
    """

    bounds: np.ndarray = field(repr=False)
    intercept: bool
    columns: np.ndarray | None = field(default=None, repr=False)

    @property
    def cut(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The bounds."""
        return self.bounds

    def settled(self, ask: Ask, mu: float, neighbours: Neighbours) -> Placed:
        middle, half = half_ranges(self.bounds, centred=True)
        sums = ScaleSums(self.bounds, middle, half, self.columns)
        query = NoisySum(sums, mu * math.sqrt(_SCALES), neighbours)
        centre, scale = noisy_scales(ask, query, centred=True)
        usual = math.sqrt(float(np.mean(scale**2)))
        unit = half * scale**_POWER * usual ** (1.0 - _POWER)
        origin = middle + half * centre if self.intercept else np.zeros(len(half))
        squares = (scale / usual) ** (2.0 - 2.0 * _POWER)
        if not self.intercept:
            live = unit > 0.0
            squares = (
                squares
                + np.where(live, middle + half * centre, 0.0) ** 2 / np.where(live, unit, 1.0) ** 2
            )
        rows = StandardRows(self.bounds, origin, unit, self.intercept)
        inverse = np.divide(1.0, unit, out=np.zeros(unit.size), where=unit > 0.0)
        into = np.zeros((unit.size, rows.n_columns))
        into[:, : unit.size] = np.diag(inverse)
        square = float(squares.sum()) + self.intercept
        ones, offset = np.ones(rows.n_columns), np.zeros(rows.n_columns)
        offset[unit.size :] = 1.0
        return Placed(rows, square, ones, into, origin, offset, unit == 0.0)


@dataclass(frozen=True, eq=False)
class LabelFrame(Frame):
    """Public columns, in units of noise that hides every label, of which curvatures are public.

    Attributes
    ----------
    covariates : Covariates
        All of them.
    """

    covariates: Covariates = field(repr=False)

    def settled(self, ask: Ask, mu: float, neighbours: Neighbours) -> Placed:
        return self._placed

    @cached_property
    def _placed(self) -> Placed:
        """In units of the noise along its axes, which are those of the curvature as well.

        Σ hides the longest row, and no row is shrunk. It is found as in `optimal_shape`, for the
        mean variance of all coefficients over that without privacy, in one step.
        """
        one, table = self.covariates, self.covariates.table()
        live, n = np.flatnonzero(one.live), one.shape[1]
        W, lost = principal_units(one)
        r, offset = W.shape[1], np.zeros(W.shape[1])
        if one.centred:
            W, offset = np.c_[W, np.zeros(len(W))], np.append(offset, 1.0)

        def turned(by: np.ndarray) -> TurnedRows:
            return TurnedRows(Whitening(one.mean, live, np.ascontiguousarray(W @ by)), offset @ by)

        # What a coefficient weighs: the inverse of its variance without privacy.
        variances = np.sum(W**2, axis=1)
        weight = (W / variances[:, None]).T @ W
        weight[r:, r:] += np.eye(len(offset) - r)
        half = power(weight, 0.5)

        def root(moments: np.ndarray) -> np.ndarray:
            """Σ^(−½) of the best shape for these moments."""
            return half @ power(half @ moments @ half, -0.25)

        first = root(np.eye(len(offset)))
        mean = float(np.sum(first**2))
        moments = FarMoments(turned(first), mean).of(table, len(offset))
        undone = np.linalg.inv(first)
        inverse = root(undone.T @ moments @ undone)
        mean = float(np.sum(inverse**2))
        inverse = inverse / math.sqrt(LongestRow(turned(inverse), mean).of(table))
        # Along the axes of Σ.
        values, axes = np.linalg.eigh(inverse @ inverse.T)
        rows = turned(axes * np.sqrt(values))
        into, unknown = np.zeros((n, rows.n_columns)), np.ones(n, dtype=bool)
        into[live], unknown[live] = rows.whitening.matrix, lost

        @cache
        def curvature(point: Point | None) -> np.ndarray:
            return PublicCurvature(rows, _ROUNDED, point).of(table, rows.n_columns)

        return Placed(rows, 1.0, values, into, one.mean, rows.offset, unknown, curvature)


def power(A: np.ndarray, exponent: float) -> np.ndarray:
    """A power of a symmetric positive matrix."""
    values, vectors = np.linalg.eigh(A)
    values = np.maximum(values, _FLAT * values[-1])
    return (vectors * values**exponent) @ vectors.T


def principal_units(rows: Covariates) -> tuple[np.ndarray, np.ndarray]:
    """W with rows fW of uncorrelated entries of mean square one, and the columns that are lost.

    Directions in which columns hardly vary are left out; columns in them have no coefficient.
    """
    G = rows.moments(None) / rows.shape[0]
    deviations = np.sqrt(np.diag(G))
    values, vectors = np.linalg.eigh(G / np.outer(deviations, deviations))
    varies = values > _LEAST * max(len(values), 1)
    lost = np.sqrt(np.sum(vectors[:, ~varies] ** 2, axis=1)) > math.sqrt(_LEAST)
    return vectors[:, varies] / np.sqrt(values[varies]) / deviations[:, None], lost


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

    frame: Frame
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
        left = 1.0 - (0.0 if public else _SCALES) - (_SIZES if measured or not public else 0.0)
        total = sum(_WEIGHTS[target] for target in self.targets)
        mus = {t: self.mu * math.sqrt(left * _WEIGHTS[t] / total) for t in self.targets}
        clip, radius = self._sizes(ask, placed, point if measured else None, mus[self.targets[0]])
        width = 1.0 if "logistic" in self.targets else self.y_bounds[1] - self.y_bounds[0]
        steps: dict[Target, tuple[np.ndarray, OneStep]] = {}
        for target in self.targets:
            slope, base = self._slope(target, clip), None
            if steps:  # from the minimiser for squared residuals it is not far to another one
                base = steps["least-squares"][1]
                point = placed.moved(point, base.mean(), width)
            step = self._step(ask, placed, point, slope, radius, mus[target], base)
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
            assert isinstance(frame, RecordFrame)
            n = len(frame.bounds) + frame.intercept
            square = 2.0 * n
        left = 1.0 - _SIZES - (0.0 if public else _SCALES)
        part = left * _WEIGHTS[self.targets[0]] / sum(_WEIGHTS[one] for one in self.targets)
        mu = self.mu * math.sqrt(part)
        size = self._slope(self.targets[0], min(1.0, _LARGE * deviation)).largest
        noise = math.sqrt(square) * size / (mu * math.sqrt((_PUBLIC if public else _SHARES)[1]))
        plain = 2.0 * at_level(0.95) * deviation / math.sqrt(n_rows)
        length = plain * math.hypot(1.0, noise / (deviation * math.sqrt(n_rows)))
        # Noise of a symmetric matrix changes no direction by more than about twice this.
        lost = 2.0 * math.sqrt(n) * square / (mu * math.sqrt(2.0 * _SHARES[0]))
        return Outlook(length, plain, 1.0 if public else lost / (0.5 * n_rows))

    def _slope(self, target: Target, clip: float) -> Slope:
        if target == "logistic":
            return LogisticSlope()
        huber = target == "huber"
        return ClippedSlope(self.kappa if huber else clip, huber)

    def _sizes(
        self, ask: Ask, placed: Placed, point: Point | None, mu: float
    ) -> tuple[float, float]:
        """Where hardly any residual is clipped, and hardly any row is shrunk, from noisy counts.

        The lengths of public rows are known. `mu` is the sensitivity for the first target.
        """
        public, neighbours = placed.curvature is not None, self.neighbours
        scores = mu * math.sqrt((_PUBLIC if public else _SHARES)[1])
        asked = (point is not None) + (not public)
        share, clip, radius = self.mu * math.sqrt(_SIZES / max(asked, 1)), 1.0, _ROUNDED
        unit = math.sqrt(ask.n_rows * float(np.mean(placed.unit)))
        if not public:
            steps = tuple(placed.square * x for x in _LENGTHS)
            counts = RowCounts(placed.rows, steps, self.frame.columns)
            query = NoisySum(counts, share, neighbours)
            above, noise = counts.above(ask(query)), _noise_of(query, counts.unit)
            allowed = _SHRUNK * math.hypot(unit, _LARGE * math.sqrt(placed.square) / scores)
            radius = math.sqrt(exceeded_by(steps, above, noise, allowed))
        if point is not None:
            sums = ResidualSums(point, placed.rows, radius, self.frame.columns)
            query = NoisySum(sums, share, neighbours)
            above, noise = sums.above(ask(query)), _noise_of(query, sums.unit)
            allowed = _CLIPPED * math.hypot(unit / (_LARGE * radius), 1.0 / scores)
            clip = exceeded_by(STEPS, above, noise, allowed)
        return clip, radius

    def _step(
        self,
        ask: Ask,
        placed: Placed,
        point: Point,
        slope: Slope,
        radius: float,
        mu: float,
        before: OneStep | None,
    ) -> OneStep:
        """Ask for the sums of one target; `before` are those of squared residuals, if any."""
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
        return OneStep(H, s, V, *noises, placed.unit, slope.prior, slope.most, base)


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
            laws[target] = replace(
                law,
                quantiles=coef[:, None] + self.width * law.quantiles,
                unknown=law.unknown | self.placed.unknown,
                more=np.where(self.placed.unknown, NEVER, law.more),
            )
        return Intervals(laws, self.kappa)
