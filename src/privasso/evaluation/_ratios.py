"""Ratios of sums that are known up to noise and sampling, and intervals for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple, TypeAlias

import numpy as np

from privasso.evaluation._sums import FEATURES, REST

#: Steps of numerical derivatives of functions of degree two, relative to the number of records.
_STEP = 1e-4
#: Sums of a table without anything strange, by which a budget is divided: labels and predictions
#: deviate by about a fifth of the bounds, and half of the variance is explained.
_USUAL = np.array([1.0, 0.2, 0.2, 0.08, 0.06, 0.06, 0.1, 0.02, 0.0])
#: Of the rest of squared distances, which is about zero, less is to be known than of the others.
_REST = 0.4
#: Random numbers stand in for noise of a known law; they are public, and always the same.
DRAWS, _SEED = 2000, 20240229


class Estimate(NamedTuple):
    """A number, and an interval for that of the population."""

    value: float
    low: float
    high: float

    def of(self, function: Callable[[float], float]) -> Estimate:
        """A monotone function of it."""
        value, *ends = (float(function(one)) for one in self)
        return Estimate(value, min(ends), max(ends))


#: What makes estimates, by metric, with intervals of a level.
Estimates: TypeAlias = Callable[[float], dict[str, Estimate]]


@cache
def normal(draws: int, size: int) -> np.ndarray:
    """Standard normal numbers, not to be changed."""
    found = np.random.default_rng(_SEED).standard_normal((draws, size))
    found.flags.writeable = False
    return found


def ratio_of(metric: str, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What a metric is the ratio of, for sums of `FEATURES` along the last axis.

    For R² it is 1 − R².
    """
    one, y, p, yy, pp, yp, distance, near, rest = np.moveaxis(sums, -1, 0)
    one = np.maximum(one, 1e-9)
    if metric == "mae":
        return distance, one
    if metric == "mse":
        return near + rest, one
    if metric == "r2":
        return near + rest, yy - y * y / one
    if metric == "calibration intercept":
        return y - p, one
    assert metric == "calibration slope"
    return yp - y * p / one, pp - p * p / one


def gradient(metric: str, sums: np.ndarray, ratio: float) -> np.ndarray:
    """Derivatives of numerator − ratio · denominator by each sum."""
    step = _STEP * max(float(sums[0]), 1e-3)
    moved = np.stack([sums + side * step * np.eye(len(FEATURES)) for side in (1.0, -1.0)])
    above, below = ratio_of(metric, moved)
    both = above - ratio * below
    return (both[0] - both[1]) / (2.0 * step)


def shares_of(metrics: tuple[str, ...], changes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which sums metrics need, and parts of the squared sensitivity for each.

    A weighted sum with the weights c has the least noise if the parts are in proportion to |c|Δ.
    """
    used, total = np.zeros(len(FEATURES)), np.zeros(len(FEATURES), dtype=bool)
    for metric in metrics:
        top, bottom = ratio_of(metric, _USUAL)
        weights = np.abs(gradient(metric, _USUAL, float(top / bottom)))
        total |= weights > 1e-6
        parts = weights * changes
        parts[REST] *= _REST
        used += (parts / parts.sum()) ** 2
    at = np.flatnonzero(total)
    roots = np.maximum(np.sqrt(used[at]), 1e-2)
    return at, roots / roots[changes[at] > 0.0].sum()


def ratio_interval(
    top: float, bottom: float, noise: np.ndarray, sampling: float, z: float
) -> Estimate:
    """The ratio, and all ratios ρ with |top − ρ·bottom| below z deviations (Fieller 1954).

    Parameters
    ----------
    top, bottom : float
        Both with noise.
    noise : ndarray of shape (2, 2)
        Covariance of their noise.
    sampling : float
        Variance of top − ρ·bottom over samples of records.
    z : float
        How many deviations.
    """
    a = bottom**2 - z**2 * noise[1, 1]
    b = top * bottom - z**2 * noise[0, 1]
    c = top**2 - z**2 * (noise[0, 0] + sampling)
    if a <= 0.0 or bottom <= 0.0:  # the denominator could be zero
        return Estimate(math.nan, -math.inf, math.inf)
    root = math.sqrt(max(b * b - a * c, 0.0))
    return Estimate(top / bottom, (b - root) / a, (b + root) / a)
