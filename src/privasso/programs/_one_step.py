"""Coefficients without penalty and ridge, and what may be said about them, from noisy sums.

At β̂, with the curvature H, the scores s and the squared scores V of all rows, β̂ + H⁻¹s is the
minimiser of the loss, exactly for squared residuals and to first order for others. Released are
Ĥ = H + Z, ŝ = s + ζ and V with noise of its own, all of known deviations. Let H̄ be what is expected
of H after Ĥ. Then ŝ has, for a step δ to the population's coefficients, the mean H̄δ and the
covariance V + σ²I + Q, with Q that of (H − H̄)δ: noise in the curvature counts in proportion to the
step. For δδᵀ in Q stands what follows from the law of δ, raised by what that may be off; both are
found in rounds. The law is normal, with a wide prior, so that a direction that noise hides has a
wide law and not a wild one. With a mean squared residual m at β̂ no step gains more than m:
δᵀHδ ≤ mM. So where the curvature is private the prior of a step, per deviation of a column, is no
wider than 2√m, and there is no interval that would hang on it for a step that may be larger.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from privasso.programs._correlations import NoisyProducts
from privasso.programs._laws import FEW, NEVER, Law, normal_law, variances_along

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
#: Squares of a step count as so many deviations larger than they seem, for noise in the curvature.
_RAISED = 1.0
#: No interval where squares of a column stand out of their noise by fewer deviations than this.
CLEAR = 2.5
#: Rounds for the covariance of a step at most, and the change of its squares that is the last one.
_ROUNDS, _STILL = 100, 1e-3


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
    square : float or None
        Mean squared residual, raised by a deviation of its noise, where scores are clipped.
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
    square: float | None = None

    def curvature(self) -> np.ndarray:
        """What is expected of the curvature."""
        return self._curvature[0]

    @cached_property
    def _curvature(self) -> tuple[np.ndarray, np.ndarray]:
        """What is expected of the curvature, and the variances of what is left open of it."""
        G, variances = self._products
        if self.base is None:
            return G, variances
        share, unlike = self._usual(G)
        weight = unlike**2 / (unlike**2 + self.H_noise**2)
        usual = share * G
        variances = (share * (1.0 - weight)) ** 2 * variances + weight * self.H_noise**2
        return positive_part(usual + weight * (self.H - usual)), variances

    def _usual(self, G: np.ndarray) -> tuple[float, np.ndarray]:
        """The share of G that has the trace of H, and by how much H may be unlike it."""
        size = max(float(np.trace(G)), 1e-300)
        least = float(np.linalg.norm(np.diag(self.H_noise)))
        share = min(max(float(np.trace(self.H)), least, 1e-9 * size) / size, 1.0)
        roots = np.sqrt(np.diag(G))
        unlike = _UNEVEN * share * np.outer(roots, roots) / np.sqrt(len(G)) + 1e-300
        np.fill_diagonal(unlike, np.diag(unlike) * np.minimum(self._far, np.sqrt(len(G))))
        return share, unlike

    @cached_property
    def private(self) -> bool:
        """Whether there is noise in the curvature of squared residuals."""
        return bool(np.any(self._squared[1]))

    @cached_property
    def _products(self) -> tuple[np.ndarray, np.ndarray]:
        """The same of squared residuals."""
        if not self.private:
            return self._squared[0], np.zeros(self.H.shape)
        products = NoisyProducts(*self._squared)
        return positive_part(products.mean()), products.variances()

    @property
    def _squared(self) -> tuple[np.ndarray, np.ndarray]:
        """The curvature of squared residuals, if it is known, and the deviations of its noise."""
        return (self.H, self.H_noise) if self.base is None else self.base

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
        step, covariance, _ = self._step
        before = self._prior**2 * (into**2 @ (1.0 / self.unit))
        part = _part_left(into, covariance, before)
        # What the sums alone leave open falls about as one over the rows squared, where noise does.
        most = (self.most / self._prior) ** 2
        if self.private:
            # A step that can be larger than the prior says must be pulled by less.
            free = np.linalg.inv(self._most_gained() + np.diag(self.unit) / self.prior**2)
            free = _part_left(into, free, before)
            most = np.minimum(most, 1.0 / np.maximum(_WIDE**2, _WIDE**2 * free))
        more = np.sqrt(part * (1.0 - most) / (np.maximum(1.0 - part, 1e-12) * most))
        hidden, few = self._hidden_columns(into), self._rests_on_few(into)
        more = np.where(few, FEW, np.minimum(np.maximum(more, hidden), 0.1 * NEVER))
        unknown = (part > most) | (hidden > 1.0) | few
        return normal_law(into, step, covariance, unknown, more)

    def likely(self) -> np.ndarray:
        """The step, less what noise alone would make of it, by the rule of James and Stein."""
        step, covariance, _ = self._step
        H = self.curvature()
        gain = max(float(step @ H @ step), 1e-300)
        return step * max(1.0 - float(np.sum(H * covariance)) / gain, 0.0)

    @cached_property
    def _explained(self) -> float:
        """The mean squared residual, which no step gains more than."""
        if self.square is not None:
            return self.square
        return self.mean_square(self.curvature()) if self.private else np.inf

    @cached_property
    def _prior(self) -> float:
        """The deviation of a step beforehand, per deviation of a column."""
        if not self.private:
            return self.prior
        return min(self.prior, _WIDE * float(np.sqrt(self.mean_square(self.curvature()))))

    @cached_property
    def _law_of_scores(self) -> np.ndarray:
        return self.squares() + np.diag(self.s_noise**2)

    @cached_property
    def _step(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean and covariance of δ, and the covariance of scores that it rests on."""
        squares = self._possible(np.diag(self._prior**2 / self.unit))
        found = self._after(squares)
        for _ in range(_ROUNDS):
            last, squares = squares, self._possible(self._raised(*found[:2]))
            if np.all(np.abs(np.diag(squares - last)) <= _STILL * np.diag(squares)):
                break
            found = self._after(squares)
        return found

    def _after(self, squares: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same for a step whose δδᵀ is this."""
        H, variances = self._curvature
        left = variances * squares
        np.fill_diagonal(left, variances @ np.diag(squares))
        scores = self._law_of_scores + left
        HP = H @ np.linalg.inv(scores)
        covariance = np.linalg.inv(HP @ H + np.diag(self.unit) / self._prior**2)
        return covariance @ (HP @ self.s), covariance, scores

    def _raised(self, step: np.ndarray, covariance: np.ndarray) -> np.ndarray:
        """The mean of δδᵀ, as many times as large as what ‖δ‖² may be is larger than its mean."""
        roots = np.sqrt(self.unit)
        step, law = roots * step, np.outer(roots, roots) * covariance
        mean = float(np.trace(law) + step @ step)
        deviation = np.sqrt(2.0 * np.sum(law**2) + 4.0 * step @ law @ step)
        squares = (covariance + np.outer(step, step) / np.outer(roots, roots)) / mean
        return (mean + _RAISED * deviation) * squares

    def _possible(self, squares: np.ndarray) -> np.ndarray:
        """δδᵀ, made smaller if δᵀHδ is certainly more than all that a step can gain."""
        H, variances = self._curvature
        diagonal = np.diag(squares)
        doubt = np.sqrt(2.0 * diagonal @ variances @ diagonal)
        gain = float(np.sum(H * squares) - _RAISED * doubt)
        most = self._explained * self._rows
        return squares * (most / gain) if gain > most else squares

    @cached_property
    def _rows(self) -> float:
        """About how many rows the curvature is of."""
        return max(float(np.trace(self.curvature())) / float(np.sum(self.unit)), 1e-300)

    def _most_gained(self) -> np.ndarray:
        """A with δᵀAδ ≤ 1 for all steps, as none gains more than the mean squared residual."""
        return self.curvature() / (self._rows * self._explained)

    def _hidden_columns(self, into: np.ndarray) -> np.ndarray:
        """How many times as many rows show the squares of a coefficient's own column, if private.

        That of the largest entry is its own. Noise that hides squares hides how columns are alike.
        """
        if not self.private:
            return np.zeros(len(into))
        size = np.maximum(np.diag(self._products[0]), 1e-300)
        return (CLEAR * np.diag(self._squared[1]) / size)[np.argmax(np.abs(into), axis=1)]

    def _rests_on_few(self, into: np.ndarray) -> np.ndarray:
        """Which coefficients of squared residuals shrunk rows may move more than can be seen."""
        if self.whole is None or self.base is not None:
            return np.zeros(len(into), dtype=bool)
        H = self.curvature()
        _, covariance, scores = self._step
        pull = into @ covariance @ H @ np.linalg.inv(scores)
        own = self.hidden(unseen=True) - _BIAS * self.hidden()
        size = self.mean_square(H) * (pull**2 * (into != 0.0)) @ own
        return size > _UNSEEN**2 * variances_along(pull, scores)


def _part_left(into: np.ndarray, covariance: np.ndarray, before: np.ndarray) -> np.ndarray:
    """What is left of the variance of each of ``into @ δ``, as a part of that before."""
    left = variances_along(into, covariance)
    return np.divide(left, before, out=np.ones(len(into)), where=before > 0)


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
