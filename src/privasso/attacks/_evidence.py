"""What scores of an attack on many releases show, with confidence limits.

An attack gives each release a score, large if it speaks for the first of two data sets. All limits
here are exact binomial ones (Clopper and Pearson 1934), and hold together at the stated level.
Limits that hold for many sets of releases at once are wide. So the set and the point (ε, δ) that
promise most are also chosen from a first lot of releases, and tested alone on a second one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
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
        return hits / self.into.size, float(low), float(high)

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
        tail = self.level / (4 * self.thresholds.size)
        both = (self.into, self.out), (-self.out, -self.into)
        P, Q = np.hstack([_limits(*pair, self.thresholds, tail) for pair in both])
        best = Refuted(1.0, 1.0, -math.inf)
        for epsilon, delta in zip(*(part.tolist() for part in points_of(claim)), strict=True):
            with np.errstate(divide="ignore"):
                bound = float(np.max(np.log(np.maximum(P - delta, 0.0) / Q)))
            best = max(best, Refuted(epsilon, delta, bound), key=lambda one: one.share)
        return best


def _limits(
    first: FloatArray, second: FloatArray, thresholds: FloatArray, tail: float
) -> tuple[FloatArray, FloatArray]:
    """Lower limits of P(score > t) in the first data set, and upper ones in the second."""
    hits = [np.sum(part[:, None] > thresholds, axis=0) for part in (first, second)]
    return (
        binomial_limits(hits[0], first.size, tail)[0],
        binomial_limits(hits[1], second.size, tail)[1],
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


def binomial_limits(hits: ArrayLike, count: int, tail: float) -> tuple[FloatArray, FloatArray]:
    """Limits of a probability, each of which is wrong with probability `tail` at most."""
    hits = np.asarray(hits)
    low = betaincinv(np.maximum(hits, 1), count - np.maximum(hits, 1) + 1, tail)
    high = betaincinv(np.minimum(hits, count - 1) + 1, np.maximum(count - hits, 1), 1.0 - tail)
    return np.where(hits == 0, 0.0, low)[()], np.where(hits == count, 1.0, high)[()]


#: Thresholds of a `Trial` that are tried, as quantiles of the scores of both data sets.
_QUANTILES = np.linspace(0.02, 0.98, 49)
#: Deviations by which limits of one set are expected to be off the rates.
_DEVIATIONS = 2.8


@dataclass(frozen=True)
class Trial:
    """A test of a claim that is fixed before the releases for it are drawn.

    Attributes
    ----------
    threshold : float
        Where the set of releases ends.
    below : bool
        Whether it is that of scores below the threshold, which speak for the second data set.
    epsilon, delta : float
        The point of the claim.
    margin : float
        Expected distance of the lower limit of ε from ε, in units of ε where it is negative.
    """

    threshold: float
    below: bool
    epsilon: float
    delta: float
    margin: float

    def tested(self, into: FloatArray, out: FloatArray, level: float) -> Refuted:
        """The lower limit of ε from scores of new releases, wrong with probability `level`."""
        first, second = (-out, -into) if self.below else (into, out)
        threshold = np.array([-self.threshold if self.below else self.threshold])
        low, high = (float(x[0]) for x in _limits(first, second, threshold, 0.5 * level))
        bound = math.log((low - self.delta) / high) if low > self.delta else -math.inf
        return Refuted(self.epsilon, self.delta, bound)


def most_promising(into: FloatArray, out: FloatArray, claim: Loss, count: int) -> Trial | None:
    """The trial with the largest expected margin in `count` new releases from each data set.

    Returns None where the claim has no point with a δ that so few releases could show.

    Examples
    --------
    >>> from privasso.accounting import GaussianLoss
    >>> rng = np.random.default_rng(0)
    >>> into, out = 2.0 * rng.normal(1.0, 1.0, 500), 2.0 * rng.normal(-1.0, 1.0, 500)
    >>> trial = most_promising(into, out, GaussianLoss(1.0), 1000)
    >>> into, out = 2.0 * rng.normal(1.0, 1.0, 1000), 2.0 * rng.normal(-1.0, 1.0, 1000)
    >>> trial.margin > 0.0, trial.tested(into, out, 0.01).share > 1.0
    (True, True)
    """
    epsilons, deltas = points_of(claim)
    if not epsilons.size:
        return None
    both = np.concatenate([into, out])
    thresholds = np.unique(np.quantile(both, _QUANTILES))
    best: Trial | None = None
    for below in (False, True):
        first, second = (-out, -into) if below else (into, out)
        places = -thresholds if below else thresholds
        P, Q = _rates(first, places, 0.0), _rates(second, places, 1.0)
        low = P - _spread(P, count, first.size)
        high = Q + _spread(Q, count, second.size)
        left = np.maximum(low - deltas[:, None], 1e-12)
        limits = np.log(left / high)
        margins = limits - epsilons[:, None]
        margins = np.where(margins > 0.0, margins, margins / epsilons[:, None])
        i, j = np.unravel_index(int(np.argmax(margins)), margins.shape)
        margin = float(margins[i, j])
        if best is None or margin > best.margin:
            place = float(thresholds[j])
            best = Trial(place, below, float(epsilons[i]), float(deltas[i]), margin)
    return best


def _rates(scores: FloatArray, thresholds: FloatArray, more: float) -> FloatArray:
    """Parts of the scores above each threshold, with `more` of one that was not seen."""
    above = scores.size - np.searchsorted(np.sort(scores), thresholds, side="right")
    return np.asarray((above + more) / (scores.size + 1.0), dtype=np.float64)


def _spread(rates: FloatArray, count: int, known: int) -> FloatArray:
    """How far a limit from `count` releases may be off rates that `known` releases have shown."""
    deviation = np.sqrt(rates * (1.0 - rates))
    return deviation * (_DEVIATIONS / math.sqrt(count) + 1.0 / math.sqrt(known))
