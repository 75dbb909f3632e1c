"""A choice of columns and their fit over blocks of rows, by sums that are exact in any order.

It is the mechanism of `ScreenedObjective`. All that it needs of the rows are sums of integers: of
clipped labels, of integer entries times integer labels or residuals, and those of the fit of the
chosen columns. So the noise, the choice and the model are those of the same table in memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from privasso.blocks import Chunk, DataChangedError, RowBlocks, Sums, Task
from privasso.privacy._associations import LABEL, MOST_ROWS, IntegerColumns
from privasso.privacy._cells import within
from privasso.privacy._exact_minimiser import CHANGED, sums_are_exact
from privasso.privacy._label_centre import CENTRE_BITS, clipped_integers, clipped_total
from privasso.privacy._label_level import Level
from privasso.privacy._residual_pass import halves, ordered_residuals, whole

if TYPE_CHECKING:
    from privasso.privacy._screened_objective import ScreenedObjective

#: What the bits of a number in the first column are multiplied by; each column has its own factor.
_FACTOR = -7046029254386353131


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fit of some columns, whose residuals take the place of the labels.

    Attributes
    ----------
    columns : ndarray of int
        Which columns.
    bounds : ndarray of shape (K, 2)
        Their bounds.
    coef, intercept
        Coefficients of these.
    """

    columns: np.ndarray
    bounds: np.ndarray
    coef: np.ndarray
    intercept: float

    def residuals(self, few: np.ndarray, y: np.ndarray) -> np.ndarray:
        """What the fit leaves of labels; `few` holds its columns."""
        return ordered_residuals(within(few, self.bounds), y, self.coef, self.intercept)


@dataclass(frozen=True, eq=False)
class LabelPass:
    """The sum of labels that are clipped around a centre; the state is (centre, radius)."""

    y_bounds: tuple[float, float]

    def __call__(self, chunks: Iterable[Chunk], state: tuple[float, float]) -> Sums:
        """Return it with the number of rows and a checksum of the labels."""
        found = {"total": np.zeros(2, np.int64), **_nothing_seen()}
        for _, y in chunks:
            clipped = np.clip(np.asarray(y, dtype=np.float64), *self.y_bounds)
            found["total"] += halves(clipped_total(clipped, *state, 1 << CENTRE_BITS))
            _see(found, y)
        return found


@dataclass(frozen=True, eq=False)
class OpeningPass:
    """The same before any noise is drawn.

    Attributes
    ----------
    labels : LabelPass
        What is summed.
    """

    labels: LabelPass

    def __call__(self, chunks: Iterable[Chunk], state: tuple[float, float]) -> Sums:
        """Return the sum, and a checksum of all entries."""
        marks = np.zeros(1, dtype=np.int64)

        def marked() -> Iterable[Chunk]:
            for X, y in chunks:
                marks[0] += _mark(X, y)
                yield X, y

        found = self.labels(marked(), state)
        return {**found, "marks": marks}


@dataclass(frozen=True, eq=False)
class AssociationPass:
    """Sums of integer entries times labels or residuals; the state is (centre, radius, fit).

    Attributes
    ----------
    columns : IntegerColumns
        How entries become integers.
    y_bounds : (float, float)
        Bounds of the labels.
    n_columns : int
        N.
    """

    columns: IntegerColumns
    y_bounds: tuple[float, float]
    n_columns: int

    def __call__(self, chunks: Iterable[Chunk], state: tuple[float, float, Fitted | None]) -> Sums:
        """Return them with the number of rows and the checksums."""
        centre, radius, fitted = state
        found = {"sums": np.zeros(self.n_columns, np.int64), **_nothing_seen()}
        found["marks"] = np.zeros(1, dtype=np.int64)
        for X, y in chunks:
            values = np.clip(np.asarray(y, dtype=np.float64), *self.y_bounds)
            if fitted is not None:
                values = fitted.residuals(X[:, fitted.columns], values)
            labels = clipped_integers(values, centre, radius, LABEL)
            found["sums"] += self.columns.products(X, labels)
            found["marks"] += _mark(X, y)
            _see(found, y)
        return found


@dataclass(frozen=True, eq=False)
class LevelPass:
    """The sum of residuals that corrects the intercept, over the chosen columns."""

    level: Level
    y_bounds: tuple[float, float]

    def __call__(self, chunks: Iterable[Chunk], state: Fitted) -> Sums:
        """Return it with the number of rows and a checksum of the labels."""
        found = {"total": np.zeros(2, np.int64), **_nothing_seen()}
        for X, y in chunks:
            values = np.clip(np.asarray(y, dtype=np.float64), *self.y_bounds)
            found["total"] += halves(self.level.total(state.residuals(X, values)))
            _see(found, y)
        return found


