"""How a budget is shared between a fit and what is asked before and after it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

from privasso._tuned import INTERVAL_PART
from privasso.accounting import (
    GaussianLoss,
    Loss,
    delta_together,
    gaussian_epsilon,
    sensitivity_for,
)

Planned = TypeVar("Planned")
#: How much of δ a division leaves unused at most, and the most divisions that are tried.
_UNUSED, _TRIED = 0.03, 12


def interval_sensitivity(epsilon: float, delta: float) -> float:
    """μ of all that is asked for intervals.

    >>> round(interval_sensitivity(1.0, 1e-6), 3)
    0.167
    """
    return math.sqrt(INTERVAL_PART) * sensitivity_for(epsilon, delta)


def divided(
    epsilon: float,
    delta: float,
    mu: float,
    plan: Callable[[float], tuple[Planned, tuple[Loss, ...]]],
) -> Planned:
    """The fit with the largest ε' that leaves room for a Gaussian release of sensitivity μ.

    ``plan(ε')`` returns a fit and its losses. Together with the release they are within (ε, δ),
    which is computed from the losses themselves.
    """
    beside = GaussianLoss(mu)
    whole = sensitivity_for(epsilon, delta)
    share = gaussian_epsilon(delta, math.sqrt(max(whole**2 - mu**2, 1e-6 * whole**2)))
    goal, low, high, found = math.log1p(-0.5 * _UNUSED), 0.0, epsilon, None
    before: tuple[float, float] | None = None
    for _ in range(_TRIED):
        one, losses = plan(share)
        spent = delta_together((*losses, beside), 1, epsilon)
        off = math.log(max(spent, 1e-300) / delta)
        if off <= 0.0:
            low, found = share, one
        if -_UNUSED <= off <= 0.0:
            break
        high = high if off <= 0.0 else share
        # log δ is nearly linear in log ε' close by.
        rate = 10.0 if before is None else (off - before[1]) / math.log(share / before[0])
        before = share, off
        step = share * math.exp(min(max((goal - off) / max(rate, 1.0), -1.0), 1.0))
        share = step if low < step < high else 0.5 * (low + high)
    if found is None:
        raise ValueError(
            "this budget is too small to be shared between a fit and intervals or a range of the "
            "labels; leave intervals out, give y_bounds, or choose a larger ε"
        )
    return found
