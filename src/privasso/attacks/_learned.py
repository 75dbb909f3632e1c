"""A linear score that is learned from releases, for laws that are not known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privasso.attacks._pair import Score

FloatArray = NDArray[np.float64]

#: Weight of the diagonal in the learned covariance: for few numbers and many runs, and otherwise.
_LITTLE, _MUCH = 1e-8, 0.2


def linear_score(into: FloatArray, out: FloatArray) -> Score:
    """A linear discriminant with a regularised covariance, from releases of both data sets.

    Numbers that never change within a data set but differ between the two have a tiny scale, so
    that they decide the score.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> noise = rng.standard_normal((400, 2))
    >>> score = linear_score(noise[:200] + [1.0, 0.0], noise[200:])
    >>> high, low = score(np.array([[2.0, 0.0], [-1.0, 0.0]]))
    >>> bool(high > 1.0), bool(low < -1.0)
    (True, True)
    """
    means = into.mean(axis=0), out.mean(axis=0)
    spread = np.sqrt(0.5 * (into.var(axis=0) + out.var(axis=0)))
    gap = np.abs(means[0] - means[1])
    size = np.abs(means[0]) + np.abs(means[1])
    scale = np.maximum(np.maximum(spread, 1e-3 * gap), np.maximum(1e-12 * size, 1e-300))
    centre = 0.5 * (means[0] + means[1])
    white = [(values - mean) / scale for values, mean in zip((into, out), means, strict=True)]
    both = np.vstack(white)
    covariance = both.T @ both / len(both)
    # A combination of numbers without noise must be found, if there are runs enough to find it.
    weight = _LITTLE if 4 * len(covariance) <= len(into) else _MUCH
    covariance = (1.0 - weight) * covariance + weight * np.eye(len(covariance))
    direction = np.linalg.solve(covariance, (means[0] - means[1]) / scale)
    return lambda values: (values - centre) / scale @ direction
