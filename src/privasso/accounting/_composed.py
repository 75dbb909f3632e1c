"""Several releases of the same data: the loss of all of them together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numba import njit

from privasso._validation import positive_float
from privasso.accounting._inexact import InexactLoss, ideal_losses
from privasso.accounting._law import LARGEST, both_sides, dominating_law
from privasso.accounting._loss import GaussianLoss, Loss, Renyi

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
    ahead, reverse = (loss.quick_deltas if quick else loss.deltas)(grid)
    return tuple(
        dominating_law(*both_sides(grid, *pair)) for pair in ((ahead, reverse), (reverse, ahead))
    )
