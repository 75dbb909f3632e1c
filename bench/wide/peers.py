"""Published private sparse regressions of whole records.

All have columns in [−1, 1] and labels within bounds, neighbours are one emptied record, and their
noise is calibrated by the accounting of this package where that is better for them than the
published one: choices by `ChoiceLoss`, Gaussian noise by μ² = Σμ². Noise is drawn in floating
point: this measures accuracy. A peer returns R² on the test rows for each setting of a grid; the
table shows the setting with the best mean, in favour of the peers. Ours has one setting.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np

import privasso as pv
from bench.wide.data import Y_BOUNDS, Wide
from privasso.accounting import gaussian_epsilon, sensitivity_for

#: R² on the test rows for each setting.
Scores = dict[tuple[float, ...], float]
#: Fits a table at (ε, δ).
Peer = Callable[[Wide, float, float, np.random.Generator], Scores]


def largest(scores: np.ndarray, scale: float, count: int, rng: np.random.Generator) -> np.ndarray:
    """Indices of the largest scores with Gumbel noise."""
    return np.argsort(scores + rng.gumbel(0.0, scale, scores.size))[-count:]


def frank_wolfe(table: Wide, epsilon: float, delta: float, rng: np.random.Generator) -> Scores:
    """Private Frank–Wolfe on an ℓ₁ ball (Talwar, Thakurta & Zhang 2015).

    T steps towards the vertex ±C e_i with the most negative noisy gradient. Residuals are clipped,
    which needs less noise than the bound 4 + C of the published method.
    """
    X, y = table.X, np.clip(table.y, *Y_BOUNDS)
    mu, found = sensitivity_for(epsilon, delta), {}
    for radius, steps, b in itertools.product((2.0, 4.0), (10, 30), (0.5, 1.0, 2.0)):
        coef = np.zeros(X.shape[1])
        scale = 2.0 * b / (2.0 * mu / math.sqrt(steps))
        for t in range(steps):
            residual = np.clip(y - X @ coef, -b, b)
            descent = X.T @ residual.astype(np.float32)
            # Both signs of a column are candidates.
            vertex = largest(np.append(descent, -descent), scale, 1, rng)[0]
            step = 2.0 / (t + 2.0)
            coef *= 1.0 - step
            coef[vertex % coef.size] += step * radius * (1.0 if vertex < coef.size else -1.0)
        found[radius, steps, b] = table.r2(coef, 0.0)
    return found


def hard_thresholding(
    table: Wide, epsilon: float, delta: float, rng: np.random.Generator
) -> Scores:
    """Noisy iterative hard thresholding (Cai, Wang & Zhang 2021).

    Each of T steps moves along the gradient of clipped residuals, keeps s columns by noisy choices,
    and releases their values with Gaussian noise; each half has half of the squared sensitivity.
    """
    X, y = table.X, np.clip(table.y, *Y_BOUNDS)
    m, found = X.shape[0], {}
    mu = sensitivity_for(epsilon, delta)
    # Columns have the variance 1/3; correlated ones need shorter steps.
    grid = itertools.product((10, 20), (3, 6, 12), (0.5, 1.0, 2.0), (3.0, 0.75))
    for size, steps, clip, length in grid:
        coef = np.zeros(X.shape[1])
        each = mu / math.sqrt(2.0 * steps)
        rate = length / m
        for _ in range(steps):
            residual = np.clip(y - X @ coef, -clip, clip)
            moved = coef + rate * (X.T @ residual.astype(np.float32))
            scale = 2.0 * rate * clip / (2.0 * each / math.sqrt(size))
            kept = largest(np.abs(moved), scale, size, rng)
            coef = np.zeros(X.shape[1])
            noise = rate * clip * math.sqrt(size) / each
            coef[kept] = moved[kept] + noise * rng.standard_normal(size)
        found[size, steps, clip, length] = table.r2(coef, 0.0)
    return found


def two_stages(table: Wide, epsilon: float, delta: float, rng: np.random.Generator) -> Scores:
    """Votes of blocks of rows for columns, then a private fit (Kifer, Smith & Thakurta 2012).

    √M blocks each vote for the s columns of largest association, and the columns with the most
    noisy votes are fitted by our own perturbed objective with the other half of the budget.
    """
    found = {}
    mu = math.sqrt(0.5) * sensitivity_for(epsilon, delta)
    blocks = np.array_split(rng.permutation(table.X.shape[0]), round(table.X.shape[0] ** 0.5))
    for size in (10, 20):
        votes = np.zeros(table.X.shape[1])
        for rows in blocks:
            scores = np.abs(table.X[rows].T @ table.y[rows].astype(np.float32))
            votes[np.argsort(scores)[-size:]] += 1.0
        # A record changes the votes of one block: each count by one, up or down.
        chosen = largest(votes, 2.0 / (2.0 * mu / math.sqrt(size)), size, rng)
        found[(size,)] = fitted(table, chosen, epsilon, delta, 0.5, rng)
    return found


def gaussian_marginals(
    table: Wide, epsilon: float, delta: float, rng: np.random.Generator
) -> Scores:
    """All associations with Gaussian noise, the largest are fitted by our own perturbed objective.

    A record changes N associations by b each, so that the noise grows with √N.
    """
    mu, found = math.sqrt(0.5) * sensitivity_for(epsilon, delta), {}
    for size, clip in itertools.product((10, 20), (0.5, 1.0, 2.0)):
        labels = np.clip(table.y, -clip, clip).astype(np.float32)
        noise = clip * math.sqrt(table.X.shape[1]) / mu
        scores = np.abs(table.X.T @ labels + noise * rng.standard_normal(table.X.shape[1]))
        chosen = np.argsort(scores)[-size:]
        found[size, clip] = fitted(table, chosen, epsilon, delta, 0.5, rng)
    return found


def fitted(
    table: Wide,
    chosen: np.ndarray,
    epsilon: float,
    delta: float,
    share: float,
    rng: np.random.Generator,
) -> float:
    """R² of our perturbed fit of some columns with a share of the squared sensitivity."""
    left = gaussian_epsilon(delta, math.sqrt(share) * sensitivity_for(epsilon, delta))
    return ours_of(table, chosen, left, delta, None, rng)


def ours_of(
    table: Wide,
    columns: np.ndarray,
    epsilon: float,
    delta: float,
    screen: str | None,
    rng: np.random.Generator,
) -> float:
    """R² of `PrivateLasso` on some columns."""
    dp = pv.RecordDP(epsilon, delta, bounds=[(-1.0, 1.0)] * columns.size, y_bounds=Y_BOUNDS)
    est = pv.PrivateLasso(privacy=dp, screen=screen, random_state=int(rng.integers(2**31)))
    # Labels of each fit differ in the last digit, or repeated use would warn.
    est.fit(table.X[:, columns], table.y + 1e-12 * rng.standard_normal())
    coef = np.zeros(table.X.shape[1])
    coef[columns] = est.coef_
    return table.r2(coef, est.intercept_)


def screened(table: Wide, epsilon: float, delta: float, rng: np.random.Generator) -> Scores:
    """`PrivateLasso(screen="auto")`, nothing chosen by the test rows."""
    return {(): ours_of(table, np.arange(table.X.shape[1]), epsilon, delta, "auto", rng)}


def known_columns(table: Wide, epsilon: float, delta: float, rng: np.random.Generator) -> Scores:
    """Our perturbed fit of the true columns, which nobody knows."""
    return {(): ours_of(table, table.support, epsilon, delta, None, rng)}


PEERS: dict[str, Peer] = {
    "true columns given": known_columns,
    "**screen, then fit**": screened,
    "private Frank–Wolfe": frank_wolfe,
    "noisy hard thresholding": hard_thresholding,
    "votes of blocks, then fit": two_stages,
    "Gaussian marginals, then fit": gaussian_marginals,
}
