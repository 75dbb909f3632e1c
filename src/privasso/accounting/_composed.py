"""Several releases of the same data: the loss of all of them together, and budgets for them.

The composition of `compose_losses` holds for settings that were fixed beforehand. If the profiles
δ(ε) of two mechanisms cross, somebody who sees an earlier release can choose the one that is worse
at what is left of ε, and both together then exceed what is composed. What holds for every choice is
a *filter*: a sum that no choice may carry beyond a limit that was fixed beforehand.

**Rényi filter** (Feldman & Zrnic 2021). Let a > 1, and let r_k bound the Rényi divergence of the
order a of the k-th release, given all before it: E[e^((a−1)L_k) | before] ≤ e^((a−1)r_k) for its
loss L_k. Then E e^((a−1)Σ(L_k − r_k)) ≤ 1, one release after the other. If Σ r_k ≤ r is made sure
of, E e^((a−1)L) ≤ e^((a−1)r) for the loss L of all of them. Since (1 − e^(−x))₊ ≤ C e^((a−1)x) with
C = (1 − 1/a)^(a−1)/a,

    δ(ε) = E (1 − e^(ε−L))₊ ≤ C e^((a−1)(r−ε)).

Infinite losses have at most the sum of their probabilities, whose limit is fixed as well and is
added. Both orders of the pair are bounded like this. It is enough to know this of laws that
dominate the releases, because what dominates can be turned into what is dominated.

**Gaussian filter** (Smith & Thakurta 2022). Gaussian mechanisms with Σ μ_k² ≤ μ² are together no
worse than one with μ: a last one with the μ² that is left over would make them exactly that.

**Both at once.** If each of two filters is given a part of δ, and a release is admitted if either
has room, every outcome is one of either filter, and the two δ add up.

**What is declared beforehand** may decide which filter has which part of δ. It is also composed
tightly, as long as nothing else is released.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numba import njit

from privasso._validation import positive_float, probability
from privasso.accounting._gaussian import gaussian_delta, gaussian_epsilon, sensitivity_for
from privasso.accounting._loss import LARGEST, GaussianLoss, Loss, Renyi, dominating_laws
from privasso.accounting._objective_loss import InexactLoss, ideal_losses

#: Cells of the grid of losses over the reach of all parts together, and at least for each part.
_CELLS, _EACH = 10_000, 100
#: The values of δ at which convolutions are exact to many digits; nothing is lost in between.
_LEVELS = (1.0, 1e-6, 1e-14)
#: More than the rounding error of an entry of a convolution, for each factor: with probabilities
#: p of sum one, |F p| ≤ 1, and an FFT of 2^n points has an error below n·|p|₂ units of rounding.
_FFT = 2e-14
#: More than the other rounding errors, relative.
_ROUNDING = 1.0 + 1e-9
_HALVINGS = 12


def compose_losses(losses: Iterable[Loss]) -> Loss:
    """Return the loss of releases of the same data taken together, as small as it can be shown.

    The shifts of Gaussian mechanisms add up at right angles, so that μ² = Σ μ_k² exactly. Others
    are composed numerically; see `ComposedLoss`. Distances of inexact releases from ideal ones add
    up; see `InexactLoss`. The settings of all releases must have been fixed beforehand; see
    `within_budget` for settings that are chosen after looking at earlier releases.
    """
    given, shift = ideal_losses(losses)
    if shift is not None:
        return InexactLoss(compose_losses(given), shift)
    if len(given) == 1:
        return given[0]
    parts = [part for loss in given for part in getattr(loss, "parts", (loss,))]
    gaussian = GaussianLoss(math.hypot(*(p.mu for p in parts if isinstance(p, GaussianLoss))))
    others = [part for part in parts if not isinstance(part, GaussianLoss)]
    if not others:
        return gaussian
    together = (*others, gaussian) if gaussian.mu > 0.0 else tuple(others)
    return together[0] if len(together) == 1 else ComposedLoss(together)


@dataclass(frozen=True)
class ComposedLoss(Loss):
    """The loss of several mechanisms, by convolution of their privacy loss distributions.

    Each part is replaced by a law of losses on a grid that dominates it, the two orders of the pair
    separately, and Fourier transforms convolve them. With weights e^(θL) that make small δ likely,
    the rounding errors are small relative to δ, however small that is. What comes out is an upper
    bound. Where all losses together may exceed 700, ε is infinite.
    """

    parts: tuple[Loss, ...]
    #: Whether parts may be bounded by `Loss.quick_deltas`.
    quick: ClassVar[bool] = True

    @property
    def reach(self) -> float:
        """The sum over the parts."""
        return sum(part.reach for part in self.parts)

    def group(self, k: int) -> Loss:
        """Group each part."""
        return compose_losses(part.group(k) for part in self.parts)

    def scaled(self, factor: float) -> Loss:
        """Scale each part."""
        return compose_losses(part.scaled(factor) for part in self.parts)

    def renyi(self, order: float) -> Renyi:
        """Return the sums over the parts."""
        forward, backward, beyond = zip(*(part.renyi(order) for part in self.parts), strict=True)
        return Renyi(math.fsum(forward), math.fsum(backward), math.fsum(beyond))

    def deltas(self, epsilons: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return δ at each ε for both orders: between points of the grid it is below its chord."""
        if self._too_large:
            return np.ones_like(epsilons), np.ones_like(epsilons)
        last = self._profiles[0].size - 1
        cell = np.minimum((epsilons / self._step).astype(np.int64), last)
        above = np.minimum(cell + 1, last)
        inside = np.minimum(epsilons - self._step * cell, self._step)
        along = np.expm1(inside) / math.expm1(self._step)
        forward, backward = ((1.0 - along) * d[cell] + along * d[above] for d in self._profiles)
        return forward, backward

    def epsilon(self, delta: float) -> float:
        """Return the smallest ε for δ."""
        delta = positive_float("delta", delta)
        if self._too_large:
            return math.inf
        return max(self._inverse(delta, profile) for profile in self._profiles)

    def _inverse(self, delta: float, profile: np.ndarray) -> float:
        inside = np.flatnonzero(profile <= delta)
        if not inside.size:
            return math.inf
        k = int(inside[0])
        if k == 0:
            return 0.0
        along = (profile[k - 1] - delta) / (profile[k - 1] - profile[k])
        return (self._step * (k - 1) + math.log1p(along * math.expm1(self._step))) * (1.0 + 1e-12)

    @property
    def _too_large(self) -> bool:
        return not self.reach <= LARGEST

    @property
    def _step(self) -> float:
        return self.reach / max(_CELLS, _EACH * len(self.parts))

    @property
    def _profiles(self) -> tuple[np.ndarray, np.ndarray]:
        return _profiles(self.parts, self._step, self.quick)


