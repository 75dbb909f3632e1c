"""What a privacy loss means for a test that tells two neighbouring data sets apart."""

from __future__ import annotations

import numpy as np

from privasso._validation import probability
from privasso.accounting._loss import Loss

#: Points of the grid of ε at which bounds are taken.
_POINTS = 400


def true_alarms(loss: Loss, false_alarms: float) -> float:
    """Return the largest rate of true alarms of any test with this rate of false alarms.

    For every ε, an event of probability q under one data set has at most e^ε q + δ(ε) under the
    other, and its complement at least e^(−ε)(1 − q − δ(ε)). The least of these bounds over a grid
    of ε is an upper bound, too. It holds for both orders of the pair.

    `false_alarms`: rate of alarms where there is nothing to be found.
    """
    false = probability("false_alarms", false_alarms)
    reach = min(loss.reach, 700.0)
    epsilons = np.linspace(0.0, reach, _POINTS + 1) if reach > 0.0 else np.zeros(1)
    delta = np.maximum(*loss.deltas(epsilons))
    above = np.exp(epsilons) * false + delta
    beside = 1.0 - np.exp(-epsilons) * (1.0 - false - delta)
    return min(float(np.minimum(above, beside).min()) * (1.0 + 1e-12), 1.0)
