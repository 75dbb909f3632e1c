"""Rows, truths and estimates of simulated fits, and R² on new rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit, logit

from privasso._tuned import EXPLAINED
from privasso._validation import positive_float
from privasso.operators import Covariates

#: What somebody who states a rough number means: a share of non-zero coefficients and the odds of
#: an explained share are right up to a factor of 3, a deviation of the labels up to a third.
_FACTOR, _THIRD = 3.0, 1.0 / 3.0
#: Shares that covariates explain of nearly all real tables in the documentation.
_ANY = (0.05, 0.95)


@dataclass(frozen=True)
class Assumptions:
    """Rough numbers about labels and coefficients; none of them comes from the labels.

    Parameters
    ----------
    rho : float
        Share of the coefficients that are not zero, in (0, 1].
    r2 : float or None
        Share of the label variance that the covariates explain, in (0, 1); None if nothing is known
        of it.
    label_sd : float
        Standard deviation of the labels.
    """

    rho: float
    r2: float | None
    label_sd: float

    def __post_init__(self) -> None:
        if positive_float("rho", self.rho) > 1.0:
            raise ValueError(f"rho is a share and must not exceed 1, not {self.rho!r}")
        if self.r2 is not None and positive_float("r2", self.r2) >= 1.0:
            raise ValueError(f"r2 must be below 1, not {self.r2!r}")
        positive_float("label_sd", self.label_sd)

    def check_width(self, width: float) -> None:
        """Refuse a deviation that labels within bounds of this distance cannot have.

        >>> Assumptions(0.1, 0.5, 3.0).check_width(4.0)
        Traceback (most recent call last):
        ...
        ValueError: the assumed standard deviation of the labels, 3, is impossible: their bounds \
