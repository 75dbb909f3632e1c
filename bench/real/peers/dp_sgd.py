"""DP-SGD: descent along clipped gradients with noise, on Poisson samples of the records.

Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar, Zhang (2016), Deep learning with differential
privacy. The noise multiplier is the least at which the composed, subsampled Gaussian mechanism is
(ε, δ)-private by the privacy loss distribution of Google's dp-accounting (by Rényi divergences
above ε = 100). Neighbours: one record more or less.

The paper tunes its settings and pays nothing for it. Here they are fixed beforehand for all tables:
sampling rate 0.1, 300 steps, gradients of the squared error in the unit of the public bounds
clipped to norm 1 (the rows have norm at most √(N+1)), and Adam (Kingma and Ba 2015; it only
post-processes the noisy gradients) with step size 0.03 and the mean of the second half as the
answer. Amin and others (2023) tune the same optimiser on each table; their program
(google-research, dp_regression) gives 20 epochs, clipping norm 1 and step size 1 as the best for
one of them. No rule without tuning was found.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np

from bench.real.peers.bounded import scaled, unscaled
from bench.real.peers.gaussian import release
from bench.real.peers.linear import Linear
from bench.real.tables.table import Bounds

RATE, STEPS, CLIP = 0.1, 300, 1.0
STEP_SIZE, FIRST, SECOND, SMALL = 0.03, 0.9, 0.999, 1e-8
_LARGE_EPSILON = 100.0


@cache
def noise_multiplier(epsilon: float, delta: float, rate: float = RATE, steps: int = STEPS) -> float:
    """The least noise over clipping norm at which all steps together are (ε, δ)-private."""
    import dp_accounting
    from dp_accounting import pld, rdp

    def event(sigma: float) -> dp_accounting.DpEvent:
        step = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(sigma))
        return dp_accounting.SelfComposedDpEvent(step, steps)

    def calibrated(accountant: Callable[[], dp_accounting.PrivacyAccountant], *ends: float):
        bracket = dp_accounting.ExplicitBracketInterval(*ends)
        return float(
            dp_accounting.calibrate_dp_mechanism(
                accountant, event, epsilon, delta, bracket_interval=bracket, tol=1e-3
            )
        )

    # The bound by Rényi divergences is quick, and close enough to bracket the exact answer.
    quick = partial(rdp.RdpAccountant, orders=[*range(2, 65), 96, 128, 256, 512])
    enough = calibrated(quick, 0.02, 500.0)
    if epsilon > _LARGE_EPSILON:
        return enough
    exact = partial(pld.PLDAccountant, value_discretization_interval=1e-3)
    return min(enough, calibrated(exact, 0.7 * enough, 1.01 * enough))


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
    F = F * np.sqrt(d)
    sigma = noise_multiplier(epsilon, delta)
    theta, mean, square, answer = (np.zeros(d) for _ in range(4))
    for step in range(1, STEPS + 1):
        picked = rng.random(len(F)) < RATE
        rows = F[picked]
        gradients = (rows @ theta - z[picked])[:, None] * rows
        norms = np.linalg.norm(gradients, axis=1, keepdims=True)
        total = (gradients / np.maximum(1.0, norms / CLIP)).sum(axis=0)
        noisy = release(total, CLIP, 1.0 / sigma, rng) / (RATE * len(F))
        mean = FIRST * mean + (1.0 - FIRST) * noisy
        square = SECOND * square + (1.0 - SECOND) * noisy**2
        theta = theta - STEP_SIZE * (mean / (1.0 - FIRST**step)) / (
            np.sqrt(square / (1.0 - SECOND**step)) + SMALL
        )
        if step > STEPS // 2:
            answer += theta / (STEPS - STEPS // 2)
    return unscaled(answer * np.sqrt(d), column_bounds, y_bounds)
