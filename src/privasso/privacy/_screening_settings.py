"""How many columns to choose and at which share of the budget, from public numbers alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from privasso.privacy._beside_gaussian import sensitivity_beside
from privasso.privacy._choice_loss import ChoiceLoss
from privasso.privacy._gaussian import gaussian_epsilon, sensitivity_for
from privasso.privacy._record_settings import usual_t
from privasso.privacy._screening_forecast import ScreeningPrior, choice_chances, predicted_r2

#: Where labels are clipped for their associations, as a part of their range.
CLIP = 0.08
#: Part of the sensitivity of the choice that finds the centre of the labels.
_CENTRE = 0.25
#: Shares of the budget and numbers of columns that are compared.
_SHARES = (0.2, 0.35, 0.5, 0.65)
_COUNTS = (3, 5, 8, 12, 16, 20, 30, 40, 60, 80, 120, 160, 250, 400, 600, 1000)
#: How many columns may have coefficients: each of these is as likely as the others.
_TRUE = (3, 10, 30, 100, 300)
#: A choice must gain this much R² over a fit of all columns: coefficients may be less sparse.
_GAIN = 0.03


@dataclass(frozen=True)
class ScreeningSettings:
    """A number of columns, and how the budget is divided.

    Attributes
    ----------
    count : int
        Number of columns to choose.
    share : float
        Squared sensitivity of the choice relative to that of a Gaussian mechanism with the whole
        budget.
    epsilon, delta : float
        The budget of the choice and of the fit together.
    centred : bool
        Whether the centre of the labels is found too.
    """

    count: int
    share: float
    epsilon: float
    delta: float
    centred: bool = True

    @property
    def mu(self) -> float:
        """Sensitivity of the choice, the centre of the labels included."""
        return math.sqrt(self.share) * sensitivity_for(self.epsilon, self.delta)

    @property
    def mu_centre(self) -> float:
        """Sensitivity of the sums from which the centre of the labels is found."""
        return _CENTRE * self.mu if self.centred else 0.0

    @property
    def choices(self) -> ChoiceLoss:
        """The loss of the choices."""
        left = math.sqrt(self.mu**2 - self.mu_centre**2)
        return ChoiceLoss(2.0 * left / math.sqrt(self.count), self.count)

    @property
    def epsilon_left(self) -> float:
        """About the ε that is left for the fit."""
        return _epsilon_left(self.epsilon, self.delta, self.share)

    def r2(self, prior: ScreeningPrior, n_rows: int, n_columns: int) -> float:
        """Predict R² of the fit of the chosen columns."""
        chances = choice_chances(
            prior,
            n_rows,
            n_columns,
            self.count,
            clip=CLIP,
            epsilon_each=self.choices.epsilon_each,
        )
        left = self.epsilon_left
        # A Gaussian mechanism of the same sensitivity has nearly the loss of the choices.
        c = sensitivity_beside(self.epsilon, self.delta, usual_t(left), self.mu)
        return predicted_r2(prior, n_rows, self.count, c, left, chance=float(chances[1]))


@lru_cache(maxsize=64)
def _epsilon_left(epsilon: float, delta: float, share: float) -> float:
    return gaussian_epsilon(delta, math.sqrt(1.0 - share) * sensitivity_for(epsilon, delta))


def direct_r2(
    prior: ScreeningPrior, epsilon: float, delta: float, n_rows: int, n_columns: int
) -> float:
    """Predict R² of the fit of all columns.

    Examples
    --------
    >>> prior = ScreeningPrior()
    >>> [round(direct_r2(prior, 1.0, 1e-6, 5000, n), 2) for n in (20, 200)]
    [0.5, 0.44]
    """
    c = sensitivity_beside(epsilon, delta, usual_t(epsilon), 0.0)
    return predicted_r2(prior, n_rows, n_columns, c, epsilon)


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
) -> ScreeningSettings | None:
    """Return the settings with the largest predicted R², or None where all columns are better.

    Without a prior the prediction is averaged over 3, 10, 30, 100 and 300 columns with
    coefficients, which explain half of the variance of the labels. A fit that is worse than no fit
    counts as none. All columns are fitted unless a choice gains 0.03.

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

    Examples
    --------
    >>> found = usual_screening(1.0, 1e-6, 5000, 2000)
    >>> 5 <= found.count <= 60, usual_screening(1.0, 1e-6, 50_000, 20) is None
    (True, True)
    """
    priors = (
        [prior]
        if prior is not None
        else [ScreeningPrior(n_true=s) for s in _TRUE if s < n_columns]
        or [ScreeningPrior(n_true=1)]
    )

    def mean(r2s: list[float]) -> float:
        return math.fsum(max(r2, 0.0) for r2 in r2s) / len(r2s)

    counts = [k for k in _COUNTS if k < n_columns] if count is None else [count]
    best, most = None, -1.0
    if count is None:
        most = mean([direct_r2(p, epsilon, delta, n_rows, n_columns) for p in priors]) + _GAIN
    for share in _SHARES:
        for k in counts:
            one = ScreeningSettings(k, share, epsilon, delta, centred)
            value = mean([one.r2(p, n_rows, n_columns) for p in priors])
            if value > most:
                best, most = one, value
    return best