@dataclass(frozen=True, eq=False)
class ScreenedPasses:
    """A table whose rows were read once, and can be read again.

    Attributes
    ----------
    blocks : RowBlocks
        Where the rows are.
    first : Sums
        What the first pass found. It holds private numbers.

    Examples
    --------
    >>> import privasso as pv
    >>> from privasso.fit import FitOptions, plan_for
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.random((500, 2)), rng.random(500)
    >>> privacy = pv.RecordDP(1.0, 1e-6, bounds=[(0, 1)] * 2, y_bounds=(0, 1))
    >>> objective = plan_for(X, FitOptions(privacy, screen=1)).objective
    >>> whole, cut = (RowBlocks.of_arrays(X, y, n_parts=parts) for parts in (1, 3))
    >>> passes = [ScreenedPasses.opened(objective, blocks) for blocks in (whole, cut)]
    >>> passes[0].identity == passes[1].identity  # however the rows are cut
    True
    """

    blocks: RowBlocks = field(repr=False)
    first: Sums = field(repr=False)

    @staticmethod
    def opened(objective: ScreenedObjective, blocks: RowBlocks) -> ScreenedPasses:
        """Read all rows once, before any noise is drawn, so that bad data cost nothing."""
        m, n = blocks.shape
        tables = (objective.table, *(one.table for one in objective.rounds))
        if not all(sums_are_exact(table, m) for table in tables) or m > MOST_ROWS:
            raise ValueError(
                "chosen columns of blocks of rows are fitted where rows are at least as many as "
                f"these and at most {MOST_ROWS}, and these are at most 4095; choose fewer"
            )
        low, high = objective.screening.y_bounds
        half = 0.5 * high - 0.5 * low
        task = OpeningPass(LabelPass((low, high)))
        found = blocks.sum(task, (low + half, half))
        if int(found["rows"][0]) != m or len(objective.screening.bounds) != n:
            raise DataChangedError(CHANGED)
        return ScreenedPasses(blocks, found)

    @property
    def identity(self) -> bytes:
        """A checksum of the records, private like these, by which they are recognised."""
        return self.first["marks"].tobytes()

    def again(self, task: Task, state: object, columns: np.ndarray | None = None) -> Sums:
        """Read all columns again, or some; if rows are not the same, nothing may be released."""
        blocks = self.blocks if columns is None else self.blocks.select(columns)
        found = blocks.sum(task, state)
        for name in ("rows", "labels", "marks"):
            if name in found and not np.array_equal(found[name], self.first[name]):
                raise DataChangedError(CHANGED)
        return found

    def label_total(self, task: LabelPass, centre: float, radius: float) -> int:
        """The sum of labels that are clipped around a centre, which reads no other column."""
        return whole(self.again(task, (centre, radius), np.empty(0, dtype=np.intp))["total"])


def _nothing_seen() -> Sums:
    return {"rows": np.zeros(1, np.int64), "labels": np.zeros(1, np.int64)}


def _see(found: Sums, y: np.ndarray) -> None:
    """Count rows, and add a number that the bits of each label decide."""
    found["rows"] += len(y)
    found["labels"] += _mark(np.empty((len(y), 0)), y)


def _mark(X: np.ndarray, y: np.ndarray) -> np.int64:
    """The sum over rows of a number that all entries of a row and its label decide."""
    bits = np.ascontiguousarray(y, dtype=np.float64).view(np.int64)
    marks, step = bits.copy(), max(1, (1 << 18) // max(X.shape[1], 1))
    for start in range(0, len(y), step):
        rows = slice(start, start + step)
        block = np.asarray(X[rows], dtype=np.float64)
        by_columns = block.flags.f_contiguous and not block.flags.c_contiguous
        flat = np.ascontiguousarray(block.T if by_columns else block).view(np.int64)
        (_add_columns if by_columns else _add_rows)(flat, marks[rows])
    return _mixed(marks)


@njit(nogil=True, cache=True)
def _add_rows(bits, marks):  # pragma: no cover
    for i in range(marks.size):
        total = np.int64(0)
        for j in range(bits.shape[1]):
            total += (bits[i, j] ^ (bits[i, j] >> 29)) * (np.int64(_FACTOR) * (2 * j + 1))
        marks[i] += total


@njit(nogil=True, cache=True)
def _add_columns(bits, marks):  # pragma: no cover
    for j in range(bits.shape[0]):
        factor = np.int64(_FACTOR) * (2 * j + 1)
        for i in range(marks.size):
            marks[i] += (bits[j, i] ^ (bits[j, i] >> 29)) * factor


@njit(nogil=True, cache=True)
def _mixed(marks):  # pragma: no cover
    total = np.int64(0)
    for i in range(marks.size):
        h = (marks[i] ^ (marks[i] >> 31)) * np.int64(1099511628211)
        h = (h ^ (h >> 29)) * np.int64(_FACTOR)
        total += h ^ (h >> 32)
    return total
