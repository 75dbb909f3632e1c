"""Newton steps for many problems on one F, with a Gram matrix in single precision for all of them.

Where the support A and its signs are known, the minimiser solves F_AᵀF_A Δx_A = c_A − λ sgn(x_A),
c = b − FᵀFx. The factor of F_AᵀF_A is needed only to some digits, because c comes from F in double
precision: a step makes the error smaller by a factor of about 10⁻⁵. In single precision, the Gram
matrix and its factors take half the time and half the memory.

Coefficients whose sign a step would change become zero, and columns that violate their condition
join the support. Nothing makes sure that this ends; who takes steps checks each point and gives up
after a few.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numba import njit

from privasso._blas import gram_matrix, one_thread
from privasso._clock import Clock
from privasso._threads import compiled, n_threads, run
from privasso.operators import Operator, as_operator
from privasso.solvers._newton import cholesky_solve


class NewtonSteps:
    """Steps on the columns `used` of F, outside of which all coefficients are zero.

    Parameters
    ----------
    op : Operator
        F.
    norms : ndarray of shape (N,)
        Norms of its columns.
    used : ndarray of int

    Examples
    --------
    >>> from privasso.operators import RowMajor
    >>> steps = NewtonSteps(RowMajor(np.eye(2)), np.ones(2), np.arange(2))
    >>> X, paths = np.array([[1.0, 0.0]]), np.zeros((1, 2))
    >>> b = np.array([[3.0, -0.5]])
    >>> steps.take(X, b - X, np.array([1.0]), np.arange(1), paths, Clock())
    >>> X, paths
    (array([[2., 0.]]), array([[1., 0.]]))
    """

    def __init__(self, op: Operator, norms: np.ndarray, used: np.ndarray) -> None:
        self._used, self._norms = used, norms[used]
        self._rank = min(op.shape)
        everything = used.size == op.shape[1]
        columns = op.single() if everything else as_operator(op.columns(used)).single()
        self._gram = gram_matrix(columns)
        self._gram /= self._norms.astype(np.float32)
        self._gram /= self._norms.astype(np.float32)[:, None]

    def take(
        self,
        X: np.ndarray,
        C: np.ndarray,
        lams: np.ndarray,
        rows: np.ndarray,
        paths: np.ndarray,
        clock: Clock,
    ) -> None:
        """Move each row X[k], k in `rows`, in place; the j-th of them has c in C[j].

        Row k of `paths` becomes (F_AᵀF_A)⁻¹ λ sgn(x_A), how x changes as λ decreases. A row stays
        as it is if the support is larger than M, or its columns depend on one another.
        """
        parts = n_threads()

        def work(part: int) -> None:
            for j in range(part, rows.size, parts):
                if clock.expired():
                    return
                k = rows[j]
                x, c = X[k, self._used], C[j, self._used]
                step = partial(newton_step, self._gram, self._norms, x, c, lams[k], self._rank)
                X[k, self._used], paths[k, self._used] = compiled(step)

        try:
            with one_thread():
                run([partial(work, part) for part in range(parts)])
        except BaseException:  # Ctrl-C is raised on one thread, and the others must end too
            clock.stop()
            raise


@njit(nogil=True, cache=True)
def newton_step(H, norms, x, c, lam, rank):  # pragma: no cover
    """The point after a step and the path there; x itself and zeros if there is no factor."""
    signs = np.sign(x)
    for i in range(x.size):
        if x[i] == 0.0 and abs(c[i]) > lam:
            signs[i] = np.sign(c[i])
    active = np.flatnonzero(signs)
    moved, path = x.copy(), np.zeros_like(x)
    n = active.size
    if n == 0 or n > rank:
        return moved, path
    A = np.empty((n, n), H.dtype)
    for i in range(n):
        row = H[active[i]]
        for j in range(i + 1):  # the factorisation reads no more
            A[i, j] = row[active[j]]
        A[i, i + 1 :] = 0.0
    try:
        L = np.linalg.cholesky(A)
    except Exception:  # LinAlgError, which numba cannot name
        return moved, path
    step = cholesky_solve(L, (c[active] - lam * signs[active]) / norms[active])
    along = cholesky_solve(L, lam * signs[active] / norms[active])
    for i in range(n):
        at = active[i]
        new = x[at] + step[i] / norms[at]
        moved[at] = new if new * signs[at] > 0.0 else 0.0
        path[at] = along[i] / norms[at]
    return moved, path
