"""Columns of Parquet and Arrow files, read with polars apart from the process that uses them.

Each function answers a request, see `privasso._apart`. It names the format and the file.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, BinaryIO

from privasso._apart import Message, limit_memory, say
from privasso._files import open_regular
from privasso.encoding._columns import Numbers, read_series
from privasso.encoding._frames import read_declared, read_labels
from privasso.encoding._troubles import Trouble

if TYPE_CHECKING:
    import polars as pl

#: Columns read at a time where the format allows it: what is held twice stays small.
_TOGETHER = 16


def file_schema(request: Message, answers: BinaryIO) -> None:
    """Names of all columns, and which are of the type "number" or "text"."""
    types = _schema(request)
    known = {name: kind for name, kind in types.items() if kind is not None}
    say(answers, names=list(types), types=known)


def file_rows(request: Message, answers: BinaryIO) -> None:
    """Number of rows of the first column, which is read: damaged files may state any number."""
    say(answers, rows=_frame(request, list(_schema(request))[:1]).height)


def file_columns(request: Message, answers: BinaryIO) -> None:
    """Columns: the number of rows, then for each a line followed by its numbers as float64.

    Or by the codes of its levels as int32, where the line has `levels`; or by nothing, where the
    line says what is wrong. The request may say which are read as levels whatever they hold
    (`categorical`), and that the last one holds the `labels`. With `levels` cells are read as
    declared, see `read_declared`, and labels always are, as two `classes` if these are named.
    """
    names, levels = request["columns"], request["levels"]
    labels, categorical = names[-1] if request["labels"] else None, set(request["categorical"])
    n_rows: int | None = None
    for part, frame in _frames(request):
        if n_rows is None:
            n_rows = frame.height
            say(answers, rows=n_rows)
        elif frame.height != n_rows:
            raise ValueError("columns of different lengths")
        for name in part:
            # Taken out of the frame, so that its memory goes as its numbers leave.
            series = frame.drop_in_place(name)
            if name == labels:
                column = read_labels(series, request["classes"])
            elif levels is None:
                column = read_series(series, as_levels=name in categorical)
            else:
                column = read_declared(series, levels.get(name))
            if isinstance(column, Trouble):
                say(answers, wrong=column.kind, row=column.row, count=column.count)
            elif isinstance(column, Numbers):
                say(answers, bytes=column.values.nbytes)
                answers.write(column.values.data)
            else:
                say(answers, bytes=column.codes.nbytes, levels=column.levels)
                answers.write(column.codes.data)


def _frames(request: Message) -> Iterator[tuple[list[str], pl.DataFrame]]:
    """Read columns a few together, the next ones while the last ones are used."""
    names = request["columns"]
    parts = [names[start : start + _TOGETHER] for start in range(0, len(names), _TOGETHER)]
    with ThreadPoolExecutor(1) as ahead:
        coming = ahead.submit(_frame, request, parts[0])
        for part, following in zip(parts, [*parts[1:], None], strict=True):
            frame = coming.result()
            if following is not None:
                coming = ahead.submit(_frame, request, following)
            yield part, frame


def _schema(request: Message) -> dict[str, str | None]:
    """Names of the columns, and "number" or "text" where the type is such."""
    import polars as pl

    _limit(request["path"])
    read = pl.read_parquet_schema if request["form"] == "parquet" else pl.read_ipc_schema
    with open_regular(request["path"]) as file:
        schema = read(file)
    texts = (pl.String, pl.Categorical, pl.Enum)
    return {
        name: "number"
        if dtype.is_numeric() or dtype == pl.Boolean
        else "text"
        if dtype in texts
        else None
        for name, dtype in schema.items()
    }


def _frame(request: Message, names: list[str]) -> pl.DataFrame:
    """Read columns; the file is opened here, so that its name means no pattern and no address."""
    import polars as pl

    _limit(request["path"])
    with open_regular(request["path"]) as file:
        if request["form"] == "parquet":
            return pl.read_parquet(file, columns=names, hive_partitioning=False)
        return pl.read_ipc(file, columns=names)


def _limit(path: str) -> None:
    """The memory of the machine, without the file itself, which may be mapped as a whole."""
    with contextlib.suppress(AttributeError, ValueError, OSError):
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        limit_memory(memory + os.stat(path).st_size)
