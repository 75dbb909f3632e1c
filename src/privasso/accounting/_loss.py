"""The privacy loss of a release: how well neighbouring data sets can be told apart.

Between points of a grid, δ as a function of e^ε lies below its chords, because it is convex. The
chords are the δ of a law on the grid whose probabilities are the changes of slope (connect the
dots: Doroshenko and others, 2022). Everything that is computed from that law is an upper bound.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import Field, dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np
from numba import njit

from privasso._validation import integer, nonnegative_float, positive_float, probability
from privasso.accounting._gaussian import gaussian_delta, gaussian_epsilon, log_shift

#: More than the relative rounding error of a difference of slopes.
_UNIT = 1e-15
#: Losses beyond this one protect nothing, and e^ε would overflow.
LARGEST = 700.0
#: The least e^ε, relative to the largest, that has all its digits.
_SMALL = 1e-290


def _both_sides(
    grid: np.ndarray, ahead: np.ndarray, reverse: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the grid from −ε to ε and the δ of one order of a pair there.

    For ε < 0 it is δ_PQ(ε) = 1 − e^ε + e^ε δ_QP(−ε). The bounds of a loss need not belong to a pair
    themselves, which takes a convex function of e^ε; their lower envelope does.
    """
    below = -grid[:0:-1]
    reflected = -np.expm1(below) + np.exp(below) * reverse[:0:-1]
    at = np.concatenate([below, grid])
    return at, lower_envelope(at, np.clip(np.concatenate([reflected, ahead]), 0.0, 1.0))


def dominating_laws(
    grid: np.ndarray, ahead: np.ndarray, reverse: np.ndarray
) -> tuple[np.ndarray, tuple[tuple[np.ndarray, float], ...]]:
    """Return the grid from −ε to ε, and the law on it for each order of a pair."""
    sides = [_both_sides(grid, *pair) for pair in ((ahead, reverse), (reverse, ahead))]
    return sides[0][0], tuple(_dominating_law(*side) for side in sides)


