"""TukeyEM: the exponential mechanism over the Tukey depth of many models without privacy.

Amin, Joseph, Ribero, Vassilvitskii (2023), Easy differentially private linear regression. The
records are divided among m least-squares fits. The depth of a point is the least, over coordinates,
of the number of models on either side, so that the points of depth at least i form a box. A test
(propose-test-release, half of ε) makes sure that the boxes shrink slowly enough; then the
exponential mechanism on the boxes of depth at least m/4 draws a point (the other half). A record
changes one model, hence every depth by at most 1. Needs no bounds.

Published rule: m = 1000 models, each of at least as many records as coefficients; the paper has
tables with that many records in mind. Smaller tables have fewer models here, as many as that
allows. Where the test fails, nothing is released: the model then predicts the middle of the label
bounds.

Checked against the program of the authors (google-research, dp_regression): the division of ε, the
depth m/4, the test, its threshold, the ties and the draw. Depths are weighed as there, by e^(iε/2);
that a record moves one model, which changes depths by one in either direction, would ask for
e^(iε/4). The noise of the test has the scale 2/ε of the theory; the program has ε/2 there. The text
of the proofs could not be compared.
"""

from __future__ import annotations

import math

import numpy as np

from bench.real.peers.bounded import scaled, unscaled
from bench.real.peers.linear import Linear
from bench.real.tables.table import Bounds

MODELS = 1000
#: Models that agree exactly have boxes without volume; this much is added to every model at random.
_TIE = 1e-10


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
    # Other units of columns and labels give the same models, but for the columns' clipping.
    F, z = scaled(X, y, column_bounds, y_bounds)
    theta = draw(models(F, z, MODELS, rng), epsilon, delta, rng)
    if theta is None:
        theta = np.zeros(F.shape[1])
    return unscaled(theta, column_bounds, y_bounds)


def models(F: np.ndarray, z: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """Least-squares coefficients of a random division of the records, one model a row."""
    rows, d = F.shape
    count = max(1, min(most, rows // d))
    parts = np.array_split(rng.permutation(rows), count)
    return np.array([np.linalg.lstsq(F[part], z[part], rcond=None)[0] for part in parts])


def draw(
    found: np.ndarray, epsilon: float, delta: float, rng: np.random.Generator
) -> np.ndarray | None:
    """A point of large depth, or None if the test fails."""
    m, d = found.shape
    ordered = np.sort(found + _TIE * rng.random((m, d)), axis=0)
    deepest = m // 2
    # The box of depth at least i, i = 1, …, m//2, between the i-th smallest and i-th largest model.
    low, high = ordered[:deepest], ordered[::-1][:deepest]
    log_volume = np.log(high - low).sum(axis=1)
    half, t = 0.5 * epsilon, m // 4
    if t < 2:
        return None
    noise = rng.laplace(scale=1.0 / half)
    if not distance(log_volume, half, delta, t) + noise > math.log(1.0 / (2.0 * delta)) / half:
        return None
    depth = _depth(log_volume, half, t, rng)
    return _point(low, high, depth, rng)


def distance(log_volume: np.ndarray, epsilon: float, delta: float, t: int) -> int:
    """A lower bound on how many models must change before the mechanism would be unsafe, or −1.

    It is the largest k < t for which some g > 0 has
    V(t−k−1)/V(t+k+g+1) · e^(−gε/2) ≤ δ/(8e^ε), where V(i) is the volume of depth at least i.
    """
    limit = math.log(delta / 8.0) - epsilon
    deepest = log_volume.size
    for k in range(t - 2, -1, -1):  # depth t−k−1 must be at least 1
        outer = log_volume[t - k - 2]
        inner = log_volume[t + k + 1 :]  # depths t+k+2, …, that is g = 1, 2, …
        g = np.arange(1, deepest - (t + k + 1) + 1)
        if g.size and float(np.min(outer - inner - 0.5 * epsilon * g)) <= limit:
            return k
    return -1


def _depth(log_volume: np.ndarray, epsilon: float, t: int, rng: np.random.Generator) -> int:
    """A depth i ≥ t with probability proportional to (V(i) − V(i+1))·e^(iε)."""
    inside = np.append(log_volume[t:], -np.inf)
    shell = log_volume[t - 1 :] + np.log(-np.expm1(np.minimum(inside - log_volume[t - 1 :], 0.0)))
    weights = shell + epsilon * np.arange(t, log_volume.size + 1)
    return t + int(np.argmax(weights + rng.gumbel(size=weights.size)))


def _point(low: np.ndarray, high: np.ndarray, depth: int, rng: np.random.Generator) -> np.ndarray:
    """A uniform point of exactly this depth: of its box, without the next one inside."""
    outer_low, outer_high = low[depth - 1], high[depth - 1]
    if depth == len(low):
        return rng.uniform(outer_low, outer_high)
    inner_low, inner_high = low[depth], high[depth]
    outer, inner = np.log(outer_high - outer_low), np.log(inner_high - inner_low)
    margin = (outer_high - outer_low) - (inner_high - inner_low)
    # The shell is a union over j of: inside in the coordinates before j, outside in j, any after.
    before = np.concatenate([[0.0], np.cumsum(inner)[:-1]])
    after = np.concatenate([np.cumsum(outer[::-1])[::-1][1:], [0.0]])
    with np.errstate(divide="ignore"):
        weights = before + np.log(np.maximum(margin, 0.0)) + after
    j = int(np.argmax(weights + rng.gumbel(size=weights.size)))
    point = rng.uniform(outer_low, outer_high)
    point[:j] = rng.uniform(inner_low[:j], inner_high[:j])
    place = rng.uniform(0.0, margin[j])
    left = inner_low[j] - outer_low[j]
    point[j] = outer_low[j] + place if place < left else inner_high[j] + (place - left)
    return point