are 4 apart, and it is at most half of that
        """
        if self.label_sd > 0.5 * width:
            raise ValueError(
                f"the assumed standard deviation of the labels, {self.label_sd:g}, is impossible: "
                f"their bounds are {width:g} apart, and it is at most half of that"
            )

    @property
    def rho_range(self) -> tuple[float, float]:
        """From ρ/3 to 3ρ."""
        return self.rho / _FACTOR, min(1.0, self.rho * _FACTOR)

    @property
    def r2_range(self) -> tuple[float, float]:
        """From a third of the odds r2/(1 − r2) to three times these, or nearly anything."""
        if self.r2 is None:
            return _ANY
        odds = self.r2 / (1.0 - self.r2)
        return odds / (_FACTOR + odds), _FACTOR * odds / (1.0 + _FACTOR * odds)

    @property
    def label_sd_range(self) -> tuple[float, float]:
        """From 2/3 to 4/3 of the deviation."""
        return self.label_sd * (1.0 - _THIRD), self.label_sd * (1.0 + _THIRD)

    @property
    def usual_r2(self) -> float:
        """One number: what is supposed of any table if nothing is known."""
        return EXPLAINED if self.r2 is None else self.r2

    def in_words(self) -> str:
        """Say which truths a simulation draws; see `Population.draw`."""
        rho, r2, sd = self.rho_range, self.r2_range, self.label_sd_range
        return (
            f"Each simulated fit has a truth of its own. A share of {rho[0]:.2g} to {rho[1]:.2g} "
            "of the coefficients, at least one, is not zero (evenly on a logarithmic scale); these "
            "are drawn from one normal law for standardised columns. The labels have a standard "
            f"deviation of {sd[0]:.3g} to {sd[1]:.3g}, and the covariates explain a share of "
            f"{r2[0]:.2g} to {r2[1]:.2g} of their variance (evenly in the logarithm of the odds). "
            "The mean label is anywhere between the bounds, two standard deviations away from "
            "both if there is room."
        )

    def as_model(self) -> str:
        """Say what state evolution assumes."""
        return (
            f"independent Gaussian columns of the scales at hand, a share of {self.rho:g} of the "
            f"coefficients not zero and drawn from one normal law, and labels with standard "
            f"deviation {self.label_sd:.4g}, of whose variance the covariates explain a share of "
            f"{self.usual_r2:g}"
        )


#: Deviations between the mean label and the bounds, if these are wide enough. With two of them at
#: most 5 % of normal labels would be clipped, which costs less than 1 % of the explained variance
#: (slopes shrink by the part that is clipped); so that the simulation leaves clipping out.
_MARGIN = 2.0


@dataclass(frozen=True, eq=False)
class Truth:
    """What a simulated table of labels was drawn from: label = level + f·coef + residual.

    Attributes
    ----------
    coef : ndarray
        Coefficients of the live columns, standardised.
    level : float
        Mean label at the means of the columns, relative to the middle of the bounds; zero
        without an intercept.
    residual_sd : float
        Standard deviation of the residual.
    """

    coef: np.ndarray = field(repr=False)
    level: float
    residual_sd: float


@dataclass(frozen=True, eq=False)
class Estimate:
    """What a simulated fit found, in the terms of `Truth`."""

    coef: np.ndarray = field(repr=False)
    level: float


class Population:
    """The rows that simulated tables are drawn from, and on which their models predict.

    Parameters
    ----------
    rows : Covariates
        The public covariates; centred if the fit has an intercept.
    """

    def __init__(self, rows: Covariates) -> None:
        self.scale = np.sqrt(rows.squares[rows.live] / rows.total)
        both = rows.total * np.outer(self.scale, self.scale)
        self.second_moments = rows.gram / both
        self.covariance = self.second_moments
        if not rows.centred:
            weights = np.ones(rows.shape[0]) if rows.weights is None else rows.weights
            mean = rows.rmatvec(weights)[rows.live] / rows.total / self.scale
            self.covariance = self.second_moments - np.outer(mean, mean)
        self.centred = rows.centred

    def draw(self, suppose: Assumptions, half_width: float, rng: np.random.Generator) -> Truth:
        """Draw a truth as `Assumptions.in_words` says.

        Parameters
        ----------
        suppose : Assumptions
            About labels and coefficients.
        half_width : float
            Half the distance between the bounds of the labels.
        rng : Generator
            Source of the draws.
        """
        n = self.scale.size
        rho = math.exp(rng.uniform(*np.log(suppose.rho_range)))
        r2 = float(expit(rng.uniform(*logit(suppose.r2_range))))
        sd = rng.uniform(*suppose.label_sd_range)
        level = rng.uniform(-1.0, 1.0) * max(0.0, half_width - _MARGIN * sd)
        order, sizes = rng.permutation(n), rng.standard_normal(n)
        coef = np.where(order < max(1, round(rho * n)), sizes, 0.0)
        coef *= sd * math.sqrt(r2 / self._variance(coef))
        return Truth(coef, level if self.centred else 0.0, sd * math.sqrt(1.0 - r2))

    def r2(self, truth: Truth, found: Estimate) -> float:
        """R² on new rows of the same law, for labels that follow the truth.

        1 − (dᵀCd + (difference of the levels)² + σ²)/(xᵀCx + σ²),   d = x̂ − x
        """
        wrong, residual = found.coef - truth.coef, truth.residual_sd**2
        error = float(wrong @ self.second_moments @ wrong) + (found.level - truth.level) ** 2
        signal = self._variance(truth.coef)
        return (signal - error) / (signal + residual)

    def _variance(self, coef: np.ndarray) -> float:
        return float(coef @ self.covariance @ coef)


@dataclass(frozen=True, eq=False)
class Simulated:
    """R² on new rows of simulated fits; −∞ where a fit found no model.

    `effect_error` (N,): root mean square error of a coefficient times the range of its column;
    None where it is not computed.
    """

    r2: np.ndarray = field(repr=False)
    effect_error: np.ndarray | None = field(default=None, repr=False)

    @property
    def median(self) -> float:
        """The R² that half of the fits reach."""
        return float(np.quantile(self.r2, 0.5, method="inverted_cdf"))

    @property
    def interval(self) -> tuple[float, float]:
        """The middle 80 %: one fit of ten is below, and one above."""
        low, high = np.quantile(self.r2, [0.1, 0.9], method="inverted_cdf")
        return float(low), float(high)

    def part_of(self, best: Simulated) -> float:
        """The part of what the best fits of the same truths explain, at the median; at least 0."""
        return float(np.median(np.clip(self.r2, 0.0, None) / np.maximum(best.r2, 1e-9)))

    @property
    def positive(self) -> float:
        """Share of the fits that predict better than the mean label."""
        return float(np.mean(self.r2 > 0.0))
