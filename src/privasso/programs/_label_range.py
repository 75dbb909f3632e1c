"""The range of the labels, found in the labels with noise before anything else is asked.

Labels are taken as a column of their own. Noisy counts of their magnitudes give a range up to a
factor of two, see `Magnitudes`. Noisy counts in equal parts of it then say where labels are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privasso._tuned import LEAST_RANGE_PART, MOST_RANGE_PART, RANGE_NOISE
from privasso.blocks import LabelsAsColumn, LabelsWithin
from privasso.programs._estimate import COUNT_BITS, Magnitudes, widest_bounds
from privasso.programs._records import held_records
from privasso.queries import Ask, Neighbours, NoisySum, Summand, after

_LABELS = LabelsAsColumn()
_SAID = "noisy counts of the labels, which give their range"
#: Parts of the first range, and how many may be added to what is held at a time. They must hold
#: this part of the rows for each, and so many deviations of their noise, or more of these alone.
_PARTS, _STEPS, _SHARE, _TIMES, _ALONE = 32, (1, 2, 4, 8, 16), 0.001, 2.0, 4.0
#: What is added to both sides, as a part of what is held, and for each part of the rows that noise
#: can hide there.
_ROOM, _HIDDEN = 0.15, 3.0


@dataclass(frozen=True)
class PartCounts(Summand):
    """One for the part of a range that a number is in, and nothing for an empty record.

    Attributes
    ----------
    low, high : float
        Ends of the range; numbers outside are in the first part, and in the last.
    """

    low: float
    high: float

    unit = COUNT_BITS
    sentence = _SAID

    def sums(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Counts of the parts."""
        held = held_records(X, y, np.array([[self.low, self.high]]))[:, 0]
        place = (held - self.low) * (_PARTS / (self.high - self.low))
        counts = np.bincount(np.minimum(place.astype(np.intp), _PARTS - 1), minlength=_PARTS)
        return counts.astype(np.int64) << COUNT_BITS

    def lengths(self, neighbours: Neighbours) -> np.ndarray:
        """1, and √2 where a number may be in another part than before."""
        squared = 1 if neighbours.relation == "emptied" else 2
        return np.full(_PARTS, math.sqrt(squared) * 2.0**COUNT_BITS)


@dataclass(frozen=True)
class LabelRange:
    """What is asked for the range of the labels.

    Attributes
    ----------
    mu : float
        Sensitivity of both questions together.
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
        moved = 1 if neighbours.relation == "emptied" else 2
        part = 2.0 * moved / (RANGE_NOISE * n_rows * mu) ** 2
        part = min(max(part, LEAST_RANGE_PART), MOST_RANGE_PART)
        return cls(math.sqrt(part) * mu, neighbours, centred)

    def __call__(self, ask: Ask) -> LabelsWithin:
        """Ask, and return labels within the range as a change of rows."""
        ask, each = after(ask, _LABELS, _SAID), self.mu / math.sqrt(2.0)
        counts = Magnitudes.asked(ask, widest_bounds(1), each, self.neighbours)
        low, high = counts.ranges(certain=False)[0][0].tolist()
        query = NoisySum(PartCounts(low, high), each, self.neighbours)
        low, high = held_range(ask(query), counts.sigma, ask.n_rows, low, high)
        if not self.centred:
            high = max(abs(low), abs(high))
            low = -high
        return LabelsWithin(low, high)


def held_range(
    counts: np.ndarray, sigma: float, n_rows: int, low: float, high: float
) -> tuple[float, float]:
    """Where labels are: the parts that stand out most from noise, and what stands out beside them.

    >>> counts = np.zeros(32)
    >>> counts[4:8] = counts[11] = 100.0
    >>> low, high = held_range(counts, 1.0, 500, 0.0, 64.0)
    >>> round(low, 1), round(high, 1)
    (5.1, 26.9)
    """
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    start, stop = max(
        ((k, k + w) for w in _STEPS for k in range(len(counts) - w + 1)),
        key=lambda ends: (sums[ends[1]] - sums[ends[0]]) / math.sqrt(ends[1] - ends[0]),
    )
    alone = np.flatnonzero(counts > max(_ALONE * sigma, _SHARE * n_rows))
    if alone.size:  # labels may be few numbers with gaps between them
        start, stop = min(start, int(alone[0])), max(stop, int(alone[-1]) + 1)
    stop = _reached(counts, stop, sigma, n_rows)
    start = len(counts) - _reached(counts[::-1], len(counts) - start, sigma, n_rows)
    hidden = _TIMES * sigma * math.sqrt(_STEPS[-2]) / n_rows
    part, room = (high - low) / len(counts), min(_ROOM + _HIDDEN * hidden, 1.0) * (stop - start)
    ends = (max(start - room, 0.0), min(stop + room, float(len(counts))))
    return low + part * ends[0], low + part * ends[1]


def _reached(counts: np.ndarray, at: int, sigma: float, n_rows: int) -> int:
    """The end of what is held, from a place where something is, upwards."""
    while at < len(counts):
        for w in _STEPS:
            least = max(_TIMES * sigma * math.sqrt(w), _SHARE * n_rows * w)
            if counts[at : at + w].sum() > least:
                at = min(at + w, len(counts))
                break
        else:
            return at
    return at
