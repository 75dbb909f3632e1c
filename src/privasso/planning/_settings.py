"""Settings of fits from public numbers alone: budget, bounds, rows and columns.

Those of whole records were chosen on half of 27 real tables and checked on the other half; the
documentation of `RecordDP` has the comparison.
"""

from __future__ import annotations

import math

import numpy as np

#: R relative to √N, the length of a row whose entries are all at their bounds; and the same where
#: entries are in units of the scales of their columns.
_RADIUS, _STANDARD = 0.45, 0.7
#: Both where sums of products are released: few rows are shrunk then.
_LONGEST, _LONGEST_STANDARD = 0.85, 1.2
#: What a column of zeros and ones counts there, as a part of another one: it is mostly zero.
_ONES = 0.1
#: κ for few rows, the most it may be, and the ε·M/N beyond which it grows.
_KAPPA, _LARGEST_KAPPA, _MANY = 0.05, 0.25, 100.0
#: λ per row, for labels of range 1 and columns of range 2.
_LAM = 2e-5
#: Of logistic regression: R and K relative to √N, both where entries are in units of scales, t
#: relative to that of `usual_t`, the most of it, and λ per row.
_PULL, _REACH, _WIDER, _PART, _MOST_PART, _LOGISTIC_LAM = 0.3, 1.0, 1.5, 0.5, 1.5, 2e-4
#: Smallest range of the labels relative to half that of a column; the largest is its inverse.
_SMALLEST = 1e-290
#: Of labels: the largest κ; and t relative to ε, where there are no rows to choose it for.
LARGEST_KAPPA, LABEL_RIDGE = 0.5, 0.1


def usual_row(n_columns: int, *, standard: bool = False) -> float:
    """R for rows with so many columns: most rows are longer, and shrunk to a common length.

    A larger R would leave rows as they are but need noise in proportion. Entries are in units of
    half the ranges of their columns, or, if ``standard``, of their scales.
    """
    return (_STANDARD if standard else _RADIUS) * math.sqrt(n_columns)


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
        return _LONGEST_STANDARD * math.sqrt(n_columns)
    return _LONGEST * math.sqrt(n_columns - (1.0 - _ONES) * indicators)


def usual_kappa(epsilon: float, n_rows: int, n_columns: int) -> float:
    """κ, 0.05 for few rows: clipped residuals cost less than noise. Many rows bear more of it."""
    many = epsilon * n_rows / (_MANY * n_columns)
    return min(_KAPPA * max(many, 1.0) ** (1.0 / 3.0), _LARGEST_KAPPA)


def usual_t(epsilon: float) -> float:
    """t, a fifth of e^ε − 1 up to ε = 1; larger ε bear a smaller ridge."""
    return 0.19 * math.expm1(min(epsilon, 1.0)) * max(epsilon, 1.0) ** (4.0 / 3.0)


def usual_lam(n_rows: int, label_width: float) -> float:
    """λ, in proportion to the rows, which are public, and to the unit of the labels.

    Examples
    --------
    >>> round(usual_lam(1000, 2.0), 6)
    0.04
    """
    return _LAM * n_rows * label_width


def logistic_lengths(n_columns: int, *, standard: bool = False) -> tuple[float, float]:
    """R and K of logistic regression: rows have weights w with w‖f‖ ≤ R and w‖f‖² ≤ RK.

    Nearly all rows are longer than R. What matters is then R times K relative to the ridge, and
    which rows are longer than K and weigh even less.

    Examples
    --------
    >>> logistic_lengths(4)
    (0.6, 2.0)
    """
    unit = (_WIDER if standard else 1.0) * math.sqrt(n_columns)
    return _PULL * unit, _REACH * unit


def logistic_t(epsilon: float, n_rows: int, n_columns: int) -> float:
    """The t of logistic regression, half of `usual_t` for few rows: small tables need more ridge.

    Examples
    --------
    >>> [round(logistic_t(1.0, m, 20), 3) for m in (300, 2000, 20_000, 10_000_000)]
    [0.163, 0.163, 0.352, 0.49]
    """
    many = epsilon * n_rows / (_MANY * n_columns)
    return usual_t(epsilon) * min(_PART * max(many, 1.0) ** (1.0 / 3.0), _MOST_PART)


def logistic_lam(n_rows: int) -> float:
    """λ of logistic regression, in proportion to the rows.

    Examples
    --------
    >>> round(logistic_lam(1000), 6)
    0.2
    """
    return _LOGISTIC_LAM * n_rows


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


def default_kappa(epsilon: float) -> float:
    """The largest residual that is not clipped, as a part of the range of the labels.

    A smaller one means less noise. But where labels are skewed, clipped residuals pull predictions
    from the mean of the labels towards their median, which costs more than noise at large ε.

    >>> default_kappa(1.0), default_kappa(12.0), default_kappa(1000.0)
    (0.1, 0.2, 0.5)
    """
    return min(LARGEST_KAPPA, 0.1 * max(1.0, math.sqrt(epsilon / 3.0)))
