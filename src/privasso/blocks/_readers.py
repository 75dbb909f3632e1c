"""Processes in which other libraries read files, each used by one thread at a time."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np

from privasso._apart import Message, Reader, ReadFailedError
from privasso._text import escaped

#: Processes that have nothing to do, by the process that started them: a fork must not use them.
_IDLE: dict[int, list[Reader]] = {}
_ENVIRONMENT = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # others ask for far more memory than they use
    "HDF5_PLUGIN_PRELOAD": "::",  # no code that a file names
    "OPENBLAS_NUM_THREADS": "1",
}


def needed(library: str, extra: str) -> None:
    """Refuse to read without the library, and say what to install.

    >>> needed("no_such_library", "dask")
    Traceback (most recent call last):
    ...
    ValueError: reading this file needs no_such_library; install privasso[dask]
    """
    if find_spec(library) is None:
        raise ValueError(f"reading this file needs {library}; install privasso[{extra}]")


@contextlib.contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[Reader]:
    """A process to ask about a file, all of whose answers are taken; one sentence if it fails."""
    idle, reader = _IDLE.setdefault(os.getpid(), []), None
    with contextlib.suppress(IndexError):
        while reader is None or not reader.runs:  # one may have been interrupted with its caller
            reader = idle.pop()
    if reader is None or not reader.runs:
        reader = Reader("privasso._foreign", **_ENVIRONMENT)
    try:
        yield reader
    except ReadFailedError:
        raise ValueError(
            f"{escaped(path)} cannot be read: it is damaged, of another kind, or too large for "
            "this machine"
        ) from None
    except BaseException:
        reader.close()
        raise
    finally:
        if reader.alive:
            idle.append(reader)


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
    request: Message = {"form": form, "columns": columns, "step": step, "group": group}
    request.update(path=os.path.abspath(path), whole=whole)
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
        rows = reader.ask(do="rows", memory=None, at=0, **request)["rows"]
        numbers = np.empty((count, rows))
        if rows:
            reader.numbers(numbers)
        return numbers, rows
    at, span = reader.room(8 * count * request["step"])
    rows = reader.ask(do="rows", memory=reader.memory, at=at, **request)["rows"]
    if not 0 <= rows <= request["step"]:
        raise ReadFailedError
    return np.frombuffer(span, count=count * rows).reshape(count, rows), rows
