"""Many problems on one F: AMP in single precision, then Newton steps with shared correlations.

Batched AMP is the iteration of `_amp` with one row of X per right-hand side. It only has to find
the supports nearly: the exact solves that follow find the columns that are still wrong. Single
precision is enough for that, and twice as fast.

Where the support A and its signs are known, the minimiser solves F_AᵀF_A Δx_A = c_A − λ sgn(x_A),
c = b − FᵀFx. From a start that is right to a few parts in a hundred, some columns still have to
leave the support or to join it. `settle` finds them with one factor in single precision, and the
integers of `fixed_correlations` restore the digits that the factor lacks. What is left is the
rounding of these integers, times the length of the step.

Nothing makes sure that this ends; who takes steps checks each point and gives up after a few.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

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


@dataclass(frozen=True, eq=False)
class BatchStart:
    """Where batched AMP ended; row k of each array belongs to problem k.

    `x` (K, N): approximate minimisers. `promising` (K,): whether V stayed small and the iterates
    came to rest, so that the support is worth an exact solve.
    """

    x: np.ndarray
    promising: np.ndarray
    n_iter: np.ndarray


def batch_amp(
    F: np.ndarray, squares: np.ndarray, B: np.ndarray, lams: np.ndarray, clock: Clock
) -> BatchStart:
    """Run AMP on every row of B until its support hardly changes, or to the iteration limit.

    F is in single precision. Each thread takes a share of the rows. Problems that are not done when
    the clock has expired are not promising.
    """
    (m, n), n_rhs = F.shape, len(B)
    x = np.zeros((n_rhs, n), np.float32)
    out = BatchStart(x, np.zeros(n_rhs, dtype=bool), np.zeros(n_rhs, dtype=np.int64))
    longest = max(tuned.SHORTEST_SHARE, int(tuned.LONGEST_CALL / (float(m) * n)))
    count = min(n_rhs, max(n_threads(), -(-n_rhs // longest)))
    edges = [n_rhs * k // count for k in range(count + 1)]
    single = squares.astype(np.float32)
    shares = [
        partial(_run_share, F, single, B[lo:hi], lams[lo:hi], out, np.arange(lo, hi), clock)
        for lo, hi in pairwise(edges)
    ]
    run_parts(shares, clock)
    return out


def _run_share(
    F: np.ndarray,
    squares: np.ndarray,
    B: np.ndarray,
    lams: np.ndarray,
    out: BatchStart,
    rhs: np.ndarray,
    clock: Clock,
) -> None:
    """Iterate on the problems `rhs` until they are done."""
    m = len(F)
    b: np.ndarray = B.astype(np.float32)
    lam: np.ndarray = lams.astype(np.float32)
    X: np.ndarray = np.zeros_like(b)
    G: np.ndarray = np.zeros((rhs.size, m), np.float32)
    V: np.ndarray = np.zeros(rhs.size, np.float32)
    inverse_squares = np.divide(1.0, squares, out=np.zeros_like(squares), where=squares > 0.0)
    for iteration in range(tuned.BATCH_ITERATIONS):
        if clock.expired():
            return
        wider = (1.0 + V)[:, None]
        U = b + X * (squares / wider)
        if iteration:  # from x = 0 the field is b itself, no product needed
            G *= V[:, None] / wider
            G -= (X @ F.T) / wider
            U += G @ F
        new = U - np.clip(U, -lam[:, None], lam[:, None])
        new *= wider * inverse_squares
        active = np.count_nonzero(new, axis=1)
        flips = np.count_nonzero((new != 0.0) != (X != 0.0), axis=1)
        X -= new
        step, length = (np.einsum("ki,ki,i->k", A, A, squares) for A in (X, new))
        X, V = new, ((1.0 + V) * (active / m)).astype(np.float32)
        rate = 1.0 - np.sqrt(np.minimum(active / m, 1.0))
        done = (flips <= tuned.BATCH_TURNOVER * np.maximum(active, 1)) & (iteration > 0)
        with np.errstate(invalid="ignore"):  # of those that are lost
            done &= step <= (tuned.BATCH_DISTANCE * rate) ** 2 * length
        lost = ~np.isfinite(V) | ~np.isfinite(step)
        done |= lost | (iteration == tuned.BATCH_ITERATIONS - 1)
        if done.any():
            ended, keep = rhs[done], ~done
            out.x[ended] = X[done]
            out.promising[ended] = ~(lost | (step > tuned.BATCH_RESTLESS**2 * length))[done]
            out.n_iter[ended] = iteration
            rhs, V, lam, X, G, b = (A[keep] for A in (rhs, V, lam, X, G, b))
        if rhs.size == 0:
            return
