"""Tables whose first record is made up to show as much as bounds allow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import hadamard

from privasso.programs import PerturbedLogistic, PerturbedObjective, ScreenedObjective

FloatArray = NDArray[np.float64]
#: Covariates, labels, and what the first record is.
Table = tuple[FloatArray, FloatArray, str]


def record_influence(objective: PerturbedObjective, X: FloatArray, y: FloatArray) -> FloatArray:
    """Squared length of each row in the norm of the inverse Gram matrix with the ridge."""
    rows, _ = objective.rows(X, y)
    H = rows.T @ rows + objective.noise.ridge * np.eye(rows.shape[1])
    return np.einsum("ij,ij->i", rows, np.linalg.solve(H, rows.T).T)


def record_at_bounds(objective: PerturbedObjective, X: FloatArray, y: FloatArray) -> Table:
    """The data with a record at all upper bounds."""
    one, labels = X.copy(), y.copy()
    one[0], labels[0] = objective.bounds[:, 1], objective.y_bounds[1]
    return one, labels, "a record made up at the bounds"


def records_made_up(objective: PerturbedObjective, X: FloatArray, y: FloatArray) -> list[Table]:
    """Records at the bounds that are not among the data: neighbours that bounds allow.

    The first is along the direction in which the other rows vary least. The second stands in a data
    set that is made for the worst case. For residuals that are clipped all other records are empty,
    so that the sign of its residual follows the noise: nothing tells more. For a logistic
    regression all others are at the same place and of the other class, so that its pull is full.
    """
    bounds = objective.bounds
    one, labels, name = record_at_bounds(objective, X, y)
    rows, _ = objective.rows(X, np.zeros(len(X)))
    weakest = np.linalg.eigh(rows.T @ rows)[1][:, 0][: X.shape[1]]
    one[0] = np.where(weakest > 0.0, bounds[:, 1], bounds[:, 0])
    corner = np.tile(bounds[:, 1], (len(X), 1))
    if isinstance(objective, PerturbedLogistic):
        worst, why = np.zeros(len(X)), "a record made up among others of the other class"
        worst[0] = 1.0
    else:
        worst, why = np.full(len(X), np.nan), "a record made up among empty ones"
        low, high = objective.y_bounds
        worst[0] = 0.5 * low + 0.5 * high if objective.fit_intercept else np.clip(0.0, low, high)
    return [(one, labels, name), (corner, worst, why)]


def record_for_choice(objective: ScreenedObjective, n_rows: int) -> list[Table]:
    """A table whose first record decides between columns that are otherwise nearly tied.

    It has the largest entries in all columns and the largest label. Another record has the same
    entries in every second column and the smallest label; all others are in the middle. With both,
    the associations of these columns cancel and those of the rest have the size of one record;
    without the first it is the other way round. So it moves the difference of two associations by
    twice the sensitivity, in every choice of every round, and it pulls each fit with full force.
    """
    if n_rows < 2:
        return []
    screening = objective.screening
    bounds, origin, (low, high) = screening.bounds, screening.origin, screening.y_bounds
    middle = np.clip(origin, bounds[:, 0], bounds[:, 1])
    upper = bounds[:, 1] - origin >= origin - bounds[:, 0]
    far = np.where(upper, bounds[:, 1], bounds[:, 0])
    centre = 0.5 * low + 0.5 * high if screening.centred else np.clip(0.0, low, high)
    rows, labels = np.tile(middle, (n_rows, 1)), np.full(n_rows, centre)
    rows[0], labels[0] = far, high
    rows[1, ::2], labels[1] = far[::2], low
    return [(rows, labels, "a record made up to decide which columns are chosen")]


def table_for_label_choice(
    n_rows: int, n_columns: int, y_bounds: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """Covariates and labels; the first label decides which columns are chosen.

    Rows come in twos: the same signs with labels at opposite bounds, which cancel wherever the
    centre of the labels is. In four rows they do not: two that are positive in all columns, of
    which one has the label in question, and two that are positive in every second column. With the
    upper label the associations of these columns are 4 and of the others 0, with the lower one all
    are 2, so that differences move by twice the sensitivity. Columns are orthogonal, if the table
    has enough rows, so that this does not change when some were chosen.
    """
    low, high = y_bounds
    half = 1 << (n_rows // 2).bit_length() - 1
    if half > n_columns:
        # Row 0 is positive, row 1 has alternating signs; column 0, which is positive, is left out.
        signs = hadamard(half).astype(np.float64)[:, -n_columns:]
    else:
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (half, n_columns))
        signs[0], signs[1] = 1.0, np.where(np.arange(n_columns) % 2 == 0, 1.0, -1.0)
    X, y = np.zeros((n_rows, n_columns)), np.full(n_rows, 0.5 * low + 0.5 * high)
    X[:half], X[half : 2 * half] = signs, signs
    y[:half], y[half : 2 * half] = high, low
    y[[half, half + 1]] = high
    return X, y
