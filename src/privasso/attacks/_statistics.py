"""Noisy sums of products of records: Gaussian, so that the likelihood ratio is linear."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from privasso.attacks._pair import Pair, World
from privasso.privacy import StatisticsMechanism
from privasso.queries import bit_source

FloatArray = NDArray[np.float64]


def statistics_pairs(
    mechanism: StatisticsMechanism, X: FloatArray, y: FloatArray, records: dict[int, str]
) -> list[Pair]:
    """A pair for each record: all data, and all data with this record emptied.

    A record adds h hᵀ to the sums, h its scaled row with its label. In units of the noise these are
    the numbers (h hᵀ)_ij √2/σ above the diagonal and h_i²/σ on it.
    """
    everyone, pairs = World(partial(_draw, mechanism, X, y)), []
    rows, labels = mechanism.table.rows(X, y)
    H = np.column_stack([rows, mechanism.weight * labels])
    for k, name in records.items():
        others = y.copy()
        others[k] = np.nan
        kept = np.delete(H, k, 0)
        without, added = kept.T @ kept, np.outer(H[k], H[k])
        out = World(partial(_draw, mechanism, X, others))
        pairs.append(Pair(name, everyone, out, partial(_ratio, mechanism, without, added)))
    return pairs


def _draw(
    mechanism: StatisticsMechanism,
    X: FloatArray,
    y: FloatArray,
    count: int,
    rng: np.random.Generator | None,
) -> FloatArray:
    bits = bit_source(rng)
    made = (mechanism.release(X, y, bits).moments for _ in range(count))
    return np.array([_white(one.matrix, one.sigma) for one in made])


def _ratio(
    mechanism: StatisticsMechanism, without: FloatArray, added: FloatArray, releases: FloatArray
) -> FloatArray:
    sigma = mechanism.radius**2 / mechanism.mu
    direction = _white(added, sigma)
    middle = _white(without, sigma) + 0.5 * direction
    return (releases - middle) @ direction


def _white(matrix: FloatArray, sigma: float) -> FloatArray:
    above = np.triu_indices(len(matrix), 1)
    return np.concatenate([np.sqrt(2.0) * matrix[above], np.diag(matrix)]) / sigma
