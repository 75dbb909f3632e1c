"""What a fit of whole records can be expected to reach, from public numbers alone.

The mechanism itself runs on simulated tables: columns that fill their bounds in a stated way, and
labels that follow a truth of their own. A large table is simulated by a smaller one. With the same
number of rows per column the ridge, the noise and the sampling error of a fit have the same effect
on R², whatever the number of columns; what noisy sums of products lose depends on N³/M² instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
from scipy.special import expit, logit

from privasso._tuned import FORECAST_DEVIATION, FORECAST_MARGIN, SELECT_LOG_ODDS
from privasso._validation import ZERO_ONE
from privasso.blocks import RowBlocks
from privasso.encoding import Dictionary, LevelEntry
from privasso.fit import Classes, FitOptions, Plan, plan_for, posterior_mean
from privasso.forecast._population import Assumptions, Simulated
from privasso.privacy import PRIVATE, RecordDP
from privasso.queries import Answering, bit_source

#: Entries of a simulated table, the fewest and the most columns that stand for more, and the most
#: rows.
_CELLS, _FEWEST, _MOST_COLUMNS, _MOST_ROWS = 20_000, 6, 100, 8000
#: Simulated fits for each line.
_FITS = 20
#: Columns from which on it is of interest to leave half of them out.
_MANY_COLUMNS = 8
#: Public rows, where the shape comes from some.
_PUBLIC = 500
#: New rows on which predictions of classes are compared, and the weak penalty without privacy.
_NEW, _PENALTY = 2000, 10.0
#: Variance of noise that is none, as a part of that of sampling.
_NOTHING = 1e-6


_ALSO = (
    "Columns are independent: numbers are normal, with a standard deviation of a sixth of their "
    "range and a mean between a third and two thirds of it, and a 0/1 column of a text with k "
    "levels is 1 with probability 1/(k + 1). Large tables are simulated by smaller ones with as "
    "many rows per column. Columns that fill less of their bounds fare worse."
)


_CLASSES = (
    "For two classes that is the share of a logistic variable behind them, whose middle has log "
    "odds between -2 and 2, and R² is that of probabilities for labels 0 and 1."
)


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
    private : bool
        Whether the fit is private; if not, it is the best guess from the table itself.
    whole : (float, float) or None
        Bounds of the labels between which their mean is drawn, if these are not those of the fit.
    classes : bool
        Whether labels are 0 and 1, and the fit is a logistic regression.
    """

    privacy: RecordDP
    n_rows: int
    bounds: np.ndarray = field(repr=False)
    chances: np.ndarray = field(repr=False)
    lam: float | None = None
    fit_intercept: bool = True
    indicators: np.ndarray | None = field(default=None, repr=False)
    private: bool = True
    whole: tuple[float, float] | None = None
    classes: bool = False

    @property
    def also(self) -> str:
        """What is assumed besides."""
        return f"{_CLASSES} {_ALSO}" if self.classes else _ALSO

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
            privacy.indicators(n, names),
            classes=options.classes is not None,
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
    def on(self) -> str:
        """Tables of the size that is simulated."""
        small = self.smaller()
        return f"tables of {small.n_rows} rows and {small.n_columns} columns"

    @property
    def budget(self) -> tuple[float, float]:
        """Of the privacy."""
        return self.privacy.epsilon, self.privacy.label_width

    @property
    def size(self) -> tuple[int, int]:
        """Of the table."""
        return self.n_rows, self.n_columns

    def affordable(self, lines: int) -> tuple[int, bool]:
        """The same for all, which are simulated by small tables."""
        return _FITS, True

    def with_epsilon(self, factor: float) -> RecordScheme:
        """With the default t for it, unless t was given."""
        privacy, epsilon = self.privacy, factor * self.privacy.epsilon
        return replace(self, privacy=replace(privacy, epsilon=epsilon))

    def grown(self, factor: float) -> RecordScheme:
        """With the same λ per row."""
        lam = None if self.lam is None else factor * self.lam
        return replace(self, n_rows=round(factor * self.n_rows), lam=lam)

    def free(self) -> RecordScheme:
        """The best guess from the table itself."""
        return replace(self, private=False)

    def narrowed(self) -> RecordScheme | None:
        """With bounds of the labels half as wide, at which simulated labels are clipped."""
        if self.classes:
            return None
        low, high = self.privacy.y_bounds
        quarter = 0.25 * (high - low)
        return replace(
            self,
            privacy=replace(self.privacy, y_bounds=(low + quarter, high - quarter)),
            whole=(low, high),
        )

    def half(self) -> RecordScheme | None:
        """Every second column."""
        enough = self.n_columns >= _MANY_COLUMNS
        return self.of_columns(np.arange(0, self.n_columns, 2)) if enough else None

    def simulate(self, suppose: Assumptions, fits: int, seed: int = 0) -> Simulated:
        """The program of a plan runs on tables that fill their bounds."""
        small, found, wrong = self.smaller(), [], []
        n, plan = small.n_columns, _plan(small, seed)
        for k, own in enumerate(np.random.default_rng(seed).spawn(fits)):
            for_truth, for_rows, for_noise = own.spawn(3)
            coef, level, residual = _truth(small, suppose, (k + 0.5) / fits, for_truth)
            centres = for_rows.uniform(
                FORECAST_MARGIN * FORECAST_DEVIATION, 1.0 - FORECAST_MARGIN * FORECAST_DEVIATION, n
            )
            X = small.columns(small.n_rows, centres, for_rows)
            if small.classes:
                coef, level = _log_odds(small, coef, residual, for_truth)
            means = small.means(centres)
            signal = (X - means) @ coef
            y = small.labels(level + signal, residual, for_rows)
            if small.private:
                guess, at = _fitted(plan, X, y, for_noise)
            else:
                guess, at = _best(X, y, suppose.label_sd, classes=small.classes)
            wrong.append(((guess - coef) * np.ptp(small.bounds, axis=1)) ** 2)
            if small.classes:
                new = small.columns(_NEW, centres, for_rows)
                odds = level + (new - means) @ coef
                found.append(_class_r2(expit(odds), expit(at + new @ guess)))
                continue
            off = (guess - coef) * small.deviations
            shift = at + float(means @ guess) - level
            explained = float(np.sum((coef * small.deviations) ** 2))
            error = float(off @ off) + shift**2
            found.append((explained - error) / (explained + residual**2))
        # A smaller table with as many rows per column has the same error in all, on fewer columns.
        mean, numbers = np.mean(wrong, axis=0), np.isnan(small.chances)
        usual = np.sqrt([
            (mean[those].mean() if those.any() else mean.mean()) * n / self.n_columns
            for those in (numbers, ~numbers)
        ])  # fmt: skip
        return Simulated(np.array(found), np.where(np.isnan(self.chances), *usual))

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
        lam = None if self.lam is None else self.lam * rows / m
        taken = self.of_columns(np.linspace(0, n - 1, few).round().astype(int))
        return replace(taken, n_rows=rows, lam=lam)

    def of_columns(self, take: np.ndarray) -> RecordScheme:
        """The same for some of the columns."""
        privacy, bounds, indicators = self.privacy, self.bounds[take], self.indicators
        indicators = None if indicators is None else indicators[take]
        if privacy.bounds != PRIVATE:
            listed = bounds.tolist()
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
        numbers = np.clip(centres + FORECAST_DEVIATION * rng.standard_normal(shape), 0.0, 1.0)
        X = np.where(np.isnan(self.chances), numbers, rng.random(shape) < self.chances)
        return low + width * X

    def labels(self, expected: np.ndarray, residual: float, rng: np.random.Generator) -> np.ndarray:
        """Labels around what is expected of them, or classes with these log odds."""
        if self.classes:
            return (rng.random(expected.size) < expit(expected)).astype(float)
        return expected + residual * rng.standard_normal(expected.size)

    @property
    def deviations(self) -> np.ndarray:
        """Standard deviations of the columns."""
        width = self.bounds[:, 1] - self.bounds[:, 0]
        chance = np.nan_to_num(self.chances)
        spread = np.where(
            np.isnan(self.chances), FORECAST_DEVIATION, np.sqrt(chance * (1.0 - chance))
        )
        return width * spread

    def means(self, centres: np.ndarray) -> np.ndarray:
        """Means of the columns."""
        low, width = self.bounds[:, 0], self.bounds[:, 1] - self.bounds[:, 0]
        return low + width * np.where(np.isnan(self.chances), centres, self.chances)


