"""Objective perturbation together with other releases of the same data: Gaussian ones, and choices.

Let L be the privacy loss of a Gaussian mechanism with sensitivity μ, which is N(μ²/2, μ²) under the
first data set, and h(ε) the δ of a second mechanism, which may depend on what the first released.
Both together have

    δ(ε) = E h(ε − L).

For e < 0, h(e) = 1 − eᵉ + eᵉ·h′(−e), with h′ the δ of the other order of the pair.

As with Gaussian releases alone, δ(ε) = E h(ε − L), where h is the δ of the perturbed objective and
L the loss of all other releases. Their law is replaced by one on a grid that dominates it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr, ndtr

from privasso._documents import DocumentError, Fields
from privasso._validation import nonnegative_float, positive_float, probability
from privasso.accounting._choice_loss import ChoiceLoss
from privasso.accounting._composed import ComposedLoss, compose_losses
from privasso.accounting._loss import (
    LARGEST,
    ApproximateLoss,
    GaussianLoss,
    Loss,
    dominating_laws,
    lower_envelope,
)
from privasso.accounting._objective import Neighbours, Slope
from privasso.accounting._objective_loss import (
    MARGIN,
    InexactLoss,
    ObjectiveLoss,
    ideal_losses,
    largest_c,
    objective_sensitivity,
)

#: The integral is over so many deviations on both sides, in so many cells.
_DEVIATIONS, _CELLS = 11.0, 660
#: More than the rounding errors of the sum, relative to it.
_ROUNDING = 1e-9
_STEP = 0.05
#: The first step by which an ε is raised, relative to it and absolute.
_RAISED, _FIRST = 1e-4, 1e-12
#: The ε of a convolution is moved by so much at most, relative to it, and a little further up, or
#: less far down, than the difference of the two δ suggests.
_MOVED, _FURTHER = 1e-3, 1.1
#: e^(−L) below this may have lost digits.
_SMALL = 1e-290


class _Beside(ComposedLoss):
    """The loss of one mechanism, the first part, and of others beside it."""

    def group(self, k: int) -> Loss:
        """Group each part."""
        return self if k == 1 else type(self)(tuple(part.group(k) for part in self.parts))

    def scaled(self, factor: float) -> Loss:
        """Scale each part."""
        return type(self)(tuple(part.scaled(factor) for part in self.parts))

    def epsilon(self, delta: float) -> float:
        """Return the smallest ε for δ: that of the convolution, moved to where `delta` agrees."""
        near = super().epsilon(delta)
        if not 0.0 < near < math.inf:
            return raised(self, near, delta)
        # Both profiles have about the same slope.
        logs = np.log(np.maximum(*super().deltas(near * np.array([1.0 - _MOVED, 1.0]))))
        change = math.log(delta / max(self.delta(near), 1e-300)) / max(logs[0] - logs[1], 1e-300)
        change *= _FURTHER if change < 0.0 else 1.0 / _FURTHER
        moved = near * (1.0 - _MOVED * min(max(change, -1.0), 1.0))
        return moved if self.delta(moved) <= delta else raised(self, near, delta)


@dataclass(frozen=True)
class BesideGaussian(_Beside):
    """The loss of one mechanism and of Gaussian releases with the sensitivity μ together.

    h is convex in eᵉ, so in each cell of the integral it lies below the chord between its ends. The
    integral of a chord over the law of L is explicit; the sum is therefore an upper bound. It is
    ten times faster than the convolution of `ComposedLoss`, which serves for all but `delta`.
    """

    parts: tuple[Loss, GaussianLoss]

    @classmethod
    def of(cls, other: Loss, mu: float) -> BesideGaussian:
        """Put a loss beside Gaussian releases whose sensitivities have the squared sum μ²."""
        return cls((other, GaussianLoss(positive_float("mu", mu))))

    def delta(self, epsilon: float) -> float:
        """Return E h(ε − L), the larger of the two orders."""
        return max(self.orders(epsilon))

    def orders(self, epsilon: float) -> tuple[float, float]:
        """Return E h(ε − L) for each order of the pair, rounded up."""
        return _orders(self, nonnegative_float("epsilon", epsilon))


@lru_cache(maxsize=256)
def _orders(loss: BesideGaussian, epsilon: float) -> tuple[float, float]:
    """See `BesideGaussian.orders`: a guarantee asks the same wherever it is written and read."""
    other, gaussian = loss.parts
    mu = gaussian.mu
    z = np.linspace(-_DEVIATIONS, _DEVIATIONS, _CELLS + 1)
    at = epsilon - 0.5 * mu * mu - mu * z
    first, second = other.deltas(np.abs(at))
    forward, backward = (
        _expectation(np.where(at < 0.0, _negative(at, back), ahead), at, z, mu)
        for ahead, back in ((first, second), (second, first))
    )
    return forward, backward


def raised(loss: Loss, epsilon: float, delta: float) -> float:
    """Return the ε, or a larger one at which the loss has at most this δ; inf if none was found.

    The steps grow, so that the search ends.
    """
    step = max(_RAISED * epsilon, _FIRST)
    while math.isfinite(epsilon) and not loss.delta(epsilon) <= delta:
        epsilon, step = epsilon + step, 2.0 * step
    return epsilon


def _negative(at: np.ndarray, back: np.ndarray) -> np.ndarray:
    """The δ at a negative ε from that of the other order at −ε."""
    below = np.minimum(at, 0.0)
    return -np.expm1(below) + np.exp(below) * back


def _expectation(values: np.ndarray, at: np.ndarray, z: np.ndarray, mu: float) -> float:
    """Integrate the chords of h over the law of L, and bound what lies beyond the cells."""
    values = lower_envelope(at[::-1], np.clip(values, 0.0, 1.0)[::-1])[::-1]
    low, high = values[:-1], values[1:]  # ε − L falls and so h rises with z
    ratio = np.exp(-0.5 * mu * mu - mu * z)  # dQ/dP = e^(−L) at the edges
    far, near = ratio[:-1], ratio[1:]
    mass = _mass(z)
    # On a cell the chord is high − slope·(dQ/dP − near).
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (high - low) / (far - near)
        inside = high * mass - slope * (_mass(z + mu) - near * mass)
    inside = np.minimum(np.maximum(inside, low * mass), high * mass)
    # Where the digits do not suffice for the chord, its larger end bounds it.
    inside = np.where((near > _SMALL) & np.isfinite(inside), inside, high * mass)
    ends = values[0] * ndtr(z[0]) + ndtr(-z[-1])
    return float(min((math.fsum(inside) + ends) * (1.0 + _ROUNDING), 1.0))


def _mass(edges: np.ndarray) -> np.ndarray:
    """P(edge_k < z < edge_{k+1}) without cancellation in the tails."""
    a, b = edges[:-1], edges[1:]
    far = a + b > 0.0
    upper, lower = np.where(far, -a, b), np.where(far, -b, a)
    return np.exp(log_ndtr(upper)) * -np.expm1(log_ndtr(lower) - log_ndtr(upper))


#: Points of the grid on either side of zero.
_CHOICE_CELLS = 1500
#: More than the rounding errors of the sum, relative to it.
_CHOICE_STEP = 0.1


@dataclass(frozen=True)
class BesideChoices(_Beside):
    """The loss of one mechanism, of choices and of Gaussian releases together.

    The first part is the mechanism, the others are what is released beside it.
    """

    @classmethod
    def of(cls, other: Loss, choices: tuple[Loss, ...], mu: float) -> BesideChoices:
        """Put a loss beside choices and Gaussian releases of the sensitivity μ."""
        gaussian = (GaussianLoss(mu),) if mu > 0.0 else ()
        return cls((other, *choices, *gaussian))

    def delta(self, epsilon: float) -> float:
        """Return E h(ε − L), the larger of the two orders, rounded up."""
        epsilon = nonnegative_float("epsilon", epsilon)
        other, *beside = self.parts
        losses, laws = _laws(tuple(beside))
        at = epsilon - losses
        ahead, back = other.quick_deltas(np.abs(at))
        found = []
        for (weights, certain), first, second in zip(
            laws, (ahead, back), (back, ahead), strict=True
        ):
            h = np.where(at < 0.0, _negative(at, second), first)
            h = lower_envelope(at[::-1], np.clip(h, 0.0, 1.0)[::-1])[::-1]
            total = math.fsum((weights * h).tolist()) + certain
            found.append(min(total * (1.0 + _ROUNDING), 1.0))
        return max(found)


@lru_cache(maxsize=64)
def _laws(parts: tuple[Loss, ...]) -> tuple[np.ndarray, tuple[tuple[np.ndarray, float], ...]]:
    """A grid of losses, and for each order their probabilities and that of an infinite one."""
    loss = compose_losses(parts)
    if isinstance(loss, ComposedLoss):
        loss = _Finely(loss.parts)
    grid = np.linspace(0.0, min(loss.reach, LARGEST), _CHOICE_CELLS + 1)
    return dominating_laws(grid, *loss.deltas(grid))


class _Finely(ComposedLoss):
    """A composition whose parts are bounded as closely as possible."""

    quick = False


@lru_cache(maxsize=256)
def sensitivity_beside(
    epsilon: float,
    delta: float,
    t: float,
    mu: float,
    neighbours: Neighbours = "records",
    *,
    loss: Slope = "huber",
    others: tuple[Loss, ...] = (),
) -> float:
    """Return the largest c of objective perturbation beside other releases, within a budget.

    All together are (ε, δ)-differentially private. Beside Gaussian releases alone, their δ lies
    between 0.999 δ and δ.

    `t`, `neighbours`, `loss`: as in `objective_delta`. `mu`: sensitivity of the Gaussian releases
    together, μ² = Σ μ_k²; zero if there are none. `others`: choices of the same data, other fits.
    """
    delta = probability("delta", delta)
    alone = objective_sensitivity(epsilon, delta, t, neighbours, loss=loss)
    if mu == 0.0 and not others:
        return alone
    target = math.log(delta) - MARGIN
    refusal = "the other releases alone need the whole budget; choose a smaller share"
    # At c = 0 only the other releases are left.
    if not others and GaussianLoss(mu).delta(epsilon) >= delta * (1.0 - 4.0 * MARGIN):
        raise ValueError(refusal)

    def excess(log_c: float) -> float:
        one = ObjectiveLoss(math.exp(log_c), t, neighbours, loss)
        beside = BesideChoices.of(one, others, mu) if others else BesideGaussian.of(one, mu)
        return math.log(max(beside.delta(epsilon), 1e-300)) - target

    found = largest_c(excess, alone, _CHOICE_STEP if others else _STEP)
    if found is None:
        raise ValueError(f"{refusal}, or a delta that double precision resolves")
    return found


@lru_cache(maxsize=256)
def together(losses: tuple[Loss, ...], size: int = 1) -> Loss:
    """Return the loss of questions about the same data whose noise was fixed beforehand.

    It is for neighbouring data sets, or for those with `size` steps from neighbour to neighbour.

    It is that of `compose_losses`, with a δ that is closer: the last fit is put beside everything
    else by an integral. Choices of the same range count as one loss: with all of them innermost in
    the recursion of `ChoiceLoss`, each may be the worst for what was answered before, so that this
    bounds every order of the questions.

    >>> one = together((ChoiceLoss(0.1, 1), GaussianLoss(0.1), ChoiceLoss(0.1, 1)))
    >>> one == compose_losses([ChoiceLoss(0.1, 2), GaussianLoss(0.1)])
    True
    """
    if size > 1:
        return together(losses).group(size)
    ideal, shift = ideal_losses(losses)
    if shift is not None:
        return InexactLoss(together(tuple(ideal)), shift)
    mu = math.hypot(*(loss.mu for loss in ideal if isinstance(loss, GaussianLoss)))
    ranges: Counter[float] = Counter()
    for loss in ideal:
        if isinstance(loss, ChoiceLoss):
            ranges[loss.epsilon_each] += loss.count
    choices = [ChoiceLoss(each, count) for each, count in ranges.items()]
    others = [loss for loss in ideal if not isinstance(loss, (GaussianLoss, ChoiceLoss))]
    if not others:
        return compose_losses([*choices, GaussianLoss(mu)])
    beside, last = (*choices, *others[:-1]), others[-1]
    if beside:
        return BesideChoices.of(last, beside, mu)
    return BesideGaussian.of(last, mu) if mu > 0.0 else last


@lru_cache(maxsize=256)
def delta_together(losses: tuple[Loss, ...], size: int, epsilon: float) -> float:
    """Return δ(ε) of `together`."""
    return together(losses, size).delta(epsilon)


#: The losses that single questions have, by their names in files.
_NAMES: dict[str, type[Loss]] = {
    "gaussian": GaussianLoss,
    "choice": ChoiceLoss,
    "objective": ObjectiveLoss,
    "approximate": ApproximateLoss,
}
#: Most questions that a file may list.
_MOST = 100_000


def losses_to_list(losses: Iterable[Loss]) -> list[dict[str, object]]:
    """Plain values for JSON.

    >>> losses_to_list([GaussianLoss(0.2)])
    [{'type': 'gaussian', 'mu': 0.2}]
    """
    return [_to_dict(loss) for loss in losses]


def _to_dict(loss: Loss) -> dict[str, object]:
    if isinstance(loss, InexactLoss):
        return {**_to_dict(loss.ideal), "shift": loss.shift}
    (name,) = (name for name, kind in _NAMES.items() if type(loss) is kind)
    return {"type": name, **asdict(loss)}


def losses_from_list(values: object) -> tuple[Loss, ...]:
    """Rebuild what `losses_to_list` wrote; anything else raises `DocumentError`."""
    if not isinstance(values, list) or len(values) > _MOST:
        raise DocumentError("losses must be a list")
    return tuple(_from_dict(one) for one in values)


def _from_dict(values: object) -> Loss:
    given = Fields(values, "a loss")
    name = given.text("type")
    if name not in _NAMES:
        raise DocumentError(f"a loss has the unknown type {name!r:.60}")
    numbers: dict[str, object] = {}
    for one in fields(_NAMES[name]):
        if one.name in ("neighbours", "loss"):
            numbers[one.name] = given.text(one.name)
        elif one.name == "count":
            numbers[one.name] = given.whole(one.name, 1, _MOST)
        else:
            numbers[one.name] = given.number(one.name, least=0.0)
    shift = given.number("shift", least=0.0) if "shift" in given.names() else None
    given.end()
    try:
        loss = _NAMES[name](**numbers)
        return loss if shift is None else InexactLoss(loss, shift)
    except ValueError as error:
        raise DocumentError(str(error)) from None
