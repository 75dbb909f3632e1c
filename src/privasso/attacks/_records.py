"""One record emptied: the exact likelihood ratio of a record-private fit."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from privasso.attacks._pair import Pair, World
from privasso.privacy import (
    ObjectiveNoise,
    PerturbedObjective,
    RecordDP,
    bit_source,
    perturbed_minimiser,
)
from privasso.problem import Huber
from privasso.theory import clipped_log_densities

FloatArray = NDArray[np.float64]


def record_influence(objective: PerturbedObjective, X: FloatArray, y: FloatArray) -> FloatArray:
    """Squared length of each row in the norm of the inverse Gram matrix with the ridge."""
    rows, _ = objective.rows(X, y)
    H = rows.T @ rows + objective.noise.ridge * np.eye(rows.shape[1])
    return np.einsum("ij,ij->i", rows, np.linalg.solve(H, rows.T).T)


def canary(privacy: RecordDP, objective: PerturbedObjective, X: FloatArray) -> FloatArray:
    """A record at the bounds, along the direction in which the other rows vary least."""
    rows, _ = objective.rows(X, np.zeros(len(X)))
    n = X.shape[1]
    weakest = np.linalg.eigh(rows.T @ rows)[1][:, 0][:n]
    bounds = privacy.column_bounds(n)
    return np.where(weakest > 0.0, bounds[:, 1], bounds[:, 0])


def record_pairs(
    objective: PerturbedObjective,
    lam: float,
    X: FloatArray,
    y: FloatArray,
    records: dict[int, str],
) -> list[Pair]:
    """A pair for each record: all data, and all data with this record emptied."""
    rows, labels = objective.rows(X, y)
    law = _Law(objective, lam)
    everyone = World(partial(law.draw, rows, labels))
    pairs = []
    for k, name in records.items():
        fewer, others = rows.copy(), labels.copy()
        fewer[k], others[k] = 0.0, 0.0
        score = partial(law.ratio, (rows, labels), (fewer, others))
        pairs.append(Pair(name, everyone, World(partial(law.draw, fewer, others)), score))
    return pairs


class _Law:
    """The mechanism on scaled rows: what it releases, and the density of that."""

    def __init__(self, objective: PerturbedObjective, lam: float) -> None:
        self.noise: ObjectiveNoise = objective.noise
        self.lam = lam / objective.width
        self.penalised = objective.penalised

    def draw(
        self, rows: FloatArray, labels: FloatArray, count: int, rng: np.random.Generator | None
    ) -> FloatArray:
        """Coefficients of scaled columns, as the mechanism publishes them."""
        bits = bit_source(rng)
        return np.array(
            [
                perturbed_minimiser(
                    rows, labels, self.lam, self.noise, bits, penalty_weights=self.penalised
                )
                for _ in range(count)
            ]
        )

    def ratio(
        self,
        one: tuple[FloatArray, FloatArray],
        two: tuple[FloatArray, FloatArray],
        releases: FloatArray,
    ) -> FloatArray:
        """Log ratio of the densities; the small noise on the output is left out of them."""
        first, second = (
            clipped_log_densities(
                *data,
                self.lam,
                self.noise.sigma,
                releases.T,
                loss=Huber(self.noise.kappa),
                ridge=self.noise.ridge,
                penalty_weights=self.penalised,
            )
            for data in (one, two)
        )
        return first - second
