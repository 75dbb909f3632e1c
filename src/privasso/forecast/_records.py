"""What a fit of whole records can be expected to reach, from public numbers alone.

The mechanism itself runs on simulated tables: columns that fill their bounds in a stated way, and
labels that follow a truth of their own. A large table is simulated by a smaller one. With the same
number of rows per column the ridge, the noise and the sampling error of a fit have the same effect
on R², whatever the number of columns; what noisy sums of products lose depends on N³/M² instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from scipy.special import expit, logit

from privasso._validation import ZERO_ONE
from privasso.blocks import RowBlocks
from privasso.encoding import Dictionary, LevelEntry
from privasso.fit import FitOptions, Plan, plan_for
from privasso.forecast._assumptions import Assumptions
from privasso.forecast._forecast import Change, Forecast
from privasso.forecast._simulate import Simulated
from privasso.privacy import RecordDP
from privasso.programs import RecordStatistics
from privasso.queries import Answering, bit_source

#: Numbers vary by this part of their range; the mean is so many deviations away from the bounds.
_SPREAD, _MARGIN = 1.0 / 6.0, 2.0
#: Entries of a simulated table, the fewest and the most columns that stand for more, and the most
#: rows.
_CELLS, _FEWEST, _MOST_COLUMNS, _MOST_ROWS = 20_000, 6, 100, 8000
#: Simulated fits for each line.
_FITS = 20
_EPSILONS, _GROWTH = (2.0, 3.0), 4.0
#: Columns from which on it is of interest to leave half of them out.
_MANY_COLUMNS = 8
#: Public rows, where the shape comes from some.
_PUBLIC = 500


@dataclass(frozen=True, eq=False)
class RecordScheme:
    """A fit of whole records as a forecast sees it: all that is known without the data.

    Attributes
    ----------
    privacy : RecordDP
        The budget and the settings.
    n_rows : int
        Number of rows.
    bounds : ndarray of shape (N, 2)
        Bounds of the columns; [0, 1] where they are found in the data.
    chances : ndarray of shape (N,)
        How often a 0/1 column is assumed to be 1; NaN for columns of numbers.
    lam : float or None
        λ, or None for the one that follows from the number of rows.
    fit_intercept : bool
        Whether there is an intercept.
    indicators : ndarray of bool, of shape (N,), or None
        Which columns the fit takes for columns of zeros and ones, if any.
    """

    privacy: RecordDP
    n_rows: int
    bounds: np.ndarray = field(repr=False)
    chances: np.ndarray = field(repr=False)
    lam: float | None = None
    fit_intercept: bool = True
    indicators: np.ndarray | None = field(default=None, repr=False)

    @classmethod
    def of(cls, plan: Plan, dictionary: Dictionary) -> RecordScheme:
        """The scheme of a plan for a table that the dictionary describes."""
        options, known = plan.options, dictionary.limits
        chances: list[float] = []
        for entry in dictionary.entries:
            if isinstance(entry, LevelEntry):
                chances += [1.0 / (len(entry.levels) + 1)] * len(entry.levels)
            else:
                chances.append(0.5 if entry.indicator else math.nan)
        n, names = len(chances), dictionary.encoding.names
        mechanism = "statistics" if plan.solves_again else "objective"
        privacy = replace(cast(RecordDP, options.privacy), mechanism=mechanism)
        return cls(
            privacy,
            int(plan.guarantee["n_rows"]),
            np.tile([0.0, 1.0], (n, 1)) if known is None else known,
            np.array(chances),
            options.fixed_lam,
            options.fit_intercept,
            options.privacy.indicators(n, names),
        )

    @property
    def unavailable(self) -> str | None:
        """Why fits of this kind cannot be simulated, or None."""
        if not self.fit_intercept:
            return "fits without an intercept are not simulated"
        if not np.any(self.bounds[:, 1] > self.bounds[:, 0]):
            return "no column has room between its bounds"
        return None

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.bounds)

    def smaller(self) -> RecordScheme:
        """A scheme of a size that is quickly simulated, and expected to have the same R²."""
        m, n = self.n_rows, self.n_columns
        few = min(max(_FEWEST, round(math.sqrt(_CELLS * n / m))), _MOST_COLUMNS)
        rows = m
        if few < n:
            power = 1.5 if self.privacy.mechanism == "statistics" else 1.0
            rows = max(2, round(m * (few / n) ** power))
        few, rows = min(few, n), min(rows, _MOST_ROWS)
        take = np.linspace(0, n - 1, few).round().astype(int)
        lam = None if self.lam is None else self.lam * rows / m
        return replace(self.of_columns(take), n_rows=rows, lam=lam)

    def of_columns(self, take: np.ndarray) -> RecordScheme:
        """The same for some of the columns."""
        privacy, bounds, indicators = self.privacy, self.bounds[take], self.indicators
        indicators = None if indicators is None else indicators[take]
        if privacy.bounds != "private":
            listed: list[Any] = bounds.tolist()
            for k in [] if indicators is None else np.flatnonzero(indicators):
                listed[k] = ZERO_ONE
            privacy = replace(privacy, bounds=listed)
        return replace(
            self,
            privacy=privacy,
            bounds=bounds,
            chances=self.chances[take],
            indicators=indicators,
        )

    def columns(self, n_rows: int, centres: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw rows; numbers around their centres, which are parts of the range."""
        low, width = self.bounds[:, 0], self.bounds[:, 1] - self.bounds[:, 0]
        shape = (n_rows, self.n_columns)
        numbers = np.clip(centres + _SPREAD * rng.standard_normal(shape), 0.0, 1.0)
        X = np.where(np.isnan(self.chances), numbers, rng.random(shape) < self.chances)
        return low + width * X

    @property
    def deviations(self) -> np.ndarray:
        """Standard deviations of the columns."""
        width = self.bounds[:, 1] - self.bounds[:, 0]
        chance = np.nan_to_num(self.chances)
        spread = np.where(np.isnan(self.chances), _SPREAD, np.sqrt(chance * (1.0 - chance)))
        return width * spread

    def means(self, centres: np.ndarray) -> np.ndarray:
        """Means of the columns."""
        low, width = self.bounds[:, 0], self.bounds[:, 1] - self.bounds[:, 0]
        return low + width * np.where(np.isnan(self.chances), centres, self.chances)


