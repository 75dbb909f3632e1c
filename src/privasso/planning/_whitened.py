"""Second moments of rows in the coordinates in which the noise is white."""

from __future__ import annotations

import numpy as np

from privasso._blas import one_thread
from privasso.noise import Covariance


def whitened_moments(
    moments: np.ndarray, covariance: Covariance, sigma_sum: float, scale: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues a of L⁺GL⁺ᵀ, and LV, V its eigenvectors, where LLᵀ is the noise.

    Where G is larger than the covariance by one, its last entry belongs to a column of ones, whose
    noise is independent and has the deviation `sigma_sum`.

    - `moments` (n, n) or (n + 1, n + 1): G, of rows that the noise covers.
    - `covariance`: of the noise on n columns.
    - `scale` (n,): scales of the columns; they keep the arithmetic accurate, whatever the units
      are.
    """
    n, rank = covariance.size, covariance.rank
    ones = moments.shape[0] - n
    units = np.append(scale, np.ones(ones))
    L = np.zeros((n + ones, rank + ones))
    L[:n, :rank] = covariance.colour(np.eye(rank)) / scale[:, None]
    if ones:
        L[-1, -1] = sigma_sum
    length = np.sqrt(np.sum(L * L, axis=0))
    unit = L / length
    with one_thread():
        left = np.linalg.solve(unit.T @ unit, unit.T) / length[:, None]
        A = left @ (moments / np.outer(units, units)) @ left.T
        a, vectors = np.linalg.eigh(0.5 * (A + A.T))
    return np.maximum(a, 0.0), units[:, None] * (L @ vectors)
