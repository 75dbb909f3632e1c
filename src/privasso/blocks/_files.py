"""Tables in several Parquet or Arrow files, read some rows at a time."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from privasso import _foreign
from privasso._apart import Message, Reader, ReadFailedError, reading
from privasso._files import check_regular
from privasso._text import escaped
from privasso.blocks._part import Chunk, DataChangedError, Local, Part
from privasso.blocks._row_blocks import RowBlocks

#: Entries that are read at a time.
_CHUNK = 1 << 21
_PARQUET, _ARROW = (".parquet", ".pq"), (".arrow", ".feather", ".ipc")


@dataclass(frozen=True)
class Stamp:
    """A file, which is recognised by its size and time of change."""

    path: str
    size: int
    changed: int

    @staticmethod
    def of(path: str) -> Stamp:
        """That of a file as it is now."""
        found = os.stat(path)
        return Stamp(path, found.st_size, found.st_mtime_ns)

    def check(self) -> None:
        """Refuse a file that is not what it was."""
        try:
            same = Stamp.of(self.path) == self
        except FileNotFoundError:
            same = False
        if not same:
            raise self.error()

    def error(self) -> DataChangedError:
        """What is said of such a file."""
        return DataChangedError(
            f"{escaped(self.path)} changed or vanished while it was being read, so nothing was "
            "released; fit again when the files are complete"
        )


@dataclass(frozen=True, eq=False)
class FilePart(Part):
    """One row group of a Parquet file, or one record batch of an Arrow file.

    To read some rows of a row group, Parquet holds what these rows are encoded in, of every
    column: with dictionaries and compression often more than all its numbers take. Then its
    columns are decoded some at a time, and all its numbers are held.

    Attributes
    ----------
    held : int
        Bytes that reading holds beside a chunk.
    whole : bool
        Whether all numbers of a row group are held.
    """

    path: str
    stamp: Stamp
    group: int
    rows: int
    columns: tuple[str, ...] = field(repr=False)
    target: str
    entries: int = _CHUNK
    fill: tuple[float, ...] | None = field(default=None, repr=False)
    held: int = 0
    whole: bool = False

    def chunks(self) -> Iterator[Chunk]:
        """Read the rows, a bounded number of entries at a time."""
        self.stamp.check()
        step, wanted = max(1, self.entries // (len(self.columns) + 1)), [*self.columns, self.target]
        form, left = _kind(self.path), self.rows
        for numbers in rows_of(
            self.path, form, wanted, step=step, group=self.group, whole=self.whole
        ):
            X, left = numbers[:-1], left - numbers.shape[1]
            if self.fill is not None:
                for column, value in zip(X, self.fill, strict=True):
                    column[np.isnan(column)] = value
            yield X.T, numbers[-1]
        self.stamp.check()
        if left:
            raise ValueError(f"{escaped(self.path)} is damaged: it has other rows than it says")

    def select(self, columns: np.ndarray) -> FilePart:
        """Only these columns are read."""
        fill = None if self.fill is None else tuple(self.fill[j] for j in columns)
        return replace(self, columns=tuple(self.columns[j] for j in columns), fill=fill)


@dataclass(frozen=True)
class _Group:
    """The rows of a row group or record batch, and the bytes in which Parquet encodes them."""

    rows: int
    encoded: int | None = None

    def held(self, n_columns: int) -> tuple[int, bool]:
        """Bytes that reading it holds, and whether all its numbers are held for that."""
        numbers = 8 * self.rows * n_columns
        if self.encoded is None or self.encoded <= numbers:
            return self.encoded or numbers, False
        return numbers, True


def open_files(
    paths: Sequence[str | Path],
    target: str,
    *,
    features: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    jobs: int | None = None,
    entries: int = _CHUNK,
    fill: Mapping[str, float] | None = None,
) -> RowBlocks:
    """Open Parquet or Arrow files with the same columns as one table; no row is read yet.

    Parameters
    ----------
    paths : sequence of str or Path
        The files. Their order does not matter for a fit.
    target : str
        The column of labels.
    features : sequence of str, optional
        The covariates; by default all other columns.
    exclude : sequence of str
        Columns that are left out.
    jobs : int, optional
        Threads that read them.
    entries : int
        Entries that each thread reads at a time.
    fill : mapping of str to float, optional
        What stands for missing values of each covariate; by default a fit of private records takes
        the middle of the bounds, and one with public covariates refuses these.
    """
    if not paths:
        raise ValueError("there are no files to read")
    columns: tuple[str, ...] | None = None
    parts: list[FilePart] = []
    for path in sorted({str(path) for path in paths}):
        stamp = Stamp.of(path)
        types, groups = schema_of(path, _kind(path))
        if columns is None:
            columns = _covariates(path, types, target, features, exclude)
        _check_types(path, types, (*columns, target))
        for k, group in enumerate(groups):
            held, whole = group.held(len(columns) + 1)
            part = FilePart(path, stamp, k, group.rows, columns, target, entries, None, held, whole)
            parts += [part] if group.rows else []
    assert columns is not None
    if fill is not None:
        values = tuple(fill[name] for name in columns)
        parts = [replace(part, fill=values) for part in parts]
    if not parts:
        raise ValueError("the files have no rows")
    shape = sum(part.rows for part in parts), len(columns)
    return RowBlocks(shape, Local(parts, jobs), columns, target)


def _kind(path: str) -> str:
    ending = Path(path).suffix.lower()
    if ending in _PARQUET:
        return "parquet"
    if ending in _ARROW:
        return "arrow"
    raise ValueError(
        f"{escaped(path)}: only Parquet and Arrow files can be read in blocks "
        f"({', '.join((*_PARQUET, *_ARROW))})"
    )


def needed(library: str, extra: str) -> None:
    """Refuse to read without the library, and say what to install."""
    if find_spec(library) is None:
        raise ValueError(f"reading this file needs {library}; install privasso[{extra}]")


def schema_of(path: str, form: str) -> tuple[dict[str, str], list[_Group]]:
    """The columns with their types, and each row group or record batch."""
    needed("pyarrow", "dask")
    check_regular(path)
    with reading(path) as reader:
        answer = reader.ask(_foreign.schema, path, form=form)
    types = dict(zip(answer["names"], answer["types"], strict=True))
    if len(types) < len(answer["names"]):
        raise ValueError(f"{escaped(path)} has two columns of the same name; rename one of them")
    return types, [_Group(*group) for group in answer["groups"]]


def _covariates(
    path: str,
    types: Collection[str],
    target: str,
    features: Sequence[str] | None,
    exclude: Sequence[str],
) -> tuple[str, ...]:
    known = list(types)
    for name in (target, *(features or ()), *exclude):
        if name not in known:
            raise ValueError(f"{escaped(path)} has no column {name!r}")
    wanted = known if features is None else features
    found = tuple(name for name in wanted if name != target and name not in exclude)
    if not found:
        raise ValueError("there are no covariates")
    return found


def _check_types(path: str, types: Mapping[str, str], wanted: Sequence[str]) -> None:
    for name in wanted:
        if name not in types:
            raise ValueError(f"{escaped(path)} has no column {name!r}, which other files have")
        if types[name] == "other":
            raise ValueError(
                f"column {name!r} of {escaped(path)} does not hold numbers by its type; blocks of "
                "rows take numbers only, so encode it first or leave it out"
            )


def rows_of(
    path: str,
    form: str,
    columns: list[str],
    *,
    step: int,
    group: int | None = None,
    whole: bool = False,
) -> Iterator[np.ndarray]:
    """Numbers of columns of a Parquet or Arrow file, one line for each, `step` rows at a time.

    Of one row group or batch, or of all; `whole` decodes a row group before its first rows.
    """
    request: Message = {"path": path, "form": form, "columns": columns, "step": step}
    request |= {"group": group, "whole": whole}
    with reading(path) as reader:
        while True:
            numbers, rows = _next_rows(reader, request)
            if not rows:
                return
            yield numbers
            request["more"] = True


def _next_rows(reader: Reader, request: Message) -> tuple[np.ndarray, int]:
    """The next rows, in memory that both processes share, and their number."""
    count = len(request["columns"])
    if reader.memory is None:
        rows = reader.ask(_foreign.rows, memory=None, at=0, **request)["rows"]
        numbers = np.empty((count, rows))
        if rows:
            reader.numbers(numbers)
        return numbers, rows
    at, span = reader.room(8 * count * request["step"])
    rows = reader.ask(_foreign.rows, memory=reader.memory, at=at, **request)["rows"]
    if not 0 <= rows <= request["step"]:
        raise ReadFailedError
    return np.frombuffer(span, count=count * rows).reshape(count, rows), rows
