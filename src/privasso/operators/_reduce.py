"""Tall covariates as a small square matrix with the same normal equations."""

from __future__ import annotations

import numpy as np

from privasso._blas import threads_for
from privasso.operators._covariates import Covariates

#: Rows per column from which on the Gram matrix is the shorter road.
_TALL = 4
#: The Gram matrix costs their square for each row: beyond this many, passes over F are cheaper.
_MOST_COLUMNS = 1024
#: Smallest pivot of the correlation matrix: the rounding of its factor, about 1e-13, must stay
#: far below the accuracy of the solvers even after division by this number.
_SMALLEST_PIVOT = 1e-4


def square_root(rows: Covariates) -> np.ndarray | None:
    """R of shape (N, N) with RᵀR = FᵀF over the live columns, or None where F is the better road.

    The LASSO sees F only through FᵀF and b, so that (R, b, λ) has the same minimiser as
    (F, b, λ). It also has full column rank, and with it a minimiser at every λ. None where F is
    sparse, has few rows for its columns, or columns that are nearly collinear, for which the
    Gram matrix has lost too many digits.
    """
    n = int(rows.live.sum())
    if rows.sparse or n == 0 or n > _MOST_COLUMNS or rows.shape[0] < _TALL * n:
        return None
    norms = np.sqrt(np.diag(rows.gram))
    try:
        with threads_for(n**3 / 3):
            lower = np.linalg.cholesky(rows.gram / norms / norms[:, None])
    except np.linalg.LinAlgError:
        return None
    if np.min(np.diag(lower)) < _SMALLEST_PIVOT:
        return None
    return np.ascontiguousarray(lower.T * norms)
