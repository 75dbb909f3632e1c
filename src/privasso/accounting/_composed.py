"""Several releases of the same data: the loss of all of them together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from privasso._validation import positive_float
from privasso.accounting._inexact import InexactLoss
from privasso.accounting._loss import GaussianLoss, Loss

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

#: Cells of the grid of losses over the reach of all parts together.
_CELLS = 10_000
#: Largest step of the grid: with larger ones e^step overflows, and such losses protect nothing.
_LARGEST_STEP = 30.0
#: Added to δ: more than the rounding errors of the convolutions.
_ROUNDING = 1e-12


def compose_losses(losses: Iterable[Loss]) -> Loss:
    """Return the loss of releases of the same data taken together, as small as it can be shown.

    The shifts of Gaussian mechanisms add up at right angles, so that μ² = Σ μ_k² exactly. Others
    are composed numerically; see `ComposedLoss`. Distances of inexact releases from ideal ones add
    up; see `InexactLoss`.

    Examples
    --------
    >>> compose_losses([GaussianLoss(0.3), GaussianLoss(0.4)])
    GaussianLoss(mu=0.5)
    >>> from privasso.accounting import ApproximateLoss
    >>> mixed = compose_losses([GaussianLoss(0.3), ApproximateLoss(0.5, 0.0)])
    >>> 1.5 < mixed.epsilon(1e-6) < 1.3 + 0.5
    True
    """
    given = list(losses)
    distances = [loss for loss in given if isinstance(loss, InexactLoss)]
    if distances:
        ideal = (loss.ideal if isinstance(loss, InexactLoss) else loss for loss in given)
        return InexactLoss(
            compose_losses(ideal),
            math.fsum(loss.total_variation for loss in distances) * (1.0 + 1e-15),
            math.fsum(loss.shift for loss in distances) * (1.0 + 1e-15),
        )
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

    Each part is replaced by a distribution on a grid that dominates it (connect the dots:
    Doroshenko and others, 2022), the two orders of the pair separately; `dp_accounting` convolves
    them. What comes out is an upper bound. Losses beyond 300,000 are too large for the grid;
    ε is then infinite.

    Examples
    --------
    >>> from privasso.accounting import ApproximateLoss
    >>> loss = ComposedLoss((ApproximateLoss(0.5, 0.0), GaussianLoss(0.3)))
    >>> 1.5 < loss.epsilon(1e-6) < 0.5 + GaussianLoss(0.3).epsilon(1e-6)
    True
    >>> ComposedLoss((ApproximateLoss(1e9, 0.0), GaussianLoss(0.3))).epsilon(1e-6)
    inf
    """

    parts: tuple[Loss, ...]

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

    def deltas(self, epsilons: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return δ at each ε for both orders."""
        if self._too_large:
            return np.ones_like(epsilons), np.ones_like(epsilons)
        forward, backward = (
            np.minimum(np.asarray(one.get_delta_for_epsilon(epsilons.tolist())) + _ROUNDING, 1.0)
            for one in self._distributions
        )
        return forward, backward

    def epsilon(self, delta: float) -> float:
        """Return the smallest ε for δ; inf for a δ that the arithmetic cannot resolve."""
        delta = positive_float("delta", delta) - _ROUNDING
        if delta <= 0.0 or self._too_large:
            return math.inf
        return max(float(one.get_epsilon_for_delta(delta)) for one in self._distributions)

    @property
    def _too_large(self) -> bool:
        """Whether a step of the grid is a loss that protects nothing."""
        return self.reach / _CELLS > _LARGEST_STEP

    @cached_property
    def _distributions(self) -> tuple[PrivacyLossDistribution, PrivacyLossDistribution]:
        step = self.reach / _CELLS
        return _convolved(self.parts, step, 0), _convolved(self.parts, step, 1)


def _convolved(parts: Sequence[Loss], step: float, order: int) -> PrivacyLossDistribution:
    powers = [
        _distribution(part, step, order).self_compose(count)
        for part, count in Counter(parts).items()
    ]
    total = powers[0]
    for one in powers[1:]:
        total = total.compose(one)
    return total


def _distribution(loss: Loss, step: float, order: int) -> PrivacyLossDistribution:
    """Return a distribution of losses on multiples of `step` that dominates one order of a pair.

    For ε < 0 it uses δ_PQ(ε) = 1 − e^ε + e^ε δ_QP(−ε). The bounds of a loss need not belong to a
    pair themselves, which takes a convex function of e^ε; their lower envelope does.
    """
    from dp_accounting.pld.pld_pmf import create_pmf_pessimistic_connect_dots_fixed_gap
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    top = math.ceil(loss.reach / step)
    grid = step * np.arange(top + 1)
    both = _bounds(loss, step, top)
    ahead, reverse = both[order], both[1 - order]
    below = -np.expm1(-grid[:0:-1]) + np.exp(-grid[:0:-1]) * reverse[:0:-1]
    deltas = np.clip(np.concatenate([below, ahead]), 0.0, 1.0)
    deltas = lower_envelope(step * np.arange(-top, top + 1), deltas)
    return PrivacyLossDistribution(
        create_pmf_pessimistic_connect_dots_fixed_gap(step, -top, top, deltas)
    )


@lru_cache(maxsize=32)
def _bounds(loss: Loss, step: float, top: int) -> tuple[np.ndarray, np.ndarray]:
    """The bounds on the grid, kept for the other order of the pair."""
    return loss.deltas(step * np.arange(top + 1))


def lower_envelope(epsilons: np.ndarray, deltas: np.ndarray) -> np.ndarray:
    """Return the largest bounds at or below these that are convex in e^ε and do not increase.

    The δ of a pair of distributions is such a function, with the value 1 at e^ε = 0. It therefore
    lies below the chords of any upper bound.

    Examples
    --------
    >>> lower_envelope(np.log([0.5, 1.0, 1.5, 2.0]), np.array([0.6, 0.5, 0.1, 0.2])).round(3)
    array([0.6 , 0.35, 0.1 , 0.1 ])
    """
    x = np.append(0.0, np.exp(epsilons))
    z = np.append(1.0, np.minimum.accumulate(deltas))
    kept: list[int] = []
    for k in range(x.size):
        while len(kept) > 1:
            i, j = kept[-2], kept[-1]
            if (z[j] - z[i]) * (x[k] - x[i]) < (z[k] - z[i]) * (x[j] - x[i]):
                break
            kept.pop()
        kept.append(k)
    # The rounding of a chord is below 4e-16 of its larger end, and nothing at the ends themselves.
    starts = z[kept][np.searchsorted(x[kept], x, side="right") - 1]
    chords = np.interp(x, x[kept], z[kept]) + 4e-16 * starts
    return np.minimum(chords, z)[1:]