def forecast_records(
    scheme: RecordScheme,
    suppose: Assumptions,
    *,
    fits: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Forecast:
    """Simulate fits on tables that fill their bounds, as planned and with changes.

    No data are read. The outcome is the same each time: the generator has a fixed seed. `progress`
    is called with the number of lines that are done and of all lines.
    """
    if scheme.unavailable is not None:
        raise ValueError(scheme.unavailable)
    suppose.check_width(scheme.privacy.label_width)
    fits = _FITS if fits is None else fits
    small, changes = scheme.smaller(), []
    lines = len(_EPSILONS) + 2 + (scheme.n_columns >= _MANY_COLUMNS)
    tell = progress or (lambda done, total: None)
    for factor in _EPSILONS:
        tell(len(changes), lines)
        epsilon = factor * scheme.privacy.epsilon
        changed = replace(scheme, privacy=_with_epsilon(scheme.privacy, epsilon))
        words = f"ε = {epsilon:g} instead of {scheme.privacy.epsilon:g}"
        changes.append(Change("epsilon", epsilon, words, _simulated(changed, suppose, fits)))
    m, n = scheme.n_rows, scheme.n_columns
    more = round(_GROWTH * m)
    tell(len(changes), lines)
    lam = None if scheme.lam is None else _GROWTH * scheme.lam
    outcome = _simulated(replace(scheme, n_rows=more, lam=lam), suppose, fits)
    changes.append(Change("rows", more, f"{more} rows instead of {m}", outcome))
    tell(len(changes), lines)
    if n >= _MANY_COLUMNS:
        half = _half(scheme)
        denser = replace(suppose, rho=min(1.0, suppose.rho * n / half.n_columns))
        words = f"{half.n_columns} columns instead of {n}, if the others say nothing"
        outcome = _simulated(half, denser, fits)
        changes.append(Change("columns", float(half.n_columns), words, outcome))
    tell(lines - 1, lines)
    squares = np.zeros(2)
    outcome = _simulated(scheme, suppose, fits, squares=squares)
    # A smaller table with as many rows per column has the same error in all, on fewer columns.
    usual = np.sqrt(squares * small.n_columns / n)
    return Forecast(
        suppose,
        outcome,
        tuple(changes),
        on=f"tables of {small.n_rows} rows and {small.n_columns} columns",
        also=_ALSO,
        effect_error=np.where(np.isnan(scheme.chances), usual[0], usual[1]),
    )


_ALSO = (
    "Columns are independent: numbers are normal, with a standard deviation of a sixth of their "
    "range and a mean between a third and two thirds of it, and a 0/1 column of a text with k "
    "levels is 1 with probability 1/(k + 1). Large tables are simulated by smaller ones with as "
    "many rows per column. Columns that fill less of their bounds fare worse."
)


def _half(scheme: RecordScheme) -> RecordScheme:
    """Every second column."""
    return scheme.of_columns(np.arange(0, scheme.n_columns, 2))


def _with_epsilon(privacy: RecordDP, epsilon: float) -> RecordDP:
    """The same privacy at another ε; with the default t for it, unless t was given."""
    given = privacy.t if privacy.t != replace(privacy, t=None).t else None
    return replace(privacy, epsilon=epsilon, t=given)


def _simulated(
    scheme: RecordScheme,
    suppose: Assumptions,
    fits: int,
    seed: int = 0,
    squares: np.ndarray | None = None,
) -> Simulated:
    """R² of simulated fits; `squares` takes the mean squared errors of effects.

    These are of coefficients times the range of their column: of columns of numbers, and of 0/1
    columns.
    """
    small = scheme.smaller()
    n, found = small.n_columns, []
    wrong: list[np.ndarray] = []
    plan = _plan(small, seed)
    for k, own in enumerate(np.random.default_rng(seed).spawn(fits)):
        for_truth, for_rows, for_noise = own.spawn(3)
        coef, level, residual = _truth(small, suppose, (k + 0.5) / fits, for_truth)
        centres = for_rows.uniform(_MARGIN * _SPREAD, 1.0 - _MARGIN * _SPREAD, n)
        X = small.columns(small.n_rows, centres, for_rows)
        signal = (X - small.means(centres)) @ coef
        y = level + signal + residual * for_rows.standard_normal(small.n_rows)
        guess, at = _fitted(plan, X, y, for_noise)
        wrong.append(((guess - coef) * np.ptp(small.bounds, axis=1)) ** 2)
        off = (guess - coef) * small.deviations
        shift = at + float(small.means(centres) @ guess) - level
        explained = float(np.sum((coef * small.deviations) ** 2))
        error = float(off @ off) + shift**2
        found.append((explained - error) / (explained + residual**2))
    if squares is not None and wrong:
        numbers = np.isnan(small.chances)
        mean = np.mean(wrong, axis=0)
        for k, those in enumerate((numbers, ~numbers)):
            squares[k] = mean[those].mean() if those.any() else mean.mean()
    return Simulated(np.array(found))


def _plan(small: RecordScheme, seed: int) -> Plan:
    privacy = small.privacy
    if privacy.shape not in (None, "private"):
        rng = np.random.default_rng((seed, 1))
        public = small.columns(_PUBLIC, np.full(small.n_columns, 0.5), rng)
        privacy = replace(privacy, shape=public)
    options = FitOptions(privacy, lam="auto" if small.lam is None else small.lam)
    nothing = np.broadcast_to(0.0, (small.n_rows, small.n_columns))
    return plan_for(nothing, options, seeded=True)


def _fitted(
    plan: Plan, X: np.ndarray, y: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, float]:
    """Coefficients and intercept of one fit."""
    ask = Answering(RowBlocks.of_arrays(X, y), bit_source(rng))
    found = plan.program(ask)
    fit = found.solve(plan.lam) if isinstance(found, RecordStatistics) else found
    return fit.coef, fit.intercept


def _truth(
    scheme: RecordScheme, suppose: Assumptions, place: float, rng: np.random.Generator
) -> tuple[np.ndarray, float, float]:
    """Coefficients, mean label and deviation of the residual, as `Assumptions.in_words` says.

    The explained share is at its place, from 0 to 1, in its range. So fits with a change differ by
    the change and not by what could be explained.
    """
    rho = math.exp(rng.uniform(*np.log(suppose.rho_range)))
    least, most = logit(suppose.r2_range)
    r2 = float(expit(least + place * (most - least)))
    sd = rng.uniform(*suppose.label_sd_range)
    low, high = scheme.privacy.y_bounds
    room = max(0.0, 0.5 * (high - low) - _MARGIN * sd)
    level = 0.5 * (low + high) + rng.uniform(-1.0, 1.0) * room
    live = np.flatnonzero(scheme.deviations > 0.0)
    chosen = rng.permutation(live)[: max(1, round(rho * live.size))]
    coef = np.zeros(scheme.n_columns)
    coef[chosen] = rng.standard_normal(chosen.size)
    coef *= sd * math.sqrt(r2) / float(np.linalg.norm(coef))
    coef[chosen] /= scheme.deviations[chosen]
    return coef, level, sd * math.sqrt(1.0 - r2)
