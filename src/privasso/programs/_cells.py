"""What a record holds, decided before anything else reads it: no cell is a reason to refuse.

Where whole records are private, a record whose label is missing (NaN) is an empty one: it adds
nothing to any sum, count or choice, whatever its covariates are. A covariate that is missing counts
as the middle of its bounds, and ±inf as the bound on that side. Where bounds are found with noise,
the middle is that of the bounds so far: zero at first, and afterwards the middle of what was found.
So what a record becomes depends on that record, and on numbers that are public or were released.

Where only labels are private, a missing label counts as the middle of the bounds, or its record as
an empty one where neighbours are said to differ by an emptied label.
"""

from __future__ import annotations

import numpy as np


def empty_records(y: np.ndarray) -> np.ndarray:
    """Which records are empty.

    >>> empty_records(np.array([1.0, np.nan, np.inf])).tolist()
    [False, True, False]
    """
    return np.isnan(y)


def middles(bounds: np.ndarray) -> np.ndarray:
    """What missing cells count as, for bounds of shape (N, 2)."""
    return 0.5 * bounds[:, 0] + 0.5 * bounds[:, 1]


def within(X: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Cells as finite numbers between the bounds of their columns; a copy.

    >>> bounds = np.array([[0.0, 4.0], [5.0, 5.0]])
    >>> within(np.array([[np.nan, np.nan], [-np.inf, 7.0]]), bounds).tolist()
    [[2.0, 5.0], [0.0, 5.0]]
    """
    cells = np.where(np.isnan(X), middles(bounds), X)
    return np.clip(cells, bounds[:, 0], bounds[:, 1], out=cells)


def held_records(X: np.ndarray, y: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """The records that are not empty, with cells between their bounds; a copy.

    >>> X, bounds = np.array([[1.0], [np.nan], [9.0]]), np.array([[0.0, 4.0]])
    >>> held_records(X, np.array([np.nan, 1.0, 1.0]), bounds).tolist()
    [[2.0], [4.0]]
    """
    empty = empty_records(y)
    return within(X[~empty] if empty.any() else X, bounds)


def bounded_labels(
    y: np.ndarray, bounds: tuple[float, float], *, empty: bool = False
) -> np.ndarray:
    """Labels between their bounds; a missing one is the middle, or stays so where it is empty.

    >>> bounded_labels(np.array([np.nan, np.inf, -3.0, 0.5]), (0.0, 4.0)).tolist()
    [2.0, 4.0, 0.0, 0.5]
    """
    if empty:
        return np.clip(np.asarray(y, dtype=np.float64), *bounds)
    return within(y[:, None], np.array([bounds]))[:, 0]
