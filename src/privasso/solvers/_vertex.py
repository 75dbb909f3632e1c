"""From a point whose columns are dependent to one whose columns are not, at no higher objective.

If the columns of the support are dependent, as with one-hot columns that sum to one, the minimiser
is not unique, and the equations of the support have no unique solution. Along a null direction v
of H on the support the objective is linear as long as no coefficient changes its sign. So one can
move along v, the way the objective falls, until a coefficient is zero, and leave its column out.
After as many such moves as there are null directions the columns are independent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import get_lapack_funcs

from privasso.solvers._newton import copy_submatrix

_pstrf: Any = get_lapack_funcs("pstrf", dtype=np.float64)
#: A column of unit norm whose squared distance from the span of others is at most this depends on
#: them, and a slope of this part of the largest one is zero.
_NULL = 1e-12
#: Rows that are changed at once.
_ROWS = 64


def to_vertex(
    H: np.ndarray, active: np.ndarray, descent: np.ndarray, z: np.ndarray
) -> np.ndarray | None:
    """Move z until the columns of its support are independent; None if it falls for ever.

    - `H` (N, N): gram matrix of columns of unit norm.
    - `active` (n,): the support of z.
    - `descent` (n,): minus the gradient of the linear part, b − w·sgn(z), on the support.
    - `z` (n,): coefficients of the support, none of them zero.
    """
    null = _null_directions(H, active)
    scale = float(np.abs(descent).max(initial=0.0))
    z = z.copy()
    while null.shape[1]:
        v = null[:, 0] / np.abs(null[:, 0]).max()
        slope = float(descent @ v)
        if slope < 0.0:
            v = -v
        shrinking = v * z < 0.0
        if not shrinking.any() and abs(slope) <= _NULL * scale * z.size:
            v = -v  # the objective is constant along v
            shrinking = v * z < 0.0
        if not shrinking.any():
            return None
        steps = np.full(z.size, np.inf)
        steps[shrinking] = -z[shrinking] / v[shrinking]
        first = int(np.argmin(steps))
        z += steps[first] * v
        z[first] = 0.0
        null, row = null[:, 1:], null[first, 1:] / v[first]
        for start in range(0, z.size, _ROWS):  # without another matrix of the size of `null`
            part = slice(start, start + _ROWS)
            null[part] -= np.outer(v[part], row)
        null[first] = 0.0
    return z


def _null_directions(H: np.ndarray, active: np.ndarray) -> np.ndarray:
    """A basis of the null space of H on the active set, one direction per column.

    Cholesky factorisation with pivoting takes one column after another, each time the one that is
    furthest from the span of those before. Those that are left depend on the others, H₁₁u = h₁ⱼ,
    and (−u, 1) is a null direction.
    """
    n = active.size
    A = np.empty((n, n))
    copy_submatrix(H, active, A)
    factor, order, rank, _ = _pstrf(A.T, tol=_NULL, lower=1, overwrite_a=1)
    del A  # its memory is that of the factor
    U = factor.T  # upper triangular: U₁₁u = U₁₂ is solved in the place of U₁₂
    for i in range(rank - 1, -1, -1):
        U[i, rank:] -= U[i, i + 1 : rank] @ U[i + 1 : rank, rank:]
        U[i, rank:] /= U[i, i]
    u = U[:rank, rank:].copy()
    del factor, U  # large, and not needed any longer
    null = np.zeros((n, n - rank))
    null[order[:rank] - 1] = np.negative(u, out=u)
    null[order[rank:] - 1, np.arange(n - rank)] = 1.0
    return null
