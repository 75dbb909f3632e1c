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

    Parameters
    ----------
    moments : ndarray of shape (n, n) or (n + 1, n + 1)
        G, of rows that the noise covers.
    covariance : Covariance
        Of the noise on n columns.
    sigma_sum : float
        See above.
    scale : ndarray of shape (n,)
        Scales of the columns; they keep the arithmetic accurate, whatever the units are.

    Examples
    --------
    >>> from privasso.noise import Diagonal
    >>> a, root = whitened_moments(np.diag([8.0, 3.0]), Diagonal([4.0]), 1.0, np.ones(1))
    >>> a.tolist(), np.abs(root).tolist()
    ([2.0, 3.0], [[2.0, 0.0], [0.0, 1.0]])
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
