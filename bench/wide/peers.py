"""Published private sparse regressions.

All have columns in [−1, 1] and labels in [−1, 1]: in units of public bounds, or, where columns are
public, centred and divided by their largest entry. Their noise is calibrated by the accounting of
this package where that is better for them than the published one: choices by `ChoiceLoss`, Gaussian
noise by μ² = Σμ². Noise is drawn in floating point: this measures accuracy. They have no intercept;
each is given the noisy mean of the labels for a sixteenth of its squared sensitivity, and a column
of ones.

A peer returns R² on the test rows for each setting of a grid, and for the setting that its authors
give, under the name `PUBLISHED`. The best of the grid is chosen by the test rows, which nobody
could do, and so is an upper bound.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench.wide.ours import fitted
from bench.wide.problem import Problem
from privasso.accounting import gaussian_epsilon, sensitivity_for

#: The setting of the authors.
PUBLISHED = ("published",)
Setting = tuple[float | str, ...]
#: R² on the test rows for each setting.
Scores = dict[Setting, float]
#: Fits a problem with every setting.
Peer = Callable[[Problem, np.random.Generator], Scores]
#: What the mean of the labels takes of the squared sensitivity.
_MEAN = 1.0 / 16.0
#: Labels are expected to vary by this part of their range, as ours expects too.
_DEVIATION = 0.13


@dataclass(frozen=True, eq=False)
class Units:
    """A problem in the units of the peers.

    Attributes
    ----------
    X, X_test : ndarray
        Columns in [−1, 1], the last one of ones.
    y : ndarray
        Labels in units of half their range, from their noisy mean.
    mu : float
        Sensitivity that is left.
    moved : float
        By how much a neighbour may move a number that is clipped at one: 1 if a record is emptied,
        2 if a label is replaced.
    """

    problem: Problem
    X: np.ndarray
    X_test: np.ndarray
    y: np.ndarray
    level: float
    mu: float
    moved: float

    @classmethod
    def of(cls, problem: Problem, rng: np.random.Generator) -> Units:
        """Scale the columns, and find the mean of the labels."""
        public = problem.kind == "labels"
        low, high = problem.column_bounds
        origin = np.full(problem.X.shape[1], 0.5 * (low + high), dtype=np.float32)
        unit = np.full(problem.X.shape[1], 0.5 * (high - low), dtype=np.float32)
        if public:
            origin = problem.X.mean(axis=0, dtype=np.float64).astype(np.float32)
            unit = np.abs(problem.X - origin).max(axis=0).astype(np.float32)
            unit = np.where(unit > 0.0, unit, np.float32(1.0))
        X, X_test = (
            np.column_stack([(part.astype(np.float32) - origin) / unit, np.ones(len(part), "f4")])
            for part in (problem.X, problem.X_test)
        )
        half = 0.5 * (problem.y_bounds[1] - problem.y_bounds[0])
        z = (np.clip(problem.y, *problem.y_bounds) - problem.y_bounds[0]) / half - 1.0
        mu, moved = sensitivity_for(problem.epsilon, problem.delta), 2.0 if public else 1.0
        noise = moved / (math.sqrt(_MEAN) * mu) * rng.standard_normal()
        level = min(max(float((z.sum() + noise) / z.size), -1.0), 1.0)
        return cls(problem, X, X_test, z - level, level, math.sqrt(1.0 - _MEAN) * mu, moved)

    def r2(self, coef: np.ndarray) -> float:
        """R² on the test rows."""
        low, high = self.problem.y_bounds
        z = self.level + self.X_test @ coef.astype(np.float32)
        return self.problem.r2(low + 0.5 * (high - low) * (z + 1.0))


def largest(scores: np.ndarray, scale: float, count: int, rng: np.random.Generator) -> np.ndarray:
    """Indices of the largest scores with Gumbel noise."""
    return np.argpartition(scores + rng.gumbel(0.0, scale, scores.size), -count)[-count:]


def frank_wolfe(problem: Problem, rng: np.random.Generator) -> Scores:
    """Private Frank–Wolfe on an ℓ₁ ball (Talwar, Thakurta & Zhang 2015).

    T steps towards the vertex ±C e_i with the most negative noisy gradient. Published: C = 1,
    T = (Γ m ε/L C)^(2/3) with the curvature Γ = 4 and L = 2, the largest residual. The grid clips
    residuals, which needs less noise.
    """
    units, found = Units.of(problem, rng), {}
    grid: dict[Setting, tuple[float, int, float]] = {
        PUBLISHED: (1.0, round((2.0 * problem.y.size * problem.epsilon) ** (2.0 / 3.0)), 2.0)
    }
    for one in itertools.product((0.5, 1.0), (10, 30), (0.125, 0.25, 0.5)):
        grid[one] = one
    X, n = units.X, units.X.shape[1]
    for setting, (radius, steps, b) in grid.items():
        coef, predicted = np.zeros(n), np.zeros(len(X))
        scale = 2.0 * units.moved * b / (2.0 * units.mu / math.sqrt(steps))
        for t in range(steps):
            descent = np.clip(units.y - predicted, -b, b).astype(np.float32) @ X
            # Both signs of a column are candidates.
            vertex = int(largest(np.append(descent, -descent), scale, 1, rng)[0])
            step, j = 2.0 / (t + 2.0), vertex % n
            move = step * radius * (1.0 if vertex < n else -1.0)
            coef *= 1.0 - step
            coef[j] += move
            predicted = (1.0 - step) * predicted + move * X[:, j]
        found[setting] = units.r2(coef)
    return found


def hard_thresholding(problem: Problem, rng: np.random.Generator) -> Scores:
    """Noisy iterative hard thresholding (Cai, Wang & Zhang 2021).

    Each of T steps moves along the gradient of clipped residuals, keeps s columns by noisy choices,
    and releases their values with Gaussian noise; each half has half of the squared sensitivity.
    Published: T = log m, residuals clipped at σ√(2 log m), step ½; the authors take s as known,
    here it is 10, and σ is that of the labels that is expected.
    """
    units, found = Units.of(problem, rng), {}
    X, m = units.X, problem.y.size
    clip = 2.0 * _DEVIATION * math.sqrt(2.0 * math.log(m))
    grid: dict[Setting, tuple[int, int, float, float]] = {
        PUBLISHED: (10, round(math.log(m)), min(clip, 2.0), 0.5)
    }
    for one in itertools.product((10, 20), (3, 8), (0.125, 0.25, 0.5), (0.75, 3.0)):
        grid[one] = one
    for setting, (size, steps, b, length) in grid.items():
        coef, kept = np.zeros(X.shape[1]), np.zeros(0, dtype=np.intp)
        each, rate = units.mu / math.sqrt(2.0 * steps), length / m
        for _ in range(steps):
            residual = np.clip(units.y - X[:, kept] @ coef[kept], -b, b).astype(np.float32)
            moved = coef + rate * (residual @ X)
            scale = 2.0 * units.moved * rate * b / (2.0 * each / math.sqrt(size))
            kept = largest(np.abs(moved), scale, size, rng)
            coef = np.zeros(X.shape[1])
            # The entries of a row are within ±1; those of public rows are known.
            row = math.sqrt(size)
            if problem.kind == "labels":
                row = float(np.sqrt(np.max(np.sum(X[:, kept] ** 2, axis=1))))
            noise = units.moved * rate * b * row / each
            coef[kept] = moved[kept] + noise * rng.standard_normal(size)
        found[setting] = units.r2(coef)
    return found


def two_stages(problem: Problem, rng: np.random.Generator) -> Scores:
    """Votes of blocks of rows for columns, then a private fit (Kifer, Smith & Thakurta 2012).

    √M blocks each vote for the s columns of largest association, and the columns with the most
    noisy votes are fitted by our own perturbed objective with the other half of the budget.
    Published: s is known, here 10.
    """
    units, found = Units.of(problem, rng), {}
    mu = math.sqrt(0.5) * sensitivity_for(problem.epsilon, problem.delta)
    X = units.X[:, :-1]
    blocks = np.array_split(rng.permutation(len(X)), round(len(X) ** 0.5))
    for setting, size in ((PUBLISHED, 10), ((20.0,), 20), ((5.0,), 5)):
        votes = np.zeros(X.shape[1])
        for rows in blocks:
            scores = np.abs(units.y[rows].astype(np.float32) @ X[rows])
            votes[np.argpartition(scores, -size)[-size:]] += 1.0
        # A record changes the votes of one block: each count by one, up or down.
        chosen = largest(votes, 2.0 / (2.0 * mu / math.sqrt(size)), size, rng)
        found[setting] = _of_half(problem, chosen, rng)
    return found


def gaussian_marginals(problem: Problem, rng: np.random.Generator) -> Scores:
    """All associations with Gaussian noise; the largest are fitted by our own perturbed objective.

    A record changes N associations by b each, so that the noise grows with √N. Without a published
    rule: 10 columns and labels as they are.
    """
    units, found = Units.of(problem, rng), {}
    mu = math.sqrt(0.5) * units.mu
    X = units.X[:, :-1]
    grid: list[tuple[Setting, int, float]] = [(PUBLISHED, 10, 1.0)]
    for size, clip in itertools.product((10, 20), (0.125, 0.25, 0.5)):
        grid.append(((size, clip), size, clip))
    row = math.sqrt(X.shape[1])
    if problem.kind == "labels":
        row = float(np.sqrt(np.max(np.einsum("ij,ij->i", X, X))))
    for setting, size, clip in grid:
        labels = np.clip(units.y, -clip, clip).astype(np.float32)
        noise = units.moved * clip * row / mu
        scores = np.abs(labels @ X + noise * rng.standard_normal(X.shape[1]))
        found[setting] = _of_half(problem, np.argpartition(scores, -size)[-size:], rng)
    return found


def _of_half(problem: Problem, chosen: np.ndarray, rng: np.random.Generator) -> float:
    """R² of our perturbed fit of some columns with half of the squared sensitivity."""
    mu = math.sqrt(0.5) * sensitivity_for(problem.epsilon, problem.delta)
    left = gaussian_epsilon(problem.delta, mu)
    return fitted(problem, np.sort(chosen), left, None, rng)


def noisy_labels(problem: Problem, rng: np.random.Generator) -> Scores:
    """Gaussian noise on every label, then a LASSO with cross-validation; for private labels."""
    low, high = problem.y_bounds
    noise = (high - low) / sensitivity_for(problem.epsilon, problem.delta)
    y = np.clip(problem.y, low, high) + noise * rng.standard_normal(problem.y.size)
    return {PUBLISHED: cross_validated(problem, y)}


def no_privacy(problem: Problem, rng: np.random.Generator) -> Scores:
    """A LASSO with cross-validation."""
    return {PUBLISHED: cross_validated(problem, problem.y)}


def cross_validated(problem: Problem, y: np.ndarray) -> float:
    """R² of a LASSO of standardised columns, λ by cross-validation in three parts."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LassoCV
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(problem.X)
    X = np.asfortranarray(scaler.transform(problem.X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LassoCV(cv=3, alphas=15, eps=2e-2, tol=3e-3, max_iter=60).fit(X, y)
    return problem.r2(model.predict(scaler.transform(problem.X_test)))


RECORDS: dict[str, Peer] = {
    "private Frank–Wolfe": frank_wolfe,
    "noisy hard thresholding": hard_thresholding,
    "votes of blocks, then fit": two_stages,
    "Gaussian marginals, then fit": gaussian_marginals,
}
LABELS: dict[str, Peer] = {
    "private Frank–Wolfe": frank_wolfe,
    "noisy hard thresholding": hard_thresholding,
    "Gaussian marginals, then fit": gaussian_marginals,
    "noise on labels, LASSO": noisy_labels,
}
