"""The matrix of a table from its columns and what each of them becomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from privasso._types import Matrix, SparseMatrix
from privasso.encoding._columns import LevelCode, Levels, NumberCode, Numbers
from privasso.encoding._troubles import Trouble

#: A matrix is sparse if at most this share of its entries is not zero, and it is not tiny.
_SPARSE_SHARE, _TINY = 0.2, 1 << 16
#: Codes of levels that have no column.
_REFERENCE, _UNKNOWN = -1, -2


@dataclass(frozen=True, eq=False)
class NumberPart:
    """One column of the matrix; NaN in it stands for `fill`."""

    values: np.ndarray
    fill: float | None

    @property
    def width(self) -> int:
        """Columns of the matrix."""
        return 1

    @property
    def stored(self) -> int:
        """Entries that are not zero, at most."""
        return int(np.count_nonzero(self.values))

    def filled(self, rows: np.ndarray | slice) -> np.ndarray:
        """Values of these rows, all of them numbers."""
        values = self.values[rows]
        return values if self.fill is None else np.where(np.isnan(values), self.fill, values)


@dataclass(frozen=True, eq=False)
class LevelPart:
    """0/1 columns of the matrix: row m has a 1 in ``codes[m]``, and none if that is negative."""

    width: int
    codes: np.ndarray

    @property
    def stored(self) -> int:
        """Entries that are not zero."""
        return int(np.count_nonzero(self.codes >= 0))


Part: TypeAlias = NumberPart | LevelPart


def parts_of(
    code: NumberCode | LevelCode, column: Numbers | Levels, unknown: str
) -> list[Part] | Trouble:
    """Return what a column becomes, or what is wrong with it."""
    if isinstance(code, LevelCode):
        assert isinstance(column, Levels)  # they are asked for as such
        return _levels(code, column, unknown)
    if isinstance(column, Levels):
        return Trouble(code.name, "text")
    missing, infinite = column.missing, infinite_row(column.values)
    if missing.size and code.fill is None:
        return Trouble(code.name, "missing", int(missing[0]))
    if infinite is not None:
        return Trouble(code.name, "infinite", infinite)
    numbers = NumberPart(column.values, code.fill)
    if not code.indicator:
        return [numbers]
    marks = np.full(column.values.size, -1, dtype=np.int32)
    marks[missing] = 0
    return [numbers, LevelPart(1, marks)]


def _levels(code: LevelCode, column: Levels, unknown: str) -> list[Part] | Trouble:
    missing, others = column.missing, _UNKNOWN
    if code.reference is None:
        others = _REFERENCE
    elif missing.size and not code.missing:
        return Trouble(code.name, "blank", int(missing[0]))
    place = {level: k for k, level in enumerate(code.shown)}
    if code.reference is not None:
        place[code.reference] = _REFERENCE
    # The last entry is where the code −1 of a missing value points: the level after the others.
    last = len(code.shown) if code.missing else _REFERENCE
    known = [*(place.get(level, others) for level in column.levels), last]
    codes = np.array(known, dtype=np.int32)[column.codes]
    if _UNKNOWN in known and unknown == "error":
        rows = np.flatnonzero(codes == _UNKNOWN)
        return Trouble(code.name, "unknown", int(rows[0]), int(rows.size))
    return [LevelPart(len(code.outputs), codes)]


def infinite_row(values: np.ndarray) -> int | None:
    """First row with an infinite number, or None."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(values)):  # finite only if every term is
            return None
    rows = np.flatnonzero(np.isinf(values))
    return int(rows[0]) if rows.size else None


def assembled(parts: list[Part], shape: tuple[int, int]) -> Matrix:
    """Put parts side by side: dense in Fortran order, or sparse where that is much smaller."""
    size, stored = shape[0] * shape[1], sum(part.stored for part in parts)
    if size > _TINY and stored <= _SPARSE_SHARE * size:
        return _sparse(parts, shape)
    X, at = np.zeros(shape, order="F"), 0
    for part in parts:
        if isinstance(part, NumberPart):
            X[:, at] = part.filled(slice(None))
        else:
            rows = np.flatnonzero(part.codes >= 0)
            X[rows, at + part.codes[rows]] = 1.0
        at += part.width
    return X


def _sparse(parts: list[Part], shape: tuple[int, int]) -> SparseMatrix:
    """Store the columns one after the other, and turn them into rows once."""
    import scipy.sparse as sp  # which a process that reads files does not load

    indices, data, counts = [], [], []
    for part in parts:
        if isinstance(part, NumberPart):
            rows = np.flatnonzero(part.values)
            data.append(part.filled(rows))
            counts.append(np.array([rows.size]))
        else:
            rows = np.flatnonzero(part.codes >= 0)
            codes = part.codes[rows]
            rows = rows[np.argsort(codes, kind="stable")]
            data.append(np.ones(rows.size))
            counts.append(np.bincount(codes, minlength=part.width))
        indices.append(rows)
    ends = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    stored = (np.concatenate(data), np.concatenate(indices), ends)
    return sp.csr_array(sp.csc_array(stored, shape=shape))
