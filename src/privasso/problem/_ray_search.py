"""The search for a ray with one factorisation of F, for many problems that share F."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.linalg import get_lapack_funcs

from privasso._threads import interruptible
from privasso.operators import Operator
from privasso.problem._boundedness import is_ray, ray_from
from privasso.problem._problem import Problem

_geqrf, _geqp3, _orgqr = get_lapack_funcs(("geqrf", "geqp3", "orgqr"), dtype=np.float64)
#: Columns that LAPACK may treat at once.
_BLOCK = 64
#: Largest M·N·min(M, N) for which F is factorised, which takes about a second.
_LIMIT = 4e9
#: Diagonal entries of the triangular factor below this part of the largest one: a smaller rank.
_RANK_TOLERANCE = 1e-12
#: Without the exchange of columns, entries below this part of the largest may mean the same.
_SUSPICIOUS = 1e-6


class RaySearch:
    """Projections on the null space of F, exact also where columns are nearly collinear.

    Conjugate gradients, which `ray_from` uses, need as many passes over F as the condition number
    is large. Here an orthonormal basis of the row space of FD⁻¹, D the column norms, is computed
    once, when the first direction is to be projected.

    `norms` (N,): norms of its columns, with 1 in the place of 0.
    """

    def __init__(self, op: Operator, norms: np.ndarray) -> None:
        self._op, self._norms = op, norms
        m, n = op.shape
        self._direct = float(m) * n * min(m, n) <= _LIMIT

    @cached_property
    def _basis(self) -> np.ndarray:
        """Orthonormal basis of the row space of FD⁻¹, one vector per column."""
        Q, size = interruptible(lambda: self._factorised(pivoting=False))
        if size.min(initial=np.inf) <= _SUSPICIOUS * size.max(initial=0.0):
            del Q
            Q, size = interruptible(lambda: self._factorised(pivoting=True))
            Q = Q[:, : np.count_nonzero(size > _RANK_TOLERANCE * size.max(initial=0.0))]
        return Q

    def _factorised(self, *, pivoting: bool) -> tuple[np.ndarray, np.ndarray]:
        """The orthonormal factor of (FD⁻¹)ᵀ, and the sizes of the diagonal of the triangular one.

        With pivoting these are in descending order. The factor takes the place of the matrix.
        """
        A = np.divide(self._op.toarray(), self._norms, order="C").T  # as LAPACK wants it
        rows, columns = A.shape
        room = _BLOCK * max(columns, 1)
        if pivoting:
            A, _, tau, *_ = _geqp3(A, lwork=room, overwrite_a=1)
        else:
            A, tau, *_ = _geqrf(A, lwork=room, overwrite_a=1)
        size = np.abs(np.diag(A))
        Q, *_ = _orgqr(A[:, : min(rows, columns)], tau, lwork=room, overwrite_a=1)
        return Q, size

    def _outside(self, d: np.ndarray) -> np.ndarray:
        """The part of d in the null space of FD⁻¹."""
        Q = self._basis
        if Q.shape[1] >= Q.shape[0]:  # full column rank
            return np.zeros_like(d)
        r = np.array(d, dtype=np.float64)
        for _ in range(2):  # the second time removes the rounding errors of the first
            r -= Q @ (Q.T @ r)
        return r

    def ray(self, problem: Problem, x: np.ndarray) -> np.ndarray | None:
        """Project x on the null space of F and return the result if it is a ray."""
        if not self._direct:
            return ray_from(problem, x)
        scale = float(np.abs(x).max(initial=0.0))
        if scale == 0.0:
            return None
        d = self._outside(x / scale * self._norms) / self._norms
        largest = float(np.abs(d).max())
        if largest == 0.0:
            return None
        d = d / largest
        return d if is_ray(problem, d) else None