def _plan(small: RecordScheme, seed: int) -> Plan:
    privacy = small.privacy
    if privacy.shape not in (None, "private"):
        rng = np.random.default_rng((seed, 1))
        public = small.columns(_PUBLIC, np.full(small.n_columns, 0.5), rng)
        privacy = replace(privacy, shape=public)
    lam = "auto" if small.lam is None else small.lam
    classes = Classes() if small.classes else None
    options = FitOptions(privacy, lam=lam, screen="all", classes=classes)
    nothing = np.broadcast_to(0.0, (small.n_rows, small.n_columns))
    return plan_for(nothing, options, seeded=True)


def _fitted(
    plan: Plan, X: np.ndarray, y: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, float]:
    """Coefficients and intercept of one fit."""
    ask = Answering(RowBlocks.of_arrays(X, y), bit_source(rng))
    fit = plan.program(ask).solve(plan.lam)
    return fit.coef, fit.intercept


def _log_odds(
    scheme: RecordScheme, coef: np.ndarray, residual: float, rng: np.random.Generator
) -> tuple[np.ndarray, float]:
    """The truth for log odds: of a logistic variable the columns explain the same share."""
    explained = float(np.linalg.norm(coef * scheme.deviations))
    size = math.pi / math.sqrt(3.0) * explained / residual
    return coef * (size / explained), rng.uniform(-SELECT_LOG_ODDS, SELECT_LOG_ODDS)


