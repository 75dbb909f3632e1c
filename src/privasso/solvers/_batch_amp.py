"""AMP for many right-hand sides at once: matrix–matrix products, in single precision.

The same iteration as `_amp`, with one row of X per right-hand side. It only has to find the
supports nearly: the exact solves that follow find the columns that are still wrong. Single
precision is enough for that, and twice as fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numba import njit

from privasso._blas import run_parts
from privasso._clock import Clock
from privasso._threads import n_threads

#: A problem leaves the batch once an iteration changes less than this part of its support
SETTLED_TURNOVER = 0.03
#: and its coefficients are closer than this to where they will come to rest, relative to their
#: size. If it left earlier, more columns would have to change in the exact solve. An iteration
#: makes the distance smaller by a factor of about √(s/M), where s coefficients are not zero.
SETTLED_DISTANCE = 0.05
_MAX_ITER = 100
#: The last problems end with the others: the product of a few takes nearly as long as that of many.
_FEW = 1 / 32
#: A problem whose iterates still move by more than this at the end has not been solved,
_RESTLESS = 0.3
#: and one whose iterates move by all of their size after so many iterations will not be.
_EARLY = 12
#: V = s_θ beyond which, after as many, a problem is left to a single solve: it is unbounded, or λ
#: is close to critical.
_LOST_V = 20.0
#: A problem whose squared steps have not become shorter by this factor for so many iterations goes
#: round in circles.
_PROGRESS, _IDLE = 0.8, 8
#: Multiplications of one product, which takes a tenth of a second; until then Ctrl-C waits.
#: Products with fewer problems than this would be slow.
_LONGEST_CALL = 6e9
_SHORTEST_SHARE = 32
#: Rows below which a product is computed by columns.
_FEW_ROWS = 10
#: Once all problems are as close as this, columns of F whose |u|/λ is below this for every one of
#: them are left out.
_SCREEN_DISTANCE = 0.25
_SCREEN_BELOW = 0.5


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
    longest = max(_SHORTEST_SHARE, int(_LONGEST_CALL / (float(m) * n)))
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
    """Iterate on the problems `rhs` until they are done, or nearly all of them are."""
    (m, n), n_rhs = F.shape, rhs.size
    b: np.ndarray = B.astype(np.float32)
    lam: np.ndarray = lams.astype(np.float32)
    columns: np.ndarray = np.arange(n)
    X: np.ndarray = np.zeros((n_rhs, n), np.float32)
    G: np.ndarray = np.zeros((n_rhs, m), np.float32)
    s: np.ndarray = np.zeros(n_rhs, np.float32)
    screened: bool = False
    shortest: np.ndarray = np.full(n_rhs, np.inf)
    idle: np.ndarray = np.zeros(n_rhs, np.int64)
    for iteration in range(_MAX_ITER):
        if clock.expired():
            return
        if iteration == 0:
            U = np.zeros_like(X)  # x = 0: the field is b itself, no product needed
        else:
            inverse = (1.0 / (1.0 + s))[:, None]
            G *= s[:, None] * inverse
            W = _product(X, F.T)
            W *= inverse
            G -= W
            U = _product(G, F)
        sums = np.empty((4, rhs.size), np.float32)
        threshold(U, b, X, squares, s, lam, sums)
        active, flips, length, step = sums
        s = ((1.0 + s) * active / m).astype(np.float32)
        done = flips <= SETTLED_TURNOVER * np.maximum(active, 1)
        rate = 1.0 - np.sqrt(np.minimum(active / m, 1.0))
        done &= step <= (SETTLED_DISTANCE * rate) ** 2 * length
        lost = ~np.isfinite(s) | ~np.isfinite(step)
        if iteration >= _EARLY:
            lost |= (s > _LOST_V) | (step > length)  # the iterates change by all of their size
        relative = step / np.maximum(length, np.finfo(np.float32).tiny)
        shorter = relative < _PROGRESS * shortest
        shortest[shorter] = relative[shorter]
        idle = np.where(shorter, 0, idle + 1)
        done = (done & (iteration > 0)) | lost | (idle >= _IDLE)
        if iteration == _MAX_ITER - 1 or np.count_nonzero(~done) <= _FEW * n_rhs:
            done[:] = True
        near = None
        if not screened and (step <= (_SCREEN_DISTANCE * rate) ** 2 * length).all():
            near, screened = (np.abs(U) > _SCREEN_BELOW * lam[:, None]).any(axis=0), True
        if done.any():
            ended = rhs[done]
            out.x[np.ix_(ended, columns)] = X[done]
            moving = step > _RESTLESS**2 * length
            out.promising[ended] = ~(lost | moving)[done]
            out.n_iter[ended] = iteration
            keep = ~done
            rhs, s, lam = rhs[keep], s[keep], lam[keep]
            shortest, idle = shortest[keep], idle[keep]
            X, G, b = X[keep], G[keep], b[keep]
        if rhs.size == 0:
            return
        if near is not None and near.mean() < 0.8:
            columns, squares, F = columns[near], squares[near], F[:, near]
            X, b = X[:, near], np.ascontiguousarray(b[:, near])


def _product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """``A @ B``; if A has few rows, BLAS is faster with both factors transposed."""
    return A @ B if len(A) >= _FEW_ROWS else np.ascontiguousarray((B.T @ A.T).T)


@njit(nogil=True, cache=True, fastmath={"contract", "nsz", "reassoc"})
def threshold(U, B, X, squares, V, lams, sums):  # pragma: no cover
    """One thresholding step: U becomes the field, X the new iterate.

    For each problem, four sums are found: the number of coefficients that are not zero, of those
    that became or ceased to be zero, and the squared lengths of x and of its step, with
    coefficients weighted by column norms. The loop has no branches, so that it is vectorised.
    """
    zero, one = np.float32(0.0), np.float32(1.0)
    factors = np.empty_like(squares)
    for i in range(squares.size):
        factors[i] = one / squares[i] if squares[i] > zero else zero
    for k in range(lams.size):
        lam, wider = lams[k], one + V[k]
        narrower = one / wider
        u_row, b_row, x_row = U[k], B[k], X[k]
        active, flipped, length, moved = zero, zero, zero, zero
        for i in range(u_row.size):
            old, q = x_row[i], squares[i]
            u = u_row[i] + b_row[i] + old * (q * narrower)
            new = (max(u - lam, zero) + min(u + lam, zero)) * (wider * factors[i])
            step = new - old
            u_row[i] = u
            x_row[i] = new
            active += one if new != zero else zero
            flipped += one if (new != zero) != (old != zero) else zero
            length += q * new * new
            moved += q * step * step
        sums[0, k], sums[1, k], sums[2, k], sums[3, k] = active, flipped, length, moved
