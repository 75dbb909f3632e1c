"""How the columns of a table become the columns of a matrix, as a value that files can hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from privasso._documents import DocumentError, Fields
from privasso._types import Matrix, SparseMatrix
from privasso.encoding._columns import (
    Columns,
    LevelCode,
    Levels,
    NumberCode,
    Numbers,
    infinite_row,
)
from privasso.encoding._troubles import Trouble, Words, option_words, refusal

#: A matrix is sparse if at most this share of its entries is not zero, and it is not tiny.
_SPARSE_SHARE, _TINY = 0.2, 1 << 16
#: Codes of levels that have no column.
_REFERENCE, _UNKNOWN = -1, -2


@dataclass(frozen=True, repr=False)
class Encoding:
    """How the columns of a table become the columns of a matrix.

    `codes`: one for each column of the table that is used.
    """

    codes: tuple[NumberCode | LevelCode, ...]

    def __repr__(self) -> str:
        return f"<Encoding: {len(self.codes)} columns of a table, {len(self.names)} of a matrix>"

    def __post_init__(self) -> None:
        for what, names in (("the table", self.inputs), ("the matrix", self.names)):
            twice = [name for name, count in Counter(names).items() if count > 1]
            if twice:
                raise ValueError(
                    f"two columns of {what} would have the name {twice[0]!r}; rename the column or "
                    "the level that it comes from"
                )

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the columns of the table."""
        return tuple(code.name for code in self.codes)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the matrix."""
        return tuple(name for code in self.codes for name in code.outputs)

    @property
    def categorical(self) -> tuple[str, ...]:
        """Names of the columns of the table that are read as levels."""
        return tuple(code.name for code in self.codes if isinstance(code, LevelCode))

    @property
    def plain(self) -> bool:
        """Whether the matrix is the table as it is: numbers alone, and none of them filled in."""
        return all(isinstance(code, NumberCode) and code.fill is None for code in self.codes)

    def relative_to(self, references: Mapping[str, str]) -> Encoding:
        """The same with other references of columns of levels.

        >>> from privasso.encoding import LevelCode
        >>> one = Encoding((LevelCode("rx", ("Lev", "Obs"), "Lev"),))
        >>> one.relative_to({"rx": "Obs"}).names
        ('rx=Lev',)
        """
        codes = {code.name: code for code in self.codes}
        for column, level in references.items():
            code = codes.get(column)
            if not isinstance(code, LevelCode) or level not in code.levels:
                raise ValueError(
                    f"no column of levels {column!r} has the level {level!r}, which others are to "
                    "be compared with"
                )
            codes[column] = replace(code, reference=level)
        return Encoding(tuple(codes.values()))

    def matrix(
        self,
        table: Columns,
        *,
        unknown: Literal["error", "ignore"] = "error",
        words: Words = option_words,
        settles: str | None = None,
    ) -> Matrix:
        """Return the matrix of a table: dense, or sparse in CSR form where that is smaller.

        - `table`: columns with the names of `inputs`, in any order.
        - `unknown` ("error" or "ignore"): what becomes of a level that is not in the encoding. With
          ``"ignore"`` all columns of the variable are zero in that row, as for its reference.
        - `words`: how errors write options.
        - `settles`: what an error advises instead of options.
        """
        found = {column.name: column for column in table.columns}
        used = set(self.inputs)
        troubles = [one for one in table.troubles if one.column in used]
        troubled = {one.column for one in troubles}
        parts: list[Part] = []
        for code in self.codes:
            if code.name not in troubled:
                made = parts_of(code, found[code.name], unknown)
                if isinstance(made, Trouble):
                    troubles.append(made)
                else:
                    parts += made
        if troubles:
            raise refusal(troubles, words, fixed=True, settles=settles)
        if self.plain and table.block is not None and self.inputs == tuple(found):
            return table.block
        return assembled(parts, (table.n_rows, len(self.names)))

    def in_words(self, fill: str = "the mean") -> str | None:
        """Say what was done to columns that are not numbers, or not complete; None if nothing.

        `fill` says what replaces missing numbers.
        """
        said = []
        levels = [code for code in self.codes if isinstance(code, LevelCode)]
        if levels:
            shown = [f"{one.name!r} as {_levels_in_words(one)}" for one in levels]
            said.append(_few(shown))
        filled = [one for one in self.codes if isinstance(one, NumberCode) and one.fill is not None]
        for flagged, how in ((False, f"replaced by {fill}"), (True, "also marked by a column")):
            names = [repr(one.name) for one in filled if one.indicator == flagged]
            if names:
                said.append(f"missing values of {_few(names)} {how}")
        return "; ".join(said) or None

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        columns = [asdict(code) for code in self.codes]
        for one in columns:
            if "levels" in one:
                one["levels"] = list(one["levels"])
        return {"columns": columns}

    @classmethod
    def from_dict(cls, document: object) -> Encoding:
        """Build the encoding from plain values, each of which is checked."""
        fields = Fields(document, "the encoding")
        columns = fields.take("columns")
        fields.end()
        if not isinstance(columns, list) or not columns:
            raise DocumentError("columns of the encoding must be a list of objects")
        try:
            return cls(tuple(_code(one) for one in columns))
        except DocumentError:
            raise
        except ValueError as error:
            raise DocumentError(str(error)) from None


def _code(document: object) -> NumberCode | LevelCode:
    fields = Fields(document, "a column of the encoding")
    name = fields.text("name")
    code: NumberCode | LevelCode
    if "levels" in fields.names():
        levels = fields.texts("levels", distinct=True)
        if not levels or levels != sorted(levels):
            raise DocumentError("the levels of a column must be sorted, and at least one")
        reference = None if fields.is_null("reference") else fields.text("reference")
        code = LevelCode(name, tuple(levels), reference, fields.flag("missing"))
        if reference is not None and reference not in code.levels:
            raise DocumentError("the reference of a column must be one of its levels")
    else:
        fill = None if fields.is_null("fill") else fields.number("fill")
        code = NumberCode(name, fill, fields.flag("indicator"))
        if code.indicator and fill is None:
            raise DocumentError("a column with an indicator of missing values needs a fill")
    fields.end()
    return code


def _levels_in_words(code: LevelCode) -> str:
    if code.reference is None:
        return f"{len(code.levels)} level" + ("s" if len(code.levels) > 1 else "")
    if len(code.levels) == 1:
        return "1 level" + (" and missing values" if code.missing else " (no column)")
    also = " and missing values" if code.missing else ""
    return f"{len(code.levels)} levels{also} (relative to {code.reference!r})"


def _few(words: list[str], most: int = 8) -> str:
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more


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
    match code, column:
        case LevelCode(), Levels():
            return _levels(code, column, unknown)
        case NumberCode(), Numbers():
            return _numbers(code, column)
    return Trouble(code.name, "text")


def _numbers(code: NumberCode, column: Numbers) -> list[Part] | Trouble:
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
