"""Newton steps for many problems on one F, with one matrix of correlations for all of them.

Where the support A and its signs are known, the minimiser solves F_AᵀF_A Δx_A = c_A − λ sgn(x_A),
c = b − FᵀFx. From a start that is right to a few parts in a hundred, some columns still have to
leave the support or to join it. `settle` finds them with one factor in single precision, and the
integers of `fixed_correlations` restore the digits that the factor lacks. What is left is the
rounding of these integers, times the length of the step.

Nothing makes sure that this ends; who takes steps checks each point and gives up after a few.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numba import njit

from privasso._blas import FIXED, factorise_upper, fixed_correlations, run_parts
from privasso._clock import Clock
from privasso._threads import n_threads
from privasso.operators import Operator
from privasso.solvers import _tuned as tuned
from privasso.solvers._bordered import LOST, SETTLED, settle, square_submatrix

#: Numbers in single precision that fill a vector register.
_LINE = 16


class NewtonSteps:
    """Steps on the columns `used` of F, outside of which all coefficients are zero.

    `norms` (N,): norms of its columns.
    """

    def __init__(self, op: Operator, norms: np.ndarray, used: np.ndarray) -> None:
        if used.size > tuned.BORDER_ALL * op.shape[1]:
            used = np.arange(op.shape[1])  # without a copy of the columns
        self._used, self._norms = used, norms[used]
        self._rank = min(op.shape)
        columns = op.single()[:, used] if op.entry_bytes == 4 else op.columns(used)
        self._gram = fixed_correlations(columns, self._norms)

    def take(
        self,
        X: np.ndarray,
        C: np.ndarray,
        lams: np.ndarray,
        rows: np.ndarray,
        paths: np.ndarray,
        clock: Clock,
    ) -> np.ndarray:
        """Move each row X[k], k in `rows`, in place; the j-th of them has c in C[j].

        Row k of `paths` becomes (F_AᵀF_A)⁻¹ λ sgn(x_A), how x changes as λ decreases. A row stays
        as it is if no support is found, the support is larger than M, or its columns depend on one
        another. Returns which rows have moved.
        """
        parts = n_threads()
        settled = np.zeros(rows.size, dtype=bool)

        def work(part: int) -> None:
            room = aligned(0)
            for j in range(part, rows.size, parts):
                if clock.expired():
                    return
                k, path = rows[j], np.zeros(self._used.size)
                z, gamma = X[k, self._used] * self._norms, C[j, self._used] / self._norms
                room, settled[j] = self._minimise(z, gamma, lams[k] / self._norms, path, room)
                if settled[j]:
                    X[k, self._used], paths[k, self._used] = z / self._norms, path / self._norms

        run_parts([partial(work, part) for part in range(parts)], clock)
        return settled

    def _minimise(
        self,
        z: np.ndarray,
        gamma: np.ndarray,
        weights: np.ndarray,
        path: np.ndarray,
        room: np.ndarray,
    ) -> tuple[np.ndarray, bool]:
        """Move z to the minimiser; returns room for further factors, and whether z is there."""
        side = sides(z, gamma, weights)
        for _ in range(tuned.BORDER_FACTORS):
            active = np.flatnonzero(side)
            n = active.size
            if not 0 < n <= self._rank:
                break
            stride = -(-n // _LINE) * _LINE
            if room.size < n * stride:
                room = aligned(n * stride)
            Q = room[: n * stride].reshape(n, stride)
            L = Q.view(np.int32)
            square_submatrix(self._gram, active, Q, L)
            if not factorise_upper(Q[:, :n]):
                break
            near = np.flatnonzero((side == 0.0) & (np.abs(gamma) > tuned.BORDER_NEAR * weights))
            watched = np.concatenate([active, near])
            limit = max(tuned.LEAST_BORDER, n // tuned.BORDER_PART)
            outcome = settle(Q, L, self._gram, watched, side, z, gamma, weights, limit, path)
            if outcome == SETTLED:
                return room, True
            if outcome == LOST:
                break
            for gone in np.flatnonzero((side == 0.0) & (z != 0.0)):
                gamma += self._gram[gone] * (FIXED * z[gone])
                z[gone] = 0.0
        return room, False


def aligned(size: int) -> np.ndarray:
    """An array that begins where vector registers are filled from."""
    memory = np.empty(size + _LINE, np.float32)
    first = -(memory.ctypes.data // memory.itemsize) % _LINE
    return memory[first : first + size]


@njit(nogil=True, cache=True)
def sides(z, gamma, weights):  # pragma: no cover
    """Signs of the support and of the columns whose condition is violated; otherwise zero."""
    out = np.sign(z)
    for i in range(z.size):
        if z[i] == 0.0 and abs(gamma[i]) > weights[i]:
            out[i] = np.sign(gamma[i])
    return out
