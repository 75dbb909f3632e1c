"""A sum of integers over records, with Gaussian noise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from privasso.accounting import GaussianLoss
from privasso.blocks import Chunk, RowBlocks, Sums
from privasso.queries._integer_noise import noise_deviation, noisy_integers
from privasso.queries._query import EMPTIED, Neighbours, Query
from privasso.queries._rounded_gaussian import BitSource

#: Entries that are worked on at a time: they stay in cache.
_ENTRIES = 1 << 20
#: A sum is kept in two parts, so that no number of rows overflows.
_HALF = 32


class Summand(ABC):
    """Integers that each record becomes by itself, to be summed over all records.

    Attributes
    ----------
    unit : int
        The integers count multiples of 2^−unit.
    sentence : str
        What is summed, in words.
    most_rows : int
        So many records can be summed at a time without an overflow.
    """

    unit: int
    sentence: ClassVar[str]
    most_rows: ClassVar[int] = _ENTRIES

    @abstractmethod
    def sums(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Sums over some records, of type int64."""

    @abstractmethod
    def lengths(self, neighbours: Neighbours) -> np.ndarray:
        """Δ_k for each sum: two neighbours have Σ_k (change of the k-th/Δ_k)² ≤ 1."""


@dataclass(frozen=True, eq=False)
class NoisySum(Query[np.ndarray]):
    """Sums over records plus rounded Gaussian noise of the deviations Δ_k/μ.

    Attributes
    ----------
    summand : Summand
        What a record contributes.
    mu : float
        One record moves the sums by at most μ deviations of their noise.
    neighbours : Neighbours
        How data sets differ in one record.
    """

    summand: Summand
    mu: float
    neighbours: Neighbours = EMPTIED

    @property
    def loss(self) -> GaussianLoss:
        """That of a Gaussian mechanism."""
        return GaussianLoss(self.mu)

    @property
    def sentence(self) -> str:
        """What is summed."""
        return self.summand.sentence

    @cached_property
    def deviations(self) -> np.ndarray:
        """Of the noise, in units of the integers."""
        lengths = self.summand.lengths(self.neighbours)
        found = {one: noise_deviation(one, self.mu) for one in np.unique(lengths).tolist()}
        return np.array([found[one] for one in lengths.tolist()])

    def run(self, rows: RowBlocks, bits: BitSource) -> np.ndarray:
        """The noisy sums."""
        return self.noisy(self.exact(rows), bits)

    def noisy(self, exact: list[int], bits: BitSource) -> np.ndarray:
        """The sums with noise; those with little are drawn first."""
        found, deviations = np.empty(len(exact)), self.deviations
        for deviation in np.unique(deviations).tolist():
            of = np.flatnonzero(deviations == deviation)
            some = [exact[k] for k in of.tolist()]
            found[of] = noisy_integers(some, deviation, self.summand.unit, bits)
        return found

    def log_likelihood(self, rows: RowBlocks, answer: np.ndarray) -> float:
        """That of the normal law; its rounding to integers does not matter."""
        return -0.5 * float(np.sum(self.off(self.exact(rows), answer) ** 2))

    def off(self, exact: list[int], answers: np.ndarray) -> np.ndarray:
        """By how many deviations answers differ from the sums without noise."""
        without = np.array([float(k) for k in exact])
        return (np.ldexp(answers, self.summand.unit) - without) / self.deviations

    def exact(self, rows: RowBlocks) -> list[int]:
        """The sums without noise, which are private."""
        found = rows.sum(_Summing(self.summand), None)
        low, high = found["sums"].tolist()
        return [a + (b << _HALF) for a, b in zip(low, high, strict=True)]


@dataclass(frozen=True, eq=False)
class _Summing:
    """The sums of a summand, as a function that can be sent to the data."""

    summand: Summand

    def __call__(self, chunks: Iterable[Chunk], state: None) -> Sums:
        total = None
        for X, y in chunks:
            step = min(max(1, _ENTRIES // max(1, X.shape[1])), self.summand.most_rows)
            for start in range(0, len(y), step):
                part = self.summand.sums(X[start : start + step], y[start : start + step])
                halves = np.stack([part & ((1 << _HALF) - 1), part >> _HALF])
                total = halves if total is None else total + halves
        return {} if total is None else {"sums": total}
