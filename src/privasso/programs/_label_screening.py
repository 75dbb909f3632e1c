"""Columns that are chosen by their association with private labels, where covariates are public.

Everything about the covariates is free. Columns are centred, scaled to the variance 1, and their
entries clipped. Columns are chosen one after the other: after each choice the others are projected
onto the complement of the chosen ones, so that a copy of a chosen column is not chosen again. This
needs no labels but through the choices before. With columns u_i and clipped labels |ỹ| ≤ b, a
replaced label changes the association |Σ_μ u_μi ỹ_μ| by at most 2b·max|u|, in either direction, so
that Gumbel noise of the scale 4b·max|u|/ε₀ makes each choice one of bounded range ε₀.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from privasso._types import Matrix, SparseMatrix
from privasso.accounting import ChoiceLoss
from privasso.programs._associations import LABEL
from privasso.programs._clipped_sums import clipped_integers, noisy_centre
from privasso.programs._records import bounded_labels
from privasso.queries import LABEL_REPLACED, Ask, Neighbours, NoisyChoice, Scores

#: Columns that are standardised together.
_COLUMNS = 256
#: Entries are clipped at so many deviations of their column, and once more after projections.
_CLIP, LARGEST_ENTRY = 1.0, 1.5
#: Entries are integers of this many bits after the point.
_BITS = 13
#: Rows whose sums are exact in floating point, and columns that are worked on together.
_ROWS, _COLUMNS = 1 << 15, 256
#: A column of which less than this part is left after projections is not made longer for it.
_LEAST = 0.5
#: Most entries of a table whose columns are held in memory to be projected, and of all that are
#: kept for several choices.
_MOST, _KEPT = 1 << 27, 1 << 26


@dataclass(frozen=True, eq=False)
class LabelScreening:
    """How columns are chosen under label differential privacy, decided before labels are read.

    Attributes
    ----------
    choices : ChoiceLoss
        How many columns are chosen, and the range of the losses of each choice.
    mu : float
        Sensitivity of the sums from which the centre of the labels is found.
    clip : float
        b, as a part of the range of the labels.
    y_bounds : (float, float)
        Bounds of the labels.
    neighbours : Neighbours
        How data sets differ.
    """

    choices: ChoiceLoss
    mu: float
    clip: float
    y_bounds: tuple[float, float]
    neighbours: Neighbours = LABEL_REPLACED

    @property
    def count(self) -> int:
        """Number of columns to choose."""
        return self.choices.count

    def order(self, ask: Ask, peeled: Peeled) -> np.ndarray:
        """Return the indices of the columns in the order in which they are chosen.

        The guarantee covers the order.
        """
        centre = noisy_centre(ask, self.y_bounds, self.radius, self.mu, self.neighbours)
        order: tuple[int, ...] = ()
        for _ in range(self.count):
            order += (int(ask(self.choice(peeled, order, centre))[0]),)
        return np.array(order)

    def choice(self, peeled: Peeled, order: tuple[int, ...], centre: float) -> NoisyChoice:
        """The question for one column after some were chosen."""
        left = np.setdiff1d(np.arange(peeled.shape[1]), order)
        one = ChoiceLoss(self.choices.epsilon_each, 1)
        return NoisyChoice(PeeledScores(self, peeled, order, centre), one, left, self.neighbours)

    @property
    def radius(self) -> float:
        """Where labels are clipped around their centre, in their units."""
        return self.clip * (self.y_bounds[1] - self.y_bounds[0])

    def labels(self, y: np.ndarray, centre: float) -> np.ndarray:
        """Labels that are clipped around a centre, as integers in floating point."""
        clipped = bounded_labels(y, self.y_bounds, empty=self.neighbours.empties)
        return clipped_integers(clipped, centre, self.radius, LABEL).astype(np.float64)


@dataclass(frozen=True, eq=False)
class PeeledScores(Scores):
    """Integer entries of public columns times clipped labels; all rows must be in one block.

    Attributes
    ----------
    screening : LabelScreening
        How labels are clipped.
    peeled : Peeled
        The columns.
    order : tuple of int
        Those that were chosen before.
    centre : float
        Of the labels.
    """

    screening: LabelScreening
    peeled: Peeled = field(repr=False)
    order: tuple[int, ...]
    centre: float

    sentence = "which columns were chosen"
    most_rows = None
    columns = np.empty(0, dtype=np.intp)

    def sums(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Σ_μ k_μi ℓ_μ, exactly."""
        labels, (m, n) = self.screening.labels(y, self.centre), self.peeled.shape
        entries, total = self.peeled.integers(self.order), np.zeros(n, dtype=np.int64)
        for start in range(0, n, _COLUMNS):
            K = entries[:, start : start + _COLUMNS].astype(np.float64)
            for row in range(0, m, _ROWS):
                # Sums of integers below 2^53 are exact in any order.
                part = labels[row : row + _ROWS] @ K[row : row + _ROWS]
                total[start : start + _COLUMNS] += part.astype(np.int64)
        return total

    def change(self, neighbours: Neighbours) -> float:
        """Labels are at most LABEL in size, and the columns are public."""
        entries = self.peeled.integers(self.order)
        largest = (1.0 if neighbours.relation == "emptied" else 2.0) * LABEL
        return largest * max(int(np.max(np.abs(entries), initial=0)), 1)


