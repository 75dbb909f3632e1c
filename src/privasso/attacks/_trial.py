"""One set of releases and one point of a claim, chosen from some releases and tested on others.

Limits that hold for many sets at once are wide. So the set and the point (ε, δ) that promise most
are chosen from a first lot of releases, and tested alone on a second one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privasso.accounting import Loss
from privasso.attacks._evidence import Evidence, Refuted, binomial_limits, points_of
from privasso.attacks._pair import Draw, Pair
from privasso.attacks._result import Finding

FloatArray = NDArray[np.float64]

#: Thresholds that are tried, as quantiles of the scores of both data sets.
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
        threshold = -self.threshold if self.below else self.threshold
        low = binomial_limits(int(np.sum(first > threshold)), first.size, 0.5 * level)[0]
        high = binomial_limits(int(np.sum(second > threshold)), second.size, 0.5 * level)[1]
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


#: Thresholds of log likelihood ratios at which claims are tested; fixed beforehand.
THRESHOLDS = np.concatenate([np.linspace(0.0, 3.0, 13), [3.5, 4.0, 5.0, 6.0, 8.0]])
#: Releases that confirm the most promising attack, relative to those of each attack.
CONFIRMING = 10


def attack(
    pairs: Sequence[Pair],
    claim: Loss | None,
    count: int,
    level: float,
    rng: np.random.Generator | None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Finding, ...]:
    """Attack each pair with `count` releases from each of its data sets.

    Against a claim, half of the `level` is for limits at thresholds that are fixed beforehand, and
    for all pairs at once. The other half is for one set and one point of the claim: those that
    promise most over all pairs, tested on ten times as many new releases.
    """
    show = progress or (lambda done, total: None)
    steps = len(pairs) + (claim is not None)
    findings: list[Finding] = []
    best: tuple[int, Trial] | None = None
    kept: dict[Draw, Any] = {}  # a data set can be in several pairs
    for k, pair in enumerate(pairs):
        for draw in (pair.into, pair.out):
            if draw not in kept:
                kept[draw] = draw(count, rng)
        into, out = (pair.score(kept[draw]) for draw in (pair.into, pair.out))
        evidence, closest = Evidence(into, out, THRESHOLDS, 0.5 * level / len(pairs)), None
        if claim is not None:
            closest = evidence.closest(claim)
            trial = most_promising(into, out, claim, CONFIRMING * count)
            if trial is not None and (best is None or trial.margin > best[1].margin):
                best = k, trial
        findings.append(Finding(pair.name, evidence, closest))
        show(k + 1, steps)
    if best is not None:
        k, trial = best
        into, out = (
            pairs[k].score(draw(CONFIRMING * count, rng)) for draw in (pairs[k].into, pairs[k].out)
        )
        findings[k] = findings[k].with_limit(trial.tested(into, out, 0.5 * level))
    show(steps, steps)
    return tuple(findings)
