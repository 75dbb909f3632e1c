"""Rows in units of the noise, as integers, so that sums over them and their norms are exact.

A row f_μ is whitened, g_μ = Σ^(−½) f_μ, with 1/σ₀ for the intercept appended, and rounded to a
grid: k_μ = rint(2^a w_μ g_μ), w_μ the weight of the row. Covariates and weights are public, so the
integers k_μ are public too, and rounding them costs no privacy. What is released is Σ_μ k_μ ℓ_μ
with integer labels ℓ_μ. It is computed without any rounding, so changing one label changes it by
exactly k_μ times the change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from privasso._blas import one_thread
from privasso._threads import n_threads, run
from privasso.noise import Covariance, Diagonal
from privasso.operators import Covariates

#: Labels are split into parts of so many bits, so that sums over many rows stay below 2^53.
SPLIT, PARTS = 9, 3
#: Entries of F turned into integers at a time; a megabyte stays in cache.
_CHUNK = 1 << 17
#: and rows, so that sums over a block stay exact.
_MOST_ROWS = 1 << 14
_EPS = np.finfo(np.float64).eps
EXACT = 2.0**53
TOO_LARGE = "a row is too large in units of the noise for exact sums; is epsilon sensible?"


@dataclass(frozen=True, eq=False)
class IntegerSums:
    """What one pass over the rows finds.

    Attributes
    ----------
    products : list of int
        Σ_μ k_μ ℓ_μ, one per whitened coordinate.
    intercept : int
        The same for the column of ones.
    largest : float
        max_μ span_μ²‖k_μ‖², rounded up: no label can move the sums by more than its root.
    """

    products: list[int]
    intercept: int
    largest: float


def integer_sums(
    rows: Covariates,
    covariance: Covariance,
    sigma_sum: float,
    labels: np.ndarray,
    exponent: int,
    span: int | np.ndarray = 1,
    weights: np.ndarray | None = None,
) -> IntegerSums:
    """Sum integer rows times integer labels exactly, and find their sensitivity, in one pass.

    Parameters
    ----------
    rows : Covariates
        The covariates, centred where there is an intercept.
    covariance : Covariance
        Of the noise on the live columns.
    sigma_sum : float
        Standard deviation of the noise on the label sum; not used without an intercept.
    labels : ndarray of int64, shape (M,)
        ℓ, below 2^27 in size.
    exponent : int
        a.
    span : int or ndarray of int64, shape (M,)
        By how much a label can change.
    weights : ndarray of shape (M,) or None
        w, which may be zero, also for rows that the noise does not cover. Not for rows that stay
        sparse, see `stays_sparse`.

    Examples
    --------
    >>> rows = Covariates(np.array([[0.5, 2.0], [0.25, -1.0]]), centre=False)
    >>> sums = integer_sums(rows, Diagonal([1.0, 4.0]), 0.0, np.array([3, 1]), exponent=2)
    >>> sums.products, round(sums.largest, 9)  # rows 4·(½, 1) and 4·(¼, −½)
    ([7, 10], 20.0)
    """
    ones = np.zeros(1)
    if rows.centred:
        ones = np.rint((2.0**exponent / sigma_sum) * (np.ones(1) if weights is None else weights))
    parts = label_parts(labels)
    if rows.sparse and isinstance(covariance, Diagonal):
        assert weights is None
        sums, squares = _sparse_sums(rows, covariance, parts, exponent)
    else:
        sums, squares = _dense_sums(rows, covariance, parts, exponent, weights)
    products = [sum(x << (SPLIT * k) for k, x in enumerate(row)) for row in sums]
    slack = 1.0 + (covariance.size + 16) * _EPS
    changes = np.square(np.asarray(span, dtype=np.float64))
    largest = float(np.max(changes * (squares + ones**2)) * slack)
    return IntegerSums(products, _intercept_sum(ones, labels), largest)


def stays_sparse(rows: Covariates, covariance: Covariance) -> bool:
    """Whether the rows are whitened without forming them."""
    return rows.sparse and isinstance(covariance, Diagonal)


def _intercept_sum(ones: np.ndarray, labels: np.ndarray) -> int:
    """Σ_μ k_μ ℓ_μ for the column of ones, which has one integer or one for each row."""
    if ones.size == 1:
        return int(ones[0]) * int(labels.sum())
    if float(np.max(np.abs(ones))) * _MOST_ROWS * 2.0**SPLIT >= EXACT:
        raise ValueError(TOO_LARGE)
    factors, total = label_parts(labels).astype(np.float64), 0
    for start in range(0, labels.size, _MOST_ROWS):
        span = slice(start, start + _MOST_ROWS)
        total += sum(int(x) << (SPLIT * k) for k, x in enumerate(ones[span] @ factors[span]))
    return total


def label_parts(labels: np.ndarray) -> np.ndarray:
    """Columns ℓ_k with ℓ = Σ_k 2^9k ℓ_k: bits for all but the last, which has the sign."""
    mask = (1 << SPLIT) - 1
    low = [(labels >> (SPLIT * k)) & mask for k in range(PARTS - 1)]
    return np.stack([*low, labels >> (SPLIT * (PARTS - 1))], axis=1)


def _dense_sums(
    rows: Covariates,
    covariance: Covariance,
    parts: np.ndarray,
    exponent: int,
    weights: np.ndarray | None,
) -> tuple[list[list[int]], np.ndarray]:
    """Sums over the rows for each live column and each part of the labels, and all ‖k_μ‖².

    Integers add up to the same in any order, so the result does not depend on the threads.
    """
    factors = parts.astype(np.float64)
    count = n_threads()
    edges = [rows.shape[0] * k // count for k in range(count + 1)]
    found: list[list[int]] = [[]] * count
    squares = np.empty(rows.shape[0])

    def work(k: int) -> None:
        blocks = _integer_blocks(rows, covariance, exponent, edges[k], edges[k + 1], weights)
        found[k] = _span_sums(blocks, factors, covariance.rank, squares)

    with one_thread():
        run([partial(work, k) for k in range(count)])
    totals = [sum(values) for values in zip(*found, strict=True)]
    sums = [totals[PARTS * i : PARTS * (i + 1)] for i in range(covariance.rank)]
    return sums, squares


def _span_sums(
    blocks: Iterator[tuple[slice, np.ndarray]], factors: np.ndarray, n: int, squares: np.ndarray
) -> list[int]:
    """The same for the blocks of one thread; ‖k_μ‖² is written to `squares`."""
    totals: list[int] = [0] * (PARTS * n)
    pending, room = np.zeros((n, PARTS)), EXACT
    for span, K in blocks:
        # Every partial sum of the product is an integer below this bound, hence exact.
        bound = float(np.max(np.abs(K), initial=0.0)) * 2.0**SPLIT * K.shape[0]
        if bound >= EXACT:
            raise ValueError(TOO_LARGE)
        if bound > room:
            totals = _flushed(totals, pending)
            room = EXACT
        pending += K.T @ factors[span]
        room -= bound
        squares[span] = np.einsum("ij,ij->i", K, K)
    return _flushed(totals, pending)


def _flushed(totals: list[int], pending: np.ndarray) -> list[int]:
    """Add sums that are exact as doubles to the totals, and start them at zero again."""
    new = [total + int(x) for total, x in zip(totals, pending.ravel().tolist(), strict=True)]
    pending[:] = 0.0
    return new


def _integer_blocks(
    rows: Covariates,
    covariance: Covariance,
    exponent: int,
    start: int,
    stop: int,
    weights: np.ndarray | None,
) -> Iterator[tuple[slice, np.ndarray]]:
    """Blocks of k_μ of the rows start to stop, as integer-valued doubles."""
    everything = bool(rows.live.all())
    for span, block in rows.blocks(min(_CHUNK, _MOST_ROWS * rows.shape[1]), start, stop):
        live = block if everything else block[:, rows.live]
        white = covariance.whiten(live.T).T
        if weights is not None:
            w = weights[span, None]
            white = np.multiply(w, white, out=np.zeros_like(white), where=w > 0.0)
        yield span, np.rint(np.ldexp(white, exponent))


def _sparse_sums(
    rows: Covariates, covariance: Diagonal, parts: np.ndarray, exponent: int
) -> tuple[list[list[int]], np.ndarray]:
    """The same for sparse rows, without forming them.

    In a centred row a stored entry is k = rint(2^a (f − mean)/σ) and an absent one is
    z = rint(−2^a mean/σ), so that Σ_μ k_μ ℓ_μ = Σ_stored (k − z) ℓ + z Σ_μ ℓ_μ, in integers. A
    column stored in every row has no absent entries, and z is not needed.
    """
    K = rows.stored.copy()
    m, n = K.shape
    full = np.bincount(K.indices, minlength=n) == m
    scale, mean = np.ldexp(1.0 / covariance.sigma, exponent), rows.mean[rows.live]
    absent = np.where(full, 0.0, np.rint(-mean * scale))
    centred = np.rint((K.data - mean[K.indices]) * scale[K.indices])
    K.data = (centred - absent[K.indices]).astype(np.int64)
    if float(np.max(np.abs(K.data), initial=0)) * 2.0**SPLIT * m >= 2.0**62:
        raise ValueError(TOO_LARGE)
    stored_sums, totals = (K.T @ parts).tolist(), parts.sum(axis=0).tolist()
    sums = [
        [x + int(z) * total for x, total in zip(row, totals, strict=True)]
        for row, z in zip(stored_sums, absent.tolist(), strict=True)
    ]
    total = float(np.sum(absent**2))
    own = _row_sums(K, centred**2)
    replaced = _row_sums(K, absent[K.indices] ** 2)
    rounding = 4.0 * (n + 4) * _EPS * total
    return sums, own + np.maximum(total - replaced, 0.0) + rounding


def _row_sums(K: Any, values: np.ndarray) -> np.ndarray:
    """Sum over the stored entries of each row of one value per entry."""
    return sp.csr_array((values, K.indices, K.indptr), shape=K.shape) @ np.ones(K.shape[1])
