"""The privacy loss of objective perturbation, for one person and for groups, and its inverses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from privasso._validation import integer, nonnegative_float, positive_float, probability
from privasso.accounting._gaussian import CELLS, FAR, FEW_CELLS, sensitivity_for
from privasso.accounting._loss import Loss
from privasso.accounting._objective import (
    SMALLEST_C,
    Neighbours,
    Slope,
    check_choices,
    log_objective_deltas,
    objective_delta,
    objective_orders,
)

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


#: Beyond log(1+t) + c²/2 + _TAIL·c, δ is below 1e-25.
_TAIL = 10.5
_BELOW = 1e-20
#: How much larger the ε of the last step of a chain is than that of an even split.
_TILTS = (0.0, 0.1, 0.2, 0.35)


@dataclass(frozen=True)
class ObjectiveLoss(Loss):
    """The loss of objective perturbation; see `objective_delta` for what the numbers mean.

    Under ``neighbours="records"`` the first order of the pair is with the record against without.
    """

    c: float
    t: float
    neighbours: Neighbours
    loss: Slope = "huber"

    def __post_init__(self) -> None:
        object.__setattr__(self, "c", nonnegative_float("c", self.c))
        object.__setattr__(self, "t", nonnegative_float("t", self.t))
        check_choices(self.neighbours, self.loss)

    @property
    def reach(self) -> float:
        """log(1+t) + c²/2 + 10.5 c, or where δ = 1e-20 for a record that is replaced."""
        if self.neighbours == "replace":
            return _reach(self)
        return float(np.log1p(self.t)) + 0.5 * self.c * self.c + _TAIL * self.c

    def deltas(self, epsilons: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds of both orders."""
        return self._deltas(epsilons, CELLS)

    def quick_deltas(self, epsilons: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds of both orders with fewer cells of their integral."""
        return self._deltas(epsilons, FEW_CELLS)

    def _deltas(self, epsilons: np.ndarray, cells: int) -> tuple[np.ndarray, np.ndarray]:
        numbers = self.c, self.t, self.neighbours
        orders = objective_orders(epsilons, *numbers, loss=self.loss, searched=False, cells=cells)
        forward, backward = (np.exp(order) for order in orders)
        return forward, backward

    def delta(self, epsilon: float) -> float:
        """Return `objective_delta`."""
        return objective_delta(epsilon, self.c, self.t, self.neighbours, loss=self.loss)

    def epsilon(self, delta: float) -> float:
        """Return `objective_epsilon`."""
        return objective_epsilon(delta, self.c, self.t, self.neighbours, loss=self.loss)

    def group(self, k: int) -> Loss:
        """Return the loss over a chain of k neighbours."""
        k = integer("k", k, minimum=1)
        return self if k == 1 else ChainLoss(self, k)

    def scaled(self, factor: float) -> ObjectiveLoss:
        """Scale c and t, as the default settings of a fit nearly do with ε."""
        return replace(self, c=factor * self.c, t=factor * self.t)


@lru_cache(maxsize=64)
def _reach(loss: ObjectiveLoss) -> float:
    return loss.epsilon(_BELOW)


@dataclass(frozen=True)
class ChainLoss(Loss):
    """The loss between data sets with k steps from neighbour to neighbour between them.

    With ε = ε₁ + … + ε_k it is at most Σ_j e^{ε₁ + … + ε_{j−1}} δ(ε_j), for any split. Later terms
    have the larger factors, so the ε_j grow evenly along the chain.
    """

    step: Loss
    k: int

    @property
    def reach(self) -> float:
        """Half as much again as k times that of a step."""
        return 1.5 * self.k * self.step.reach

    def deltas(self, epsilons: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the best split that is tried, the same in both orders."""
        best = np.ones_like(epsilons)
        places = np.linspace(-1.0, 1.0, self.k)
        for tilt in _TILTS:
            # Rounded down, so that the parts do not add up to more than ε.
            parts = epsilons * (1.0 + tilt * places[:, None]) / self.k * (1.0 - 1e-14)
            deltas = np.maximum(*self.step.deltas(parts.ravel())).reshape(parts.shape)
            before = np.cumsum(parts, axis=0) - parts
            with np.errstate(over="ignore"):
                total = np.sum(np.exp(before) * deltas, axis=0) * (1.0 + 1e-12)
            best = np.minimum(best, total)
        return best, best

    def group(self, k: int) -> Loss:
        """Return the loss over a longer chain."""
        return ChainLoss(self.step, self.k * integer("k", k, minimum=1))

    def scaled(self, factor: float) -> Loss:
        """Scale each step."""
        return ChainLoss(self.step.scaled(factor), self.k)
