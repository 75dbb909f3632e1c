"""Laws of coefficients, kept as quantiles."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtr, ndtri

#: Where the quantiles of a law are kept, as those of a normal number.
POINTS = np.linspace(-4.0, 4.0, 17)
#: Numbers of times that stand for no number of rows, and for few rows that decide.
NEVER, FEW = 1e9, 2e9
#: Steps towards a quantile at most, how many of them are Newton's alone, and what a quantile may be
#: off, in deviations.
_STEPS, _FAST, _NEAR = 200, 16, 1e-9


@dataclass(frozen=True, eq=False)
class Law:
    """Quantiles of the law of each coefficient.

    Attributes
    ----------
    quantiles : ndarray of shape (n, K)
        At the probabilities Φ(z) of `POINTS`.
    unknown : ndarray of bool, of shape (n,)
        Coefficients of which nothing can be said.
    more : ndarray of shape (n,)
        About how many times as many rows would be needed to say something, or `NEVER`, or `FEW`.
    together : ndarray
        For the z of `POINTS` above zero: the z' ≥ z of intervals that hold together as often.
    """

    quantiles: np.ndarray = field(repr=False)
    unknown: np.ndarray = field(repr=False)
    more: np.ndarray = field(repr=False)
    together: np.ndarray = field(repr=False)


def mixture_quantiles(centres: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Quantiles of mixtures of normal laws, one for each column, by Newton's method.

    Φ⁻¹ of their distribution is nearly linear. A step that leaves what is known to hold a quantile
    goes to its middle, and so does every fourth of the later ones.

    >>> mixture_quantiles(np.zeros((1, 1)), np.full((1, 1), 2.0))[0, :3].round(6).tolist()
    [-8.0, -7.0, -6.0]
    """
    spread = np.maximum(spread, 1e-300)
    wide, z = np.sqrt(np.mean(spread**2, axis=0) + np.var(centres, axis=0)), POINTS[:, None]
    ends = centres[:, None] + z * spread[:, None]
    low, high = np.min(ends, axis=0), np.max(ends, axis=0)
    x = np.clip(np.mean(centres, axis=0) + z * wide, low, high)
    for k in range(_STEPS):
        u = (x - centres[:, None]) / spread[:, None]
        at = ndtri(np.mean(ndtr(u), axis=0))
        slope = np.mean(np.exp(0.5 * at**2 - 0.5 * u**2) / spread[:, None], axis=0)
        low, high = np.where(at < z, x, low), np.where(at < z, high, x)
        with np.errstate(all="ignore"):
            step = x + (z - at) / slope
        near = np.abs(step - x) <= _NEAR * wide
        inside = (step > low) & (step < high) & (k < _FAST or k % 4 < 3)
        x = np.where(near | inside, step, 0.5 * (low + high))
        if near.all():
            break
    return x.T


def at_level(level: float) -> float:
    """The z of an interval of this level for a normal number.

    >>> round(at_level(0.95), 3)
    1.96
    """
    return float(ndtri(0.5 + 0.5 * level))
