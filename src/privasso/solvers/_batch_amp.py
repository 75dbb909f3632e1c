"""AMP for many right-hand sides at once: matrix–matrix products, in single precision.

The same iteration as `_amp`, with one column of X per right-hand side. It only has to find
supports for the exact solves that follow. Single precision is enough for that, and twice as fast.
A column leaves the batch once its support hardly changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numba import njit

from privasso._blas import product
from privasso._clock import Clock
from privasso._threads import chunks, run
from privasso.operators import Operator

#: A column leaves once an iteration changes less than this part of its support
SETTLED_TURNOVER = 0.002
#: and moves its coefficients by less than this, relative to their size. Both are small, because an
#: iteration takes far less time than the factorisation that a wrong support would need.
SETTLED_CHANGE = 2e-4
_MAX_ITER = 50
#: A column whose iterates still move by more than this at the end has not been solved,
_RESTLESS = 0.3
#: and one whose iterates move as much after so many iterations will not be.
_EARLY = 12
#: V = s_θ beyond which a problem is left to a single solve: it is unbounded, or λ is close to
#: critical.
_LOST_V = 20.0
#: After this many iterations, columns of F whose |u|/λ is below this for every right-hand side are
#: left out.
_SCREEN_AFTER = 3
_SCREEN_BELOW = 0.5


@dataclass(frozen=True, eq=False)
class BatchStart:
    """Where batched AMP ended.

    Attributes
    ----------
    x : ndarray, shape (N, K)
        Approximate minimisers.
    field : ndarray, shape (N, K)
        The field u divided by λ.
    promising : ndarray of bool, shape (K,)
        Whether V stayed small and the iterates came to rest, so that the support is worth an exact
        solve.
    n_iter : ndarray of int, shape (K,)
        Iterations taken.
    """

    x: np.ndarray
    field: np.ndarray
    promising: np.ndarray
    n_iter: np.ndarray


@njit(nogil=True, cache=True, fastmath={"contract", "nsz"})
def threshold(U, B, X, squares, inverses, V, lam, lo, hi, sums):  # pragma: no cover
    """Rows lo..hi of one thresholding step: U becomes the field, X the new iterate.

    For each right-hand side, four sums are added up: the number of coefficients that are not zero,
    of those that became or ceased to be zero, and the squared lengths of x and of its step, with
    coefficients weighted by column norms. The loop has no branches, so that it is vectorised.
    """
    zero, one = np.float32(0.0), np.float32(1.0)
    active, flipped, length, moved = sums[0], sums[1], sums[2], sums[3]
    wider = one + V
    narrower = one / wider
    for i in range(lo, hi):
        q, inverse = squares[i], inverses[i]
        u_row, b_row, x_row = U[i], B[i], X[i]
        for k in range(lam.size):
            old = x_row[k]
            u = u_row[k] + b_row[k] + old * (q * narrower[k])
            new = (max(u - lam[k], zero) + min(u + lam[k], zero)) * (wider[k] * inverse)
            step = new - old
            u_row[k] = u
            x_row[k] = new
            active[k] += one if new != zero else zero
            flipped[k] += one if (new != zero) != (old != zero) else zero
            length[k] += q * new * new
            moved[k] += q * step * step


def batch_amp(
    op: Operator, squares: np.ndarray, B: np.ndarray, lam: np.ndarray, clock: Clock
) -> BatchStart:
    """Run AMP on every column of B until its support hardly changes, or to the iteration limit.

    Columns that are not done when the clock has expired are not promising.
    """
    m, n = op.shape
    n_rhs = B.shape[1]
    x, field = np.zeros((n, n_rhs), np.float32), np.zeros((n, n_rhs), np.float32)
    out = BatchStart(x, field, np.zeros(n_rhs, dtype=bool), np.zeros(n_rhs, dtype=np.int64))
    F = op.single()
    rows = np.arange(n)
    rhs = np.arange(n_rhs)
    sq, b, lam32 = squares.astype(np.float32), B.astype(np.float32), lam.astype(np.float32)
    X, G = np.zeros((n, n_rhs), np.float32), np.zeros((m, n_rhs), np.float32)
    s = np.zeros(n_rhs, np.float32)
    for iteration in range(_MAX_ITER):
        if clock.expired():
            break
        if iteration == 0:
            U = np.zeros_like(X)  # x = 0: the field is b itself, no product needed
        else:
            inverse = 1.0 / (1.0 + s)
            G *= s * inverse
            G -= product(F, X) * inverse
            U = product(F.T, G)
        active, flips, length, step = _threshold(U, b, X, sq, s, lam32)
        screened = iteration == _SCREEN_AFTER
        near = (
            (np.abs(U) > _SCREEN_BELOW * lam32).any(axis=1) if screened else np.ones(len(U), bool)
        )
        s = ((1.0 + s) * active / m).astype(np.float32)
        done = flips <= SETTLED_TURNOVER * np.maximum(active, 1)
        done &= step <= SETTLED_CHANGE**2 * length
        lost = ~np.isfinite(s) | (s > _LOST_V) | ~np.isfinite(step)
        if iteration >= _EARLY:
            lost |= step > length  # the iterates change by all of their size
        done = (done & (iteration > 0)) | lost | (iteration == _MAX_ITER - 1)
        if done.any():
            columns = rhs[done]
            out.x[np.ix_(rows, columns)] = X[:, done]
            out.field[np.ix_(rows, columns)] = U[:, done] / lam32[done]
            moving = step > _RESTLESS**2 * length
            out.promising[columns] = ~(lost | moving)[done]
            out.n_iter[columns] = iteration
            keep = ~done
            rhs, s, lam32 = rhs[keep], s[keep], lam32[keep]
            X, G, b = X[:, keep], G[:, keep], b[:, keep]
        if rhs.size == 0:
            break
        if near.mean() < 0.8:
            rows, sq, F = rows[near], sq[near], F[:, near]
            X, b = X[near], b[near]
    return out


def _threshold(
    U: np.ndarray,
    B: np.ndarray,
    X: np.ndarray,
    squares: np.ndarray,
    V: np.ndarray,
    lam: np.ndarray,
) -> np.ndarray:
    """`threshold` on all rows; returns its four sums."""
    n, n_rhs = U.shape
    pieces = chunks(n, U.size, align=1)
    sums = np.zeros((len(pieces), 4, n_rhs), np.float32)
    inverses = np.where(squares > 0, 1.0 / np.where(squares > 0, squares, 1.0), 0.0)
    args = U, B, X, squares, inverses.astype(np.float32), V, lam
    run(
        [partial(threshold, *args, lo, hi, own) for (lo, hi), own in zip(pieces, sums, strict=True)]
    )
    return sums.sum(axis=0)