@lru_cache(maxsize=64)
def _profiles(parts: tuple[Loss, ...], step: float, quick: bool) -> tuple[np.ndarray, np.ndarray]:
    """δ on the grid from zero on, for both orders."""
    counts = Counter(parts)
    laws = [_laws(part, step, quick) for part in counts]
    forward, backward = (
        [_Weighted(law[order], count) for law, count in zip(laws, counts.values(), strict=True)]
        for order in (0, 1)
    )
    first = _profile(forward, step)
    same = all(np.array_equal(law[0][0], law[1][0]) for law in laws)
    return first, first if same else _profile(backward, step)


class _Weighted:
    """The law of one part on the grid, and how often it is taken."""

    def __init__(self, law: tuple[np.ndarray, float], count: int) -> None:
        weights, self.infinite = law
        self.count, self.top = count, weights.size // 2
        with np.errstate(divide="ignore"):
            self.logs = np.log(weights)
        self.cells = np.arange(-self.top, self.top + 1)

    def tilted(self, theta: float) -> tuple[np.ndarray, float]:
        """Probabilities in proportion to e^(θ·cell), and the logarithm of what they summed to."""
        logs = self.logs + theta * self.cells
        peak = float(logs.max())
        values = np.exp(logs - peak)
        total = float(values.sum())
        return values / total, peak + math.log(total)


