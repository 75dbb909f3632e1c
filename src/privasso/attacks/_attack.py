"""Attack pairs of data sets, and confirm what promises most with new releases."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from privasso.accounting import Loss
from privasso.attacks._evidence import Evidence, Refuted
from privasso.attacks._pair import Pair, Score
from privasso.attacks._result import Finding
from privasso.attacks._trial import Trial, most_promising

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
    steps = len(pairs) + (claim is not None)
    findings, trials, scores = [], [], []
    for k, pair in enumerate(pairs):
        score = pair.score
        into, out = (score(world.releases(count, rng)) for world in (pair.into, pair.out))
        evidence = Evidence(into, out, THRESHOLDS, 0.5 * level / len(pairs))
        closest = trial = None
        if claim is not None:
            closest = evidence.closest(claim)
            trial = most_promising(into, out, claim, CONFIRMING * count)
        findings.append(Finding(pair.name, evidence, closest))
        trials.append(trial)
        scores.append(score)
        if progress is not None:
            progress(k + 1, steps)
    best = max(range(len(pairs)), key=lambda k: _margin(trials[k]))
    trial = trials[best]
    if trial is not None:
        confirmed = _confirmed(pairs[best], scores[best], trial, CONFIRMING * count, level, rng)
        findings[best] = findings[best].with_limit(confirmed)
    if progress is not None:
        progress(steps, steps)
    return tuple(findings)


def _confirmed(
    pair: Pair,
    score: Score,
    trial: Trial,
    count: int,
    level: float,
    rng: np.random.Generator | None,
) -> Refuted:
    into, out = (score(world.fresh(count, rng)) for world in (pair.into, pair.out))
    return trial.tested(into, out, 0.5 * level)


def _margin(trial: Trial | None) -> float:
    return -np.inf if trial is None else trial.margin
