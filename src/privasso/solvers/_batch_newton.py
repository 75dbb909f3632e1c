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

from privasso._blas import factorise_upper, gram_matrix, one_thread
from privasso._clock import Clock
from privasso._threads import n_threads, run
from privasso.operators import Operator, as_operator


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
            room = np.empty(0, np.float32)
            for j in range(part, rows.size, parts):
                if clock.expired():
                    return
                k, c = rows[j], C[j, self._used]
                x, path = X[k, self._used], np.zeros(self._used.size)
                active, signs = support(x, c, lams[k])
                n = active.size
                if 0 < n <= self._rank:
                    if room.size < n * n:
                        room = np.empty(n * n, np.float32)
                    U = room[: n * n].reshape(n, n)
                    upper_submatrix(self._gram, active, U)
                    if factorise_upper(U):
                        move(U, self._norms, active, signs, lams[k], x, c, path)
                X[k, self._used], paths[k, self._used] = x, path

        try:
            with one_thread():
                run([partial(work, part) for part in range(parts)])
        except BaseException:  # Ctrl-C is raised on one thread, and the others must end too
            clock.stop()
            raise


@njit(nogil=True, cache=True)
def support(x, c, lam):  # pragma: no cover
    """The columns of the support and those whose condition is violated, with their signs."""
    signs = np.sign(x)
    for i in range(x.size):
        if x[i] == 0.0 and abs(c[i]) > lam:
            signs[i] = np.sign(c[i])
    active = np.flatnonzero(signs)
    return active, signs[active]


@njit(nogil=True, cache=True)
def upper_submatrix(H, index, out):  # pragma: no cover
    """The upper triangle of ``H[index][:, index]``; the rest of `out` stays as it is."""
    for i in range(index.size):
        row, to, later = H[index[i]], out[i, i:], index[i:]
        for j in range(later.size):
            to[j] = row[later[j]]


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})
def move(U, norms, active, signs, lam, x, c, path):  # pragma: no cover
    """Take the step with the factor UᵀU, in place; `path` becomes the direction of the path.

    Both systems are solved at once, so that U is read twice instead of four times.
    """
    n = active.size
    step, along = np.empty(n), np.empty(n)
    for i in range(n):
        at = active[i]
        along[i] = lam * signs[i] / norms[at]
        step[i] = c[at] / norms[at] - along[i]
    for i in range(n):
        s, t = step[i] / U[i, i], along[i] / U[i, i]
        step[i], along[i] = s, t
        row, one, other = U[i, i + 1 :], step[i + 1 :], along[i + 1 :]
        for j in range(row.size):
            one[j] -= row[j] * s
            other[j] -= row[j] * t
    for i in range(n - 1, -1, -1):
        s, t = step[i], along[i]
        row, one, other = U[i, i + 1 :], step[i + 1 :], along[i + 1 :]
        for j in range(row.size):
            s -= row[j] * one[j]
            t -= row[j] * other[j]
        step[i], along[i] = s / U[i, i], t / U[i, i]
    for i in range(n):
        at = active[i]
        new = x[at] + step[i] / norms[at]
        x[at] = new if new * signs[i] > 0.0 else 0.0
        path[at] = along[i] / norms[at]
