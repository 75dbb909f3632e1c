"""Coefficients without penalty and ridge, and what may be said about them, from noisy sums.

At β̂, with the curvature H, the scores s and the squared scores V of all rows, β̂ + H⁻¹s is the
minimiser of the loss, exactly for squared residuals and to first order for others. Released are
Ĥ = H + Z, ŝ = s + ζ and V with noise of its own, all of known deviations. Given H, the step δ to
the population's coefficients has ŝ ~ N(Hδ, V + σ²I). What H may be is drawn: Ĥ less what the noise
may have been, with eigenvalues raised to zero. The law of δ is the mixture of the normal laws for
these draws, with a wide prior, so that a direction that noise hides has a wide law and not a wild
one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtr, ndtri

#: Draws of the noise in the curvature, and where the quantiles of a law are kept, as those of a
#: normal number.
_DRAWS = 200
POINTS = np.linspace(-4.0, 4.0, 17)
#: A coefficient whose deviation is above this part of the prior one is not told from its prior.
_MOST = 0.6
#: How far squared scores may differ from what the mean square says, before they are looked at.
_UNLIKE = 0.5
#: A number of times that stands for no number of rows.
NEVER = 1e9
#: Draws for intervals that hold together, and the fixed seed of all draws, which hide nothing.
_TOGETHER, _SEED = 4000, 0


@dataclass(frozen=True, eq=False)
class OneStep:
    """The sums, and the deviations of their noise.

    Attributes
    ----------
    H, s, V : ndarray of shapes (d, d), (d,) and (d, d)
        Curvature, scores and squared scores.
    H_noise, s_noise, V_noise : ndarray
        Deviations of the noise in each, of the same shapes; zeros where there is none.
    prior : float
        Deviation beforehand of a step per deviation of a column.
    """

    H: np.ndarray = field(repr=False)
    s: np.ndarray = field(repr=False)
    V: np.ndarray = field(repr=False)
    H_noise: np.ndarray = field(repr=False)
    s_noise: np.ndarray = field(repr=False)
    V_noise: np.ndarray = field(repr=False)
    prior: float

    def squares(self) -> np.ndarray:
        """What is expected of V: between the noisy one and the mean square times the curvature.

        The mean square is raised by a deviation of its noise.
        """
        H = positive_part(self.H)
        size = max(float(np.trace(H)), 1e-300)
        noise = float(np.sqrt(np.sum(np.diag(self.V_noise) ** 2)))
        mean = (max(float(np.trace(self.V)), 0.0) + noise) / size
        roots = np.sqrt(np.diag(H))
        likely = (_UNLIKE * mean * np.outer(roots, roots)) ** 2
        weight = likely / (likely + self.V_noise**2 + 1e-300)
        return positive_part(weight * self.V + (1.0 - weight) * mean * H)

    def law(self, into: np.ndarray) -> Law:
        """The law of ``into @ δ``."""
        rng, d = np.random.default_rng(_SEED), self.s.size
        precision = np.linalg.inv(self.squares() + np.diag(self.s_noise**2))
        noisy = bool(np.any(self.H_noise))
        count = _DRAWS if noisy else 1
        centres, spread = np.empty((count, len(into))), np.empty((count, len(into)))
        total = np.zeros((d, d))
        for k in range(count):
            H = positive_part(self.H - symmetric(rng, self.H_noise)) if noisy else self.H
            HP = H @ precision
            covariance = np.linalg.inv(HP @ H + np.eye(d) / self.prior**2)
            centres[k] = into @ (covariance @ (HP @ self.s))
            spread[k] = np.sqrt(np.einsum("ij,ij->i", into @ covariance, into))
            total += covariance / count
        before = (self.prior * np.linalg.norm(into, axis=1)) ** 2
        part = np.divide(
            np.mean(spread**2, axis=0), before, out=np.ones(len(into)), where=before > 0
        )
        # What the sums alone leave open falls about as one over the rows squared, where noise does.
        more = np.sqrt(part * (1.0 - _MOST**2) / (np.maximum(1.0 - part, 1e-12) * _MOST**2))
        more = np.minimum(more, 0.1 * NEVER)
        wider = self._wider(rng, into, total)
        return Law(mixture_quantiles(centres, spread), part > _MOST**2, more, wider)

    @staticmethod
    def _wider(rng: np.random.Generator, into: np.ndarray, covariance: np.ndarray) -> np.ndarray:
        """Quantiles of the largest of all standardised errors, one for each of `POINTS` above 0."""
        into = into[np.any(into != 0.0, axis=1)]
        deviations = np.sqrt(np.einsum("ij,ij->i", into @ covariance, into))
        z = rng.standard_normal((_TOGETHER, len(covariance)))
        errors = z @ np.linalg.cholesky(covariance).T @ into.T / deviations
        levels = 2.0 * ndtr(POINTS[POINTS > 0.0]) - 1.0
        return np.quantile(np.max(np.abs(errors), axis=1, initial=0.0), levels)


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
        About how many times as many rows would be needed to say something, or `NEVER`.
    together : ndarray
        For the z of `POINTS` above zero: the z' ≥ z of intervals that hold together as often.
    """

    quantiles: np.ndarray = field(repr=False)
    unknown: np.ndarray = field(repr=False)
    more: np.ndarray = field(repr=False)
    together: np.ndarray = field(repr=False)


def mixture_quantiles(centres: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Quantiles of mixtures of normal laws, one for each column, by bisection.

    >>> mixture_quantiles(np.zeros((1, 1)), np.full((1, 1), 2.0))[0, :3].round(6).tolist()
    [-8.0, -7.0, -6.0]
    """
    wanted = ndtr(POINTS)[:, None]
    low = np.min(centres - 6.0 * spread, axis=0) + np.zeros_like(wanted)
    high = np.max(centres + 6.0 * spread, axis=0) + np.zeros_like(wanted)
    for _ in range(48):
        middle = 0.5 * (low + high)
        below = np.zeros_like(middle)
        for centre, deviation in zip(centres, np.maximum(spread, 1e-300), strict=True):
            below += ndtr((middle - centre) / deviation)
        less = below < len(centres) * wanted
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    return (0.5 * (low + high)).T


def symmetric(rng: np.random.Generator, deviations: np.ndarray) -> np.ndarray:
    """A symmetric matrix of normal numbers with these deviations."""
    drawn = np.triu(rng.standard_normal(deviations.shape) * deviations)
    return drawn + np.triu(drawn, 1).T


def at_level(level: float) -> float:
    """The z of an interval of this level for a normal number.

    >>> round(at_level(0.95), 3)
    1.96
    """
    return float(ndtri(0.5 + 0.5 * level))


def positive_part(A: np.ndarray) -> np.ndarray:
    """The nearest positive semidefinite matrix.

    Examples
    --------
    >>> positive_part(np.diag([2.0, -1.0])).tolist()
    [[2.0, 0.0], [0.0, 0.0]]
    """
    values, vectors = np.linalg.eigh(A)
    found = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return 0.5 * (found + found.T)
