"""Sparse tables in long form: Parquet files with one line (row, column, value) for each entry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from privasso._text import escaped
from privasso._types import SparseMatrix
from privasso.blocks._files import Stamp, rows_of, schema_of

#: Lines that are read at a time.
_CHUNK = 1 << 20
#: Names of the three columns.
NAMES = ("row", "column", "value")


def read_triplets(
    paths: str | Path | Sequence[str | Path],
    shape: tuple[int, int],
    names: tuple[str, str, str] = NAMES,
) -> SparseMatrix:
    """Read a sparse matrix from Parquet files of triplets, straight into its arrays.

    The files are read twice, some lines at a time: once for the number of entries in each row, and
    once for the entries. Their lines and the files may be in any order. Values in one place are
    added up, as scipy does. A line whose place is missing or outside of the shape is ignored, and a
    value that is missing is NaN.

    Parameters
    ----------
    paths : path or sequence of paths
        The files.
    shape : (int, int)
        Rows and columns, M and N; they have to be given, because the last ones may be empty.
    names : (str, str, str)
        The columns with the place of an entry, counted from 0, and its value.

    Returns
    -------
    scipy.sparse.csr_array
        In single precision if all files are, with sorted columns.

    Raises
    ------
    ValueError
        If a file has not these columns, or they have other types.

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> lines = {"row": [1, 0, 1], "column": [2, 0, 2], "value": [1.5, 3.0, 0.5]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "counts.parquet")
    ...     pl.DataFrame(lines).write_parquet(path)
    ...     read_triplets(path, (2, 3)).toarray()
    array([[3., 0., 0.],
           [0., 0., 2.]])
    """
    m, n = (int(k) for k in shape)
    if m < 1 or n < 1:
        raise ValueError(f"shape must have rows and columns, not {shape}")
    given = [paths] if isinstance(paths, (str, Path)) else list(paths)
    files = [_File(str(path), names) for path in given]
    if not files:
        raise ValueError("there are no files to read")
    counts, size = np.zeros(m, dtype=np.int64), 0
    for file in files:
        for rows, *_ in file.read(names[:2], (m, n)):
            counts += np.bincount(rows, minlength=m)
            size += rows.size
    index = np.int32 if max(n, size) < 2**31 else np.int64
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(index)
    single = all(file.single for file in files)
    data, indices = np.empty(size, np.float32 if single else np.float64), np.empty(size, index)
    free = indptr[:-1].astype(np.int64)
    for file in files:
        for rows, columns, values in file.read(names, (m, n)):
            # Entries of one row follow one another, each at the next free place.
            order = np.argsort(rows, kind="stable")
            sorted_ = rows[order]
            begins = np.flatnonzero(np.diff(sorted_, prepend=-1))
            lengths = np.diff(begins, append=sorted_.size)
            nth = np.arange(sorted_.size) - np.repeat(begins, lengths)
            at = free[sorted_] + nth
            if np.any(at >= indptr[sorted_ + 1]):
                raise file.stamp.error()
            indices[at], data[at] = columns[order], values[order]
            free[sorted_[begins]] += lengths
        file.stamp.check()
    if not np.array_equal(free, indptr[1:]):
        raise files[-1].stamp.error()
    found = sp.csr_array((data, indices, indptr), shape=(m, n))
    found.sum_duplicates()  # which sorts them too
    return found


class _File:
    """A Parquet file with the three columns, each of a type that will do."""

    def __init__(self, path: str, names: tuple[str, str, str]) -> None:
        self.path, self.stamp = path, Stamp.of(path)
        types, _ = schema_of(path, "parquet")
        for name, integer in zip(names, (True, True, False), strict=True):
            if name not in types:
                raise ValueError(
                    f"{escaped(path)} has no column {name!r}; a sparse table in long form has the "
                    f"columns {', '.join(map(repr, names))}"
                )
            if integer and types[name] != "integer":
                raise self.refusal(name, "must hold integers, places counted from 0")
            if types[name] in ("flag", "other"):
                raise self.refusal(name, "must hold numbers")
        self.single = types[names[2]] == "single"

    def read(self, names: Sequence[str], shape: tuple[int, int]) -> Iterator[list[np.ndarray]]:
        """Two or three columns of the entries that have a place, some lines at a time."""
        self.stamp.check()
        for rows, columns, *values in rows_of(self.path, "parquet", list(names), step=_CHUNK):
            # What is missing is NaN, and so nowhere.
            inside = (rows >= 0) & (rows < shape[0]) & (columns >= 0) & (columns < shape[1])
            places = (rows[inside].astype(np.intp), columns[inside].astype(np.intp))
            yield [*places, *(one[inside] for one in values)]

    def refusal(self, name: str, why: str) -> ValueError:
        """The error about a column."""
        return ValueError(f"column {name!r} of {escaped(self.path)} {why}")
