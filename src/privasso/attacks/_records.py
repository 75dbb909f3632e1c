"""One record emptied: the exact likelihood ratio of a record-private fit."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from privasso.attacks._pair import Pair, World
from privasso.privacy import (
    ObjectiveNoise,
    PerturbedLogistic,
    PerturbedObjective,
    full_residuals,
    perturbed_minimiser,
)
from privasso.problem import Huber, Logistic
from privasso.queries import bit_source
from privasso.theory import clipped_log_densities

FloatArray = NDArray[np.float64]


def record_influence(objective: PerturbedObjective, X: FloatArray, y: FloatArray) -> FloatArray:
    """Squared length of each row in the norm of the inverse Gram matrix with the ridge."""
    rows, _ = objective.rows(X, y)
    H = rows.T @ rows + objective.noise.ridge * np.eye(rows.shape[1])
    return np.einsum("ij,ij->i", rows, np.linalg.solve(H, rows.T).T)


def made_up_pairs(
    objective: PerturbedObjective, lam: float, X: FloatArray, y: FloatArray
) -> list[Pair]:
    """Records at the bounds that are not among the data: neighbours that bounds allow.

    The first is along the direction in which the other rows vary least. The second stands in a data
    set that is made for the worst case. For residuals that are clipped all other records are empty,
    so that the sign of its residual follows the noise: nothing tells more. For a logistic
    regression all others are at the same place and of the other class, so that its pull is full.
    """
    bounds, pairs = objective.bounds, []
    one, labels = X.copy(), y.copy()
    rows, _ = objective.rows(X, np.zeros(len(X)))
    weakest = np.linalg.eigh(rows.T @ rows)[1][:, 0][: X.shape[1]]
    one[0], labels[0] = np.where(weakest > 0.0, bounds[:, 1], bounds[:, 0]), objective.y_bounds[1]
    name = "a record made up at the bounds"
    pairs += record_pairs(objective, lam, one, labels, {0: name})
    corner = np.tile(bounds[:, 1], (len(X), 1))
    if isinstance(objective, PerturbedLogistic):
        worst, name = np.zeros(len(X)), "a record made up among others of the other class"
        worst[0] = 1.0
    else:
        worst, name = np.full(len(X), np.nan), "a record made up among empty ones"
        low, high = objective.y_bounds
        worst[0] = 0.5 * low + 0.5 * high if objective.fit_intercept else np.clip(0.0, low, high)
    return pairs + record_pairs(objective, lam, corner, worst, {0: name})


def record_pairs(
    objective: PerturbedObjective,
    lam: float,
    X: FloatArray,
    y: FloatArray,
    records: dict[int, str],
) -> list[Pair]:
    """A pair for each record: all data, and all data with this record emptied."""
    law = _Law(objective, lam)
    everyone = law.rows(X, y)
    world, pairs = World(partial(law.draw, everyone)), []
    for k, name in records.items():
        fewer = tuple(part.copy() for part in everyone)
        for part in fewer:
            part[k] = 0.0
        score = partial(law.ratio, everyone, fewer)
        pairs.append(Pair(name, world, World(partial(law.draw, fewer)), score))
    return pairs


def record_log_densities(
    objective: PerturbedObjective, lam: float, X: FloatArray, y: FloatArray, releases: FloatArray
) -> FloatArray:
    """Log densities of coefficients of scaled columns, one release per row."""
    law = _Law(objective, lam)
    return law.density(law.rows(X, y), releases)


class _Law:
    """The mechanism on scaled rows: what it releases, and the density of that."""

    def __init__(self, objective: PerturbedObjective, lam: float) -> None:
        self.objective = objective
        self.noise: ObjectiveNoise = objective.noise
        self.logistic = isinstance(objective, PerturbedLogistic)
        self.lam = lam if self.logistic else lam / objective.width
        self.penalised = objective.penalised

    def rows(self, X: FloatArray, y: FloatArray) -> tuple[FloatArray, ...]:
        """Rows, labels and weights; all are zero for an empty record."""
        if isinstance(self.objective, PerturbedLogistic):
            rows = self.objective.scaled_rows(X, y)
            return rows, np.where(y > 0.5, 1.0, 0.0), self.objective.weights(rows)
        rows, labels = self.objective.rows(X, y)
        return rows, labels, np.ones(labels.size)

    def draw(
        self, data: tuple[FloatArray, ...], count: int, rng: np.random.Generator | None
    ) -> FloatArray:
        """Coefficients of scaled columns, and the noisy mean of residuals if there is one."""
        bits, (rows, labels, weights) = bit_source(rng), data
        level, found = self.objective.level, []
        for _ in range(count):
            u = perturbed_minimiser(
                rows,
                labels,
                self.lam,
                self.noise,
                bits,
                penalty_weights=self.penalised,
                weights=weights if self.logistic else None,
            )
            if level is not None:
                total = level.total(full_residuals(rows, labels, u))
                u = np.append(u, level.noisy_mean(total, labels.size, bits))
            found.append(u)
        return np.array(found)

    def density(self, data: tuple[FloatArray, ...], releases: FloatArray) -> FloatArray:
        """Log densities; the small noise on the output is left out of them."""
        level, beside = self.objective.level, 0.0
        if level is not None:
            releases, seen = releases[:, :-1], releases[:, -1]
            # Given the coefficients the noisy mean is Gaussian.
            (rows, labels, _), m = data, data[1].size
            means = [
                np.nansum(np.clip(full_residuals(rows, labels, u), -1.0, 1.0)) / m for u in releases
            ]
            beside = -0.5 * ((seen - means) / level.noise(m)) ** 2
        # Empty rows change nothing, but there must be one.
        full = np.any(data[0] != 0.0, axis=1)
        full[0] = True
        rows, labels, weights = (part[full] for part in data)
        return beside + clipped_log_densities(
            rows,
            labels,
            self.lam,
            self.noise.sigma,
            releases.T,
            loss=Logistic() if self.logistic else Huber(self.noise.kappa),
            ridge=self.noise.ridge,
            penalty_weights=self.penalised,
            weights=weights,
        )

    def ratio(
        self,
        one: tuple[FloatArray, ...],
        two: tuple[FloatArray, ...],
        releases: FloatArray,
    ) -> FloatArray:
        """Log ratio of the densities."""
        return self.density(one, releases) - self.density(two, releases)
