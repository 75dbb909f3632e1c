"""Perturbed fits in the coordinates in which the noise is white."""

from __future__ import annotations

from typing import Any

import numpy as np

from privasso._blas import one_thread
from privasso.noise import Covariance
from privasso.theory import clipped_moments


def clipped_law(
    kappa: float,
    a: np.ndarray,
    prior: np.ndarray,
    own: Any,
    noise: Any,
    ridge: Any,
    n_rows: float,
    steps: int = 40,
) -> tuple[np.ndarray, np.ndarray]:
    """Mean slope q and mean square of the clipped residuals of a perturbed fit, for several cases.

    In coordinates in which noise and ridge are multiples of the identity the minimiser is
    u = (qA + Λ)⁻¹(qAx₀ + √E_g A^½ z + σz') in law, and a residual has the variance

        E = τ² + (1/M) E‖G(x₀ − u)‖²,

    from which q and E_g follow as in state evolution.

    - `a` (N,): eigenvalues of A = GᵀG.
    - `prior` (..., N): squares of x₀, or their variances.
    - `own` (...): τ². `noise`, `ridge`: σ² and Λ. `n_rows`: M.
    """
    E = own + prior @ a / n_rows
    q, square = np.ones_like(E), np.full_like(E, 0.25 * kappa**2)
    for _ in range(steps):
        inverse = 1.0 / (q[..., None] * a + ridge)
        V = inverse @ a / n_rows
        spread = ridge**2 * prior + square[..., None] * a + noise
        E = 0.5 * (E + own + (spread * inverse**2) @ a / n_rows)
        q, square = clipped_moments(kappa, E, V)
    return q, square


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
