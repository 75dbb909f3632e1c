"""Attack pairs of data sets, and confirm what promises most with new releases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from privasso.accounting import Loss
from privasso.attacks._evidence import Evidence
from privasso.attacks._pair import Draw, Pair
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
