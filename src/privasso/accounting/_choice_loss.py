"""The privacy loss of k choices by the exponential mechanism, one after the other.

A choice has the bounded range ε₀ if for neighbouring data sets its losses, log P(i)/Q(i) for each
outcome i, lie in an interval of the length ε₀ (Dong, Durfee & Rogers 2020). That interval holds 0.
If it is [t − ε₀, t], and h is the δ of all that follows as a function of α = e^ε, then

    δ(α) = Σ_i P(i) h(α Q(i)/P(i)) ≤ p_t h(α e^(−t)) + (1 − p_t) h(α e^(ε₀−t)),

because h is convex, the ratios Q/P lie between e^(−t) and e^(ε₀−t), and their mean under P is 1; so
p_t = (1 − e^(t−ε₀))/(1 − e^(−ε₀)). The largest value over t, used k times from h(α) = (1 − α)₊, is
the largest δ that k choices can have, each of which may depend on the outcomes of those before. It
is convex in α, as a maximum of such functions, and so belongs to a pair of distributions, which
dominates all of them and composes with other losses.

The recursion runs on a grid of ε. For t between two points of the grid, [t − ε₀, t] lies in an
interval between points that is one step longer; using that one makes every value an upper bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numba import njit

from privasso._validation import integer, nonnegative_float
from privasso.accounting._loss import Loss, Renyi

#: Steps of the grid in ε₀: at most, at least, and such that the work does not grow beyond k = 100.
_FINEST, _COARSEST, _MANY = 256, 24, 100
#: Beyond this many deviations of the sum of the losses the bounds stay constant.
_TAIL = 10.5
#: More than the rounding errors of the recursion, relative to its values.
_ROUNDING = 1.0 + 1e-10
#: More than the rounding errors of a Rényi divergence, for each unit of its exponent.
_ROUNDED = 1e-14


@dataclass(frozen=True)
class ChoiceLoss(Loss):
    """The loss of k choices of bounded range ε₀, made one after the other.

    It is nearly that of a Gaussian mechanism with μ = ε₀√k/2.

    `epsilon_each`: ε₀, the range of the losses of one choice. `count`: k.
    """

    epsilon_each: float
    count: int

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "epsilon_each", nonnegative_float("epsilon_each", self.epsilon_each)
        )
        object.__setattr__(self, "count", integer("count", self.count, minimum=1))

    @property
    def mu(self) -> float:
        """The sensitivity ε₀√k/2 of a Gaussian mechanism with nearly the same loss."""
        return 0.5 * self.epsilon_each * math.sqrt(self.count)

    @property
    def reach(self) -> float:
        """kε₀, beyond which δ is zero, or where it is below 1e-20."""
        whole, mu = self.count * self.epsilon_each, self.mu
        return min(whole, 0.5 * mu * mu + _TAIL * mu + self.epsilon_each)

    def deltas(self, epsilons: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The largest δ over all such choices, the same in both orders.

        Between points of the grid it lies below the chord, as it is convex in e^ε.
        """
        epsilons = np.asarray(epsilons, dtype=np.float64)
        if self.epsilon_each == 0.0:
            return np.zeros_like(epsilons), np.zeros_like(epsilons)
        grid, values = _profile(self.epsilon_each, self.count)
        found = np.interp(np.exp(np.minimum(epsilons, grid[-1])), np.exp(grid), values)
        found = np.where(epsilons >= self.count * self.epsilon_each, 0.0, found)
        return found, found

    def renyi(self, order: float) -> Renyi:
        """Return k times the largest divergence of one choice, over all places of its interval.

        With q = e^(−ε₀), x = e^t and the order a it is that of the pair above,
        x^(a−1) ((1 − q^a) − xq(1 − q^(a−1)))/(1 − q), which is largest at the x below.
        """
        if self.epsilon_each == 0.0:
            return Renyi(0.0, 0.0, 0.0)
        e, a = self.epsilon_each, order
        whole, less = (math.log(-math.expm1(-x * e)) for x in (a, a - 1.0))
        log_x = math.log1p(-1.0 / a) + whole + e - less
        value = (a - 1.0) * log_x + whole - math.log(a) - math.log(-math.expm1(-e))
        found = self.count * (value + _ROUNDED * (1.0 + a * e)) / (a - 1.0)
        return Renyi(found, found, 0.0)

    def group(self, k: int) -> ChoiceLoss:
        """Return a range of kε₀: ranges of neighbours of neighbours add up."""
        return ChoiceLoss(integer("k", k, minimum=1) * self.epsilon_each, self.count)

    def scaled(self, factor: float) -> ChoiceLoss:
        """Scale ε₀."""
        return ChoiceLoss(factor * self.epsilon_each, self.count)


@lru_cache(maxsize=64)
def _profile(epsilon: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    """A grid of ε from zero on, and upper bounds of δ there."""
    steps = int(_FINEST * min(1.0, (_MANY / count) ** 0.75))
    steps = max(_COARSEST, steps)
    step = epsilon / steps
    size = math.ceil(ChoiceLoss(epsilon, count).reach / step)
    top = math.ceil(count * epsilon / step) + 1
    size = min(size, top) + 1
    grid = step * np.arange(size + 1)
    t = step * np.arange(1, steps + 1)
    length = step * (steps + 1)
    p = np.expm1(t - length) / math.expm1(-length)
    values = np.zeros(size + 1)
    for _ in range(count):
        values = _largest(_extended(values, grid, steps), p, steps, size)
    return grid, np.minimum(values * _ROUNDING, 1.0)


def _extended(values: np.ndarray, grid: np.ndarray, steps: int) -> np.ndarray:
    """Values from −steps on the grid to so many steps beyond it.

    Below zero it is 1 − α + α·δ(1/α), as the set of pairs is the same in both orders; beyond the
    end, δ is not more than at the end.
    """
    below = -grid[steps:0:-1]
    reflected = -np.expm1(below) + np.exp(below) * values[steps:0:-1]
    return np.concatenate([reflected, values, np.full(steps + 2, values[-1])])


@njit(nogil=True, cache=True)
def _largest(h, p, steps, size):  # pragma: no cover
    """The largest p_a h(ε − a) + (1 − p_a) h(ε − a + steps + 1) over a = 1 … steps."""
    found = np.zeros(size + 1)
    for i in range(size + 1):
        best = 0.0
        for a in range(1, steps + 1):
            low = i - a + steps
            value = p[a - 1] * h[low] + (1.0 - p[a - 1]) * h[low + steps + 1]
            if value > best:
                best = value
        found[i] = best
    return found
