"""AdaSSP: least squares from noisy sufficient statistics, with a ridge chosen from them.

Wang (2018), Revisiting differentially private linear regression: optimal and adaptive prediction &
estimation in unbounded domain, Algorithm 2. It releases the smallest eigenvalue of FᵀF, the matrix
itself and Fᵀy by three Gaussian mechanisms of equal share. Neighbours: one record more or less.

Published rule: failure probability ϱ = 0.05, ridge
λ = max(0, σ√(d log(2d²/ϱ)) − λ̃), λ̃ = max(0, λ_min + σZ − σ√log(6/δ)), for rows and labels of norm
at most 1. The paper has σ = √log(6/δ)/(ε/3); here σ = √3/μ(ε, δ), which is the exact calibration of
the three together and less noise. Checked against the version in google-research (dp_regression),
which has the constants of the paper and takes bounds from the data; here bounds are public.
"""

from __future__ import annotations

import math

import numpy as np

from bench.real.peers.bounded import scaled, unscaled
from bench.real.peers.gaussian import mu_for, release
from bench.real.peers.linear import Linear
from bench.real.tables.table import Bounds

FAILURE = 0.05


def noisy_symmetric(gram: np.ndarray, mu: float, rng: np.random.Generator) -> np.ndarray:
    """FᵀF for rows of norm at most 1, with independent noise in its upper triangle."""
    upper = np.triu_indices(len(gram))
    noisy = np.zeros_like(gram)
    noisy[upper] = release(gram[upper], 1.0, mu, rng)
    return noisy + np.triu(noisy, 1).T


def noisy_smallest(gram: np.ndarray, mu: float, rng: np.random.Generator) -> float:
    """The smallest eigenvalue, which a row of norm at most 1 changes by at most 1."""
    return float(release(np.linalg.eigvalsh(gram)[:1], 1.0, mu, rng)[0])


def fit(
    X: np.ndarray,
    y: np.ndarray,
    *,
    epsilon: float,
    delta: float,
    y_bounds: Bounds,
    column_bounds: np.ndarray,
    rng: np.random.Generator,
) -> Linear:
    F, z = scaled(X, y, column_bounds, y_bounds)
    d = F.shape[1]
    mu = mu_for(epsilon, delta) / math.sqrt(3.0)
    sigma = 1.0 / mu
    gram = F.T @ F
    smallest = noisy_smallest(gram, mu, rng) - sigma * math.sqrt(math.log(6.0 / delta))
    ridge = max(0.0, sigma * math.sqrt(d * math.log(2.0 * d * d / FAILURE)) - max(0.0, smallest))
    noisy_gram = noisy_symmetric(gram, mu, rng)
    noisy_products = release(F.T @ z, 1.0, mu, rng)
    theta = np.linalg.pinv(noisy_gram + ridge * np.eye(d)) @ noisy_products
    return unscaled(theta, column_bounds, y_bounds)
