"""Sparse tables in files: AnnData (.h5ad), read some rows at a time, and Matrix Market (.mtx)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from privasso._text import escaped

_CELLS, _MARKET = (".h5ad",), (".mtx", ".mtx.gz")
#: Entries that are read at a time.
_CHUNK = 1 << 22


@dataclass(frozen=True, eq=False)
class SparseTable:
    """A sparse matrix of covariates with the names of its columns and, if asked for, labels.

    Attributes
    ----------
    X : scipy.sparse.csr_array or csc_array, shape (M, N)
    names : tuple of str or None
        Names of the columns; None if the file has none.
    y : array_like of shape (M,) or None
        Labels.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> SparseTable(sp.csr_array([[0.0, 2.0]]), names=("a", "b")).names
    ('a', 'b')
    """

    X: Any = field(repr=False)
    names: tuple[str, ...] | None = field(default=None, repr=False)
    y: Any = field(default=None, repr=False)


def is_sparse_file(X: Any) -> bool:
    """Whether X is the path of a file that `read_sparse` reads.

    >>> is_sparse_file("cells.h5ad"), is_sparse_file("claims.parquet"), is_sparse_file([[1.0]])
    (True, False, False)
    """
    return isinstance(X, (str, Path)) and str(X).lower().endswith((*_CELLS, *_MARKET))


def is_cells(X: Any) -> bool:
    """Whether X is an `anndata.AnnData`, which need not be installed."""
    kind = type(X)
    return kind.__name__ == "AnnData" and kind.__module__.partition(".")[0] == "anndata"


def read_sparse(
    path: str | Path, target: str | None = None, *, layer: str | None = None
) -> SparseTable:
    r"""Read a sparse table from an .h5ad or .mtx file; what is not zero is all that takes memory.

    Parameters
    ----------
    path : str or Path
        An .h5ad file of AnnData, with cells as rows and genes as columns, or a Matrix Market file
        (.mtx or .mtx.gz), whose rows are rows of the table. Transpose files that have genes as
        rows: ``read_sparse(path).X.T``.
    target : str, optional
        The column of `obs` in an .h5ad file that holds the labels.
    layer : str, optional
        The layer of an .h5ad file that is read in place of its matrix X.

    Returns
    -------
    SparseTable
        CSR or CSC, as in the file; a matrix that is dense in the file becomes CSR. Single precision
        stays so.

    Examples
    --------
    >>> import tempfile
    >>> lines = "%%MatrixMarket matrix coordinate integer general", "2 3 2", "1 1 5", "2 3 7"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "tiny.mtx")
    ...     _ = path.write_text("\n".join(lines))
    ...     read_sparse(path).X.toarray()
    array([[5., 0., 0.],
           [0., 0., 7.]])
    """
    path = Path(path)
    if str(path).lower().endswith(_MARKET):
        if target is not None or layer is not None:
            raise ValueError(f"{escaped(path)} holds one matrix only; pass the labels as an array")
        from privasso.blocks._market import read_market  # compiled code is loaded now, not before

        return SparseTable(read_market(path))
    if not str(path).lower().endswith(_CELLS):
        raise ValueError(
            f"{escaped(path)} must end in {', '.join((*_CELLS, *_MARKET))}, which says how to "
            "read it"
        )
    return _cells(path, target, layer)


def sparse_of(X: Any, y: Any) -> SparseTable | None:
    r"""What a user passed as covariates and labels, if it is a file or an AnnData; else None.

    Examples
    --------
    >>> import tempfile
    >>> lines = "%%MatrixMarket matrix coordinate integer general", "2 3 2", "1 1 5", "2 3 7"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "tiny.mtx")
    ...     _ = path.write_text("\n".join(lines))
    ...     float(sparse_of(path, [0.5, 1.5]).X.sum())
    12.0
    >>> sparse_of([[1.0]], [2.0]) is None
    True
    """
    target = y if isinstance(y, str) else None
    if is_sparse_file(X):
        table = read_sparse(X, target)
        return table if target is not None else SparseTable(table.X, table.names, y)
    if not is_cells(X):
        return None
    matrix = X.X
    if hasattr(matrix, "to_memory"):  # backed by a file
        matrix = matrix.to_memory()
    labels = y
    if target is not None:
        if target not in X.obs.columns:
            raise ValueError(f"the AnnData has no column {target!r} in obs")
        labels = _numbers(X.obs[target].to_numpy(), f"column {target!r} of obs")
    return SparseTable(matrix, tuple(str(name) for name in X.var_names), labels)


def _real(matrix: Any) -> Any:
    """The matrix in single or double precision."""
    single = matrix.dtype == np.float32
    return matrix if single else matrix.astype(np.float64, copy=False)


def _cells(path: Path, target: str | None, layer: str | None) -> SparseTable:
    try:
        import h5py
    except ImportError:
        raise ValueError("reading .h5ad files needs h5py; install privasso[cells]") from None
    if not path.is_file():
        raise FileNotFoundError(f"{escaped(path)} is not there")
    try:
        with h5py.File(path, "r") as file:
            return _table(path, file, target, layer)
    except (OSError, KeyError, RuntimeError, AttributeError, TypeError):
        raise ValueError(
            f"{escaped(path)} cannot be read: it is no .h5ad file of anndata 0.7 or later, or is "
            "damaged"
        ) from None


def _table(path: Path, file: Any, target: str | None, layer: str | None) -> SparseTable:
    where = "X" if layer is None else f"layers/{layer}"
    if where not in file:
        raise ValueError(f"{escaped(path)} has no matrix {where}")
    matrix = _matrix(path, file[where])
    m, n = matrix.shape
    columns, rows = file["var"], file["obs"]
    names = tuple(str(name) for name in columns[columns.attrs["_index"]].asstr()[:])
    if len(names) != n:
        raise ValueError(f"{escaped(path)}: {len(names)} names for {n} columns")
    if target is None:
        return SparseTable(matrix, names)
    if target not in rows:
        raise ValueError(f"{escaped(path)} has no column {target!r} in obs")
    y = _column(rows[target], f"column {target!r} of {escaped(path)}")
    if y.shape != (m,):
        raise ValueError(f"{escaped(path)}: {y.size} labels for {m} rows")
    return SparseTable(matrix, names, y)


def _matrix(path: Path, stored: Any) -> Any:
    """A matrix, sparse or dense in the file, without a second copy of it on the way."""
    kind = stored.attrs.get("encoding-type", "array")
    if kind not in ("csr_matrix", "csc_matrix"):
        return _sparse_rows(path, stored)
    shape = tuple(int(k) for k in stored.attrs["shape"])
    indptr = stored["indptr"][:].astype(np.int64)
    m, n = shape if kind == "csr_matrix" else shape[::-1]
    size = stored["data"].shape[0]
    sound = indptr.shape == (m + 1,) and indptr[0] == 0 and indptr[-1] == size
    kinds = stored["data"].dtype.kind in "fiub" and stored["indices"].dtype.kind in "iu"
    if not (sound and kinds and stored["indices"].shape == (size,)) or np.any(np.diff(indptr) < 0):
        raise ValueError(f"{escaped(path)}: the sparse matrix is damaged")
    dtype = np.float32 if stored["data"].dtype == np.float32 else np.float64
    index = np.int32 if max(n, size) < 2**31 else np.int64
    data, indices = np.empty(size, dtype=dtype), np.empty(size, dtype=index)
    outside = []
    for start in range(0, size, _CHUNK):
        part = slice(start, min(start + _CHUNK, size))
        data[part] = stored["data"][part]
        block = stored["indices"][part]
        inside = (block >= 0) & (block < n)
        indices[part] = np.where(inside, block, 0)
        outside.append(start + np.flatnonzero(~inside))
    gone = np.concatenate([np.empty(0, np.intp), *outside])
    if gone.size:  # such entries are none
        data, indices = np.delete(data, gone), np.delete(indices, gone)
        indptr -= np.searchsorted(gone, indptr)
    form = sp.csr_array if kind == "csr_matrix" else sp.csc_array
    found = form((data, indices, indptr.astype(index)), shape=shape)
    found.sum_duplicates()  # which sorts them too
    return found


def _sparse_rows(path: Path, stored: Any) -> Any:
    """A dense matrix as CSR, block by block of rows."""
    if len(stored.shape) != 2 or stored.dtype.kind not in "fiub":
        raise ValueError(f"{escaped(path)}: the matrix does not hold numbers")
    m, n = stored.shape
    step = max(1, _CHUNK // max(n, 1))
    blocks = [sp.csr_array(stored[start : start + step]) for start in range(0, m, step)]
    return _real(sp.vstack(blocks, format="csr") if blocks else sp.csr_array((m, n)))


def _column(stored: Any, what: str) -> np.ndarray:
    """A column of obs as numbers, NaN where it is missing."""
    if "encoding-type" in stored.attrs and "values" in stored:
        values = _numbers(stored["values"][:], what)
        values[stored["mask"][:]] = np.nan
        return values
    if not hasattr(stored, "dtype"):
        raise ValueError(f"{what} does not hold numbers")
    return _numbers(stored[:], what)


def _numbers(values: np.ndarray, what: str) -> np.ndarray:
    values = np.asarray(values)
    if values.dtype.kind not in "fiub":
        raise ValueError(f"{what} does not hold numbers")
    return values.astype(np.float64)
