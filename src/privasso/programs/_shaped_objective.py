"""Perturbed fits whose noise and ridge follow the correlations of the columns."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtr

from privasso._tuned import SHAPE_FLOOR
from privasso.programs._program import Program, RecordFit, sandwich_errors
from privasso.programs._record_rows import PerturbedObjective, perturbed_numbers
from privasso.programs._record_statistics import (
    RecordStatistics,
    StatisticsMechanism,
    positive_part,
)
from privasso.programs._worst_tables import Table, at_bounds
from privasso.queries import Ask, ObjectiveNoise, PerturbedMinimiser, shape_factor


@dataclass(frozen=True, eq=False)
class ShapedObjective(Program):
    """A perturbed fit with noise of the covariance σ²S and a ridge ΛS.

    S is the matrix of second moments of the scaled rows: of public rows, or of the rows themselves
    with noise. With strongly correlated columns the noise then moves predictions less.

    Attributes
    ----------
    table : PerturbedObjective
        Scaling of columns and labels; its own noise is not used.
    noise : ObjectiveNoise
        Of the fit, for rows with fᵀS⁻¹f ≤ R².
    public : ndarray of shape (K, N) or None
        Public rows of the same columns.
    mu : float or None
        Sensitivity of the noisy matrix, where there are no public rows.
    """

    table: PerturbedObjective
    noise: ObjectiveNoise
    public: np.ndarray | None = field(repr=False)
    mu: float | None

    @property
    def lam(self) -> float:
        """The λ that is used unless another one is given, in units of the labels."""
        return self.table.lam

    @property
    def kappa(self) -> float:
        """Where residuals are clipped."""
        return self.noise.kappa

    def __call__(self, ask: Ask, lam: float) -> RecordFit:
        """Ask for the matrix and the fit; return coefficients, with standard errors if it can be.

        Standard errors need the noisy matrix: H⁻¹(σ²S + E·A)H⁻¹ with H = qA + ΛS, A the noisy sums
        of products, q the part of the residuals that is not clipped and E the mean square of the
        clipped residuals, both for normal residuals of the variance that the noisy sums tell.
        Where noise hides how much a direction varies it counts as not varying, which makes them too
        large rather than too small.
        """
        statistics = None
        if self.mu is None:
            table = self.table.estimated(ask)
            assert self.public is not None
            S = _public_moments(table, self.public)
            L = shape_factor(S, SHAPE_FLOOR * float(np.trace(S)) / len(S))
        else:
            statistics = StatisticsMechanism(self.table, self.mu)(ask)
            table, moments = statistics.table, statistics.moments
            S = moments.matrix[:-1, :-1] / moments.n_rows
            mean = max(float(np.trace(S)) / len(S), 0.0)
            floor = max(SHAPE_FLOOR * mean, moments.spread / moments.n_rows)
            L = shape_factor(S, floor)
        lam = lam / table.width
        u = ask(PerturbedMinimiser(table.view, self.noise, lam, table.penalised, factor=L))
        coef, intercept = table.in_units(table.levelled(ask, u))
        if statistics is None:
            return RecordFit(coef, intercept)
        errors = self._errors(u, L, statistics)
        return RecordFit(coef, intercept, table.width * table.per_unit(errors))

    def facts(self, n_rows: int) -> tuple[str, dict[str, float], str]:
        """Those of objective perturbation."""
        numbers = perturbed_numbers(self.noise, self.table.level, n_rows)
        unit = f"{self.table.column_unit}, and rows in the norm of the shape"
        return "objective", numbers, unit

    def worst(self, X: np.ndarray, y: np.ndarray) -> list[Table]:
        """The data with a record at all upper bounds."""
        return [at_bounds(X, y, self.table.bounds[:, 1], self.table.y_bounds)]

    def _errors(self, u: np.ndarray, L: np.ndarray, statistics: RecordStatistics) -> np.ndarray:
        noise, variance = self.noise, statistics.residual_variance(u)
        a = noise.kappa / math.sqrt(variance)
        q = 2.0 * float(ndtr(a)) - 1.0
        density = math.exp(-0.5 * a * a) / math.sqrt(2.0 * math.pi)
        clipped = variance * (q - 2.0 * a * density) + noise.kappa**2 * (1.0 - q)
        S, A = L @ L.T, positive_part(statistics.parts()[0])
        return sandwich_errors(u, q * A + noise.ridge * S, noise.sigma**2 * S + clipped * A)


def _public_moments(table: PerturbedObjective, public: np.ndarray) -> np.ndarray:
    """Mean second moments of public rows, with a little of a multiple of the identity if few."""
    rows, _ = table.rows(public, np.zeros(len(public)))
    S = rows.T @ rows / len(rows)
    d = len(S)
    weight = d / (d + len(rows))
    return (1.0 - weight) * S + weight * float(np.trace(S)) / d * np.eye(d)
