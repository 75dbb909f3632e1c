"""Coefficients without penalty and ridge, and what may be said about them, from noisy sums.

At β̂, with the curvature H, the scores s and the squared scores V of all rows, β̂ + H⁻¹s is the
minimiser of the loss, exactly for squared residuals and to first order for others. Released are
Ĥ = H + Z, ŝ = s + ζ and V with noise of its own, all of known deviations. Given H, the step δ to
the population's coefficients has ŝ ~ N(Hδ, V + σ²I). What H may be is drawn: Ĥ less what the noise
may have been, with eigenvalues raised to zero. The law of δ is the mixture of the normal laws for
these draws, with a wide prior, so that a direction that noise hides has a wide law and not a wild
one. With a mean squared residual m at β̂ no step gains more than m: δᵀHδ ≤ mM. So where the
curvature is private the prior of a step, per deviation of a column, is no wider than 2√m, and there
is no interval that would hang on it for a step that may be larger.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

import numpy as np
from scipy.special import ndtr

from privasso.programs._correlations import NoisyProducts, symmetric
from privasso.programs._laws import FEW, NEVER, POINTS, Law, mixture_quantiles

#: Draws of the noise in the curvature.
_DRAWS = 200
#: How far squared scores may differ from what the mean square says, before they are looked at.
_UNLIKE = 0.5
#: The curvature of clipped residuals differs from a share of that of squared ones by so much, as a
#: part of it and in the direction where it differs most, before it is looked at. A symmetric matrix
#: of d² normal numbers of deviation τ changes no direction by more than about 2τ√d.
_UNEVEN = 0.25
#: Where the curvature is private: the deviation of a step beforehand, in units of the root of the
#: mean squared residual; and how much of the square of the largest bias counts as variance, with
#: which at least 91 % of intervals of 95 % hold, wherever the bias is.
_WIDE, _BIAS = 2.0, 0.5
#: A coefficient rests on a few rows if what shrinking hides of it unseen may be larger than this,
#: in deviations of what is left open.
_UNSEEN = 1.25
#: Draws for intervals that hold together, and the fixed seed of all draws, which hide nothing.
_TOGETHER, _SEED = 4000, 0
#: Draws for the mean of a law, where the next sums are taken.
_ROUGH = 20


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
    far : ndarray of shape (d,) or None
        How far away the entries of some rows are, √(fourth moment / 3) in units of their mean
        squares, one at least: a few rows decide on squared scores and clipped curvatures there.
    whole : ndarray of shape (3, d) or None
        Sums of the squares of entries before rows are shrunk, if any are, the deviations of the
        noise in them, and what of them may be lost at most.
    shrunk : (float, float)
        About how many rows are shrunk, and to which squared length.
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
    far: np.ndarray | None = field(default=None, repr=False)
    whole: np.ndarray | None = field(default=None, repr=False)
    shrunk: tuple[float, float] = (1.0, 1.0)

    def drawn(self, rng: np.random.Generator) -> np.ndarray:
        """What the curvature may be."""
        G = self._products.drawn(rng) if self.private else self._squared[0]
        if self.base is None:
            return positive_part(G) if self.private else G
        G = positive_part(G) if self.private else G
        off = float(rng.standard_normal() * np.linalg.norm(np.diag(self.H_noise)))
        usual, unlike = self._usual(G, off)
        weight = unlike**2 / (unlike**2 + self.H_noise**2)
        left = symmetric(rng, np.sqrt(weight) * self.H_noise)
        return positive_part(usual + weight * (self.H - usual) - left)

    def curvature(self) -> np.ndarray:
        """What is expected of the curvature."""
        G = positive_part(self._products.mean() if self.private else self._squared[0])
        if self.base is None:
            return G
        usual, unlike = self._usual(G, 0.0)
        weight = unlike**2 / (unlike**2 + self.H_noise**2)
        return positive_part(usual + weight * (self.H - usual))

    def _usual(self, G: np.ndarray, off: float) -> tuple[np.ndarray, np.ndarray]:
        """The share of G that has the trace of H, and by how much H may be unlike it."""
        size = max(float(np.trace(G)), 1e-300)
        least = float(np.linalg.norm(np.diag(self.H_noise)))
        share = min(max(float(np.trace(self.H)) - off, least, 1e-9 * size) / size, 1.0)
        roots = np.sqrt(np.diag(G))
        unlike = _UNEVEN * share * np.outer(roots, roots) / np.sqrt(len(G)) + 1e-300
        np.fill_diagonal(unlike, np.diag(unlike) * np.minimum(self._far, np.sqrt(len(G))))
        return share * G, unlike

    @cached_property
    def noisy(self) -> bool:
        """Whether there is noise in the curvature."""
        return bool(np.any(self.H_noise))

    @cached_property
    def private(self) -> bool:
        """Whether there is noise in that of squared residuals."""
        return bool(np.any(self._squared[1]))

    @property
    def _squared(self) -> tuple[np.ndarray, np.ndarray]:
        """The curvature of squared residuals, if it is known, and the deviations of its noise."""
        return (self.H, self.H_noise) if self.base is None else self.base

    @cached_property
    def _products(self) -> NoisyProducts:
        return NoisyProducts(*self._squared)

    @property
    def _far(self) -> np.ndarray:
        return np.ones(self.s.size) if self.far is None else self.far

    def mean_square(self, H: np.ndarray) -> float:
        """That of residuals, raised by a deviation of its noise; H is the curvature."""
        noise = float(np.sqrt(np.sum(np.diag(self.V_noise) ** 2)))
        return (max(float(np.trace(self.V)), 0.0) + noise) / max(float(np.trace(H)), 1e-300)

    def squares(self) -> np.ndarray:
        """What is expected of V: between the noisy one and the mean square times the curvature.

        What rests on a few rows is raised by a deviation of what is not known of it. What shrunk
        rows may hide is added.
        """
        H = self.curvature()
        mean = self.mean_square(H)
        roots = np.sqrt(np.diag(H) * self._far)
        likely = (_UNLIKE * mean * np.outer(roots, roots)) ** 2
        weight = likely / (likely + self.V_noise**2 + 1e-300)
        left = (1.0 - 1.0 / self._far) * np.diag(np.sqrt(weight) * self.V_noise)
        found = positive_part(weight * self.V + (1.0 - weight) * mean * H)
        return found + np.diag(left + _BIAS * mean * self.hidden())

    def hidden(self, *, unseen: bool = False) -> np.ndarray:
        """What shrunk rows may hide of scores, squared and over the mean squared residual.

        If the model is not linear, K rows with the weights w leave b = Σ(1 − w)fr out, and in a
        direction b² ≤ Σ(1 − w)f² Σ(1 − w)r², by Cauchy and Schwarz. The first sum is what entries
        lost, where noise does not explain it. All of them are q K R², and Σ(1 − w) ≤ K q/(1 + q),
        as x/(1 + x) is concave. So the product is the square of the largest bias, if these rows
        have residuals of the usual size. With `unseen` an entry has lost a deviation of the noise
        more than is seen, and the others have not.
        """
        if self.whole is None:
            return np.zeros(self.s.size)
        G, G_noise = self._squared
        lost, noise = self.whole[0] - np.diag(G), np.hypot(self.whole[1], np.diag(G_noise))
        seen = np.minimum(np.where(lost > noise, lost, 0.0), self.whole[2])
        own = np.minimum(np.maximum(lost, 0.0) + noise, self.whole[2]) if unseen else seen
        count, square = self.shrunk
        ratio = (float(seen.sum()) + (own - seen)) / (count * square)
        return count * ratio / (1.0 + ratio) * own

    def law(self, into: np.ndarray) -> Law:
        """The law of ``into @ δ``."""
        rng = np.random.default_rng(_SEED)
        centres, spread, total, count = [], [], np.zeros((self.s.size,) * 2), 0
        freely = np.zeros(len(into))
        for H, step, covariance in self._draws(rng):
            centres.append(into @ step)
            spread.append(np.sqrt(np.einsum("ij,ij->i", into @ covariance, into)))
            total, count = total + covariance, count + 1
            if self.private:
                free = np.linalg.inv(self._most_gained(H) + np.diag(self.unit) / self.prior**2)
                freely += np.einsum("ij,ij->i", into @ free, into)
        centres, spread = np.array(centres), np.array(spread)
        before = self._prior**2 * (into**2 @ (1.0 / self.unit))
        part = np.divide(
            np.mean(spread**2, axis=0), before, out=np.ones(len(into)), where=before > 0
        )
        # What the sums alone leave open falls about as one over the rows squared, where noise does.
        most = (self.most / self._prior) ** 2
        if self.private:
            # A step that can be larger than the prior says must be pulled by less.
            free = np.divide(freely / count, before, out=np.ones(len(into)), where=before > 0)
            most = np.minimum(most, 1.0 / np.maximum(_WIDE**2, _WIDE**2 * free))
        more = np.sqrt(part * (1.0 - most) / (np.maximum(1.0 - part, 1e-12) * most))
        more = np.minimum(more, 0.1 * NEVER)
        wider = self._wider(rng, into, total / count)
        few = self._rests_on_few(into)
        more = np.where(few, FEW, more)
        return Law(mixture_quantiles(centres, spread), (part > most) | few, more, wider)

    def mean(self) -> np.ndarray:
        """About the mean of the law of δ."""
        rng = np.random.default_rng(_SEED)
        return np.mean([step for _, step, _ in islice(self._draws(rng), _ROUGH)], axis=0)

    @cached_property
    def _prior(self) -> float:
        """The deviation of a step beforehand, per deviation of a column."""
        if not self.private:
            return self.prior
        return min(self.prior, _WIDE * float(np.sqrt(self.mean_square(self.curvature()))))

    @cached_property
    def _law_of_scores(self) -> np.ndarray:
        return self.squares() + np.diag(self.s_noise**2)

    def _draws(
        self, rng: np.random.Generator
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Some draws of the curvature, and mean and covariance of δ for each."""
        precision = np.linalg.inv(self._law_of_scores)
        for _ in range(_DRAWS if self.noisy else 1):
            H = self.drawn(rng)
            HP = H @ precision
            covariance = np.linalg.inv(HP @ H + np.diag(self.unit) / self._prior**2)
            yield H, covariance @ (HP @ self.s), covariance

    def _most_gained(self, H: np.ndarray) -> np.ndarray:
        """A with δᵀAδ ≤ 1 for all steps, as none gains more than the mean squared residual."""
        rows = max(float(np.trace(H)) / float(np.sum(self.unit)), 1e-300)
        return H / (rows * self.mean_square(self.curvature()))

    def _rests_on_few(self, into: np.ndarray) -> np.ndarray:
        """Which coefficients of squared residuals shrunk rows may move more than can be seen."""
        if self.whole is None or self.base is not None:
            return np.zeros(len(into), dtype=bool)
        H = self.curvature()
        scores = self._law_of_scores
        pull = into @ np.linalg.solve(
            H @ np.linalg.solve(scores, H) + np.diag(self.unit) / self._prior**2,
            H @ np.linalg.inv(scores),
        )
        own = self.hidden(unseen=True) - _BIAS * self.hidden()
        size = self.mean_square(H) * (pull**2 * (into != 0.0)) @ own
        return size > _UNSEEN**2 * np.einsum("ij,jk,ik->i", pull, scores, pull)

    @staticmethod
    def _wider(rng: np.random.Generator, into: np.ndarray, covariance: np.ndarray) -> np.ndarray:
        """Quantiles of the largest of all standardised errors, one for each of `POINTS` above 0."""
        into = into[np.any(into != 0.0, axis=1)]
        deviations = np.sqrt(np.einsum("ij,ij->i", into @ covariance, into))
        z = rng.standard_normal((_TOGETHER, len(covariance)))
        errors = z @ np.linalg.cholesky(covariance).T @ into.T / deviations
        levels = 2.0 * ndtr(POINTS[POINTS > 0.0]) - 1.0
        return np.quantile(np.max(np.abs(errors), axis=1, initial=0.0), levels)


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
