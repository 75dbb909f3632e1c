"""What a user may pass instead of an array: as blocks of rows, or sparse tables in files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from privasso._text import escaped
from privasso._types import Foreign, SparseMatrix
from privasso.blocks._bed import read_bed, read_public_bed
from privasso.blocks._cells import read_cells
from privasso.blocks._files import open_files
from privasso.blocks._row_blocks import RowBlocks


def is_dask(X: object) -> bool:
    """Whether X is a collection of Dask, without importing it.

    >>> is_dask(np.eye(2))
    False
    """
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


def is_bed(X: object) -> TypeGuard[str | Path]:
    """Whether X is the path of a .bed file.

    >>> is_bed("study.bed"), is_bed("claims.parquet"), is_bed([[1.0]])
    (True, False, False)
    """
    return isinstance(X, (str, Path)) and Path(X).suffix.lower() == ".bed"


def blocks_of(X: object, y: Foreign, *, private: bool = True) -> RowBlocks | None:
    """Blocks of rows, or None if X is none of what is read in blocks.

    Parameters
    ----------
    X : RowBlocks, collection of Dask, path, sequence of paths, numpy.memmap, or anything else
        Covariates.
    y : array_like, collection of Dask or str
        Labels, or the name of their column.
    private : bool
        Whether covariates are private. Then arrays in files that are mapped to memory are read in
        blocks, and a missing genotype is one copy; elsewhere it is the mean of its column.

    Examples
    --------
    >>> blocks_of(np.eye(2), [0.0, 1.0]) is None
    True
    """
    if isinstance(X, RowBlocks):
        if y is not None:
            raise ValueError("RowBlocks hold their labels; leave out y")
        return X
    if is_dask(X):
        from privasso.blocks._dask import of_dask

        return of_dask(X, y)
    if is_bed(X):
        return read_bed(X, y) if private else read_public_bed(X, y)
    paths = [X] if isinstance(X, (str, Path)) else X
    if (
        isinstance(paths, (list, tuple))
        and paths
        and all(isinstance(p, (str, Path)) for p in paths)
    ):
        if not isinstance(y, str):
            raise ValueError("with files y is the name of the column of labels")
        return open_files(paths, y)
    if private and isinstance(X, np.memmap):
        return RowBlocks.of_arrays(X, y)
    return None


_CELLS, _MARKET = (".h5ad",), (".mtx", ".mtx.gz")


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
    """

    X: SparseMatrix = field(repr=False)
    names: tuple[str, ...] | None = field(default=None, repr=False)
    y: Foreign = field(default=None, repr=False)


def is_sparse_file(X: object) -> TypeGuard[str | Path]:
    """Whether X is the path of a file that `read_sparse` reads.

    >>> is_sparse_file("cells.h5ad"), is_sparse_file("claims.parquet"), is_sparse_file([[1.0]])
    (True, False, False)
    """
    return isinstance(X, (str, Path)) and str(X).lower().endswith((*_CELLS, *_MARKET))


def is_cells(X: object) -> bool:
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
    return SparseTable(*read_cells(path, target, layer))


def sparse_of(X: Foreign, y: ArrayLike | None) -> SparseTable | None:
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


def _numbers(values: np.ndarray, what: str) -> np.ndarray:
    values = np.asarray(values)
    if values.dtype.kind not in "fiub":
        raise ValueError(f"{what} does not hold numbers")
    return values.astype(np.float64)
