"""AMP for many right-hand sides at once: matrix–matrix products, in single precision.

The same iteration as `_amp`, with one column of X per right-hand side. It only has to find
supports for the exact solves that follow. Single precision is enough for that, and twice as fast.
A column leaves the batch once its support hardly changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from privasso._blas import product
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


@njit(nogil=True, cache=True)
def threshold(U, B, X, squares, s, lam, lo, hi, counts, sizes, strongest):  # pragma: no cover
    """Rows lo..hi of one thresholding step: U becomes the field, X the new iterate.

    For each right-hand side, `counts` becomes the number of coefficients that are not zero and of
    those that became or ceased to be zero, `sizes` the squared lengths of x and of its step, with
    coefficients weighted by column norms; `strongest` becomes the largest |u|/λ of each row.
    """
    n_rhs = U.shape[1]
    for i in range(lo, hi):
        q = squares[i]
        top = np.float32(0.0)
        for k in range(n_rhs):
            scale = q / (np.float32(1.0) + s[k])
            u = U[i, k] + B[i, k] + X[i, k] * scale
            new = np.float32(0.0)
            if q > 0.0:
                if u > lam[k]:
                    new = (u - lam[k]) / scale
                elif u < -lam[k]:
                    new = (u + lam[k]) / scale
            if new != 0.0:
                counts[0, k] += 1
            if (new != 0.0) != (X[i, k] != 0.0):
                counts[1, k] += 1
            step = new - X[i, k]
            sizes[0, k] += q * new * new
            sizes[1, k] += q * step * step
            U[i, k] = u
            X[i, k] = new
            top = max(top, abs(u) / lam[k])
        strongest[i] = top


def batch_amp(op: Operator, squares: np.ndarray, B: np.ndarray, lam: np.ndarray) -> BatchStart:
    """Run AMP on every column of B until its support hardly changes, or to the iteration limit."""
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
        if iteration == 0:
            U = np.zeros_like(X)  # x = 0: the field is b itself, no product needed
        else:
            inverse = 1.0 / (1.0 + s)
            G *= s * inverse
            G -= product(F, X) * inverse
            U = product(F.T, G)
        (active, flips), (length, step), strongest = _threshold(U, b, X, sq, s, lam32)
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
        near = strongest > _SCREEN_BELOW
        if iteration == _SCREEN_AFTER and near.mean() < 0.8:
            rows, sq, F = rows[near], sq[near], F[:, near]
            X, b = X[near], b[near]
    return out


def _threshold(
    U: np.ndarray,
    B: np.ndarray,
    X: np.ndarray,
    squares: np.ndarray,
    s: np.ndarray,
    lam: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n, n_rhs = U.shape
    pieces = chunks(n, U.size, align=1)
    counts = np.zeros((len(pieces), 2, n_rhs), dtype=np.int64)
    sizes = np.zeros((len(pieces), 2, n_rhs))
    strongest = np.empty(n, np.float32)

    def task(piece: int):
        lo, hi = pieces[piece]
        return lambda: threshold(
            U, B, X, squares, s, lam, lo, hi, counts[piece], sizes[piece], strongest
        )

    run([task(piece) for piece in range(len(pieces))])
    return counts.sum(axis=0), sizes.sum(axis=0), strongest
