"""The privacy loss of objective perturbation, for one person and for groups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from privasso._validation import integer, nonnegative_float
from privasso.accounting._loss import Loss
from privasso.accounting._objective import (
    Neighbours,
    Slope,
    check_choices,
    objective_delta,
    objective_orders,
)
from privasso.accounting._objective_inverse import objective_epsilon
from privasso.accounting._objective_parts import CELLS, FEW_CELLS

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
