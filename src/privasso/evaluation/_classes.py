"""How well a logistic regression predicts which of two classes a record is of."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.special import expit, ndtri

from privasso.evaluation._ratios import Estimate, Estimates, normal, ratio_interval
from privasso.evaluation._sums import DEPTH, ODDS, ScoreCounts, Scored, joined, middles_of_cells
from privasso.queries import Ask, Neighbours, NoisySum

#: Draws of the noise, which are public.
_DRAWS = 200
#: Deviations of the noise beyond which counts, and the curvature of an equation, are believed.
_SURELY = 3.0
_UNKNOWN = Estimate(math.nan, -math.inf, math.inf)


@dataclass(frozen=True, eq=False)
class ClassEvaluation:
    """What is asked about log odds: one set of counts, from which every metric follows.

    Attributes
    ----------
    scored, columns, metrics, mu, neighbours
        As in `LinearEvaluation`.
    """

    scored: Scored
    columns: np.ndarray | None = field(repr=False)
    metrics: tuple[str, ...]
    mu: float
    neighbours: Neighbours

    def __call__(self, ask: Ask) -> Estimates:
        """Ask, and return what makes estimates of the answers."""
        counts = ScoreCounts(self.scored, self.columns)
        query = NoisySum(counts, self.mu, self.neighbours)
        found = ask(query)
        return partial(self._estimates, found, query)

    def _estimates(self, found: np.ndarray, query: NoisySum, level: float) -> dict[str, Estimate]:
        z = -float(ndtri(0.5 * (1.0 - level)))
        noise = np.ldexp(query.deviations, -query.summand.unit)
        drawn = normal(_DRAWS, noise.size)
        seen = np.where(np.abs(found) > _SURELY * noise, found, 0.0)
        table = _Table(*_cells(found), *_cells(noise * drawn), *_cells(seen))
        return {one: table.metric(one, z) for one in self.metrics}


def _cells(found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Counts of the negative and of the positive class."""
    total, signed = (joined(one) for one in np.split(found, 2, axis=-1))
    return 0.5 * (total - signed), 0.5 * (total + signed)


@dataclass(frozen=True, eq=False)
class _Table:
    """Noisy counts of both classes, draws of the noise, and counts without what may be noise."""

    no: np.ndarray
    yes: np.ndarray
    no_noise: np.ndarray
    yes_noise: np.ndarray
    no_seen: np.ndarray
    yes_seen: np.ndarray

    def metric(self, name: str, z: float) -> Estimate:
        """An estimate with its interval."""
        odds, cell = middles_of_cells(), 2.0 * ODDS / (1 << DEPTH)
        if name == "accuracy":
            return self._mean((odds <= 0.0) * 1.0, (odds > 0.0) * 1.0, z)
        if name == "log-loss":  # no score moved by more than half a cell, nor the loss by more
            loss = self._mean(np.logaddexp(0.0, odds), np.logaddexp(0.0, -odds), z)
            return Estimate(loss.value, loss.low - 0.5 * cell, loss.high + 0.5 * cell)
        if name == "auc":
            return self._area(z)
        return self._calibration(np.ones((1, odds.size)) if "intercept" in name else None, odds, z)

    def _mean(self, no: np.ndarray, yes: np.ndarray, z: float) -> Estimate:
        """The mean of numbers that belong to the cells of both classes."""

        def sums(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return a @ no + b @ yes, (a + b).sum(axis=-1)

        return self._ratio(sums, lambda ratio: (no - ratio, yes - ratio), z)

    def _ratio(
        self,
        sums: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]],
        shown: Callable[[float], tuple[np.ndarray, np.ndarray]],
        z: float,
    ) -> Estimate:
        """A ratio; ``shown(ratio)`` is what one record of a cell adds to top − ratio·bottom."""
        top, bottom = (float(one) for one in sums(self.no, self.yes))
        covariance = np.cov(sums(self.no + self.no_noise, self.yes + self.yes_noise))
        no, yes = shown(top / bottom if bottom > 0.0 else 0.0)
        sampling = max(float(self.no @ no**2 + self.yes @ yes**2), 0.0)
        return ratio_interval(top, bottom, covariance, sampling, z)

    def _area(self, z: float) -> Estimate:
        """The area under the ROC curve; pairs of one cell count as half.

        The interval is wider by half of their share, as far as noise lets one see it.
        """

        def below(a: np.ndarray) -> np.ndarray:
            return np.cumsum(a, axis=-1) - 0.5 * a

        def sums(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return np.sum(b * below(a), axis=-1), a.sum(axis=-1) * b.sum(axis=-1)

        def shown(ratio: float) -> tuple[np.ndarray, np.ndarray]:
            yes, no = self.yes.sum(), self.no.sum()
            return yes - below(self.yes) - ratio * yes, below(self.no) - ratio * no

        found = self._ratio(sums, shown, z)
        pairs = float(self.no.sum() * self.yes.sum())
        if not pairs > 0.0:
            return found
        tied = float(np.maximum(self.no_seen, 0.0) @ np.maximum(self.yes_seen, 0.0)) / pairs
        half = 0.5 * min(tied, 1.0)
        return Estimate(found.value, found.low - half, found.high + half)

    def _calibration(self, ones: np.ndarray | None, odds: np.ndarray, z: float) -> Estimate:
        """Intercept, or slope beside an intercept, of a logistic regression on the log odds.

        With `ones` the slope is 1. The equations are linear in the counts.
        """
        rows = np.stack([np.ones(odds.size), odds]) if ones is None else ones
        theta = np.array([0.0, 1.0])[: len(rows)]
        offset = 0.0 if ones is None else odds
        for _ in range(50):
            p = expit(theta @ rows + offset)
            score = rows @ (self.yes * (1.0 - p) - self.no * p)
            bend = p * (1.0 - p)
            H = (rows * (bend * (self.yes + self.no))) @ rows.T
            if not np.linalg.eigvalsh(H)[0] > 0.0:
                return _UNKNOWN
            step = np.linalg.solve(H, score)
            theta = theta + step / max(1.0, float(np.abs(step).max()))
            if np.abs(theta).max() > 50.0:
                return _UNKNOWN
            if np.abs(step).max() < 1e-9:
                break
        else:
            return _UNKNOWN
        products = np.stack([one * other for one in rows for other in rows], axis=1)
        doubt = ((self.yes_noise + self.no_noise) * bend) @ products
        if not np.linalg.eigvalsh(H)[0] > _SURELY * math.sqrt(np.mean(np.sum(doubt**2, axis=1))):
            return _UNKNOWN
        noise = np.cov(rows @ (self.yes_noise * (1.0 - p) - self.no_noise * p).T).reshape(H.shape)
        square = self.yes * (1.0 - p) ** 2 + self.no * p**2
        middle = noise + (rows * square) @ rows.T
        variance = float(np.linalg.solve(H, np.linalg.solve(H, middle).T)[-1, -1])
        if not variance > 0.0:
            return _UNKNOWN
        reach = z * math.sqrt(variance)
        return Estimate(float(theta[-1]), float(theta[-1]) - reach, float(theta[-1]) + reach)
