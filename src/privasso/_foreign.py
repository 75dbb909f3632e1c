"""What is read with pyarrow and h5py, apart from the process that uses it: see `_apart`."""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
from collections.abc import Callable, Iterator
from functools import partial, wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from privasso._apart import Answer, Message, limit_memory, say
from privasso._files import check_regular, open_regular
from privasso._types import Foreign

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

#: Bytes that are read ahead per column of a Parquet file, and columns that are decoded together.
_AHEAD, _TOGETHER = 1 << 16, 8
#: Bytes of memory that a file may take, and those for each of its bytes.
_ROOM, _PER_BYTE = 10**9, 32
#: Attributes of AnnData that are used.
_ATTRIBUTES = ("encoding-type", "shape", "_index")
#: Seconds after which a library is thought to hang, and bytes that take a further one.
_PATIENCE, _PER_SECOND = 15, 10**6


def _bounded(library: str) -> Callable[[Answer], Answer]:
    """Bound time and memory by the size of the file; a library may hang where Python is not asked.

    Memory is what the process takes now, and room that grows with the file. To load the library
    takes as long as the machine is busy, and does not count.
    """

    def bounded(does: Answer) -> Answer:
        @wraps(does)
        def answer(request: Message, answers: BinaryIO) -> None:
            import_module(library)
            size = os.stat(request["path"]).st_size
            with contextlib.suppress(OSError, ValueError):
                pages = int(Path("/proc/self/statm").read_text().split()[0])
                limit_memory(pages * os.sysconf("SC_PAGE_SIZE") + _ROOM + _PER_BYTE * size)
            alarm: Callable[[int], object] = getattr(signal, "alarm", lambda seconds: None)
            alarm(_PATIENCE + size // _PER_SECOND)
            try:
                does(request, answers)
            finally:
                alarm(0)  # the caller may be busy for longer

        return answer

    return bounded


@_bounded("pyarrow.parquet")
def schema(request: Message, answers: BinaryIO) -> None:
    """Names of the columns of a Parquet or Arrow file, their types, and its groups of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _opened(request["path"]) as file:
        if request["form"] == "parquet":
            with pq.ParquetFile(file) as opened:
                schema, meta = opened.schema_arrow, opened.metadata
                groups = [_encoded(meta.row_group(k)) for k in range(meta.num_row_groups)]
        else:
            opened = pa.ipc.open_file(file)
            schema = opened.schema
            groups = [(_batch(opened, k).num_rows, None) for k in range(opened.num_record_batches)]
    say(answers, names=schema.names, types=[_kind(field.type) for field in schema], groups=groups)


def _opened(path: str) -> pa.OSFile:
    """A regular file, which pyarrow reads faster than one that Python has opened."""
    import pyarrow as pa

    check_regular(path)
    return pa.OSFile(path)


def _kind(dtype: pa.DataType) -> str:
    """What a type is: integer, single, double, flag or other."""
    import pyarrow as pa

    if pa.types.is_integer(dtype):
        return "integer"
    if pa.types.is_floating(dtype):
        return "single" if dtype == pa.float32() else "double"
    return "flag" if pa.types.is_boolean(dtype) else "other"


def _encoded(group: pq.RowGroupMetaData) -> tuple[int, int]:
    """Rows, and bytes that its columns hold while they are read: pages, and dictionaries twice."""
    size = group.total_byte_size + group.total_byte_size // 2
    if group.num_columns and group.column(0).compression != "UNCOMPRESSED":
        size += group.total_byte_size
    return group.num_rows, size


def _batch(opened: pa.RecordBatchFileReader, k: int) -> pa.RecordBatch:
    """A record batch whose buffers are as long as it says."""
    batch = opened.get_batch(k)
    batch.validate()
    return batch


class _Reading:
    """What is left to read of the rows that were asked for last, and the memory where they go."""

    pieces: Iterator[tuple[int, Callable[[np.ndarray], None]]] = iter(())
    shared: mmap.mmap | None = None


@_bounded("pyarrow.parquet")
def rows(request: Message, answers: BinaryIO) -> None:
    """The next numbers of some columns, column by column, in shared memory or after the answer."""
    if not request.get("more"):
        _Reading.pieces = _pieces(request)
    count, write = next(_Reading.pieces, (0, _nothing))
    numbers = _room(request, count)
    write(numbers)
    say(answers, rows=count)
    if request["memory"] is None:
        answers.write(numbers.data)


def _nothing(numbers: np.ndarray) -> None:
    pass


def _room(request: Message, rows: int) -> np.ndarray:
    """An array for some rows of all columns: a line for each column."""
    shape, memory, at = (len(request["columns"]), rows), request["memory"], request["at"]
    if memory is None:
        return np.empty(shape)
    if rows > request["step"]:
        raise ValueError("more rows than there is room for")
    if _Reading.shared is None or len(_Reading.shared) < os.fstat(memory).st_size:
        _Reading.shared = mmap.mmap(memory, 0)
    count = shape[0] * rows
    return np.frombuffer(_Reading.shared, count=count, offset=at).reshape(shape)


def _pieces(request: Message) -> Iterator[tuple[int, Callable[[np.ndarray], None]]]:
    """Numbers of rows, at most as many as asked for, and what writes them to an array."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names, group, step = request["columns"], request["group"], request["step"]
    with _opened(request["path"]) as file:
        if request["form"] == "arrow":
            whole = _batch(pa.ipc.open_file(file), group).select(names)
            for start in range(0, whole.num_rows, step):
                batch = whole.slice(start, step)
                yield batch.num_rows, partial(_write, batch, names)
            return
        with pq.ParquetFile(file, buffer_size=_AHEAD, pre_buffer=False) as opened:
            groups = range(opened.num_row_groups) if group is None else [group]
            if not request["whole"]:
                for batch in opened.iter_batches(step, groups, names, use_threads=False):
                    yield batch.num_rows, partial(_write, batch, names)
                return

            def decode(numbers: np.ndarray) -> None:
                for start in range(0, len(names), _TOGETHER):
                    some = names[start : start + _TOGETHER]
                    block = opened.read_row_group(group, columns=some, use_threads=False)
                    _write(block, some, numbers[start : start + len(some)])

            rows = opened.metadata.row_group(group).num_rows
            if rows <= step:
                yield rows, decode
                return
            numbers = np.empty((len(names), rows))
            decode(numbers)
            for start in range(0, rows, step):
                part = numbers[:, start : start + step]
                yield part.shape[1], partial(_copy, part)


def _copy(part: np.ndarray, numbers: np.ndarray) -> None:
    numbers[:] = part


def _write(batch: pa.RecordBatch | pa.Table, names: list[str], numbers: np.ndarray) -> None:
    """Columns as float64; a missing number is NaN."""
    import pyarrow as pa

    for line, name in zip(numbers, names, strict=True):
        column = batch.column(name)
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.uint8())
        chunked = isinstance(column, pa.ChunkedArray)
        line[:] = column.to_numpy() if chunked else column.to_numpy(zero_copy_only=False)


