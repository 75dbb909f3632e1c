"""Objective perturbation together with choices and Gaussian releases of the same data.

As with Gaussian releases alone, δ(ε) = E h(ε − L), where h is the δ of the perturbed objective and
L the loss of all other releases. Their law is replaced by one on a grid that dominates it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from privasso._validation import nonnegative_float, probability
from privasso.accounting._beside_gaussian import raised
from privasso.accounting._composed import ComposedLoss, compose_losses
from privasso.accounting._law import LARGEST, both_sides, dominating_law, lower_envelope
from privasso.accounting._loss import GaussianLoss, Loss
from privasso.accounting._objective import Neighbours
from privasso.accounting._objective_loss import (
    MARGIN,
    ObjectiveLoss,
    largest_c,
    objective_sensitivity,
)

#: Points of the grid on either side of zero.
_CELLS = 1500
#: More than the rounding errors of the sum, relative to it.
_ROUNDING = 1e-9
_STEP = 0.1


@dataclass(frozen=True)
class BesideChoices(ComposedLoss):
    """The loss of one mechanism, of choices and of Gaussian releases together.

    The first part is the mechanism, the others are what is released beside it.
    """

    @classmethod
    def of(cls, other: Loss, choices: tuple[Loss, ...], mu: float) -> BesideChoices:
        """Put a loss beside choices and Gaussian releases of the sensitivity μ."""
        gaussian = (GaussianLoss(mu),) if mu > 0.0 else ()
        return cls((other, *choices, *gaussian))

    def group(self, k: int) -> Loss:
        """Group each part."""
        return self if k == 1 else BesideChoices(tuple(part.group(k) for part in self.parts))

    def scaled(self, factor: float) -> Loss:
        """Scale each part."""
        return BesideChoices(tuple(part.scaled(factor) for part in self.parts))

    def epsilon(self, delta: float) -> float:
        """Return the smallest ε for δ: that of the convolution, raised to where `delta` agrees."""
        return raised(self, super().epsilon(delta), delta)

    def delta(self, epsilon: float) -> float:
        """Return E h(ε − L), the larger of the two orders, rounded up."""
        epsilon = nonnegative_float("epsilon", epsilon)
        other, *beside = self.parts
        laws = _laws(tuple(beside))
        losses = laws[0][0]
        at = epsilon - losses
        ahead, back = other.quick_deltas(np.abs(at))
        found = []
        for (_, weights, certain), first, second in zip(
            laws, (ahead, back), (back, ahead), strict=True
        ):
            below = np.minimum(at, 0.0)
            h = np.where(at < 0.0, -np.expm1(below) + np.exp(below) * second, first)
            h = lower_envelope(at[::-1], np.clip(h, 0.0, 1.0)[::-1])[::-1]
            total = math.fsum((weights * h).tolist()) + certain
            found.append(min(total * (1.0 + _ROUNDING), 1.0))
        return max(found)


@lru_cache(maxsize=64)
def _laws(parts: tuple[Loss, ...]) -> tuple[tuple[np.ndarray, np.ndarray, float], ...]:
    """For each order: a grid of losses, their probabilities, and that of an infinite one."""
    loss = compose_losses(parts)
    if isinstance(loss, ComposedLoss):
        loss = _Finely(loss.parts)
    grid = np.linspace(0.0, min(loss.reach, LARGEST), _CELLS + 1)
    ahead, reverse = loss.deltas(grid)
    found = []
    for pair in ((ahead, reverse), (reverse, ahead)):
        at, deltas = both_sides(grid, *pair)
        found.append((at, *dominating_law(at, deltas)))
    return tuple(found)


class _Finely(ComposedLoss):
    """A composition whose parts are bounded as closely as possible."""

    quick = False


@lru_cache(maxsize=256)
def sensitivity_beside_choices(
    epsilon: float,
    delta: float,
    t: float,
    choices: tuple[Loss, ...],
    mu: float,
    neighbours: Neighbours = "records",
) -> float:
    """Return the largest c of objective perturbation beside other releases, within a budget.

    `t`, `neighbours`: as in `objective_delta`. `choices`: choices of the same data, and other fits.
    `mu`: sensitivity of Gaussian releases of the same data together; zero if there are none.
    """
    delta = probability("delta", delta)
    target = math.log(delta) - MARGIN

    def excess(log_c: float) -> float:
        one = ObjectiveLoss(math.exp(log_c), t, neighbours)
        found = BesideChoices.of(one, choices, mu).delta(epsilon)
        return math.log(max(found, 1e-300)) - target

    found = largest_c(excess, objective_sensitivity(epsilon, delta, t, neighbours), _STEP)
    if found is None:
        raise ValueError(
            "the choice of columns alone needs the whole budget; choose a smaller share"
        )
    return found
