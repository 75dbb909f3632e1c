"""What is lost when the computed release is only close to the one that was analysed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from privasso._validation import integer, nonnegative_float, positive_float
from privasso.accounting._loss import Loss, Renyi

#: Points at which the ε with the least δ is searched for.
_POINTS = 400
#: By which part an order is raised, at least, to make room for the shift.
_STRETCH = 1e-4
#: Rounds of the search for an ε before it is left to halving.
_ROUNDS = 40


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
        for _ in range(_ROUNDS):
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
