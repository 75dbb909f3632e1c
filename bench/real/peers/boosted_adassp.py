"""Boosted AdaSSP: gradient boosting whose weak learner is AdaSSP.

Tang, Aydore, Kearns, Rho, Roth, Wang, Wang, Wu (2023), Improved differentially private regression
via gradient boosting. FᵀF and its smallest eigenvalue are released once; each of T rounds releases
the products of F with the residuals, clipped, and adds the ridge solution to the model. Neighbours:
one record more or less.

Published rule, fixed for all tables: T = 100 rounds, rows and residuals clipped to norm 1, no
shrinkage, all T + 2 Gaussian mechanisms of one noise multiplier, σ = √(T+2)/μ(ε, δ), and the ridge
max(0, 1.96·σ√d − λ̃) with λ̃ = max(0, λ_min + σZ − 1.96·σ).

Checked against the first program of the authors (shuaitang/BoostedAdaSSP), which has these numbers
as its defaults. Its later version takes μ for σ and does not compose, which is no guarantee, so it
is not followed. The program clips raw rows to norm 1; here columns are in the units of their bounds
first, which all peers get.
"""

from __future__ import annotations

import math

import numpy as np

from bench.real.peers.adassp import noisy_smallest, noisy_symmetric
from bench.real.peers.bounded import scaled, unscaled
from bench.real.peers.gaussian import mu_for, release
from bench.real.peers.linear import Linear
from bench.real.tables.table import Bounds

ROUNDS = 100
QUANTILE = 1.96


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
    mu = mu_for(epsilon, delta) / math.sqrt(ROUNDS + 2.0)
    sigma = 1.0 / mu
    gram = F.T @ F
    smallest = max(0.0, noisy_smallest(gram, mu, rng) - QUANTILE * sigma)
    ridge = max(0.0, QUANTILE * sigma * math.sqrt(d) - smallest)
    inverse = np.linalg.pinv(noisy_symmetric(gram, mu, rng) + ridge * np.eye(d))
    theta = np.zeros(d)
    for _ in range(ROUNDS):
        residual = np.clip(z - F @ theta, -1.0, 1.0)
        theta += inverse @ release(F.T @ residual, 1.0, mu, rng)
    return unscaled(theta, column_bounds, y_bounds)
