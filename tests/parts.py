"""The losses of a guarantee, part by part, for tests."""

import math
from dataclasses import replace
from typing import Any

from privasso.accounting import GaussianLoss, InexactLoss, ObjectiveLoss


def ideal_parts(guarantee):
    """The losses, those of computed minimisers without their distance from exact ones."""
    return [loss.ideal if isinstance(loss, InexactLoss) else loss for loss in guarantee.losses]


def mu_of_sums(guarantee):
    """The sensitivity of all sums with Gaussian noise together."""
    return math.hypot(*(loss.mu for loss in guarantee.losses if isinstance(loss, GaussianLoss)))


def last_fit(guarantee):
    """The loss of the last perturbed objective."""
    return [loss for loss in ideal_parts(guarantee) if isinstance(loss, ObjectiveLoss)][-1]


def with_larger(guarantee, kind, which=-1, **factors):
    """The guarantee, of whose losses of a kind one has larger numbers."""
    losses, ideal = list(guarantee.losses), ideal_parts(guarantee)
    at = [k for k, loss in enumerate(ideal) if isinstance(loss, kind)][which]
    before: Any = ideal[at]
    changed = replace(before, **{name: x * getattr(before, name) for name, x in factors.items()})
    one = losses[at]
    losses[at] = replace(one, ideal=changed) if isinstance(one, InexactLoss) else changed
    return replace(guarantee, losses=tuple(losses))
