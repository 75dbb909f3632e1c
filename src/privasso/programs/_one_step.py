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

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtr, ndtri

#: Draws of the noise in the curvature, and where the quantiles of a law are kept, as those of a
#: normal number.
_DRAWS = 200
POINTS = np.linspace(-4.0, 4.0, 17)
#: How far squared scores may differ from what the mean square says, before they are looked at.
_UNLIKE = 0.5
#: The curvature of clipped residuals differs from a share of that of squared ones by so much, as a
#: part of it and in the direction where it differs most, before it is looked at. A symmetric matrix
#: of d² normal numbers of deviation τ changes no direction by more than about 2τ√d.
_UNEVEN = 0.25
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
    unit : ndarray of shape (d,)
        Mean squares of the entries of a row.
    prior : float
        Deviation beforehand of a step per deviation of a column.
    most : float
        Nothing is said of a coefficient of which a larger deviation than this remains, per
        deviation of its column.
    base : (ndarray, ndarray) or None
        Curvature of squared residuals, and the deviations of its noise. H is like a share of it,
        which noise hides less than H itself.
    """

    H: np.ndarray = field(repr=False)
    s: np.ndarray = field(repr=False)
    V: np.ndarray = field(repr=False)
    H_noise: np.ndarray = field(repr=False)
    s_noise: np.ndarray = field(repr=False)
    V_noise: np.ndarray = field(repr=False)
    unit: np.ndarray = field(repr=False)
    prior: float
    most: float
    base: tuple[np.ndarray, np.ndarray] | None = None

    def drawn(self, rng: np.random.Generator) -> np.ndarray:
        """What the curvature may be."""
        if self.base is None:
            H = self.H - symmetric(rng, self.H_noise) if self.noisy else self.H
            return positive_part(H) if self.noisy else H
        G, G_noise = self.base
        G = positive_part(G - symmetric(rng, G_noise)) if np.any(G_noise) else G
        off = float(rng.standard_normal() * np.linalg.norm(np.diag(self.H_noise)))
        usual, unlike = self._usual(G, off)
        weight = unlike**2 / (unlike**2 + self.H_noise**2)
        left = symmetric(rng, np.sqrt(weight) * self.H_noise)
        return positive_part(usual + weight * (self.H - usual) - left)

    def curvature(self) -> np.ndarray:
        """What is expected of the curvature."""
        if self.base is None:
            return positive_part(self.H)
        usual, unlike = self._usual(positive_part(self.base[0]), 0.0)
        weight = unlike**2 / (unlike**2 + self.H_noise**2)
        return positive_part(usual + weight * (self.H - usual))

    def _usual(self, G: np.ndarray, off: float) -> tuple[np.ndarray, np.ndarray]:
        """The share of G that has the trace of H, and by how much H may be unlike it."""
        size = max(float(np.trace(G)), 1e-300)
        least = float(np.linalg.norm(np.diag(self.H_noise)))
        share = min(max(float(np.trace(self.H)) - off, least, 1e-9 * size) / size, 1.0)
        roots = np.sqrt(np.diag(G))
        return share * G, _UNEVEN * share * np.outer(roots, roots) / np.sqrt(len(G)) + 1e-300

    @property
    def noisy(self) -> bool:
        """Whether the curvature is private."""
        return bool(np.any(self.H_noise))

    def squares(self) -> np.ndarray:
        """What is expected of V: between the noisy one and the mean square times the curvature.

        The mean square is raised by a deviation of its noise.
        """
        H = self.curvature()
        size = max(float(np.trace(H)), 1e-300)
        noise = float(np.sqrt(np.sum(np.diag(self.V_noise) ** 2)))
        mean = (max(float(np.trace(self.V)), 0.0) + noise) / size
        roots = np.sqrt(np.diag(H))
        likely = (_UNLIKE * mean * np.outer(roots, roots)) ** 2
        weight = likely / (likely + self.V_noise**2 + 1e-300)
        return positive_part(weight * self.V + (1.0 - weight) * mean * H)

    def law(self, into: np.ndarray) -> Law:
        """The law of ``into @ δ``."""
        rng = np.random.default_rng(_SEED)
        centres, spread, total, count = [], [], np.zeros((self.s.size,) * 2), 0
        for step, covariance in self._draws(rng):
            centres.append(into @ step)
            spread.append(np.sqrt(np.einsum("ij,ij->i", into @ covariance, into)))
            total, count = total + covariance, count + 1
        centres, spread = np.array(centres), np.array(spread)
        before = self.prior**2 * (into**2 @ (1.0 / self.unit))
        part = np.divide(
            np.mean(spread**2, axis=0), before, out=np.ones(len(into)), where=before > 0
        )
        # What the sums alone leave open falls about as one over the rows squared, where noise does.
        most = (self.most / self.prior) ** 2
        more = np.sqrt(part * (1.0 - most) / (np.maximum(1.0 - part, 1e-12) * most))
        more = np.minimum(more, 0.1 * NEVER)
        wider = self._wider(rng, into, total / count)
        return Law(mixture_quantiles(centres, spread), part > most, more, wider)

    def mean(self) -> np.ndarray:
        """The mean of the law of δ."""
        rng = np.random.default_rng(_SEED)
        return np.mean([step for step, _ in self._draws(rng)], axis=0)

    def _draws(self, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Mean and covariance of δ for each of some draws of the curvature."""
        precision = np.linalg.inv(self.squares() + np.diag(self.s_noise**2))
        for _ in range(_DRAWS if self.noisy else 1):
            H = self.drawn(rng)
            HP = H @ precision
            covariance = np.linalg.inv(HP @ H + np.diag(self.unit) / self.prior**2)
            yield covariance @ (HP @ self.s), covariance

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