class Peeled:
    """Columns, and what is left of them when that which chosen ones explain is taken away.

    Parameters
    ----------
    X : array_like or sparse matrix of shape (M, N)
        Public covariates.
    beside : ndarray of shape (M, D), optional
        Orthogonal columns that are fitted in any case; what they explain is taken away from all
        columns at first.
    """

    def __init__(self, X: Matrix, beside: np.ndarray | None = None) -> None:
        columns = standard_columns(X)
        if beside is not None and beside.shape[1]:
            _project_all(columns, beside)
        self.shape = columns.shape
        self._after: dict[tuple[int, ...], np.ndarray] = {(): columns}
        self._integers: tuple[tuple[int, ...], np.ndarray] | None = None

    def after(self, order: tuple[int, ...]) -> np.ndarray:
        """What is left after these were chosen, one after the other."""
        if order not in self._after:
            columns = self.after(order[:-1]).copy()
            _project(columns, order[-1])
            if len(self._after) * columns.size > _KEPT:
                self._after = {(): self._after[()]}
            self._after[order] = columns
        return self._after[order]

    def integers(self, order: tuple[int, ...]) -> np.ndarray:
        """Its entries as integers."""
        if self._integers is None or self._integers[0] != order:
            self._integers = order, integer_entries(self.after(order))
        return self._integers[1]


def check_size(n_rows: int, n_columns: int) -> None:
    """Refuse tables that are too large to be held in memory.

    Examples
    --------
    >>> check_size(1000, 20000)  # it fits: nothing happens
    >>> check_size(10**6, 10**6)
    Traceback (most recent call last):
    ValueError: screening for labels holds the 1000000 × 1000000 table in memory; choose fewer ...
    """
    if too_large(n_rows, n_columns):
        raise ValueError(
            f"screening for labels holds the {n_rows} × {n_columns} table in memory; choose fewer "
            "columns first"
        )


def too_large(n_rows: int, n_columns: int) -> bool:
    """Whether a table is too large for its columns to be held for a choice."""
    return n_rows * n_columns > _MOST


def standard_columns(X: Matrix) -> np.ndarray:
    """Centred columns with entries clipped at one deviation, of the length √M.

    A constant column becomes zeros.
    """
    m, n = X.shape
    check_size(m, n)
    U = np.empty((m, n), dtype=np.float32)
    for span, block in column_blocks(X):
        for _ in range(2):
            block -= block.mean(axis=0)
            size = np.sqrt(np.mean(block**2, axis=0))
            block /= np.where(size > 0.0, size, 1.0)
            np.clip(block, -_CLIP, _CLIP, out=block)
        block -= block.mean(axis=0)
        size = np.sqrt(np.mean(block**2, axis=0))
        U[:, span] = block / np.where(size > 1e-6, size, np.inf)
    return U


def integer_entries(columns: np.ndarray) -> np.ndarray:
    """Entries in units of the size of their column, as clipped integers of 16 bits."""
    (m, n), limit = columns.shape, round(LARGEST_ENTRY * (1 << _BITS))
    found = np.empty((m, n), dtype=np.int16)
    for start in range(0, n, _COLUMNS):
        block = columns[:, start : start + _COLUMNS].astype(np.float64)
        size = np.sqrt(np.mean(block**2, axis=0))
        block *= (1 << _BITS) / np.maximum(size, _LEAST)
        found[:, start : start + _COLUMNS] = np.clip(np.rint(block), -limit, limit)
    return found


def _project(columns: np.ndarray, chosen: int) -> None:
    """Take away from all columns what they have of the chosen one."""
    q = columns[:, chosen].astype(np.float64)
    length = float(np.linalg.norm(q))
    if length == 0.0:
        return
    q = (q / length).astype(np.float32)
    for start in range(0, columns.shape[1], _COLUMNS):
        block = columns[:, start : start + _COLUMNS]
        block -= np.outer(q, q @ block)
    columns[:, chosen] = 0.0


def _project_all(columns: np.ndarray, beside: np.ndarray) -> None:
    """Take away from all columns what they have of orthogonal ones."""
    Q = (beside / np.linalg.norm(beside, axis=0)).astype(np.float32)
    for start in range(0, columns.shape[1], _COLUMNS):
        block = columns[:, start : start + _COLUMNS]
        block -= Q @ (Q.T @ block)


def column_blocks(X: SparseMatrix) -> Iterator[tuple[slice, np.ndarray]]:
    """Some columns of a table at a time, dense and in double precision, which may be changed."""
    stored: SparseMatrix = X.tocsc() if sp.issparse(X) else np.asanyarray(X)
    for start in range(0, X.shape[1], _COLUMNS):
        span = slice(start, start + _COLUMNS)
        part = stored[:, span]
        yield span, np.array(part.toarray() if sp.issparse(part) else part, dtype=np.float64)
