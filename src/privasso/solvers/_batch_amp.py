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

from privasso._blas import run_parts
from privasso._clock import Clock
from privasso._threads import n_threads
from privasso.solvers import _tuned as tuned


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