def _class_r2(true: np.ndarray, guessed: np.ndarray) -> float:
    """R² of probabilities as predictions of classes 0 and 1."""
    error = float(np.mean(true * (1.0 - true) + (true - guessed) ** 2))
    mean = float(np.mean(true))
    return 1.0 - error / (mean * (1.0 - mean))


def _best(
    X: np.ndarray, y: np.ndarray, deviation: float, *, classes: bool
) -> tuple[np.ndarray, float]:
    """Best guess of coefficients and intercept from the rows and labels themselves."""
    if classes:
        from sklearn.linear_model import LogisticRegression  # slow to import

        if np.ptp(y) == 0.0:
            return np.zeros(X.shape[1]), float(logit((y.sum() + 0.5) / (y.size + 1.0)))
        scale = np.maximum(X.std(axis=0), 1e-300)
        fit = LogisticRegression(C=_PENALTY, max_iter=1000).fit(X / scale, y)
        return fit.coef_[0] / scale, float(fit.intercept_[0])
    mean, live = X.mean(axis=0), np.ptp(X, axis=0) > 0.0
    Z, coef = (X - mean)[:, live], np.zeros(X.shape[1])
    gram = Z.T @ Z
    noise = np.diag(_NOTHING * np.diag(gram)) * deviation**2
    coef[live] = posterior_mean(gram, Z.T @ y, noise, len(y), deviation)
    return coef, float(y.mean() - mean @ coef)


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
    low, high = scheme.whole or scheme.privacy.y_bounds
    room = max(0.0, 0.5 * (high - low) - FORECAST_MARGIN * sd)
    level = 0.5 * (low + high) + rng.uniform(-1.0, 1.0) * room
    live = np.flatnonzero(scheme.deviations > 0.0)
    chosen = rng.permutation(live)[: max(1, round(rho * live.size))]
    coef = np.zeros(scheme.n_columns)
    coef[chosen] = rng.standard_normal(chosen.size)
    coef *= sd * math.sqrt(r2) / float(np.linalg.norm(coef))
    coef[chosen] /= scheme.deviations[chosen]
    return coef, level, sd * math.sqrt(1.0 - r2)
