"""The program that reads data files with polars, run apart from the one that uses the numbers."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, BinaryIO

from privasso._apart import Message, limit_memory, say, serve_pipes
from privasso._files import open_regular
from privasso.encoding import Numbers, Trouble, read_declared, read_labels, read_series

if TYPE_CHECKING:
    import polars as pl

#: Columns read at a time where the format allows it: what is held twice stays small.
_TOGETHER = 16


def answer(request: Message, answers: BinaryIO) -> None:
    """Answer a request.

    A request names the format, the file, and the columns to read; without columns it asks for the
    names and types of all columns, or with `count` for the number of rows. Of the columns it may
    say which are read as levels whatever they hold (`categorical`), and that the last one holds the
    labels (`labels`). With `levels` cells are read as declared, see `read_declared`, and labels
    always are, as two `classes` if these are named.

    An answer is a line of JSON with the number of rows, then for each column a line followed by
    its numbers as float64; or by the codes of its levels as int32, where the line has `levels`; or
    by nothing, where the line says what is wrong.
    """
    names = request.get("columns")
    if request.get("count"):
        say(answers, rows=_count(request))
        return
    if names is None:
        types = _schema(request["format"], request["path"])
        known = {name: kind for name, kind in types.items() if kind is not None}
        say(answers, names=list(types), types=known)
        return
    levels = request.get("levels")
    labels = names[-1] if request.get("labels") else None
    categorical = set(request.get("categorical", ()))
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
                column = read_labels(series, request.get("classes"))
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
        coming = ahead.submit(_frame, request["format"], request["path"], parts[0])
        for part, following in zip(parts, [*parts[1:], None], strict=True):
            frame = coming.result()
            if following is not None:
                coming = ahead.submit(_frame, request["format"], request["path"], following)
            yield part, frame


def _schema(form: str, path: str) -> dict[str, str | None]:
    """Names of the columns, and "number" or "text" where the type is such."""
    import polars as pl

    with open_regular(path) as file:
        schema = (pl.read_parquet_schema if form == "parquet" else pl.read_ipc_schema)(file)
    texts = (pl.String, pl.Categorical, pl.Enum)
    return {
        name: "number"
        if dtype.is_numeric() or dtype == pl.Boolean
        else "text"
        if dtype in texts
        else None
        for name, dtype in schema.items()
    }


def _count(request: Message) -> int:
    """Number of rows of the first column, which is read: damaged files may state any number."""
    form, path = request["format"], request["path"]
    return _frame(form, path, list(_schema(form, path))[:1]).height


def _frame(form: str, path: str, names: list[str]) -> pl.DataFrame:
    """Read columns; the file is opened here, so that its name means no pattern and no address."""
    import polars as pl

    with open_regular(path) as file:
        if form == "parquet":
            return pl.read_parquet(file, columns=names, hive_partitioning=False)
        return pl.read_ipc(file, columns=names)


def _prepare(path: str) -> None:
    """The memory of the machine, without the file itself, which may be mapped as a whole."""
    with contextlib.suppress(AttributeError, ValueError, OSError):
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        limit_memory(memory + os.stat(path).st_size)


def main() -> None:
    """Answer requests from standard input on standard output."""
    import numpy  # noqa: F401  (what is missing is noticed before anything is asked)
    import polars  # noqa: F401

    serve_pipes(answer, _prepare)
