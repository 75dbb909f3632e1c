"""The loss of objective perturbation, also where its minimiser is computed only nearly."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from privasso._validation import integer, nonnegative_float, positive_float, probability
from privasso.accounting._gaussian import CELLS, FAR, FEW_CELLS, sensitivity_for
from privasso.accounting._loss import ChainLoss, Loss, Renyi
from privasso.accounting._objective import (
    SMALLEST_C,
    Neighbours,
    Slope,
    check_choices,
    log_objective_deltas,
    objective_delta,
    objective_orders,
)

#: Points at which the ε with the least δ is searched for.
_POINTS = 400
#: By which part an order is raised, at least, to make room for the shift.
_STRETCH = 1e-4
#: Rounds of the search for an ε before it is left to halving.
_ATTEMPTS = 40


#: ε₀ in units of the shift μ₀ of a Gaussian law: beyond it, its δ is below 1e-86.
_DEVIATIONS, _NEGLIGIBLE = 20.0, 1e-86


def _far(epsilon: float) -> float:
    """(1 + e^ε)·1e-86, rounded up."""
    return min((1.0 + math.exp(min(epsilon, 700.0))) * _NEGLIGIBLE * (1.0 + 1e-14), 1.0)


def shift_epsilon(shift: float) -> float:
    """Return ε₀ at which Gaussian laws that are `shift` deviations apart are alike, up to 1e-86.

    δ(ε₀) = Φ(μ₀/2 − ε₀/μ₀) − e^ε₀ Φ(−μ₀/2 − ε₀/μ₀) ≤ Φ(μ₀/2 − 20) for ε₀ = 20 μ₀, which is below
    1e-86 for shifts μ₀ up to 0.01.
    """
    shift = nonnegative_float("shift", shift)
    if shift > 0.01:
        raise ValueError(f"shift must be at most 0.01, not {shift!r}; add more output noise")
    return _DEVIATIONS * shift


def least_delta(epsilon: float, share: float) -> float:
    """The δ of which (1 + e^ε)·1e-86 is a small part of the share for this distance."""
    return 2.0 * (1.0 + math.exp(min(epsilon, 700.0))) * _NEGLIGIBLE / share


def check_coverable(epsilon: float, delta: float, share: float) -> None:
    """Refuse a budget with a smaller δ than `least_delta`."""
    least = least_delta(epsilon, share)
    if least >= 1.0:
        raise ValueError(
            f"epsilon = {epsilon!r} is more than can be accounted for; choose "
            "a smaller epsilon, up to 100"
        )
    if not delta >= least:
        raise ValueError(
            f"delta must be at least {least:.3g} for epsilon = {epsilon!r}, so that the distance "
            "of the computed from the exact minimiser is covered; choose a larger delta, or a "
            "smaller epsilon"
        )


@dataclass(frozen=True)
class InexactLoss(Loss):
    """The loss of releases that are close to others whose loss is known.

    With Gaussian output noise whose mean is off by at most μ₀ of its deviations, each release is
    (ε₀, 1e-86)-indistinguishable from its ideal, ε₀ = 20μ₀, and so

        δ(ε) ≤ e^ε₀ δ_ideal(ε − 2ε₀) + (1 + e^ε)·1e-86.

    The shifts of several releases add up, so they are added once to the composed loss of the ideal
    ones.
    """

    ideal: Loss
    shift: float

    def __post_init__(self) -> None:
        shift_epsilon(self.shift)

    @property
    def _lost(self) -> float:
        """2ε₀, rounded up."""
        return 2.0 * shift_epsilon(self.shift) * (1.0 + 1e-12)

    @property
    def reach(self) -> float:
        """The ε beyond which (1 + e^ε) times the distance grows faster than δ falls."""
        return self._turn

    @cached_property
    def _turn(self) -> float:
        grid = np.linspace(self._lost, self.ideal.reach + self._lost, _POINTS)
        return float(grid[np.argmin(np.maximum(*self._raised(grid)))])

    def deltas(self, epsilons: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The bounds above, constant beyond `reach`: δ of a pair never grows with ε."""
        return self._raised(np.minimum(epsilons, self.reach))

    def delta(self, epsilon: float) -> float:
        """Return the bound at ε, or at a smaller ε where that is less."""
        epsilon = nonnegative_float("epsilon", epsilon)
        if epsilon < self._lost:
            return 1.0
        extra = _far(epsilon)
        found = self._factor * self.ideal.delta(epsilon - self._lost)
        if extra > found and self.reach < epsilon:
            return self.delta(self.reach)
        return min((found + extra) * (1.0 + 1e-15), 1.0)

    def epsilon(self, delta: float) -> float:
        """Return the smallest ε with δ(ε) ≤ δ, rounded up; inf where there is none."""
        delta = positive_float("delta", delta)
        # Any ε at which the ideal releases leave room for the distance will do.
        epsilon = 0.0
        for _ in range(_ATTEMPTS):
            room = (delta - _far(epsilon)) * (1.0 - 1e-15)
            room = room / self._factor * (1.0 - 1e-15)
            least = self.ideal.epsilon(room) + self._lost if room > 0.0 else math.inf
            if least <= epsilon or math.isinf(least):
                return max(least, epsilon)
            epsilon = least * (1.0 + 1e-6)
        return super().epsilon(delta)

    def renyi(self, order: float) -> Renyi:
        """Bound the divergences through those of the ideal releases, of a little larger order.

        Gaussian laws μ₀ deviations apart have the divergence aμ₀²/2 of the order a. For any s > 0
        the triangle inequality of Rényi divergences (Mironov 2017), used for each of the two
        distances, gives with b = (1 + s)a − s

            D_a ≤ (1 + s/((1 + s)(b − 1))) D_{(1+s)b}(ideal) + (1 + s)(a²/(a − 1) + b) μ₀²/(2s).

        An infinite loss is at most e^ε₀ times as likely as with the ideal releases, plus 1e-86.
        """
        if self.shift == 0.0:
            return self.ideal.renyi(order)
        s = max(_STRETCH, 10.0 * self.shift)
        between = (1.0 + s) * order - s
        ideal = self.ideal.renyi((1.0 + s) * between)
        factor = 1.0 + s / ((1.0 + s) * (between - 1.0))
        extra = (order**2 / (order - 1.0) + between) * (1.0 + s) * self.shift**2 / (2.0 * s)
        forward, backward = (factor * d + extra for d in (ideal.forward, ideal.backward))
        return Renyi(forward, backward, self._factor * ideal.beyond + _NEGLIGIBLE)

    def group(self, k: int) -> InexactLoss:
        """Return that of the ideal releases; both data sets are as far from their own ideal."""
        return replace(self, ideal=self.ideal.group(integer("k", k, minimum=1)))

    def scaled(self, factor: float) -> InexactLoss:
        """Scale that of the ideal releases; the distances stay."""
        return replace(self, ideal=self.ideal.scaled(factor))

    @property
    def _factor(self) -> float:
        """e^ε₀, rounded up."""
        return math.exp(self._lost) if self.shift > 0.0 else 1.0

    def _raised(self, epsilons: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with np.errstate(over="ignore"):
            extra = (1.0 + np.exp(epsilons)) * _NEGLIGIBLE * (1.0 + 1e-14)
        lost = self._lost
        ideal = self.ideal.deltas(np.maximum(epsilons - lost, 0.0))
        forward, backward = (
            np.where(epsilons < lost, 1.0, np.minimum(self._factor * d + extra, 1.0)) for d in ideal
        )
        return forward, backward


def ideal_losses(losses: Iterable[Loss]) -> tuple[list[Loss], float | None]:
    """The losses of ideal releases, and the shift of all computed ones together, if any."""
    given = list(losses)
    shifts = [loss.shift for loss in given if isinstance(loss, InexactLoss)]
    if not shifts:
        return given, None
    ideal = [loss.ideal if isinstance(loss, InexactLoss) else loss for loss in given]
    return ideal, shifts[0] if len(shifts) == 1 else math.fsum(shifts) * (1.0 + 1e-15)


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
