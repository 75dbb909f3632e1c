"""The program that reads data files with polars, run apart from the one that uses the numbers.

A damaged file can make polars abort the process it runs in, or exhaust its memory, and the
messages of polars quote cells. This program takes requests, one line of JSON each, and answers with
numbers, levels and facts that others put into words; nothing that polars says leaves it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, BinaryIO

from privasso.encoding import Numbers, Trouble, read_declared, read_series

if TYPE_CHECKING:
    import polars as pl

#: Columns read at a time where the format allows it: what is held twice stays small.
_TOGETHER = 16


def serve(
    requests: BinaryIO, answers: BinaryIO, prepare: Callable[[str], None] = lambda path: None
) -> None:
    r"""Answer requests until there are no more, or one fails in a way that polars may not survive.

    A request names the format, the file, and the columns to read; without columns it asks for the
    names and types of all columns, or with `count` for the number of rows. Of the columns it may
    say which are read as levels whatever they hold (`categorical`), and that the last one holds the
    labels (`labels`). With `levels` cells are read as declared, see `read_declared`, and labels
    always are.

    An answer is a line of JSON with the number of rows, then for each column a line followed by
    its numbers as float64; or by the codes of its levels as int32, where the line has `levels`; or
    by nothing, where the line says what is wrong. Before a file is read, `prepare` is called with
    its path.

    Examples
    --------
    >>> import io
    >>> answers = io.BytesIO()
    >>> serve(io.BytesIO(b'{"format": "parquet", "path": "nowhere"}\n'), answers)
    >>> answers.getvalue()
    b'{"failed": "file"}\n'
    """
    for line in requests:
        try:
            request = json.loads(line)
            prepare(request["path"])
            _answer(request, answers)
            answers.flush()
        except (KeyboardInterrupt, BrokenPipeError):
            return
        except Exception:
            _say(answers, failed="file")
            answers.flush()
        except BaseException:  # a panic of polars, after which it may no longer be sound
            _say(answers, failed="process")
            answers.flush()
            return


def _answer(request: dict[str, Any], answers: BinaryIO) -> None:
    names = request.get("columns")
    if request.get("count"):
        _say(answers, rows=_count(request))
        return
    if names is None:
        types = _schema(request["format"], request["path"])
        known = {name: kind for name, kind in types.items() if kind is not None}
        _say(answers, names=list(types), types=known)
        return
    levels = request.get("levels")
    labels = names[-1] if request.get("labels") else None
    categorical = set(request.get("categorical", ()))
    n_rows: int | None = None
    for part, frame in _frames(request):
        if n_rows is None:
            n_rows = frame.height
            _say(answers, rows=n_rows)
        elif frame.height != n_rows:
            raise ValueError("columns of different lengths")
        for name in part:
            # Taken out of the frame, so that its memory goes as its numbers leave.
            series = frame.drop_in_place(name)
            if name == labels:
                column = read_declared(series, None)
            elif levels is None:
                column = read_series(series, as_levels=name in categorical)
            else:
                column = read_declared(series, levels.get(name))
            if isinstance(column, Trouble):
                _say(answers, wrong=column.kind, row=column.row, count=column.count)
            elif isinstance(column, Numbers):
                _say(answers, bytes=column.values.nbytes)
                answers.write(column.values.data)
            else:
                _say(answers, bytes=column.codes.nbytes, levels=column.levels)
                answers.write(column.codes.data)


def _frames(request: dict[str, Any]) -> Iterator[tuple[list[str], pl.DataFrame]]:
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

    with open(path, "rb") as file:
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


def _count(request: dict[str, Any]) -> int:
    """Number of rows of the first column, which is read: damaged files may state any number."""
    form, path = request["format"], request["path"]
    return _frame(form, path, list(_schema(form, path))[:1]).height


def _frame(form: str, path: str, names: list[str]) -> pl.DataFrame:
    """Read columns; the file is opened here, so that its name means no pattern and no address."""
    import polars as pl

    with open(path, "rb") as file:
        if form == "parquet":
            return pl.read_parquet(file, columns=names, hive_partitioning=False)
        return pl.read_ipc(file, columns=names)


def _say(answers: BinaryIO, **facts: object) -> None:
    answers.write(json.dumps(facts).encode("utf-8") + b"\n")


def _limit_memory(path: str) -> None:
    """Let a file that asks for more memory than there is end this process and no other.

    The file itself is not counted, because it may be mapped into memory as a whole.
    """
    with contextlib.suppress(ImportError, AttributeError, ValueError, OSError):
        import resource

        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (memory + os.stat(path).st_size, most))


def main() -> None:
    """Answer requests from standard input on standard output, after a word of readiness."""
    import numpy  # noqa: F401  (what is missing is noticed before anything is asked)
    import polars  # noqa: F401

    _say(sys.stdout.buffer, ready=True)
    sys.stdout.buffer.flush()
    serve(sys.stdin.buffer, sys.stdout.buffer, _limit_memory)
