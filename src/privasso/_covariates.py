"""The door for covariates: one matrix of numbers, or one sentence that quotes no value of them."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from privasso._types import Foreign, Matrix, SparseMatrix
from privasso._validation import all_finite, attempt, numbers_of, numbers_only

#: Columns that an error names; the others are counted.
_SHOWN = 6
_SETTLES = (
    "turn {} into numbers by rules that do not depend on the data, as TableEncoder does with a "
    "data dictionary, or leave {} out"
)


def covariates(X: object, *, finite: bool = True) -> Matrix:
    """Return X as a matrix in single or double precision: an array, or sparse in CSR or CSC form.

    `X`: numbers and booleans. Whether a column of a data frame is read is decided by its type, and
    by its cells only where that is ``object``. Missing values of a data frame and masked ones of an
    array become NaN. Anything else is refused, and so are NaN and infinity if all must be `finite`.
    Foreign errors are not passed on, because they may quote a cell.
    """
    found: Foreign
    if _is_frame(X, "pandas"):
        found = _of_pandas(X)
    elif _is_frame(X, "polars"):
        found = _of_polars(X)
    elif sp.issparse(X):
        found = _of_sparse(X)
    else:
        found = _of_array(X)
    if found.ndim != 2:
        raise ValueError(
            f"X must have rows and columns, but has {found.ndim} dimension"
            f"{'' if found.ndim == 1 else 's'}. Reshape your data: X.reshape(-1, 1) for one "
            "column, X.reshape(1, -1) for one row"
        )
    for count, what in zip(found.shape, ("sample", "feature"), strict=True):
        if count == 0:
            raise ValueError(
                f"X has 0 {what}(s) (shape={found.shape}) while a minimum of 1 is required."
            )
    if finite and not all_finite(found.data if sp.issparse(found) else found):
        raise ValueError("X contains NaN or infinity; remove or impute those entries")
    return found


def _is_frame(X: object, library: str) -> bool:
    """Whether X is a data frame of a library, which need not be installed."""
    module = sys.modules.get(library)
    return module is not None and isinstance(X, getattr(module, "DataFrame", ()))


def _floats(array: np.ndarray) -> np.ndarray:
    """The array itself, if it is in single or double precision; otherwise a copy in double."""
    keep = array.dtype in (np.float32, np.float64)
    with np.errstate(over="ignore"):  # of long doubles; what is infinite then is refused later
        return array if keep else array.astype(np.float64)


def _of_array(X: object) -> np.ndarray:
    if isinstance(X, np.ma.MaskedArray) and X.dtype.kind in "fiub":
        return np.ma.filled(X.astype(np.float64), np.nan)
    array: np.ndarray | None = attempt(lambda: np.asarray(X))
    if array is not None and array.dtype.kind == "O":
        array = attempt(lambda objects=array: numbers_of(objects))
        if array is None:
            raise TypeError(
                "X holds something that is no number; each entry of this argument must be a number "
                f"or a string that stands for a number: {_SETTLES.format('the others', 'them')}"
            )
    return _floats(numbers_only("X", array))


def _of_sparse(X: SparseMatrix) -> SparseMatrix:
    numbers_only("X", np.empty(0, X.dtype))
    check_sparse(X)
    X = X if X.format in ("csr", "csc") else X.tocsr()
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def check_sparse(F: SparseMatrix) -> None:
    """Refuse a sparse matrix whose indices compiled loops would follow to other memory."""
    sound = True
    if F.format in ("csr", "csc"):
        lines, length = F.shape if F.format == "csr" else F.shape[::-1]
        ends = F.indptr
        sound = ends.shape == (lines + 1,) and ends[0] == 0 and not np.any(ends[1:] < ends[:-1])
        sound = sound and ends[-1] <= min(F.indices.size, F.data.size)
        sound = sound and _inside(F.indices[: ends[-1]], length)
    elif F.format == "coo":
        sound = all(
            places.shape == F.data.shape and _inside(places, length)
            for places, length in zip(F.coords, F.shape, strict=True)
        )
    if not sound:
        raise ValueError(
            "the sparse matrix is damaged: its indices point outside of it, or its indptr does not "
            "begin with 0 and grow"
        )


def _inside(places: np.ndarray, length: int) -> bool:
    return not places.size or (int(places.min()) >= 0 and int(places.max()) < length)


def _of_pandas(X: Foreign) -> Matrix:
    dtypes = list(X.dtypes)
    if dtypes and all(hasattr(one, "fill_value") for one in dtypes):  # sparse columns
        whole = attempt(lambda: X.sparse.to_coo())
        if whole is not None:
            return _of_sparse(whole)
    if all(isinstance(one, np.dtype) and one.kind in "fiu" for one in dtypes):
        return _floats(X.to_numpy())
    columns: list[np.ndarray | None] = []
    for k, dtype in enumerate(dtypes):
        column = X.iloc[:, k]
        if dtype.kind in "fiub":
            columns.append(attempt(lambda c=column: c.to_numpy(dtype=np.float64, na_value=np.nan)))
        elif dtype == np.dtype(object):
            columns.append(attempt(lambda c=column: numbers_of(c.to_numpy())))
        else:
            columns.append(None)
    return _joined(columns, [str(name) for name in X.columns], len(X))


def _of_polars(X: Foreign) -> np.ndarray:
    types = sys.modules["polars"]
    columns = [
        attempt(lambda c=column: c.cast(types.Float64).to_numpy())
        if column.dtype.is_numeric() or column.dtype in (types.Boolean, types.Null)
        else None
        for column in X.iter_columns()
    ]
    return _joined(columns, X.columns, X.height)


def _joined(columns: Sequence[np.ndarray | None], names: Sequence[str], n_rows: int) -> np.ndarray:
    """Columns side by side; those that could not be read are refused by name."""
    refuse_columns([name for name, one in zip(names, columns, strict=True) if one is None])
    out = np.empty((n_rows, len(columns)), order="F")
    for k, column in enumerate(columns):
        out[:, k] = column
    return out


def refuse_columns(names: Sequence[str]) -> None:
    """Refuse these columns, if there are any, because they do not hold numbers."""
    if not names:
        return
    listed = ", ".join(map(repr, names[:_SHOWN]))
    if len(names) > _SHOWN:
        listed = f"{listed} and {len(names) - _SHOWN} more"
    said, it = (
        (f"column {listed} holds", "it") if len(names) == 1 else (f"columns {listed} hold", "them")
    )
    raise ValueError(f"X must hold numbers, and {said} something else; {_SETTLES.format(it, it)}")
