"""From a point whose columns are dependent to one whose columns are not, at no higher objective.

If the columns of the support are dependent, as with one-hot columns that sum to one, the minimiser
is not unique, and the equations of the support have no unique solution. Along a null direction v
of H on the support the objective is linear as long as no coefficient changes its sign. So one can
move along v, the way the objective falls, until a coefficient is zero, and leave its column out.
After as many such moves as there are null directions the columns are independent.
"""

from __future__ import annotations

import numpy as np

#: Eigenvalues of H on the support below this part of the largest one count as zero.
_NULL = 1e-12
#: Rows that are changed at once.
_ROWS = 64


def to_vertex(H: np.ndarray, descent: np.ndarray, z: np.ndarray) -> np.ndarray | None:
    """Move z until the columns of its support are independent; None if it falls for ever.

    Parameters
    ----------
    H : ndarray of shape (n, n)
        Gram matrix on the support of z.
    descent : ndarray of shape (n,)
        Minus the gradient of the linear part, b − w·sgn(z).
    z : ndarray of shape (n,)
        Coefficients, none of them zero.

    Examples
    --------
    Two equal columns, of which one is enough:

    >>> to_vertex(np.ones((2, 2)), np.zeros(2), np.array([1.0, 3.0])).round(12)
    array([0., 4.])
    """
    values, vectors = np.linalg.eigh(H)
    del H  # large, and not needed any longer
    null = vectors[:, : np.count_nonzero(values <= _NULL * values[-1])].copy()
    del vectors
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