def _profile(parts: list[_Weighted], step: float) -> np.ndarray:
    """δ at each point of the grid from zero on, the least over several weights e^(θL)."""
    found = [_curve(parts, step, _tilt(parts, level)) for level in _LEVELS]
    finite = math.prod((1.0 - part.infinite) ** part.count for part in parts)
    tiny = math.fsum(part.count * part.infinite for part in parts)
    infinite = min(1.0 - finite + 1e-15, tiny)
    return np.minimum(np.minimum.reduce(found) + infinite, 1.0)


def _tilt(parts: list[_Weighted], level: float) -> float:
    """A θ per cell, where K(θ) − θK′(θ) = log level for the cumulants K: δ is about that small."""
    if level == 1.0:
        return 0.0
    low, high = (math.log(x / sum(part.count * part.top for part in parts)) for x in (1e-3, 1e4))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        theta, exponent = math.exp(middle), 0.0
        for part in parts:
            values, log_sum = part.tilted(theta)
            exponent += part.count * (log_sum - theta * float(values @ part.cells))
        low, high = (middle, high) if exponent > math.log(level) else (low, middle)
    return math.exp(low)


def _curve(parts: list[_Weighted], step: float, theta: float) -> np.ndarray:
    """Upper bounds of δ on the grid, from a convolution of the laws with the weights e^(θL).

    With the convolved probabilities p_j = p̃_j e^(K − θj), the probability of a loss beyond a cell k
    and its δ_k = Σ_{j>k} p_j (1 − e^(k−j)) are sums of positive terms, from the highest cell down.
    """
    top = sum(part.count * part.top for part in parts)
    size = 1 << (2 * top + 1).bit_length()
    transform, log_sum = np.ones(size // 2 + 1, dtype=np.complex128), 0.0
    for part in parts:
        values, one = part.tilted(theta)
        transform *= np.fft.rfft(values, size) ** part.count
        log_sum += part.count * one
    error = _FFT * (2 + sum(part.count for part in parts))
    likely = np.maximum(np.fft.irfft(transform, size)[top : 2 * top + 1], 0.0) + error
    fall, down = math.exp(-theta), math.exp(-step - theta)
    scaled = _from_above(likely, fall, down, -math.expm1(-step))
    with np.errstate(divide="ignore"):
        logs = log_sum - theta * np.arange(top + 1) + np.log(scaled * _ROUNDING)
    return np.exp(np.minimum(logs, 0.0))


@njit(nogil=True, cache=True)
def _from_above(
    likely: np.ndarray, fall: float, down: float, change: float
) -> np.ndarray:  # pragma: no cover - compiled
    """Sums of what is likely beyond each cell, and of `change` times these, both with weights."""
    found, beyond, total = np.zeros(likely.size), 0.0, 0.0
    for k in range(likely.size - 1, 0, -1):
        beyond = (beyond + likely[k]) * fall
        total = down * total + change * beyond
        found[k - 1] = total
    return found


@lru_cache(maxsize=512)
def _laws(loss: Loss, step: float, quick: bool) -> tuple[tuple[np.ndarray, float], ...]:
    """The dominating law of each order on multiples of `step`."""
    grid = step * np.arange(math.ceil(loss.reach / step) + 1)
    return dominating_laws(grid, *(loss.quick_deltas if quick else loss.deltas)(grid))[1]


#: The part of δ that is set aside for infinite losses.
_BEYOND = 0.1
#: More than the rounding errors of an ε, relative.
_ROUNDED = 1e-10
#: Rounds of a search for an ε, and the relative change that ends it.
_ROUNDS, _TOLERANCE = 60, 1e-8


def within_budget(
    epsilon: float, delta: float, declared: Sequence[Loss], chosen: Sequence[Loss] = ()
) -> bool:
    """Whether releases keep within a budget (ε, δ) that was fixed before all of them.

    If every release is asked for like this before it is made, all that are ever made together are
    (ε, δ)-differentially private, however their settings are chosen.

    Parameters
    ----------
    epsilon, delta : float
        The budget.
    declared : sequence of Loss
        Losses of releases whose settings were fixed before any of them was made.
    chosen : sequence of Loss
        Losses of later releases, whose settings may depend on what was released before.

    Examples
    --------
    >>> from privasso.accounting import ObjectiveLoss
    >>> fit = ObjectiveLoss(0.11, 0.3, "records")
    >>> within_budget(1.0, 1e-6, [fit, fit]), within_budget(1.0, 1e-6, [fit], [fit])
    (True, False)
    >>> within_budget(1.1, 1e-6, [fit], [fit])
    True
    """
    epsilon, delta = positive_float("epsilon", epsilon), probability("delta", delta)
    if not chosen:
        return not declared or compose_losses(declared).delta(epsilon) <= delta
    mu = _gaussian([*declared, *chosen])
    if mu is not None:
        return gaussian_delta(epsilon, mu) <= 0.5 * delta
    return _epsilon_at(_order(epsilon, delta), delta, Counter(declared), Counter(chosen)) <= epsilon


def spent_epsilon(delta: float, declared: Sequence[Loss], chosen: Sequence[Loss] = ()) -> float:
    """Return the ε of the smallest budget at this δ that has room for these releases."""
    if not chosen:
        return compose_losses(declared).epsilon(delta) if declared else 0.0
    mu = _gaussian([*declared, *chosen])
    if mu is not None:
        return gaussian_epsilon(0.5 * delta, mu)
    counts = Counter(declared), Counter(chosen)
    epsilon, found = 0.0, 1.0
    # Like Newton's iteration for a root, this converges fast from anywhere.
    for _ in range(_ROUNDS):
        if not math.isfinite(found) or abs(found - epsilon) <= _TOLERANCE * found:
            break
        epsilon = found
        found = _epsilon_at(_order(epsilon, delta), delta, *counts)
    return max(epsilon, found) * (1.0 + 10.0 * _TOLERANCE)


def _order(epsilon: float, delta: float) -> float:
    """The order whose bound is about the best for Gaussian mechanisms that use a budget up."""
    return 1.0 + math.sqrt(-2.0 * math.log(delta)) / sensitivity_for(epsilon, delta)


def _epsilon_at(
    order: float, delta: float, declared: Counter[Loss], chosen: Counter[Loss]
) -> float:
    """The ε that the Rényi filter of an order has for these releases; inf if it has no room."""
    # Where all that was declared is Gaussian, the Gaussian filter has the other half.
    part = delta if _gaussian([*declared]) is None else 0.5 * delta
    forward, backward, beyond = _sums(order, declared)
    limit = beyond + _BEYOND * (part - beyond)
    more = _sums(order, chosen)
    if not beyond < part or beyond + more[2] > limit:
        return math.inf
    total = max(forward + more[0], backward + more[1])
    log_constant = (order - 1.0) * math.log1p(-1.0 / order) - math.log(order)
    found = total + (log_constant - math.log(part - limit)) / (order - 1.0)
    return max(found, 0.0) * (1.0 + _ROUNDED)


def _sums(order: float, losses: Counter[Loss]) -> tuple[float, float, float]:
    """The sums of Rényi divergences for both orders of the pair, and of infinite losses."""
    bounds = [(count, loss.renyi(order)) for loss, count in losses.items()]
    forward, backward, beyond = (math.fsum(n * one[k] for n, one in bounds) for k in range(3))
    return forward, backward, beyond


def _gaussian(losses: Sequence[Loss]) -> float | None:
    """The μ of Gaussian mechanisms together; None if some are of another kind."""
    mus = [loss.mu for loss in losses if isinstance(loss, GaussianLoss)]
    return math.hypot(*mus) if len(mus) == len(losses) else None
