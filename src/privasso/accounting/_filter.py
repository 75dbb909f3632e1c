"""A budget for releases whose settings are chosen after looking at earlier releases.

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
from collections.abc import Sequence

from privasso._validation import positive_float, probability
from privasso.accounting._composed import compose_losses
from privasso.accounting._gaussian import gaussian_delta, gaussian_epsilon, sensitivity_for
from privasso.accounting._loss import GaussianLoss, Loss

#: The part of δ that is set aside for infinite losses.
_BEYOND = 0.1
#: More than the rounding errors of an ε, relative.
_ROUNDING = 1e-10
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
    return max(found, 0.0) * (1.0 + _ROUNDING)


def _sums(order: float, losses: Counter[Loss]) -> tuple[float, float, float]:
    """The sums of Rényi divergences for both orders of the pair, and of infinite losses."""
    bounds = [(count, loss.renyi(order)) for loss, count in losses.items()]
    forward, backward, beyond = (math.fsum(n * one[k] for n, one in bounds) for k in range(3))
    return forward, backward, beyond


def _gaussian(losses: Sequence[Loss]) -> float | None:
    """The μ of Gaussian mechanisms together; None if some are of another kind."""
    mus = [loss.mu for loss in losses if isinstance(loss, GaussianLoss)]
    return math.hypot(*mus) if len(mus) == len(losses) else None
