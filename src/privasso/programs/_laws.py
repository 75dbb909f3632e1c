"""Laws of coefficients, kept as quantiles."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtr, ndtri

#: Where the quantiles of a law are kept, as those of a normal number.
POINTS = np.linspace(-4.0, 4.0, 17)
#: Draws for intervals that hold together, and their fixed seed, which hides nothing.
_TOGETHER, _SEED = 4000, 0
#: Numbers of times that stand for no number of rows, and for few rows that decide.
NEVER, FEW = 1e9, 2e9


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


def normal_law(
    into: np.ndarray,
    mean: np.ndarray,
    covariance: np.ndarray,
    unknown: np.ndarray,
    more: np.ndarray,
) -> Law:
    """The law of ``into @ δ``, δ normal.

    >>> one, no = np.eye(1), np.zeros(1)
    >>> normal_law(one, np.ones(1), 4.0 * one, no > 0.0, no).quantiles[0, ::8].tolist()
    [-7.0, 1.0, 9.0]
    """
    spread = np.sqrt(variances_along(into, covariance))
    quantiles = (into @ mean)[:, None] + spread[:, None] * POINTS
    live = spread > 0.0
    z = np.random.default_rng(_SEED).standard_normal((_TOGETHER, len(covariance)))
    errors = z @ np.linalg.cholesky(covariance).T @ into[live].T / spread[live]
    levels = 2.0 * ndtr(POINTS[POINTS > 0.0]) - 1.0
    together = np.quantile(np.max(np.abs(errors), axis=1, initial=0.0), levels)
    return Law(quantiles, unknown, more, together)


def variances_along(into: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """The variance of each of ``into @ δ``."""
    return np.maximum(np.einsum("ij,ij->i", into @ covariance, into), 0.0)


def at_level(level: float) -> float:
    """The z of an interval of this level for a normal number.

    >>> round(at_level(0.95), 3)
    1.96
    """
    return float(ndtri(0.5 + 0.5 * level))
