"""What scores of an attack on many releases show, with confidence limits.

An attack gives each release a score, large if it speaks for the first of two data sets. All limits
here are exact binomial ones (Clopper and Pearson 1934), and hold together at the stated level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv
from scipy.stats import rankdata

from privasso.accounting import Loss

FloatArray = NDArray[np.float64]

#: False-positive rates at which the true-positive rate is stated.
FALSE_POSITIVES = (0.001, 0.01, 0.1)
#: ε at which a claimed profile is tested, and the smallest δ there.
_EPSILONS = np.concatenate([np.linspace(0.05, 3.0, 60), np.linspace(3.2, 12.0, 45)])
SMALLEST_DELTA = 0.01


@dataclass(frozen=True)
class Refuted:
    """The point (ε, δ) of a claimed profile that the evidence comes closest to refuting.

    Attributes
    ----------
    epsilon, delta : float
        A point of the claim.
    bound : float
        Lower confidence limit of the true ε at this δ. The claim is refuted if it is larger.
    """

    epsilon: float
    delta: float
    bound: float

    @property
    def share(self) -> float:
        """Bound over claim: above 1, the claim is refuted."""
        return self.bound / self.epsilon


@dataclass(frozen=True, eq=False)
class Evidence:
    """Scores of releases from a data set and from its neighbour.

    Attributes
    ----------
    into : ndarray
        Scores of releases from the first data set ("in").
    out : ndarray
        Scores of releases from the second ("out").
    thresholds : ndarray
        Thresholds for refuting a claim; they must not depend on these scores.
    level : float
        Probability that any of the limits for refuting a claim is wrong.
    """

    into: FloatArray = field(repr=False)
    out: FloatArray = field(repr=False)
    thresholds: FloatArray = field(repr=False)
    level: float

    @cached_property
    def auc(self) -> float:
        """Share of pairs in which the score of "in" is larger; ties count half."""
        ranks = rankdata(np.concatenate([self.into, self.out]))
        above = float(ranks[: self.into.size].sum()) - self.into.size * (self.into.size + 1) / 2.0
        return above / (self.into.size * self.out.size)

    @cached_property
    def auc_error(self) -> float:
        """Standard error of the AUC (DeLong, DeLong and Clarke-Pearson 1988)."""
        both = rankdata(np.concatenate([self.into, self.out]))
        n, m = self.into.size, self.out.size
        inside = (both[:n] - rankdata(self.into)) / m
        outside = 1.0 - (both[n:] - rankdata(self.out)) / n
        return math.sqrt(float(np.var(inside, ddof=1)) / n + float(np.var(outside, ddof=1)) / m)

    @property
    def advantage(self) -> float:
        """True- minus false-positive rate of the rule "in" for a positive score."""
        return float(np.mean(self.into > 0.0) - np.mean(self.out > 0.0))

    def true_positives(self, rate: float) -> tuple[float, float, float]:
        """True-positive rate at a false-positive rate, with limits of 95 % for that threshold.

        The threshold is a quantile of the scores of "out", so it is itself uncertain.
        """
        threshold = float(np.quantile(self.out, 1.0 - rate, method="higher"))
        hits = int(np.sum(self.into > threshold))
        low, high = binomial_limits(hits, self.into.size, 0.025)
        return hits / self.into.size, low, high

    def curve(self) -> tuple[FloatArray, FloatArray]:
        """False- and true-positive rates over all thresholds."""
        steps = np.concatenate([[np.inf], np.unique(np.concatenate([self.into, self.out]))[::-1]])
        rates = (
            1.0 - np.searchsorted(np.sort(scores), steps, side="left") / scores.size
            for scores in (self.out, self.into)
        )
        false, true = rates
        return np.append(false, 1.0), np.append(true, 1.0)

    def closest(self, claim: Loss) -> Refuted:
        """The point of a claimed profile with the largest ratio of refuted to claimed ε.

        For a set A of releases, P(A) ≤ e^ε Q(A) + δ, so ε ≥ log((P(A) − δ)/Q(A)) with the lower
        limit of P(A) and the upper limit of Q(A). The sets are those of scores above a threshold,
        and, for the other order of the pair, below its negative.
        """
        count = 4 * self.thresholds.size
        high = [self._limits(t, count) for t in self.thresholds]
        P = np.array([(into[0], out[1]) for into, out in high])
        mirrored = Evidence(-self.out, -self.into, self.thresholds, self.level)
        low = [mirrored._limits(t, count) for t in self.thresholds]
        P = np.vstack([P, [(into[0], out[1]) for into, out in low]])
        best = Refuted(1.0, 1.0, -math.inf)
        for epsilon, delta in zip(*(part.tolist() for part in points_of(claim)), strict=True):
            with np.errstate(divide="ignore", invalid="ignore"):
                bounds = np.log(np.maximum(P[:, 0] - delta, 0.0) / P[:, 1])
            found = Refuted(epsilon, delta, float(np.nanmax(bounds)))
            best = max(best, found, key=lambda one: one.share)
        return best

    def epsilon_at(self, delta: float) -> float:
        """Lower confidence limit of ε at a given δ, zero or more; no claim is needed."""
        count = 4 * self.thresholds.size
        mirrored = Evidence(-self.out, -self.into, self.thresholds, self.level)
        best = 0.0
        for one in (self, mirrored):
            for t in self.thresholds:
                into, out = one._limits(t, count)
                if into[0] > delta:
                    best = max(best, math.log((into[0] - delta) / out[1]))
        return best

    def _limits(self, threshold: float, count: int) -> tuple[tuple[float, float], ...]:
        """Limits of both rates at one threshold, one of `count` that hold together."""
        tail = self.level / count
        return tuple(
            binomial_limits(int(np.sum(scores > threshold)), scores.size, tail)
            for scores in (self.into, self.out)
        )


def points_of(claim: Loss) -> tuple[FloatArray, FloatArray]:
    """ε at which a claim is tested, and its δ there, which is never below 0.01.

    Examples
    --------
    >>> from privasso.accounting import GaussianLoss
    >>> [part[-1].round(3) for part in points_of(GaussianLoss(1.0))]
    [np.float64(2.3), np.float64(0.01)]
    """
    deltas = np.maximum(*claim.deltas(_EPSILONS))
    count = int(np.argmax(deltas < SMALLEST_DELTA)) if np.any(deltas < SMALLEST_DELTA) else None
    return _EPSILONS[:count], deltas[:count]


def binomial_limits(hits: int, count: int, tail: float) -> tuple[float, float]:
    """Limits of a probability, each of which is wrong with probability `tail` at most."""
    low = float(betaincinv(hits, count - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, count - hits, 1.0 - tail)) if hits < count else 1.0
    return low, high