def _dominating_law(at: np.ndarray, deltas: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the probabilities of the losses on a grid, and that of an infinite loss.

    The change of slope is the probability under the second law of the pair, and e^ε times that is
    the one under the first. Each is raised by more than its own rounding error.
    """
    alpha = np.exp(at)
    slopes = np.append(np.diff(np.append(1.0, deltas)) / np.diff(np.append(0.0, alpha)), 0.0)
    jumps = np.maximum(np.diff(slopes), 0.0) + _UNIT * (np.abs(slopes[1:]) + np.abs(slopes[:-1]))
    return alpha * jumps, float(deltas[-1])


def lower_envelope(epsilons: np.ndarray, deltas: np.ndarray) -> np.ndarray:
    """Return the largest bounds at or below these that are convex in e^ε and do not increase.

    The δ of a pair of distributions is such a function, with the value 1 at e^ε = 0. It therefore
    lies below the chords of any upper bound.
    """
    # Bounds that are no numbers are left out. In units of the largest e^ε nothing overflows, and
    # what underflows stays as it is.
    bounds = np.fmin.accumulate(np.append(1.0, deltas))
    x = np.append(0.0, np.exp(epsilons - max(float(np.max(epsilons)) - LARGEST, 0.0)))
    used = (x > _SMALL) | (np.arange(x.size) == 0)
    x, z = x[used], bounds[used]
    kept = _corners(x, z)
    # The rounding of a chord is below 4e-16 of its larger end, and nothing at the ends themselves.
    starts = z[kept][np.searchsorted(x[kept], x, side="right") - 1]
    chords = np.interp(x, x[kept], z[kept]) + 4e-16 * starts
    bounds[used] = np.minimum(chords, z)
    return bounds[1:]


@njit(nogil=True, cache=True)
def _corners(x: np.ndarray, z: np.ndarray) -> np.ndarray:  # pragma: no cover - compiled
    """The points at which the largest convex function below (x, z) has its corners."""
    kept, count = np.empty(x.size, np.int64), 0
    for k in range(x.size):
        while count > 1:
            i, j = kept[count - 2], kept[count - 1]
            if (z[j] - z[i]) * (x[k] - x[i]) < (z[k] - z[i]) * (x[j] - x[i]):
                break
            count -= 1
        kept[count] = k
        count += 1
    return kept[:count]


#: Beyond μ²/2 + _TAIL·μ, δ(ε; μ) is below 1e-25.
_TAIL = 10.5
#: A smaller μ is taken to be this.
_LEAST = 1e-20
_STEPS = 200
#: Cells of the grid from which Rényi divergences are computed.
_CELLS = 200
#: More than the rounding errors of their sums, relative.
_ROUNDING = 1e-10


class Renyi(NamedTuple):
    """Bounds of the Rényi divergences of an order a > 1, as they are used in `within_budget`.

    With the loss L under the first law of a pair, `forward` and `backward` bound
    log E[e^((a−1)L); L < ∞]/(a−1) for the two orders of the pair, and `beyond` the probability of
    an infinite loss.
    """

    forward: float
    backward: float
    beyond: float


class Loss(ABC):
    """What one release, or several, tell about which of two neighbouring data sets was used.

    Let P and Q be the laws of what is released from two neighbouring data sets. A loss bounds

        δ(ε) = sup_A P(A) − e^ε Q(A)

    for every ε and for both orders of the pair. A new loss writes `deltas`, `reach` and `group`;
    `compose_losses` then composes it with any other.
    """

    __dataclass_fields__: ClassVar[dict[str, Field]]

    @abstractmethod
    def deltas(self, epsilons: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return upper bounds of δ at each ε ≥ 0, for the one order of the pair and the other."""

    @property
    @abstractmethod
    def reach(self) -> float:
        """An ε beyond which δ does not fall any more, or is below 1e-20."""

    @abstractmethod
    def group(self, k: int) -> Loss:
        """Return the loss for data sets that k steps from neighbour to neighbour lie between."""

    @abstractmethod
    def scaled(self, factor: float) -> Loss:
        """Return the loss of the same kind of release with its numbers times a positive factor.

        It says what a release of this kind costs at a smaller or larger budget.
        """

    def quick_deltas(self, epsilons: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return `deltas`, or what is computed faster and a little larger."""
        return self.deltas(epsilons)

    def renyi(self, order: float) -> Renyi:
        """Return bounds of the Rényi divergences of an order above 1, and of an infinite loss."""
        if not self.reach <= LARGEST:
            return Renyi(math.inf, math.inf, 1.0)
        at, laws = _laws(self)
        forward, backward = (_divergence(at, weights, order) for weights, _ in laws)
        return Renyi(forward, backward, max(infinite for _, infinite in laws))

    def delta(self, epsilon: float) -> float:
        """Return δ(ε), the larger of the two orders."""
        forward, backward = self.deltas(np.array([nonnegative_float("epsilon", epsilon)]))
        return float(max(forward[0], backward[0]))

    def epsilon(self, delta: float) -> float:
        """Return the smallest ε with δ(ε) ≤ δ, rounded up; inf where there is none."""
        delta = positive_float("delta", delta)
        low, high = 0.0, self.reach
        if self.delta(low) <= delta:
            return low
        if not self.delta(high) <= delta:
            return math.inf
        for _ in range(_STEPS):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high


@lru_cache(maxsize=1024)
def _laws(loss: Loss) -> tuple[np.ndarray, tuple[tuple[np.ndarray, float], ...]]:
    """The laws that dominate a loss on a grid over its reach."""
    grid = np.linspace(0.0, loss.reach, _CELLS + 1) if loss.reach > 0.0 else np.zeros(1)
    return dominating_laws(grid, *loss.quick_deltas(grid))


def _divergence(at: np.ndarray, weights: np.ndarray, order: float) -> float:
    with np.errstate(divide="ignore"):
        logs = np.log(weights) + (order - 1.0) * at
    peak = float(logs.max())
    total = peak + math.log(math.fsum(np.exp(logs - peak).tolist()))
    return max(total + _ROUNDING * (1.0 + abs(peak)), 0.0) / (order - 1.0)


@dataclass(frozen=True)
class GaussianLoss(Loss):
    """The loss of a Gaussian mechanism whose mean moves by at most μ standard deviations."""

    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", nonnegative_float("mu", self.mu))

    @property
    def reach(self) -> float:
        """μ²/2 + 10.5 μ."""
        return 0.5 * self.mu * self.mu + _TAIL * self.mu

    def deltas(self, epsilons: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), the same in both orders."""
        if self.mu == 0.0:
            return np.zeros_like(epsilons), np.zeros_like(epsilons)
        found = np.exp(log_shift(epsilons, max(self.mu, _LEAST)))
        return found, found

    def renyi(self, order: float) -> Renyi:
        """Return aμ²/2 for the order a."""
        found = 0.5 * order * self.mu**2
        return Renyi(found, found, 0.0)

    def delta(self, epsilon: float) -> float:
        """Return `gaussian_delta`."""
        return gaussian_delta(epsilon, self.mu)

    def epsilon(self, delta: float) -> float:
        """Return `gaussian_epsilon`."""
        return gaussian_epsilon(delta, self.mu)

    def group(self, k: int) -> GaussianLoss:
        """Return a sensitivity of kμ: shifts of the mean add up."""
        return GaussianLoss(integer("k", k, minimum=1) * self.mu)

    def scaled(self, factor: float) -> GaussianLoss:
        """Scale μ."""
        return GaussianLoss(factor * self.mu)


@dataclass(frozen=True)
class ApproximateLoss(Loss):
    """The largest loss that (ε, δ)-differential privacy allows, where nothing else is known.

    It is the loss of a mechanism that tells the data set with probability δ, and otherwise one
    bit that is true with probability e^ε/(1 + e^ε).
    """

    at_epsilon: float
    at_delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "at_epsilon", nonnegative_float("epsilon", self.at_epsilon))
        object.__setattr__(self, "at_delta", nonnegative_float("delta", self.at_delta))
        if self.at_delta > 1.0:
            raise ValueError(f"delta is a probability, not {self.at_delta!r}")

    @property
    def reach(self) -> float:
        """ε."""
        return self.at_epsilon

    def deltas(self, epsilons: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """δ + (1 − δ)(e^ε − e^x)₊/(1 + e^ε) at each x, the same in both orders."""
        e, d = self.at_epsilon, self.at_delta
        above = np.maximum(-np.expm1(np.minimum(epsilons - e, 0.0)), 0.0)
        found = d + (1.0 - d) * above / (1.0 + math.exp(-e))
        return found, found

    def group(self, k: int) -> ApproximateLoss:
        """Return kε, and δ(e^{kε} − 1)/(e^ε − 1)."""
        k, e = integer("k", k, minimum=1), self.at_epsilon
        log_factor = math.log(k)
        if e > 0.0 and k > 1:
            log_factor = (k - 1) * e + math.log(-math.expm1(-k * e) / -math.expm1(-e))
        log_delta = log_factor + math.log(self.at_delta) if self.at_delta > 0.0 else -math.inf
        return ApproximateLoss(k * e, math.exp(min(log_delta, 0.0)))

    def scaled(self, factor: float) -> ApproximateLoss:
        """Scale ε; δ stays."""
        return ApproximateLoss(factor * self.at_epsilon, self.at_delta)


#: How much larger the ε of the last step of a chain is than that of an even split.
_TILTS = (0.0, 0.1, 0.2, 0.35)


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
