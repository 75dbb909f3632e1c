"""The range of the labels, found in the labels with noise before anything else is asked.

Labels are taken as a column of their own. First the largest magnitude is chosen that labels have,
and then an interval between it and its opposite, each by an exponential mechanism. A label votes
for each candidate that holds it, and all candidates pay for their size. So with few rows a range is
a few times too wide or too narrow, and hardly ever elsewhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from privasso._tuned import (
    INTERVAL_PRICE,
    LEAST_RANGE_PART,
    MAGNITUDE_PART,
    MAGNITUDE_PRICE,
    MOST_RANGE_PART,
    RANGE_NOISE,
    RANGE_ROOM,
)
from privasso.accounting import ChoiceLoss
from privasso.blocks import LabelsAsColumn, LabelsWithin
from privasso.programs._estimate import LARGEST, SMALLEST, widest_bounds
from privasso.programs._records import held_records
from privasso.queries import Ask, Neighbours, NoisyChoice, Scores, after

_LABELS = LabelsAsColumn()
_SAID = "the range of the labels, chosen with noise"
#: What a label is worth for a candidate that holds it.
_UNIT = 1 << 16
#: Parts of all between twice the magnitude and its opposite, and how many an interval may have.
_PARTS = 256
_LENGTHS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128)
#: Shorter intervals are worth little more than these: otherwise one in noise might be chosen.
_SHORT = 16


@dataclass(frozen=True, eq=False)
class BinWorth(Scores):
    """What numbers are worth for candidates, by the bins that they are in.

    Attributes
    ----------
    edges : ndarray of shape (B - 1,)
        Ends of bins; each belongs to the bin above it.
    worth : ndarray of int64, shape (B, K)
        What a number in a bin is worth for each candidate.
    empty : ndarray of int64, shape (K,)
        What an empty record is worth.
    """

    edges: np.ndarray = field(repr=False)
    worth: np.ndarray = field(repr=False)
    empty: np.ndarray = field(repr=False)

    sentence = _SAID

    def sums(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """What the numbers are worth together."""
        held = held_records(X, y, widest_bounds(1))[:, 0]
        counts = np.bincount(
            np.searchsorted(self.edges, held, side="right"), minlength=len(self.worth)
        )
        return counts.astype(np.int64) @ self.worth + (len(y) - held.size) * self.empty

    def change(self, neighbours: Neighbours) -> float:
        """The largest difference to an empty record, or between any two."""
        away = self.worth - self.empty
        if neighbours.relation == "emptied":
            return float(np.max(np.abs(away)))
        return float(np.max(np.maximum(away.max(axis=0), 0) - np.minimum(away.min(axis=0), 0)))


def magnitudes(price: float) -> BinWorth:
    """Powers of two as bounds of |y|; a label votes less by the price for each below its own.

    >>> found = magnitudes(0.25)
    >>> X = np.array([[3.0], [-1.0], [0.0]])
    >>> (found.sums(X, np.ones(3))[62:66] / 2**16).tolist()  # for 1/2, 1, 2 and 4
    [0.5, 1.5, 1.25, 2.0]
    """
    exponents = np.arange(SMALLEST, LARGEST + 1)
    ends = np.exp2(exponents[:-1].astype(np.float64))
    above = exponents[None, :] - exponents[:, None]
    worth = np.where(above < 0, 0.0, np.maximum(1.0 - price * above, 0.0))
    worth[0] = 0.5  # too small to tell anything
    worth = np.rint(_UNIT * np.concatenate([worth[:0:-1], worth])).astype(np.int64)
    empty = np.full(exponents.size, _UNIT // 2, dtype=np.int64)
    return BinWorth(np.concatenate([-ends[::-1], ends]), worth, empty)


def intervals(low: float, high: float, price: float) -> tuple[BinWorth, np.ndarray]:
    """Intervals, which cost the price for each doubling, and the ends of each, (K, 2).

    >>> votes, ends = intervals(-128.0, 128.0, 0.1)
    >>> best = np.argmax(votes.sums(np.array([[3.0], [5.0], [5.5]]), np.ones(3)))
    >>> ends[best].tolist()
    [3.0, 6.0]
    """
    starts = [np.arange(0, _PARTS - n + 1, max(1, n // 8)) for n in _LENGTHS]
    lengths = np.repeat(_LENGTHS, [one.size for one in starts])
    start = np.concatenate(starts)
    # All but the longest gain what they are shorter; the shortest of them, which are many, little.
    doublings = np.log2(_LENGTHS[-1] / np.maximum(lengths, _SHORT))
    little = INTERVAL_PRICE[1] * np.log2(np.maximum(_SHORT / lengths, 1.0))
    gain = np.rint(_UNIT * (price * doublings + little)).astype(np.int64)
    part = np.arange(-1, _PARTS + 1)[:, None]
    held = (part >= start) & (part < start + lengths)
    edges = low + (high - low) / _PARTS * np.arange(_PARTS + 1)
    ends = np.stack([edges[start], edges[start + lengths]], axis=1)
    return BinWorth(edges, _UNIT * held.astype(np.int64) + gain, _UNIT // 2 + gain), ends


@dataclass(frozen=True)
class LabelRange:
    """What is asked for the range of the labels.

    Attributes
    ----------
    mu : float
        About the sensitivity of both questions together, as of a Gaussian mechanism.
    neighbours : Neighbours
        How data sets differ.
    centred : bool
        Whether there is an intercept; without one the middle of the range is zero.
    """

    mu: float
    neighbours: Neighbours
    centred: bool = True

    #: How many there are.
    questions: ClassVar[int] = 2

    @classmethod
    def of_budget(
        cls, mu: float, neighbours: Neighbours, n_rows: int, *, centred: bool
    ) -> LabelRange:
        """With the part of a budget of sensitivity μ that so many rows need."""
        part = (_moved(neighbours) / (2.0 * RANGE_NOISE * n_rows * mu)) ** 2
        part = min(max(part, LEAST_RANGE_PART), MOST_RANGE_PART)
        return cls(math.sqrt(part) * mu, neighbours, centred)

    @property
    def losses(self) -> tuple[ChoiceLoss, ChoiceLoss]:
        """Those of the choice of a magnitude, and of that of an interval."""
        first = 2.0 * math.sqrt(MAGNITUDE_PART) * self.mu
        return ChoiceLoss(first, 1), ChoiceLoss(2.0 * math.sqrt(1.0 - MAGNITUDE_PART) * self.mu, 1)

    def __call__(self, ask: Ask) -> LabelsWithin:
        """Ask, and return labels within the range as a change of rows."""
        ask = after(ask, _LABELS, _SAID)
        first, second = self.losses
        votes = magnitudes(self._price(first, ask.n_rows, *MAGNITUDE_PRICE))
        place = ask(NoisyChoice(votes, first, np.arange(len(votes.empty)), self.neighbours))
        top = math.ldexp(1.0, SMALLEST + int(place[0]) + 1)
        votes, ends = intervals(-top, top, self._price(second, ask.n_rows, *INTERVAL_PRICE))
        place = ask(NoisyChoice(votes, second, np.arange(len(ends)), self.neighbours))
        low, high = ends[int(place[0])].tolist()
        room = RANGE_ROOM * (high - low)
        low, high = low - room, high + room
        if not self.centred:
            high = max(abs(low), abs(high))
            low = -high
        return LabelsWithin(low, high)

    def _price(
        self, loss: ChoiceLoss, n_rows: int, deviations: float, least: float, most: float
    ) -> float:
        """So many deviations of the noise of a choice, as a part of the rows, within two ends."""
        noise = _moved(self.neighbours) / (loss.epsilon_each * n_rows)
        return min(max(deviations * noise, least), most)


def _moved(neighbours: Neighbours) -> float:
    """Votes that a record can move from a candidate to another one."""
    return 1.0 if neighbours.relation == "emptied" else 2.0