@_bounded("h5py")
def about(request: Message, answers: BinaryIO) -> None:
    """What an HDF5 file holds under a name."""
    import h5py

    with open_regular(request["path"]) as file, h5py.File(file, "r") as opened:
        found = _held(opened, request["name"])
        if found is None:
            say(answers, kind=None)
            return
        known = {name: found.attrs[name] for name in _ATTRIBUTES if name in found.attrs}
        attrs = {name: _plain(value) for name, value in known.items()}
        if isinstance(found, h5py.Group):
            say(answers, kind="group", attrs=attrs)
        else:
            say(answers, kind="data", attrs=attrs, shape=found.shape, type=found.dtype.str)


@_bounded("h5py")
def data(request: Message, answers: BinaryIO) -> None:
    """Some lines of numbers or texts that an HDF5 file holds under a name."""
    import h5py

    rows = slice(request["start"], request["stop"])
    with open_regular(request["path"]) as file, h5py.File(file, "r") as opened:
        found = _held(opened, request["name"])
        if request["text"]:
            say(answers, texts=list(found.asstr()[rows]))
            return
        numbers = np.ascontiguousarray(found[rows])
    if numbers.dtype.kind not in "fiub":
        raise TypeError("no numbers")
    say(answers, bytes=numbers.nbytes)
    answers.write(numbers.data)


def _held(opened: Foreign, name: str) -> Any:
    """What the file itself holds under a name: no link to others is followed."""
    import h5py

    found = opened
    for part in name.split("/"):
        link = found.get(part, getlink=True)
        if link is None:
            return None
        if not isinstance(link, h5py.HardLink):
            raise ValueError("a link")
        found = found[part]
        data = isinstance(found, h5py.Dataset)
        if data and (found.external or found.is_virtual):
            raise ValueError("data of another file")
    return found


def _plain(value: object) -> object:
    """An attribute as JSON has it: text, or a few numbers."""
    if isinstance(value, (str, bytes)):
        return value if isinstance(value, str) else value.decode()
    return [int(k) for k in np.asarray(value).reshape(-1)[:2]]
