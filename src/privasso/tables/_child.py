"""The program that reads data files with polars, run apart from the one that uses the numbers.

A damaged file can make polars abort the process it runs in, or exhaust its memory, and the
messages of polars quote cells. This program takes requests, one line of JSON each, and answers with
numbers and with facts that `_reader` puts into words; nothing that polars says leaves it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    import polars as pl

#: Columns read at a time where the format allows it: what is held twice stays small.
_TOGETHER = 16
#: Rows of a CSV file from which the types of its columns are guessed; if the guess is wrong,
#: all of them are looked at.
_GUESSED_FROM = 10_000


def serve(
    requests: BinaryIO, answers: BinaryIO, prepare: Callable[[str], None] = lambda path: None
) -> None:
    r"""Answer requests until there are no more, or one fails in a way that polars may not survive.

    A request names the format, the file, and the columns to read; without columns it asks for the
    names of all columns, which CSV files are not asked for. An answer is a line of JSON, followed
    by the numbers of the columns as float64 one after the other, each announced by a line. Before
    a file is read, `prepare` is called with its path.

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
    form, path, names = request["format"], request["path"], request.get("columns")
    if names is None:
        _say(answers, names=_schema(form, path))
        return
    n_rows: int | None = None
    for part, frame in _frames(form, path, names):
        if n_rows is None:
            n_rows = frame.height
            _say(answers, rows=n_rows)
        elif frame.height != n_rows:
            raise ValueError("columns of different lengths")
        for name in part:
            # Taken out of the frame, so that its memory goes as its numbers leave.
            series = frame.drop_in_place(name)
            trouble = what_is_wrong(series)
            if trouble is not None:
                _say(answers, **trouble)
                return
            numbers = _numbers(series)
            _say(answers, bytes=numbers.nbytes)
            answers.write(numbers)


def what_is_wrong(series: pl.Series) -> dict[str, object] | None:
    """Why the values of a column are not all numbers, and in which row first; None if they are.

    >>> import polars as pl
    >>> what_is_wrong(pl.Series(["1", "two"]))
    {'wrong': 'text', 'row': 1}
    """
    import polars as pl

    dtype = series.dtype
    if dtype.is_numeric() or dtype == pl.Boolean:
        if series.null_count():
            return {"wrong": "missing", "row": _first(series.is_null())}
        return None
    if series.null_count() == len(series):
        return {"wrong": "missing", "row": 0}
    if dtype == pl.String:
        bad = series.is_not_null() & series.cast(pl.Float64, strict=False).is_null()
        return {"wrong": "text", "row": _first(bad) if bad.any() else None}
    if dtype in (pl.Categorical, pl.Enum):
        return {"wrong": "text", "row": None}
    return {"wrong": "dates or times" if dtype.is_temporal() else "values", "row": None}


def _frames(form: str, path: str, names: list[str]) -> Iterator[tuple[list[str], pl.DataFrame]]:
    """Read columns a few together, the next ones while the last ones are used.

    The columns of a text file are read all together, because that is one reading of the text.
    """
    step = len(names) if form in ("csv", "tsv") else _TOGETHER
    parts = [names[start : start + step] for start in range(0, len(names), step)]
    with ThreadPoolExecutor(1) as ahead:
        coming = ahead.submit(_frame, form, path, parts[0])
        for part, following in zip(parts, [*parts[1:], None], strict=True):
            frame = coming.result()
            if following is not None:
                coming = ahead.submit(_frame, form, path, following)
            yield part, frame


def _schema(form: str, path: str) -> list[str]:
    import polars as pl

    with open(path, "rb") as file:
        return list((pl.read_parquet_schema if form == "parquet" else pl.read_ipc_schema)(file))


def _frame(form: str, path: str, names: list[str]) -> pl.DataFrame:
    """Read columns; the file is opened here, so that its name means no pattern and no address."""
    import polars as pl

    def text(rows: int | None) -> pl.DataFrame:
        with open(path, "rb") as file:
            separator = "\t" if form == "tsv" else ","
            return pl.read_csv(file, columns=names, separator=separator, infer_schema_length=rows)

    if form in ("csv", "tsv"):
        try:
            return text(_GUESSED_FROM)
        except pl.exceptions.ComputeError:
            return text(None)
    with open(path, "rb") as file:
        if form == "parquet":
            return pl.read_parquet(file, columns=names, hive_partitioning=False)
        return pl.read_ipc(file, columns=names)


def _numbers(series: pl.Series) -> Any:
    import numpy as np
    import polars as pl

    return np.ascontiguousarray(series.cast(pl.Float64).to_numpy())


def _first(mask: pl.Series) -> int:
    return int(mask.arg_max() or 0)


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
