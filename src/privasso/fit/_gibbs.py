"""Sampling of coefficients that are few and large, or many and small, or both."""

from __future__ import annotations

from functools import partial

import numpy as np
from numba import njit

from privasso._threads import interruptible

#: Sweeps over the columns, fewer where each of them is long, and the part that is not counted.
_SWEEPS, _FEWEST, _WORK = 1500, 300, 1.5e9
_BURN_IN = 1 / 3
#: Multiplications between two moments at which an interruption is noticed.
_SLICE = 5e7
#: Sizes that a variance may have, as parts of the largest one, and their number.
_SMALLEST, _POINTS = 1e-8, 60


def posterior_moments(
    A: np.ndarray, h: np.ndarray, largest: float, *, sweeps: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of x under exp(−½xᵀAx + hᵀx) and a prior of two widths.

    Each x_i ~ π N(0, g) + (1 − π) N(0, g₀) with unknown π, g ≥ g₀: π is uniform on (0, 1), the
    logarithms of g and g₀ are uniform on a grid, and Σ_i E[x_i²] is at most about `largest`. With
    small π the prior is that of a sparse vector, with π near 0 or 1 that of a dense one. The mean
    is taken over a Markov chain with a fixed seed (Gibbs sampling, one column at a time).

    Parameters
    ----------
    A : ndarray of shape (N, N)
        Positive semidefinite.
    h : ndarray of shape (N,)
        Linear term.
    largest : float
        Bound of the sum of the prior variances.
    sweeps : int, optional
        Length of the chain; by default 1500, and down to 300 for very many columns.
    """
    n = h.size
    if sweeps is None:
        sweeps = int(min(_SWEEPS, max(_FEWEST, _WORK / n**2)))
    first = int(_BURN_IN * sweeps)
    state = np.zeros(n), np.asarray(h, dtype=np.float64).copy()
    logs = np.log(np.geomspace(_SMALLEST * largest, largest, _POINTS))
    sizes = np.stack([logs, np.exp(logs), np.exp(-logs)])
    hyper = np.array([0.5, 0.1 * largest / n, 1e-4 * largest / n])
    sums = np.zeros((2, n))
    step = max(1, int(_SLICE / n**2))
    rng = np.random.default_rng(0)
    for start in range(0, sweeps, step):
        stop = min(start + step, sweeps)
        # On another thread: numba crashes if Ctrl-C comes while it looks into a generator.
        interruptible(
            partial(_sweeps, A, *state, hyper, sizes, largest, sums, start, stop, first, rng)
        )
    mean, square = sums / (sweeps - first)
    return mean, np.sqrt(np.maximum(square - mean**2, 0.0))


@njit(cache=True, nogil=True)
def _sweeps(
    A: np.ndarray,
    x: np.ndarray,
    r: np.ndarray,
    hyper: np.ndarray,
    sizes: np.ndarray,
    largest: float,
    sums: np.ndarray,
    start: int,
    stop: int,
    first: int,
    rng: np.random.Generator,
) -> None:  # pragma: no cover - compiled
    """Advance the chain (x, r = h − Ax, hyper = (π, g, g₀)); sum up from sweep `first` on."""
    n = x.size
    for sweep in range(start, stop):
        pi, wide, narrow = hyper
        odds = np.log(pi / (1.0 - pi))
        count, wide_square, narrow_square = 0, 0.0, 0.0
        for i in range(n):
            a = A[i, i]
            field = r[i] + a * x[i]
            v1, v0 = 1.0 / (a + 1.0 / wide), 1.0 / (a + 1.0 / narrow)
            m1, m0 = v1 * field, v0 * field
            log_odds = odds + 0.5 * (np.log(v1 / wide) + m1 * field)
            log_odds -= 0.5 * (np.log(v0 / narrow) + m0 * field)
            p = 1.0 / (1.0 + np.exp(-log_odds)) if log_odds > -700.0 else 0.0
            if sweep >= first:
                sums[0, i] += p * m1 + (1.0 - p) * m0
                sums[1, i] += p * (m1 * m1 + v1) + (1.0 - p) * (m0 * m0 + v0)
            if rng.random() < p:
                new = m1 + np.sqrt(v1) * rng.standard_normal()
                count += 1
                wide_square += new * new
            else:
                new = m0 + np.sqrt(v0) * rng.standard_normal()
                narrow_square += new * new
            change = new - x[i]
            for j in range(n):
                r[j] -= A[i, j] * change
            x[i] = new
        hyper[0] = min(max(rng.beta(1.0 + count, 1.0 + n - count), 1e-6), 1.0 - 1e-6)
        # Each is drawn given the other: g ≥ g₀ cuts its law off, also where no entry has it.
        hyper[1] = _variance(sizes, hyper[2], np.inf, count, wide_square, largest, rng)
        hyper[2] = _variance(sizes, 0.0, hyper[1], n - count, narrow_square, largest, rng)


@njit(cache=True, nogil=True)
def _variance(
    sizes: np.ndarray,
    low: float,
    high: float,
    count: int,
    square: float,
    largest: float,
    rng: np.random.Generator,
) -> float:  # pragma: no cover - compiled
    """Draw a variance given `count` numbers of that variance whose squares add up to `square`.

    `sizes` holds the logarithms of the possible variances, these themselves and their inverses.
    Those below `low` or above `high` are left out.
    """
    points = sizes.shape[1]
    weights = np.empty(points)
    for k in range(points):
        weights[k] = -0.5 * count * sizes[0, k] - 0.5 * square * sizes[2, k]
        if sizes[1, k] < low * (1.0 - 1e-9) or sizes[1, k] > high * (1.0 + 1e-9):
            weights[k] = -np.inf
        excess = count * sizes[1, k] / largest - 1.0
        if excess > 0.0:
            weights[k] -= 5.0 * excess
    top, total = np.max(weights), 0.0
    for k in range(points):
        # Below e⁻⁵⁰ a weight is nothing in double precision.
        weights[k] = np.exp(weights[k] - top) if weights[k] - top > -50.0 else 0.0
        total += weights[k]
    u = rng.random() * total
    for k in range(points - 1):
        u -= weights[k]
        if u < 0.0:
            return sizes[1, k]
    return sizes[1, points - 1]
