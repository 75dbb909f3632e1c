"""Tables of single cells in .h5ad files of AnnData, which h5py reads in a process of its own."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from privasso import _foreign
from privasso._apart import Message, Reader, ReadFailedError, reading
from privasso._files import check_regular
from privasso._text import escaped
from privasso._types import Foreign, SparseMatrix
from privasso.blocks._files import needed

#: Entries that are read at a time.
_CHUNK = 1 << 22
#: Bytes that the arrays of a file may take, and those for each of its bytes: they are compressed.
_ROOM, _PER_BYTE = 5 * 10**8, 32


def read_cells(
    path: Path, target: str | None, layer: str | None
) -> tuple[SparseMatrix, tuple[str, ...], np.ndarray | None]:
    """The matrix, the names of its columns, and a column of `obs` as labels."""
    needed("h5py", "cells")
    check_regular(path)
    with reading(path) as reader:
        file = _File(reader, path)
        where = "X" if layer is None else f"layers/{layer}"
        if file.held(where) is None:
            raise ValueError(f"{escaped(path)} has no matrix {where}")
        matrix = _matrix(file, where)
        m, n = matrix.shape
        names = file.texts(f"var/{file.attribute('var', '_index')}")
        cells = file.array(f"obs/{file.attribute('obs', '_index')}")["shape"]
        if (cells[0], len(names)) != (m, n):
            raise ValueError(
                f"{escaped(path)}: {cells[0]} and {len(names)} names for {m} rows and {n} columns"
            )
        if target is None:
            return matrix, names, None
        if file.held(f"obs/{target}") is None:
            raise ValueError(f"{escaped(path)} has no column {target!r} in obs")
        y = _column(file, f"obs/{target}")
    if y is None:
        raise ValueError(f"column {target!r} of {escaped(path)} does not hold numbers")
    if y.shape != (m,):
        raise ValueError(f"{escaped(path)}: {y.size} labels for {m} rows")
    return matrix, names, y


class _File:
    """An HDF5 file, as the process that reads it tells."""

    def __init__(self, reader: Reader, path: Path) -> None:
        self.reader, self.path = reader, path
        self.left = _ROOM + _PER_BYTE * path.stat().st_size

    def held(self, name: str) -> Message | None:
        """What is known about a group or an array; None if there is none of that name."""
        found = self.reader.ask(_foreign.about, self.path, name=name)
        return found if found["kind"] is not None else None

    def array(self, name: str) -> Message:
        """What is known about an array, which must be there, and must not be too large."""
        found = self.held(name)
        if found is None or found["kind"] != "data":
            raise ReadFailedError
        size = math.prod(found["shape"]) * max(1, np.dtype(found["type"]).itemsize)
        if not found["shape"] or size > self.left:
            raise ReadFailedError
        return found

    def attribute(self, name: str, attribute: str) -> Foreign:
        """An attribute, which must be there."""
        found = self.held(name)
        if found is None or attribute not in found["attrs"]:
            raise ReadFailedError
        return found["attrs"][attribute]

    def numbers(self, name: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Some lines of an array of numbers."""
        about = self.array(name)
        first, *others = about["shape"]
        found = np.empty((len(range(first)[start:stop]), *others), np.dtype(about["type"]))
        request = {"name": name, "start": start, "stop": stop, "text": False}
        answer = self.reader.ask(_foreign.data, self.path, **request)
        if answer["bytes"] != found.nbytes:
            self.reader.close()
            raise ReadFailedError
        if found.size:
            self.reader.numbers(found)
        self.left -= found.nbytes
        return found

    def texts(self, name: str) -> tuple[str, ...]:
        """All texts of an array."""
        found: list[str] = []
        for start in range(0, self.array(name)["shape"][0], 1 << 12):
            request = {"name": name, "start": start, "stop": start + (1 << 12), "text": True}
            texts = self.reader.ask(_foreign.data, self.path, **request)["texts"]
            self.left -= sum(map(len, texts))
            if self.left < 0:
                raise ReadFailedError
            found += texts
        return tuple(found)


def _matrix(file: _File, name: str) -> SparseMatrix:
    """A matrix, sparse or dense in the file, without a second copy of it on the way."""
    kind = (file.held(name) or {}).get("attrs", {}).get("encoding-type", "array")
    if kind not in ("csr_matrix", "csc_matrix"):
        return _sparse_rows(file, name)
    shape = tuple(file.attribute(name, "shape"))
    if len(shape) != 2 or not all(isinstance(k, int) for k in shape):
        raise ReadFailedError
    data, indices = file.array(f"{name}/data"), file.array(f"{name}/indices")
    indptr = file.numbers(f"{name}/indptr").astype(np.int64)
    m, n = shape if kind == "csr_matrix" else shape[::-1]
    (size, *_), dtype = data["shape"], np.dtype(data["type"])
    sound = indptr.shape == (m + 1,) and indptr[0] == 0 and indptr[-1] == size and n > 0
    kinds = dtype.kind in "fiub" and np.dtype(indices["type"]).kind in "iu"
    alike = data["shape"] == indices["shape"] == [size]
    if not (sound and kinds and alike) or np.any(np.diff(indptr) < 0):
        raise ValueError(f"{escaped(file.path)}: the sparse matrix is damaged")
    index = np.int32 if max(n, size) < 2**31 else np.int64
    values = np.empty(size, np.float32 if dtype == np.float32 else np.float64)
    places, outside = np.empty(size, dtype=index), [np.empty(0, np.intp)]
    for start in range(0, size, _CHUNK):
        part = slice(start, min(start + _CHUNK, size))
        values[part] = file.numbers(f"{name}/data", part.start, part.stop)
        block = file.numbers(f"{name}/indices", part.start, part.stop)
        inside = (block >= 0) & (block < n)
        places[part] = np.where(inside, block, 0)
        outside.append(start + np.flatnonzero(~inside))
    gone = np.concatenate(outside)
    if gone.size:  # such entries are none
        values, places = np.delete(values, gone), np.delete(places, gone)
        indptr -= np.searchsorted(gone, indptr)
    form = sp.csr_array if kind == "csr_matrix" else sp.csc_array
    found = form((values, places, indptr.astype(index)), shape=shape)
    found.sum_duplicates()  # which sorts them too
    return found


def _sparse_rows(file: _File, name: str) -> SparseMatrix:
    """A dense matrix as CSR, block by block of rows."""
    about = file.array(name)
    dtype = np.dtype(about["type"])
    if len(about["shape"]) != 2 or dtype.kind not in "fiub":
        raise ValueError(f"{escaped(file.path)}: the matrix does not hold numbers")
    m, n = about["shape"]
    step, kind = max(1, _CHUNK // max(n, 1)), np.float32 if dtype == np.float32 else np.float64
    blocks = [
        sp.csr_array(file.numbers(name, start, start + step).astype(kind))
        for start in range(0, m, step)
    ]
    return sp.vstack(blocks, format="csr") if blocks else sp.csr_array((m, n))


def _column(file: _File, name: str) -> np.ndarray | None:
    """A column of obs as numbers, NaN where it is missing; None if it holds something else."""
    about = file.held(name)
    assert about is not None
    masked = about["kind"] == "group" and file.held(f"{name}/values") is not None
    values = f"{name}/values" if masked else name
    if not masked and about["kind"] == "group":
        return None
    if np.dtype(file.array(values)["type"]).kind not in "fiub":
        return None
    numbers = file.numbers(values).astype(np.float64)
    if masked:
        gone = file.numbers(f"{name}/mask").astype(bool)
        if gone.shape != numbers.shape:
            raise ReadFailedError
        numbers[gone] = np.nan
    return numbers
