"""The columns with the largest sums, chosen with noise exactly as if it were real numbers.

Adding independent Gumbel numbers of scale s to scores q_i once, and taking the k largest, is the
same as choosing k times, without putting back, each i with a probability ∝ e^(q_i/s) (Durfee &
Rogers 2019): k exponential mechanisms. Only the set is returned.

A Gumbel number is −log(−log(1 − v)) with v uniform in (0, 1). v is an infinite string of random
bits, of which as many are drawn as the answer takes: 64 for each score at first. They enclose v,
and with a bound on rounding errors the noisy score, in an interval. Where the intervals of two
scores overlap that compete for the last place, which happens about once in a million times, these
get 64 more bits, and their intervals are computed in decimal numbers, until they are apart. The
probabilities of the outcomes are therefore those of the exponential mechanism without any error.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal, localcontext

import numpy as np
from numba import njit

from privasso.accounting import ChoiceLoss
from privasso.blocks import RowBlocks
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


#: Bound on the relative errors of a few operations and logarithms, with a wide margin.
_MARGIN = 2.0**-44
_DIGITS = 40
#: How many are looked at first to find out who may be among the k largest: at least, and times k.
_FEWEST, _FEW = 64, 4
#: These are the best of a part of all that is larger by this factor.
_SAMPLE = 64


def noisy_largest(
    scores: np.ndarray, scale: float, count: int, bits: BitSource, *, margin: float = _MARGIN
) -> np.ndarray:
    """Return the indices of the k largest of q_i + s·G_i, in increasing order.

    Parameters
    ----------
    scores : ndarray of int64, shape (N,)
        q.
    scale : float
        s > 0, in units of the scores.
    count : int
        k, from 1 to N.
    bits : BitSource
        Source of the noise.
    margin : float
        Relative errors that are reckoned with. A larger value changes nothing but the time, and
        lets a test take the path of decimal numbers.
    """
    if not 0.0 < scale < math.inf:  # without noise, equal scores would never be told apart
        raise ValueError("the noise of a choice must have a positive scale; choose another epsilon")
    words = bits(scores.size)
    some = _candidates(scores, scale, words, count, margin)
    low, high = _intervals(scores[some], scale, words[some], margin)
    certain, open_ = (some[part] for part in _sorted_out(low, high, count))
    if certain.size < count:
        undecided = {int(i): (int(words[i]), 64) for i in open_}
        rest = _decided(scores, scale, undecided, count - certain.size, bits)
        certain = np.append(certain, rest)
    return np.sort(certain)


def _candidates(
    scores: np.ndarray, scale: float, words: np.ndarray, count: int, margin: float
) -> np.ndarray:
    """Indices of all that may be among the k largest, usually a few, found without logarithms.

    As −log(1 − v) ≥ v, a Gumbel number is at most −log v, and v is at least the power of two that
    begins its string of bits. What stays below k others for that is left out.
    """
    few = max(_FEW * count, _FEWEST)
    if scores.size <= 2 * few:
        return np.arange(scores.size)
    most = np.empty(scores.size)
    _bound(scores, words, math.log(2.0) * scale * (1.0 + 1e-12), margin, most)
    # The k largest of any of them are below the k largest of all.
    some = np.arange(0, scores.size, max(scores.size // (_SAMPLE * few), 1))
    best = some[np.argpartition(most[some], -few)[-few:]]
    low, _ = _intervals(scores[best], scale, words[best], margin)
    return np.flatnonzero(most >= np.partition(low, few - count)[few - count])


@njit(nogil=True, cache=True)
def _bound(scores, words, unit, margin, most):  # pragma: no cover
    """Bounds q + n·unit, where v has n − 1 zeros before its first one, with room for rounding."""
    for i in range(scores.size):
        word, zeros = words[i], 1
        while zeros < 64 and word < np.uint64(1) << np.uint64(63):
            word <<= np.uint64(1)
            zeros += 1
        bound = np.inf if word == 0 else scores[i] + zeros * unit
        most[i] = bound + margin * (abs(bound) + abs(np.float64(scores[i])))


def _intervals(
    scores: np.ndarray, scale: float, words: np.ndarray, margin: float
) -> tuple[np.ndarray, np.ndarray]:
    """Enclose q + s·G for v between words·2⁻⁶⁴ and (words + 1)·2⁻⁶⁴."""
    q = scores.astype(np.float64)
    v = words.astype(np.float64) * 2.0**-64
    ends = []
    with np.errstate(divide="ignore"):
        # The next number after v + 2⁻⁶⁴, and the one before v, so that rounding is covered.
        for end in ((v + 2.0**-64) * (1.0 + 2.0**-50), v * (1.0 - 2.0**-50)):
            ends.append(-np.log(-np.log1p(-np.minimum(end, 1.0))))
    low, high = ends
    slack_low = margin * (np.abs(q) + scale * (1.0 + np.abs(low)))
    slack_high = margin * (np.abs(q) + scale * (1.0 + np.abs(high)))
    with np.errstate(invalid="ignore"):
        low = np.where(np.isfinite(low), q + scale * low - slack_low, -np.inf)
        high = np.where(np.isfinite(high), q + scale * high + slack_high, np.inf)
    return low, high


def _sorted_out(low: np.ndarray, high: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Those that are certainly among the k largest, and those that may be or not.

    At most k upper ends exceed the (k+1)-th largest of them, so a lower end above that one is
    certain; at least k lower ends are not below the k-th largest of them, so an upper end below
    that one is out.
    """
    n = low.size
    if count >= n:
        return np.arange(n), np.empty(0, dtype=np.intp)
    certain = low > np.partition(high, n - count - 1)[n - count - 1]
    out = high < np.partition(low, n - count)[n - count]
    return np.flatnonzero(certain), np.flatnonzero(~certain & ~out)


def _decided(
    scores: np.ndarray,
    scale: float,
    undecided: dict[int, tuple[int, int]],
    count: int,
    bits: BitSource,
) -> list[int]:
    """The k largest of a few, with as many bits as it takes."""
    found: list[int] = []
    digits = _DIGITS
    while len(found) < count:
        digits *= 2
        for i, (word, n) in undecided.items():
            undecided[i] = (word << 64) | int(bits(1)[0]), n + 64
        ends = {i: _enclosed(int(scores[i]), scale, *uv, digits) for i, uv in undecided.items()}
        wanted = count - len(found)
        if wanted == len(ends):
            return [*found, *ends]
        lows = sorted((low for low, _ in ends.values()), reverse=True)
        highs = sorted((high for _, high in ends.values()), reverse=True)
        certain = [i for i, (low, _) in ends.items() if low > highs[wanted]]
        out = [i for i, (_, high) in ends.items() if high < lows[wanted - 1]]
        found += certain
        for i in (*certain, *out):
            del undecided[i]
    return found


def _enclosed(q: int, scale: float, word: int, n: int, digits: int) -> tuple[Decimal, Decimal]:
    """Enclose q + s·G for v between word·2⁻ⁿ and (word + 1)·2⁻ⁿ, in decimal numbers."""
    with localcontext() as context:
        context.prec = digits + n
        unit = Decimal(2) ** -n
        s = Decimal(scale)
        ends = []
        for edge, far in ((word + 1, Decimal("-Infinity")), (word, Decimal("Infinity"))):
            v = edge * unit
            if v <= 0 or v >= 1:
                ends.append(far)
                continue
            gumbel = -(-(1 - v).ln()).ln()
            error = (abs(q) + s * (1 + abs(gumbel))) * Decimal(10) ** -digits
            ends.append(q + s * gumbel + (error if edge == word else -error))
        return ends[0], ends[1]
