"""Settings of fits from public numbers alone, and what intervals take of the budget."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from privasso._tuned import (
    INTERVAL_PART,
    LABEL_KAPPA,
    LAM_PER_ROW,
    LEAST_LABEL_KAPPA,
    LOGISTIC_LAM_PER_ROW,
    LOGISTIC_T,
    LONG_ROW,
    LONG_STANDARD_ROW,
    MANY_ONES,
    MANY_ROWS,
    MOST_LABEL_KAPPA,
    MOST_LOGISTIC_T,
    MOST_RECORD_KAPPA,
    ONES,
    PULL,
    REACH,
    RECORD_KAPPA,
    RECORD_T,
    ROW,
    STANDARD_REACH,
    STANDARD_ROW,
    T_POWER,
    WIDE_KAPPA_EPSILON,
)
from privasso.accounting import (
    ChoiceLoss,
    GaussianLoss,
    Loss,
    delta_together,
    gaussian_epsilon,
    sensitivity_for,
)
from privasso.queries import Neighbours

#: Smallest range of the labels relative to half that of a column; the largest is its inverse.
_SMALLEST = 1e-290


def filled_columns(n_columns: int, indicators: int) -> float:
    """How many columns make rows long, if so many of them are of zeros and ones.

    >>> filled_columns(20, 12), round(filled_columns(260, 246), 6)
    (20.0, 53.0)
    """
    return n_columns - (1.0 - ONES) * max(indicators - MANY_ONES, 0)


def usual_row(n_columns: float, *, standard: bool = False) -> float:
    """R for rows with so many columns: most rows are longer, and shrunk to a common length.

    A larger R would leave rows as they are but need noise in proportion. Entries are in units of
    half the ranges of their columns, or, if ``standard``, of their scales.
    """
    return (STANDARD_ROW if standard else ROW) * math.sqrt(n_columns)


def longest_row(n_columns: int, *, standard: bool = False, indicators: int = 0) -> float:
    """R where sums of products of the entries of a row are released; few rows are longer.

    So many of the columns are of zeros and ones, which are measured from zero unless columns are in
    units of their scales.

    Examples
    --------
    >>> round(longest_row(4), 6), round(longest_row(4, standard=True), 6)
    (1.7, 2.4)
    >>> round(longest_row(14, indicators=10), 6)
    1.900658
    """
    if standard:
        return LONG_STANDARD_ROW * math.sqrt(n_columns)
    return LONG_ROW * math.sqrt(n_columns - (1.0 - ONES) * indicators)


def usual_kappa(epsilon: float, n_rows: int, n_columns: float) -> float:
    """κ, 0.05 for few rows: clipped residuals cost less than noise. Many rows bear more of it."""
    many = epsilon * n_rows / (MANY_ROWS * n_columns)
    return min(RECORD_KAPPA * max(many, 1.0) ** (1.0 / 3.0), MOST_RECORD_KAPPA)


def usual_t(epsilon: float) -> float:
    """t, a fifth of e^ε − 1 up to ε = 1; larger ε bear a smaller ridge."""
    return RECORD_T * math.expm1(min(epsilon, 1.0)) * max(epsilon, 1.0) ** T_POWER


def usual_lam(n_rows: int, label_width: float) -> float:
    """λ, in proportion to the rows, which are public, and to the unit of the labels.

    Examples
    --------
    >>> round(usual_lam(1000, 2.0), 6)
    0.04
    """
    return LAM_PER_ROW * n_rows * label_width


def logistic_lengths(n_columns: int, *, standard: bool = False) -> tuple[float, float]:
    """R and K of logistic regression: rows have weights w with w‖f‖ ≤ R and w‖f‖² ≤ RK.

    Nearly all rows are longer than R. What matters is then R times K relative to the ridge, and
    which rows are longer than K and weigh even less.

    Examples
    --------
    >>> logistic_lengths(4)
    (0.6, 2.0)
    """
    unit = (STANDARD_REACH if standard else 1.0) * math.sqrt(n_columns)
    return PULL * unit, REACH * unit


def logistic_t(epsilon: float, n_rows: int, n_columns: int) -> float:
    """The t of logistic regression, half of `usual_t` for few rows: small tables need more ridge.

    Examples
    --------
    >>> [round(logistic_t(1.0, m, 20), 3) for m in (300, 2000, 20_000, 10_000_000)]
    [0.163, 0.163, 0.352, 0.49]
    """
    many = epsilon * n_rows / (MANY_ROWS * n_columns)
    return usual_t(epsilon) * min(LOGISTIC_T * max(many, 1.0) ** (1.0 / 3.0), MOST_LOGISTIC_T)


def logistic_lam(n_rows: int) -> float:
    """λ of logistic regression, in proportion to the rows.

    Examples
    --------
    >>> round(logistic_lam(1000), 6)
    0.2
    """
    return LOGISTIC_LAM_PER_ROW * n_rows


def check_units(bounds: np.ndarray, label_width: float) -> None:
    """Refuse units in which coefficients, labels per unit of a column, are not ordinary numbers.

    Examples
    --------
    >>> check_units(np.array([[0.0, 1e-320]]), 1.0)
    Traceback (most recent call last):
    ...
    ValueError: column 0 and the labels have ranges that no coefficient can join; change their units
    """
    half = 0.5 * bounds[:, 1] - 0.5 * bounds[:, 0]
    with np.errstate(over="ignore"):
        ratio = label_width / np.where(half > 0.0, half, label_width)
    wrong = ~((ratio > _SMALLEST) & (ratio < 1.0 / _SMALLEST))
    if wrong.any():
        raise ValueError(
            f"column {int(np.argmax(wrong))} and the labels have ranges that no coefficient can "
            "join; change their units"
        )


def label_kappa(epsilon: float, n_rows: int, n_columns: int, neighbours: Neighbours) -> float:
    """κ of fits of labels: the largest residual that is not clipped, as a part of their range.

    A smaller one means less noise. But where labels are skewed, clipped residuals pull predictions
    from the mean of the labels towards their median, which costs more than noise where rows are
    many. There is a column of ones beside the others. With more columns than rows small residuals
    are no sign of few errors, and at a large ε more is lost by clipping than by noise.

    >>> from privasso.queries import LABEL_REPLACED
    >>> [round(label_kappa(1.0, m, 9, LABEL_REPLACED), 3) for m in (200, 1000, 8000, 10**6)]
    [0.1, 0.1, 0.2, 0.25]
    """
    many = epsilon * n_rows / (MANY_ROWS * (n_columns + 1))
    least = LEAST_LABEL_KAPPA[neighbours.relation]
    if n_columns > n_rows:
        least *= max(1.0, math.sqrt(epsilon / WIDE_KAPPA_EPSILON))
    return min(max(LABEL_KAPPA * many ** (1.0 / 3.0), least), MOST_LABEL_KAPPA)


Planned = TypeVar("Planned")
#: How much of δ a division leaves unused at most, and the most divisions that are tried.
_UNUSED, _TRIED = 0.03, 12


def interval_sensitivity(epsilon: float, delta: float) -> float:
    """μ of all that is asked for intervals.

    >>> round(interval_sensitivity(1.0, 1e-6), 3)
    0.167
    """
    return math.sqrt(INTERVAL_PART) * sensitivity_for(epsilon, delta)


def divided(
    epsilon: float,
    delta: float,
    beside: tuple[GaussianLoss | ChoiceLoss, ...],
    plan: Callable[[float], tuple[Planned, tuple[Loss, ...]]],
) -> Planned:
    """The fit with the largest ε' that leaves room for what is asked beside it.

    ``plan(ε')`` returns a fit and its losses. Together with those beside they are within (ε, δ),
    which is computed from the losses themselves.
    """
    whole, mu = sensitivity_for(epsilon, delta), math.hypot(*(loss.mu for loss in beside))
    share = gaussian_epsilon(delta, math.sqrt(max(whole**2 - mu**2, 1e-6 * whole**2)))
    goal, low, high, found = math.log1p(-0.5 * _UNUSED), 0.0, epsilon, None
    before: tuple[float, float] | None = None
    for _ in range(_TRIED if share > 0.0 else 0):
        one, losses = plan(share)
        spent = delta_together((*losses, *beside), 1, epsilon)
        off = math.log(max(spent, 1e-300) / delta)
        if off <= 0.0:
            low, found = share, one
        if -_UNUSED <= off <= 0.0:
            break
        high = high if off <= 0.0 else share
        # log δ is nearly linear in log ε' close by.
        rate = 10.0 if before is None else (off - before[1]) / math.log(share / before[0])
        before = share, off
        step = share * math.exp(min(max((goal - off) / max(rate, 1.0), -1.0), 1.0))
        share = step if low < step < high else 0.5 * (low + high)
    if found is None:
        raise ValueError(
            "this budget is too small to be shared between a fit and intervals or a range of the "
            "labels; leave intervals out, give y_bounds, or choose a larger ε"
        )
    return found
