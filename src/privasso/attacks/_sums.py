"""Noisy sums over records: the likelihood ratio of their answers is known."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from privasso.attacks._pair import Pair, World
from privasso.blocks import RowBlocks
from privasso.queries import NoisySum, bit_source

FloatArray = NDArray[np.float64]


def sum_pairs(query: NoisySum, X: FloatArray, y: FloatArray, records: dict[int, str]) -> list[Pair]:
    """A pair for each record: all data, and all data with this record emptied."""
    exact = query.exact(RowBlocks.of_arrays(X, y))
    everyone, pairs = World(partial(_draw, query, exact)), []
    for k, name in records.items():
        others = y.copy()
        others[k] = np.nan
        without = query.exact(RowBlocks.of_arrays(X, others))
        out = World(partial(_draw, query, without))
        pairs.append(Pair(name, everyone, out, partial(_ratio, query, exact, without)))
    return pairs


def _draw(
    query: NoisySum, exact: list[int], count: int, rng: np.random.Generator | None
) -> FloatArray:
    bits = bit_source(rng)
    return np.array([query.noisy(exact, bits) for _ in range(count)])


def _ratio(
    query: NoisySum, exact: list[int], without: list[int], answers: FloatArray
) -> FloatArray:
    here, there = (query.off(sums, answers) for sums in (exact, without))
    return 0.5 * np.sum((there - here) * (there + here), axis=1)
