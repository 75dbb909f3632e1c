"""What a user may pass instead of an array, as blocks of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from privasso.blocks._dask import is_dask, of_dask
from privasso.blocks._files import open_files
from privasso.blocks._row_blocks import RowBlocks
from privasso.blocks._variants import read_bed, read_public_bed


def is_bed(X: Any) -> bool:
    """Whether X is the path of a .bed file.

    >>> is_bed("study.bed"), is_bed("claims.parquet"), is_bed([[1.0]])
    (True, False, False)
    """
    return isinstance(X, (str, Path)) and Path(X).suffix.lower() == ".bed"


def blocks_of(X: Any, y: Any, *, private: bool = True) -> RowBlocks | None:
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
