"""Settings of objective perturbation for labels, from the budget alone."""

from __future__ import annotations

import math

LARGEST_KAPPA = 0.5
#: t relative to ε, where there are no rows to choose it for.
LABEL_RIDGE = 0.1


def default_kappa(epsilon: float) -> float:
    """The largest residual that is not clipped, as a part of the range of the labels.

    A smaller one means less noise. But where labels are skewed, clipped residuals pull predictions
    from the mean of the labels towards their median, which costs more than noise at large ε.

    >>> default_kappa(1.0), default_kappa(12.0), default_kappa(1000.0)
    (0.1, 0.2, 0.5)
    """
    return min(LARGEST_KAPPA, 0.1 * max(1.0, math.sqrt(epsilon / 3.0)))
