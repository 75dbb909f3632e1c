"""Intervals for the coefficients of a fit that was released, from a few noisy sums."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from privasso._documents import DocumentError, Fields
from privasso._validation import probability
from privasso.operators import Covariates, Whitening
from privasso.programs._estimate import ScaleSums, noisy_scales
from privasso.programs._label_rows import LabelRows
from privasso.programs._one_step import NEVER, POINTS, Law, OneStep, at_level
from privasso.programs._records import half_ranges
from privasso.programs._scores import (
    STEPS,
    ClippedSlope,
    LogisticSlope,
    Point,
    PublicCurvature,
    ResidualCounts,
    ScoreSums,
    Slope,
    StandardRows,
)
from privasso.queries import Ask, Neighbours, NoisySum

Target: TypeAlias = Literal["huber", "least-squares", "logistic"]
#: Parts of the squared sensitivity: for scales of private columns, for sizes of residuals, and of
#: each target for curvatures, scores and squared scores; and without curvatures, where these are
#: public.
_SCALES, _SIZES, _SHARES, _PUBLIC = 0.15, 0.03, (0.45, 0.43, 0.12), (0.0, 0.8, 0.2)
#: How the rest is shared where there are two targets.
_WEIGHTS: dict[Target, float] = {"huber": 0.35, "least-squares": 0.65, "logistic": 1.0}
#: Columns are divided by this power of their scales, and R² is so much above the mean square of a
#: row: rare levels, which make rows long, keep most of their weight.
_POWER, _LONG, _LONG_PUBLIC = 0.75, 1.2, 2.0
#: Eigenvalues of correlations below this, times the number of columns, count as zero.
_LEAST = 1e-9
#: Residuals are clipped where so few are larger, in deviations of the noise, and a little above.
_FEW, _ABOVE = 3.0, 1.25


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
    radius : float
        R.
    into : ndarray of shape (N, d)
        Coefficients, of those of the rows.
    unknown : ndarray of bool, of shape (N,)
        Columns that are combinations of others, or constant: they have no coefficient of their own.
    curvature : ndarray of shape (d, d) or None
        That of squared residuals, where it is public.
    """

    rows: Any
    radius: float
    into: np.ndarray = field(repr=False)
    unknown: np.ndarray = field(repr=False)
    curvature: np.ndarray | None = field(default=None, repr=False)


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
        radius = math.sqrt(_LONG * (float(squares.sum()) + self.intercept))
        rows = StandardRows(self.bounds, origin, unit, self.intercept)
        inverse = np.divide(1.0, unit, out=np.zeros(unit.size), where=unit > 0.0)
        into = np.zeros((unit.size, rows.n_columns))
        into[:, : unit.size] = np.diag(inverse)
        return Placed(rows, radius, into, unit == 0.0)


@dataclass(frozen=True, eq=False)
class LabelFrame(Frame):
    """Public columns, whitened, of which the curvature of squared residuals is public.

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
        """In units of the principal components, without those that hardly vary."""
        one = self.covariates
        G = one.moments(None)
        deviations = np.sqrt(np.diag(G) / one.shape[0])
        values, vectors = np.linalg.eigh(G / np.outer(deviations, deviations) / one.shape[0])
        varies = values > _LEAST * max(len(values), 1)
        T = vectors[:, varies] / np.sqrt(values[varies]) / deviations[:, None]
        lost = np.sqrt(np.sum(vectors[:, ~varies] ** 2, axis=1)) > math.sqrt(_LEAST)
        live = np.flatnonzero(one.live)
        whitening = Whitening(one.mean, live, np.ascontiguousarray(T))
        rows = LabelRows(whitening, 1.0, 1.0 if one.centred else None, weighted=False)
        into, unknown = np.zeros((one.shape[1], rows.n_columns)), np.ones(one.shape[1], dtype=bool)
        into[live, : whitening.rank], unknown[live] = T, lost
        radius = math.sqrt(_LONG_PUBLIC * max(rows.n_columns, 1))
        curvature = PublicCurvature(rows, radius).of(one.table(), rows.n_columns)
        return Placed(rows, radius, into, unknown, curvature)


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
        left, slopes = 1.0 - (_SCALES if placed.curvature is None else 0.0), {}
        for target in self.targets:
            if target == "least-squares":
                left -= _SIZES
                slopes[target] = ClippedSlope(self._clip(ask, point), huber=False)
            else:
                slopes[target] = self._slope(target)
        total = sum(_WEIGHTS[target] for target in self.targets)
        parts = {target: left * _WEIGHTS[target] / total for target in self.targets}
        steps = {
            target: self._step(ask, placed, point, slope, self.mu * math.sqrt(parts[target]))
            for target, slope in slopes.items()
        }
        width = 1.0 if "logistic" in self.targets else self.y_bounds[1] - self.y_bounds[0]
        return IntervalSums(coef, placed, steps, width, width * self.kappa)

    def _slope(self, target: Target) -> Slope:
        return LogisticSlope() if target == "logistic" else ClippedSlope(self.kappa, huber=True)

    def _clip(self, ask: Ask, point: Point) -> float:
        """Where hardly any residual is clipped, from noisy counts."""
        counts = ResidualCounts(point, self.frame.columns)
        query = NoisySum(counts, self.mu * math.sqrt(_SIZES), self.neighbours)
        above = np.cumsum(ask(query)[::-1])[::-1]
        noise = math.ldexp(float(query.deviations[0]), -counts.unit) * np.sqrt(
            np.arange(len(STEPS), 0, -1)
        )
        few = np.flatnonzero(above <= _FEW * noise)
        return min(1.0, _ABOVE * STEPS[few[0]]) if few.size else 1.0

    def _step(self, ask: Ask, placed: Placed, point: Point, slope: Slope, mu: float) -> OneStep:
        """Ask for the sums of one target."""
        known = placed.curvature if isinstance(slope, ClippedSlope) and not slope.huber else None
        sums = ScoreSums(
            placed.rows,
            placed.rows.n_columns,
            point,
            slope,
            placed.radius,
            _SHARES if known is None else _PUBLIC,
            self.frame.columns,
        )
        query = NoisySum(sums, mu, self.neighbours)
        H, s, V = sums.split(ask(query))
        H_noise, s_noise, V_noise = sums.split(query.deviations)
        if H is None or H_noise is None:
            assert known is not None
            H, H_noise = known, np.zeros_like(known)
        return OneStep(H, s, V, H_noise, s_noise, V_noise, slope.prior)


@dataclass(frozen=True, eq=False)
class IntervalSums:
    """The answers, and what turns them into intervals.

    Attributes
    ----------
    coef : ndarray of shape (N,)
        Where the sums were taken.
    placed : Placed
        In which coordinates.
    steps : mapping of target to OneStep
        The sums.
    width : float
        Coefficients are in this unit of the labels.
    kappa : float
        As in `Intervals`.
    """

    coef: np.ndarray = field(repr=False)
    placed: Placed
    steps: Mapping[Target, OneStep] = field(repr=False)
    width: float
    kappa: float

    def intervals(self) -> Intervals:
        """The laws of the coefficients."""
        laws: dict[Target, Law] = {}
        for target, step in self.steps.items():
            law = step.law(self.placed.into)
            laws[target] = replace(
                law,
                quantiles=self.coef[:, None] + self.width * law.quantiles,
                unknown=law.unknown | self.placed.unknown,
                more=np.where(self.placed.unknown, NEVER, law.more),
            )
        return Intervals(laws, self.kappa)
