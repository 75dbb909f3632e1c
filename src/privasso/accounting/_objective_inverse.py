"""Inverses of the profile of objective perturbation: c from (ε, δ), and ε from (δ, c)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from privasso._validation import nonnegative_float, positive_float, probability
from privasso.accounting._gaussian import sensitivity_for
from privasso.accounting._objective import (
    SMALLEST_C,
    Neighbours,
    Slope,
    check_choices,
    log_objective_deltas,
)
from privasso.accounting._objective_parts import FAR

#: The calibration aims this much below log δ, and settles for twice as much.
MARGIN = 2e-4
_STEP = 0.25
#: Rounds of a search, of which a few are needed mostly; what it has found by then is good, too.
_ROUNDS = 200


@lru_cache(maxsize=256)
def objective_sensitivity(
    epsilon: float,
    delta: float,
    t: float,
    neighbours: Neighbours = "records",
    *,
    loss: Slope = "huber",
) -> float:
    """Return the largest c at which objective perturbation is (ε, δ)-differentially private.

    The noise is then σ = Δψ·R/c. The δ of this c lies between 0.999 δ and δ.

    `t`, `neighbours`, `loss`: as in `objective_delta`.
    """
    epsilon, t = positive_float("epsilon", epsilon), nonnegative_float("t", t)
    delta = probability("delta", delta)
    check_choices(neighbours, loss)
    below = delta * (1.0 - 1e-15)  # so that rounding does not exceed δ
    target = math.log(below) - MARGIN
    at = np.array([epsilon])

    def excess(log_c: float) -> float:
        found = log_objective_deltas(at, math.exp(log_c), t, neighbours, loss=loss)
        return float(found[0]) - target

    # No bound is below that of a Gaussian mechanism.
    found = largest_c(excess, sensitivity_for(epsilon, below), _STEP)
    if found is None:
        raise ValueError(
            f"t = {t!r} is too large for ε = {epsilon!r}: δ is small only where ε is above "
            "log(1 + t); choose a larger ridge"
        )
    return found


def objective_epsilon(
    delta: float,
    c: float,
    t: float,
    neighbours: Neighbours = "records",
    *,
    loss: Slope = "huber",
) -> float:
    """Return the smallest ε ≥ 0 at which objective perturbation has at most this δ, rounded up.

    It is infinite for a c so large that no ε helps.
    """
    target = math.log(probability("delta", delta)) - 1e-12
    c, t = nonnegative_float("c", c), nonnegative_float("t", t)

    def excess(epsilon: float) -> float:
        found = log_objective_deltas(np.array([epsilon]), c, t, neighbours, loss=loss)
        return float(found[0]) - target

    if excess(0.0) <= 0.0:
        return 0.0
    low, high = 0.0, 0.5 * c * c + c + math.log1p(t)
    while not excess(high) <= 0.0:
        if high > 4.0 * (FAR * c + math.log1p(t)):  # no bound falls from here on
            return math.inf
        low, high = high, 2.0 * high
    return -last_below(lambda x: excess(-x), -high, -low, 1e-9)


def largest_c(excess: Callable[[float], float], c: float, step: float) -> float | None:
    """Return the largest c, at most the given one, at which `excess` of log c is not positive.

    Its excess is then above −MARGIN, unless it is the given one. None says that even the smallest
    c that the accounting tells from zero is too large.
    """
    low = high = math.log(c)
    while not excess(low) <= 0.0:
        if low < math.log(SMALLEST_C):
            return None
        low, high, step = low - step, low, 2.0 * step
    return math.exp(low if low == high else last_below(excess, low, high, MARGIN))


def last_below(
    excess: Callable[[float], float], low: float, high: float, tolerance: float
) -> float:
    """Return a point next to where `excess` becomes positive, on the side where it is not.

    At low it is not positive, and at high it is, or not a number. The point found has an excess
    above −tolerance.
    """
    at_low, at_high, side = excess(low), excess(high), 0
    reached = at_low
    for _ in range(_ROUNDS):
        if reached > -tolerance:
            break
        # The Illinois variant of regula falsi: the ends always bracket.
        middle = low - at_low * (high - low) / (at_high - at_low)
        if not low < middle < high:
            middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        found = excess(middle)
        if found <= 0.0:
            at_high *= 0.5 if side == -1 else 1.0
            low, at_low, reached, side = middle, found, found, -1
        else:
            at_low *= 0.5 if side == 1 else 1.0
            high, at_high, side = middle, found, 1
    return low
