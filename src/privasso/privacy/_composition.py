"""Several releases of the same data: what they give away together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from privasso._validation import positive_float
from privasso.privacy._guarantee import CLAIMS, Claim, Guarantee, check_budget, register
from privasso.privacy._inexact import InexactLoss
from privasso.privacy._loss import ApproximateLoss, GaussianLoss, Loss
from privasso.privacy._numbers import rounded_up

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

#: Cells of the grid of losses over the reach of all parts together.
_CELLS = 10_000
#: Added to δ: more than the rounding errors of the convolutions.
_ROUNDING = 1e-12

_ALONE = "the same {} are not used in another release, whose loss would add to this one"
_TOGETHER = "the same {} are used in no other release than these {}, whose loss would add up"
#: What an assumption about other releases may be about.
_PROTECTED = ("labels", "records")


def alone(protected: str) -> str:
    """The assumption that the same labels, or records, are not used in another release.

    Examples
    --------
    >>> alone("records")
    'the same records are not used in another release, whose loss would add to this one'
    """
    if protected not in _PROTECTED:
        raise ValueError(f"what is protected must be one of {', '.join(_PROTECTED)}")
    return _ALONE.format(protected)


def compose_losses(losses: Iterable[Loss]) -> Loss:
    """Return the loss of releases of the same data taken together, as small as it can be shown.

    The shifts of Gaussian mechanisms add up at right angles, so that μ² = Σ μ_k² exactly. Others
    are composed numerically; see `ComposedLoss`. Distances of inexact releases from ideal ones add
    up; see `InexactLoss`.

    Examples
    --------
    >>> compose_losses([GaussianLoss(0.3), GaussianLoss(0.4)])
    GaussianLoss(mu=0.5)
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
    them. What comes out is an upper bound.
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
        forward, backward = (
            np.minimum(np.asarray(one.get_delta_for_epsilon(epsilons.tolist())) + _ROUNDING, 1.0)
            for one in self._distributions
        )
        return forward, backward

    def epsilon(self, delta: float) -> float:
        """Return the smallest ε for δ; inf for a δ that the arithmetic cannot resolve."""
        delta = positive_float("delta", delta) - _ROUNDING
        if delta <= 0.0:
            return math.inf
        return max(float(one.get_epsilon_for_delta(delta)) for one in self._distributions)

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


def compose(guarantees: Iterable[Guarantee], delta: float | None = None) -> Guarantee:
    """Return what holds for several releases of the same data together.

    Parameters
    ----------
    guarantees : iterable of Guarantee
        Formal guarantees with the same neighbours and the same bounds of the labels.
    delta : float, optional
        δ of the result, the largest δ among the guarantees if it is not given.

    Examples
    --------
    >>> import privasso as pv
    >>> from privasso.privacy import Terms, compose
    >>> terms = Terms(fit_intercept=True, seeded=False, n_rows=1000)
    >>> one = pv.LabelDP(1.0, 1e-6, y_bounds=(0, 1)).guarantee(terms)
    >>> four = compose([one] * 4)
    >>> round(four["epsilon"], 3), round(four["mu"] / one["mu"], 9)
    (2.123, 2.0)
    """
    parts = list(guarantees)
    if not parts:
        raise ValueError("there is no guarantee to compose")
    losses = [formal_loss(part) for part in parts]
    check_same_neighbours(parts)
    delta = positive_float("delta", max(g["delta"] for g in parts) if delta is None else delta)
    loss = compose_losses(losses)
    first, kinds = parts[0], {part.kind for part in parts}
    same = len(kinds) == 1 and {_family(part) for part in losses} == {_family(loss)}
    numbers = {
        **_context(first),
        **dict(loss.parameters if same else ()),
        "delta": delta,
        "epsilon": loss.epsilon(delta),
        "n_rows": max(part["n_rows"] for part in parts),
    }
    if not math.isfinite(numbers["epsilon"]):
        raise ValueError(f"no finite ε holds for these releases together at δ = {delta!r}")
    together = {alone(what): _TOGETHER.format(what, len(parts)) for what in _PROTECTED}
    assumptions = [
        together.get(sentence, sentence) for part in parts for sentence in part.assumptions
    ]
    return Guarantee(
        kind=first.kind if same else _CLAIM.kind,
        parameters=tuple(numbers.items()),
        adjacency=first.adjacency,
        assumptions=tuple(dict.fromkeys(assumptions)),
        released=tuple(dict.fromkeys(what for part in parts for what in part.released)),
        seeded=any(part.seeded for part in parts),
    )


def formal_loss(guarantee: Guarantee) -> Loss:
    """Return the loss of a guarantee, and refuse one that bounds nothing."""
    if guarantee.loss is None:
        raise ValueError(
            f"a guarantee of kind {guarantee.kind!r} bounds no loss, so there is nothing to compose"
        )
    return guarantee.loss


def check_same_neighbours(guarantees: Sequence[Guarantee]) -> None:
    """Refuse guarantees that speak of different neighbours or of different label bounds."""
    first = guarantees[0]
    for other in guarantees[1:]:
        if other.adjacency != first.adjacency:
            raise ValueError(
                f"guarantees for data sets that differ in {first.adjacency} and in "
                f"{other.adjacency} do not compose; state both for the same neighbours"
            )
        if _context(other) != _context(first):
            here, there = (", ".join(map(repr, _context(g).values())) for g in (first, other))
            raise ValueError(
                f"guarantees for labels within different bounds ({here} and {there}) are not "
                "composed: use the same y_bounds for every release of the same labels"
            )


def _family(loss: Loss) -> tuple[type[Loss], ...]:
    """The type of a loss and of its parts, which says what its parameters are."""
    if isinstance(loss, InexactLoss):
        return (InexactLoss, *_family(loss.ideal))
    return (type(loss), *(type(part) for part in getattr(loss, "parts", ())))


def _context(guarantee: Guarantee) -> dict[str, float]:
    """What must agree between guarantees that are composed."""
    numbers = dict(guarantee.parameters)
    names = CLAIMS[guarantee.kind].context
    return {name: numbers[name] for name in names if name in numbers}


def _sentence(guarantee: Guarantee) -> str:
    return (
        f"Several releases together are differentially private with "
        f"ε = {rounded_up(guarantee['epsilon'])} and δ = {rounded_up(guarantee['delta'])}: for any "
        f"two data sets that differ in {guarantee.adjacency}, every outcome that has probability p "
        f"under one has at least (p − δ)·e^(−ε) under the other."
    )


_CLAIM = register(
    Claim(
        "composed",
        ("delta", "epsilon", "n_rows"),
        ("y_high", "y_low"),
        _sentence,
        check=check_budget,
        loss=lambda guarantee: ApproximateLoss(guarantee["epsilon"], guarantee["delta"]),
        context=("y_low", "y_high"),
    )
)
