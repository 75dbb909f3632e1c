"""The columns with the largest sums, chosen with noise."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from privasso.accounting import ChoiceLoss
from privasso.blocks import RowBlocks
from privasso.queries._largest import noisy_largest
from privasso.queries._query import EMPTIED, Neighbours, Query
from privasso.queries._rounded_gaussian import ROUNDING, BitSource
from privasso.queries._sum import HALF, Contribution, summed


class Scores(Contribution):
    """Integers of whose sums the largest in size are chosen; the sums fit 63 bits."""

    @abstractmethod
    def change(self, neighbours: Neighbours) -> float:
        """The most by which two neighbours differ in any one of the sums."""


@dataclass(frozen=True, eq=False)
class NoisyChoice(Query[np.ndarray]):
    """The indices of the largest |sums|, one after the other, with Gumbel noise decided exactly.

    One record changes each size by at most Δ, in either direction, so that with noise of the scale
    2Δ/ε₀ each choice has losses of a range of ε₀, whatever the number of sums.

    Attributes
    ----------
    scores : Scores
        What a record contributes.
    choices : ChoiceLoss
        How many are chosen, and ε₀.
    among : ndarray of int
        The indices to choose from, in increasing order.
    pair : Neighbours
        How data sets differ.
    """

    scores: Scores
    choices: ChoiceLoss
    among: np.ndarray = field(repr=False)
    pair: Neighbours = EMPTIED

    @property
    def neighbours(self) -> Neighbours:
        """How data sets differ."""
        return self.pair

    @property
    def loss(self) -> ChoiceLoss:
        """That of all choices together."""
        return self.choices

    @property
    def sentence(self) -> str:
        """What is chosen by."""
        return self.scores.sentence

    @property
    def possible(self) -> np.ndarray:
        """The first indices."""
        return self.among[: self.choices.count]

    @property
    def scale(self) -> float:
        """That of the noise, in units of the integers, rounded up."""
        return 2.0 * self.scores.change(self.pair) / self.choices.epsilon_each * ROUNDING

    def run(self, rows: RowBlocks, bits: BitSource) -> np.ndarray:
        """The indices, in increasing order."""
        return self.draws(rows, 1, bits)[0]

    def draws(self, rows: RowBlocks, count: int, bits: BitSource) -> list[np.ndarray]:
        """The sums are made once."""
        return self.noisy(self.sizes(rows), count, bits)

    def noisy(self, sizes: np.ndarray, count: int, bits: BitSource) -> list[np.ndarray]:
        """The indices of the largest of these sizes with noise, several times."""
        scale, k = self.scale, self.choices.count
        return [self.among[noisy_largest(sizes, scale, k, bits)] for _ in range(count)]

    def sizes(self, rows: RowBlocks) -> np.ndarray:
        """The sizes of the sums without noise, which are private."""
        low, high = summed(self.scores, rows)
        return np.abs(low + (high << HALF))[self.among]

    def log_likelihoods(self, rows: RowBlocks, answers: Sequence[np.ndarray]) -> np.ndarray:
        """The logarithms of the probabilities of the sets."""
        from privasso.theory import log_set_probability

        sizes, places = self.sizes(rows), [np.searchsorted(self.among, one) for one in answers]
        return np.array([log_set_probability(sizes, self.scale, one) for one in places])
