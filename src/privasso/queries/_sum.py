"""A sum of integers over records, with Gaussian noise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from privasso.accounting import GaussianLoss
from privasso.blocks import Chunk, RowBlocks, Sums, View
from privasso.queries._query import EMPTIED, Neighbours, Query
from privasso.queries._rounded_gaussian import BitSource, noise_deviation, noisy_integers

#: Entries that are worked on at a time: they stay in cache.
_ENTRIES = 1 << 20
#: A sum is kept in two parts, so that no number of rows overflows.
HALF = 32


class Contribution(ABC):
    """Integers that each record becomes by itself, to be summed over all records.

    Attributes
    ----------
    sentence : str
        What is summed, in words.
    most_rows : int or None
        So many records can be summed at a time without an overflow; None where whole blocks are.
    columns : ndarray of int or None
        The columns of the records that it reads; None if it reads all.
    view : View or None
        What records become before they are summed.
    """

    sentence: str
    most_rows: ClassVar[int | None] = _ENTRIES
    columns: np.ndarray | None = None
    view: View | None = None

    @abstractmethod
    def sums(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Sums over some records, of type int64."""


class Summand(Contribution):
    """Integers whose sums are released with Gaussian noise.

    Attributes
    ----------
    unit : int
        The integers count multiples of 2^−unit.
    """

    unit: int

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
    pair : Neighbours
        How data sets differ in one record.
    """

    summand: Summand
    mu: float
    pair: Neighbours = EMPTIED

    @property
    def neighbours(self) -> Neighbours:
        """How data sets differ."""
        return self.pair

    @property
    def loss(self) -> GaussianLoss:
        """That of a Gaussian mechanism."""
        return GaussianLoss(self.mu)

    @property
    def sentence(self) -> str:
        """What is summed."""
        return self.summand.sentence

    @property
    def possible(self) -> np.ndarray:
        """Sums that are about as large as their noise."""
        signs = np.where(np.arange(self.deviations.size) % 2, -1.0, 1.0)
        return np.ldexp(signs * self.deviations, -self.summand.unit)

    @cached_property
    def deviations(self) -> np.ndarray:
        """Of the noise, in units of the integers."""
        lengths = self.summand.lengths(self.pair)
        found = {one: noise_deviation(one, self.mu) for one in np.unique(lengths).tolist()}
        return np.array([found[one] for one in lengths.tolist()])

    def run(self, rows: RowBlocks, bits: BitSource) -> np.ndarray:
        """The noisy sums."""
        return self.draws(rows, 1, bits)[0]

    def draws(self, rows: RowBlocks, count: int, bits: BitSource) -> list[np.ndarray]:
        """The sums are made once."""
        return self.noisy(self.exact(rows), count, bits)

    def noisy(self, exact: list[int], count: int, bits: BitSource) -> list[np.ndarray]:
        """The sums with noise, several times; noise that is small is drawn first."""
        deviations = self.deviations
        found = np.empty((count, len(exact)))
        for deviation in np.unique(deviations).tolist():
            of = np.flatnonzero(deviations == deviation)
            some = count * [exact[k] for k in of.tolist()]
            drawn = noisy_integers(some, deviation, self.summand.unit, bits)
            found[:, of] = drawn.reshape(count, of.size)
        return list(found)

    def log_likelihoods(self, rows: RowBlocks, answers: Sequence[np.ndarray]) -> np.ndarray:
        """Those of the normal law; its rounding to integers does not matter."""
        return -0.5 * np.sum(self.off(self.exact(rows), np.array(answers)) ** 2, axis=1)

    def off(self, exact: list[int], answers: np.ndarray) -> np.ndarray:
        """By how many deviations answers differ from the sums without noise."""
        without = np.array([float(k) for k in exact])
        return (np.ldexp(answers, self.summand.unit) - without) / self.deviations

    def exact(self, rows: RowBlocks) -> list[int]:
        """The sums without noise, which are private."""
        low, high = summed(self.summand, rows).tolist()
        return [a + (b << HALF) for a, b in zip(low, high, strict=True)]


def summed(one: Contribution, rows: RowBlocks) -> np.ndarray:
    """The sums over all records, which are private: their lower 32 bits, and the others."""
    if one.view is None:
        return rows.sum(_Summing(one, None), None, one.columns)["sums"]
    rows, view = rows.select(one.columns).viewed(one.view)
    return rows.sum(_Summing(one, view), None)["sums"]


@dataclass(frozen=True, eq=False)
class _Summing:
    """The sums of what records contribute, as a function that can be sent to the data."""

    one: Contribution
    view: View | None

    def __call__(self, chunks: Iterable[Chunk], state: None) -> Sums:
        total, most = None, self.one.most_rows
        for X, y in chunks:
            step = max(len(y), 1)
            if most is not None:
                step = min(max(1, _ENTRIES // max(1, X.shape[1])), most)
            for start in range(0, len(y), step):
                stop = min(start + step, len(y))
                whole = stop - start == len(y)
                if self.view is not None:
                    some = self.view(X, y, start, stop)
                else:
                    some = (X, y) if whole else (X[start:stop], y[start:stop])
                part = self.one.sums(*some)
                halves = np.stack([part & ((1 << HALF) - 1), part >> HALF])
                total = halves if total is None else total + halves
        return {} if total is None else {"sums": total}
