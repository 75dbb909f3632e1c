"""How many columns to choose and at which share of the budget, from public numbers alone."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import root_scalar

from privasso._tuned import (
    CENTRE_PART,
    CHOICE_CLIP,
    CHOICE_COUNTS,
    CHOICE_GAIN,
    CHOICE_SHARES,
    EXPLAINED,
    LABEL_RIDGE,
    LARGE_GAIN,
    LEVEL_PART,
    MUCH_DIRECT,
    RESIDUAL_CLIP,
    ROUND_COLUMNS,
    ROUND_PARTS,
    ROUND_WORTH,
    TRUE_COLUMNS,
)
from privasso._types import Passed
from privasso._validation import integer
from privasso.accounting import (
    BesideGaussian,
    ChoiceLoss,
    GaussianLoss,
    ObjectiveLoss,
    gaussian_epsilon,
    objective_sensitivity,
    sensitivity_beside,
    sensitivity_for,
)
from privasso.planning._screening_forecast import ScreeningPrior, choice_chances, predicted_r2
from privasso.planning._settings import label_kappa, usual_t
from privasso.programs import LARGEST_ENTRY, Level
from privasso.queries import EMPTIED, Neighbours

#: Columns to choose; "all" chooses none, and "auto" decides.
Screen = int | Literal["auto", "all"]
#: Relative error of the sensitivity of a fit in a prediction.
_ABOUT = 0.003
#: Where a sensitivity smaller by a tenth changes log δ by less, the fit has no part in it.
_FLAT = 0.01


def check_screen(screen: object) -> None:
    """Refuse what is neither None, "auto", "all" nor a number of columns.

    Examples
    --------
    >>> check_screen("auto")
    >>> check_screen(0)
    Traceback (most recent call last):
    ...
    ValueError: screen must be at least 1, not 0
    """
    if screen is None or (isinstance(screen, str) and screen in ("auto", "all")):
        return
    if isinstance(screen, str):
        raise ValueError(
            f"screen must be 'auto', 'all', a number of columns or None, not {screen!r}"
        )
    integer("screen", screen, minimum=1)


@dataclass(frozen=True)
class ScreeningSettings:
    """A number of columns, and how the budget is divided.

    Attributes
    ----------
    count : int
        Number of columns to choose at first.
    share : float
        Squared sensitivity of everything before the last fit relative to that of a Gaussian
        mechanism with the whole budget.
    epsilon, delta : float
        The budget of the choice and of the fit together.
    centred : bool
        Whether the centre of the labels is found too.
    neighbours : Neighbours
        How data sets differ.
    second : int
        Number of columns to choose in each further round, by their association with the residuals
        of a fit of the ones before; zero for one round.
    further : int
        Number of further rounds: 0, 1 or 3.
    components : int
        Principal components of public covariates that are fitted beside the chosen columns.
    """

    count: int
    share: float
    epsilon: float
    delta: float
    centred: bool = True
    neighbours: Neighbours = EMPTIED
    second: int = 0
    further: int = 0
    components: int = 0

    def __post_init__(self) -> None:
        if self.further not in ROUND_PARTS or (self.further > 0) != (self.second > 0):
            raise ValueError("further rounds must be 0, 1 or 3, each with a number of columns")

    @classmethod
    def divided(
        cls, columns: int, further: int, share: float, epsilon: float, delta: float, **kind: Passed
    ) -> ScreeningSettings:
        """Divide a number of columns evenly between the rounds."""
        each = columns // (further + 1) if further else 0
        first = columns - further * each
        return cls(first, share, epsilon, delta, second=each, further=further, **kind)

    @property
    def columns(self) -> int:
        """Number of columns that are chosen."""
        return self.count + self.further * self.second

    @property
    def whole(self) -> float:
        """Sensitivity of everything before the last fit."""
        return math.sqrt(self.share) * sensitivity_for(self.epsilon, self.delta)

    @property
    def mu(self) -> float:
        """Sensitivity of the first choice and of all sums of labels and residuals."""
        return math.sqrt(ROUND_PARTS[self.further][0]) * self.whole

    @property
    def second_choices(self) -> ChoiceLoss | None:
        """The loss of the choices of a further round."""
        if not self.further:
            return None
        mu = math.sqrt(ROUND_PARTS[self.further][2] / self.further) * self.whole
        return ChoiceLoss(2.0 * mu / math.sqrt(self.second), self.second)

    @property
    def epsilon_first(self) -> float:
        """ε of each fit but the last, of which only residuals are used."""
        part = ROUND_PARTS[self.further][1] / max(self.further, 1)
        return _epsilon_left(self.epsilon, self.delta, 1.0 - part * self.share)

    @property
    def mu_centre(self) -> float:
        """Sensitivity of the sums from which the centre of the labels is found."""
        return CENTRE_PART * self.mu if self.centred else 0.0

    @property
    def mu_level(self) -> float:
        """Sensitivity of the mean of the last residuals, which corrects the intercept."""
        return LEVEL_PART * self.mu if self.centred else 0.0

    @property
    def mu_sums(self) -> float:
        """Sensitivity of all sums of labels and residuals together."""
        return math.hypot(self.mu_centre, self.mu_level)

    @property
    def choices(self) -> ChoiceLoss:
        """The loss of the choices."""
        left = math.sqrt(self.mu**2 - self.mu_sums**2)
        return ChoiceLoss(2.0 * left / math.sqrt(self.count), self.count)

    @property
    def epsilon_left(self) -> float:
        """About the ε that is left for the fit."""
        return _epsilon_left(self.epsilon, self.delta, self.share)

    @property
    def t(self) -> float:
        """Of the fit: squared length of a row over the ridge."""
        left = self.epsilon_left
        return LABEL_RIDGE * left if self.labels else usual_t(left)

    def chances(
        self,
        prior: ScreeningPrior,
        n_rows: int,
        n_columns: int,
        strengths: ArrayLike | None = None,
    ) -> np.ndarray:
        """Predict the chances that columns without and with a coefficient are chosen.

        Or those of columns that explain given parts of the variance of the labels.
        """
        return choice_chances(
            self.known(prior),
            n_rows,
            n_columns,
            self.count,
            clip=CHOICE_CLIP,
            epsilon_each=self.choices.epsilon_each,
            strengths=strengths,
            span=self.span,
        )

    @property
    def span(self) -> float:
        """How much a difference of two associations may change, in units of the clipped labels."""
        largest = LARGEST_ENTRY if self.labels else 1.0
        return (2.0 if self.neighbours.relation == "emptied" else 4.0) * largest

    @property
    def labels(self) -> bool:
        """Whether labels alone are private."""
        return self.neighbours.unit == "label"

    def known(self, prior: ScreeningPrior) -> ScreeningPrior:
        """The prior for columns as they are used: those of public tables have the variance 1."""
        return replace(prior, column_variance=1.0) if self.labels else prior

    def found(self, prior: ScreeningPrior, n_rows: int, n_columns: int) -> float:
        """Predict the chance that a column with a coefficient is chosen in any of the rounds."""
        chance = float(self.chances(prior, n_rows, n_columns)[1])
        for done in range(self.further):
            chance = self._after(done, chance, prior, n_rows, n_columns)
        return chance

    def r2(self, prior: ScreeningPrior, n_rows: int, n_columns: int) -> float:
        """Predict R² of the fit of the chosen columns, with the noise in its intercept."""
        c, k = self.c, self.columns + self.components
        if c == 0.0:
            return -math.inf
        chance = self.found(prior, n_rows, n_columns)
        r2 = _fitted_r2(prior, n_rows, k, c, self.epsilon_left, self.t, self.neighbours, chance)
        if not self.mu_level:
            return r2
        level = Level(self.mu_level, 1.0, neighbours=self.neighbours)
        return r2 - level.error(n_rows) / prior.label_deviation**2

    @cached_property
    def c(self) -> float:
        """About the sensitivity of the last fit in deviations of its noise; 0 if nothing is left.

        The choices count as a Gaussian mechanism. So does a fit before the last one, with its own
        c, and what its ε is more than that of a Gaussian mechanism adds up from fit to fit.
        """
        epsilon, mu, kind = self.epsilon, self.whole, self.neighbours.of_objective
        if self.further:
            first, _, more = ROUND_PARTS[self.further]
            left = self.epsilon_first
            if left == 0.0:
                return 0.0
            c = sensitivity_beside(left, self.delta, usual_t(left), 0.0, kind)
            epsilon -= self.further * (left - gaussian_epsilon(self.delta, c))
            mu = math.sqrt((first + more) * self.whole**2 + self.further * c**2)
        return _about_sensitivity(epsilon, self.delta, self.t, mu, self.neighbours)

    def _after(
        self, done: int, chance: float, prior: ScreeningPrior, n_rows: int, n_columns: int
    ) -> float:
        """Chance of a column with a coefficient after one more round, from that before it."""
        choices, left = self.second_choices, self.epsilon_first
        assert choices is not None
        kind = self.neighbours.of_objective
        c = sensitivity_beside(left, self.delta, usual_t(left), 0.0, kind)
        fitted = self.count + done * self.second
        r2 = max(predicted_r2(prior, n_rows, fitted, c, left, chance=chance), 0.0)
        # Residuals vary less, and each column that was missed explains a larger part of them.
        missed = max(round(prior.n_true * (1.0 - chance)), 1)
        each = prior.explained / prior.n_true / (1.0 - r2)
        rest = replace(
            prior,
            n_true=missed,
            explained=min(missed * each, 0.999),
            label_deviation=prior.label_deviation * math.sqrt(1.0 - r2),
        )
        found = choice_chances(
            rest,
            n_rows,
            n_columns - fitted,
            self.second,
            clip=RESIDUAL_CLIP,
            epsilon_each=choices.epsilon_each,
        )
        return chance + (1.0 - chance) * float(found[1])


@lru_cache(maxsize=64)
def _epsilon_left(epsilon: float, delta: float, share: float) -> float:
    return gaussian_epsilon(delta, math.sqrt(1.0 - share) * sensitivity_for(epsilon, delta))


@lru_cache(maxsize=256)
def _about_sensitivity(
    epsilon: float, delta: float, t: float, mu: float, pair: Neighbours
) -> float:
    """About what `sensitivity_beside` returns, in a few steps; zero if nothing is left.

    >>> exact = sensitivity_beside(1.0, 1e-6, 0.3, 0.1)
    >>> abs(_about_sensitivity(1.0, 1e-6, 0.3, 0.1, EMPTIED) / exact - 1.0) < 0.003
    True
    """
    if epsilon <= 0.0 or GaussianLoss(mu).delta(epsilon) >= 0.99 * delta:
        return 0.0
    left = gaussian_epsilon(delta, math.sqrt(sensitivity_for(epsilon, delta) ** 2 - mu**2))
    if left == 0.0:
        return 0.0
    neighbours = pair.of_objective

    @cache
    def excess(log_c: float) -> float:
        fit = ObjectiveLoss(math.exp(log_c), t, neighbours)
        return math.log(BesideGaussian.of(fit, mu).delta(epsilon) / delta)

    start = math.log(objective_sensitivity(left, delta, t, neighbours))
    if excess(start) - excess(start - 0.1) < _FLAT:
        return 0.0
    found = root_scalar(excess, x0=start, x1=start - 0.1, xtol=_ABOUT, method="secant")
    return math.exp(found.root) if found.converged else 0.0


def _fitted_r2(
    prior: ScreeningPrior,
    n_rows: int,
    n_columns: int,
    c: float,
    epsilon: float,
    t: float,
    neighbours: Neighbours,
    chance: float = 1.0,
) -> float:
    """R² of a fit with the usual settings; a label that is replaced moves its residual by 2κ."""
    labels = neighbours.unit == "label"
    kappa = label_kappa(epsilon, n_rows, n_columns, neighbours) if labels else None
    each = 0.5 * c if neighbours.of_objective == "labels" else c
    return predicted_r2(prior, n_rows, n_columns, each, epsilon, chance=chance, t=t, kappa=kappa)


def direct_r2(
    prior: ScreeningPrior,
    epsilon: float,
    delta: float,
    n_rows: int,
    n_columns: int,
    neighbours: Neighbours = EMPTIED,
) -> float:
    """Predict R² of the fit of all columns.

    Examples
    --------
    >>> prior = ScreeningPrior()
    >>> [round(direct_r2(prior, 1.0, 1e-6, 5000, n), 2) for n in (20, 200)]
    [0.5, 0.43]
    """
    t = LABEL_RIDGE * epsilon if neighbours.unit == "label" else usual_t(epsilon)
    c = sensitivity_beside(epsilon, delta, t, 0.0, neighbours.of_objective)
    return _fitted_r2(prior, n_rows, n_columns, c, epsilon, t, neighbours)


@lru_cache(maxsize=64)
def usual_screening(
    epsilon: float,
    delta: float,
    n_rows: int,
    n_columns: int,
    *,
    count: int | None = None,
    centred: bool = True,
    prior: ScreeningPrior | None = None,
    neighbours: Neighbours = EMPTIED,
    always: bool = False,
    filled: int | None = None,
    direct: float | None = None,
) -> ScreeningSettings | None:
    """Return the settings with the largest predicted R², or None to fit all columns.

    So they are where a budget is too small to be divided, unless a choice is asked for.

    Without a prior the prediction is averaged over 1, 3, 10, 30 and 100 columns with
    coefficients, which explain half of the variance of the labels. A fit that is worse than no fit
    counts as none. All columns are fitted unless a choice gains 0.03, or anything where the columns
    are known. Where a fit of all reaches two thirds of this, a choice among the columns of records
    must gain 0.05, and none is made among public columns. For records columns are chosen in four
    rounds, or in two if they are few, which is better for correlated columns, unless that loses
    0.03 for independent ones.

    Parameters
    ----------
    epsilon, delta : float
        The budget.
    n_rows, n_columns : int
        Size of the table.
    count : int, optional
        Number of columns, where it is given; then a fit of all is not considered.
    centred : bool
        Whether the fit has an intercept.
    prior : ScreeningPrior, optional
        What is expected of the table.
    neighbours : Neighbours
        How data sets differ.
    always : bool
        Return settings where all columns would be fitted, too.
    filled : int, optional
        How many columns make rows long, see `filled_columns`; by default all.
    direct : float, optional
        R² that is predicted of a fit of all columns, where the columns are known.

    Examples
    --------
    >>> found = usual_screening(1.0, 1e-6, 5000, 2000)
    >>> 5 <= found.count <= 60, usual_screening(1.0, 1e-6, 50_000, 20) is None
    (True, True)
    """
    if count is not None and count >= n_columns:
        raise ValueError(
            f"{count} columns cannot be chosen from {n_columns}; choose fewer, or fit all of them"
        )
    some = [ScreeningPrior(n_true=s) for s in TRUE_COLUMNS if s < n_columns]
    priors = (some or [ScreeningPrior(n_true=1)]) if prior is None else [prior]

    def mean(r2s: list[float]) -> float:
        return math.fsum(max(r2, 0.0) for r2 in r2s) / len(r2s)

    asked = always or count is not None
    counts = [k for k in CHOICE_COUNTS if k < n_columns] if count is None else [count]
    best, most, of_records = None, -1.0, neighbours.unit == "record"
    if not asked:
        n = n_columns if filled is None else filled
        without = (direct_r2(p, epsilon, delta, n_rows, n, neighbours) for p in priors)
        most = mean(list(without)) if direct is None else direct
        if prior is None and most > MUCH_DIRECT * EXPLAINED:
            if not of_records:
                return None
            most += LARGE_GAIN
        elif direct is None:
            most += CHOICE_GAIN
    kind: dict[str, Passed] = {"centred": centred, "neighbours": neighbours}
    for further in ROUND_PARTS if of_records else (0,):
        found, value = None, -1.0
        enough = [k for k in counts if k >= ROUND_COLUMNS[further]]
        for share, k in itertools.product(CHOICE_SHARES, enough):
            one = ScreeningSettings.divided(k, further, share, epsilon, delta, **kind)
            if one.c == 0.0 and not asked:
                continue
            reached = mean([one.r2(p, n_rows, n_columns) for p in priors])
            if reached > value:
                found, value = one, reached
        if found is None:
            continue
        # More rounds need not be better here, but must not be much worse than fewer.
        if value > (most if further == 0 or best is None else most - ROUND_WORTH):
            best = found
        most = max(most, value)
    if best is not None and best.epsilon_left == 0.0:
        raise ValueError(
            "this budget is too small to be divided between a choice of columns and a fit; give a "
            "larger epsilon, or fit all columns with screen='all'"
        )
    return best
