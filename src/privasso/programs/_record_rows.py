"""Records as rows of bounded length, from bounds and scales of the columns that are public."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from privasso._types import Matrix
from privasso._validation import real_array
from privasso.blocks import RowBlocks
from privasso.programs._clipped_sums import Level
from privasso.programs._estimate import Estimate
from privasso.programs._program import Program, RecordFit, Table, at_bounds
from privasso.programs._records import (
    RecordMap,
    empty_records,
    full_residuals,
    half_ranges,
    measured,
    shorter,
    within,
)
from privasso.queries import Ask, ObjectiveNoise, PerturbedMinimiser


@dataclass(frozen=True, eq=False)
class PerturbedObjective(Program):
    """How a table becomes rows of bounded length, and with how much noise they are fitted.

    With an intercept covariates become (f − origin)/unit (see `measured`), the intercept is one
    more column of ones, and labels become (y − middle)/range. Without one, covariates are
    divided by their largest absolute value and labels by their range. Rows longer than the radius
    are shrunk together with their labels.

    Attributes
    ----------
    noise : ObjectiveNoise
        In units of the scaled rows and labels.
    bounds : ndarray of shape (N, 2)
        Bounds of the columns.
    y_bounds : (float, float)
        Bounds of the labels.
    fit_intercept : bool
        Whether there is a column of ones, which has no penalty.
    lam : float
        The λ that is used unless another one is given, in units of the labels.
    scaling : (ndarray, ndarray) or None
        Origin and scale of each column, where they are not those of the bounds.
    estimate : Estimate or None
        What is found in the data about the columns first, with noise of its own.
    level : Level or None
        How the intercept is corrected after the fit, in units of the range of the labels.
    columns : ndarray of int or None
        Which columns of the records are fitted, if not all.
    indicators : ndarray of bool, of shape (N,), or None
        Which columns are said to be of zeros and ones, if any.
    """

    noise: ObjectiveNoise
    bounds: np.ndarray = field(repr=False)
    y_bounds: tuple[float, float]
    fit_intercept: bool
    lam: float
    scaling: tuple[np.ndarray, np.ndarray] | None = field(default=None, repr=False)
    estimate: Estimate | None = None
    level: Level | None = None
    columns: np.ndarray | None = field(default=None, repr=False)
    indicators: np.ndarray | None = field(default=None, repr=False)

    @property
    def kappa(self) -> float:
        """Where residuals are clipped, as a part of the range of the labels."""
        return self.noise.kappa

    @property
    def width(self) -> float:
        """Range of the labels."""
        return self.y_bounds[1] - self.y_bounds[0]

    def __call__(self, ask: Ask, lam: float) -> RecordFit:
        """Ask for the minimiser, correct its intercept if that is wanted, and return both."""
        table = self.estimated(ask)
        u = table.levelled(ask, ask(table.minimiser(lam)))
        return RecordFit(*table.in_units(u))

    def minimiser(self, lam: float) -> PerturbedMinimiser:
        """The question for coefficients of scaled columns."""
        lam = lam / self.width
        return PerturbedMinimiser(self.view, self.noise, lam, self.penalised, self.columns)

    def levelled(self, ask: Ask, u: np.ndarray) -> np.ndarray:
        """Coefficients that were released, with a corrected intercept if there is to be one."""
        if self.level is not None:
            residuals = partial(full_residuals, u=u)
            off = self.level.correction(ask, residuals, columns=self.columns, view=self.view)
            u = np.append(u[:-1], u[-1] + off)
        return u

    @property
    def penalised(self) -> np.ndarray:
        """One for each column, and zero for that of ones."""
        return np.append(np.ones(len(self.bounds)), np.zeros(int(self.fit_intercept)))

    def in_units(self, u: np.ndarray) -> tuple[np.ndarray, float]:
        """Coefficients and intercept in the units of the data, from those of the scaled rows."""
        n = self.bounds.shape[0]
        origin, _ = self._scaling()
        coef = self.width * self.per_unit(u)
        level = self._middle + self.width * u[n] if self.fit_intercept else 0.0
        return coef, float(level - origin @ coef) if self.fit_intercept else 0.0

    def per_unit(self, u: np.ndarray) -> np.ndarray:
        """The entries of the columns divided by the scales of these, zero where there is none."""
        n, (_, half) = self.bounds.shape[0], self._scaling()
        return np.where(half > 0.0, u[:n] / np.where(half > 0.0, half, 1.0), 0.0)

    @property
    def _middle(self) -> float:
        """What is subtracted from labels; without an intercept zero, so that Xβ can reach them."""
        return 0.5 * self.y_bounds[0] + 0.5 * self.y_bounds[1] if self.fit_intercept else 0.0

    def estimated(self, ask: Ask) -> PerturbedObjective:
        """Ask for what the estimate needs, and return the fit with the scaling that was found.

        The result is computed from the noisy answers alone, and the guarantee covers it.
        """
        if self.estimate is None:
            return self
        bounds = self.estimate.ranges(ask, self.bounds)
        scaling = self.estimate.scaling(ask, bounds, centred=self.fit_intercept)
        return replace(self, bounds=bounds, scaling=scaling, estimate=None)

    def rows(self, X: Matrix, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows no longer than the radius, and their labels; each depends on its own record only.

        An empty record contributes nothing; see `_cells` for this and for missing covariates.
        """
        X = real_array("X", X, shape=(None, len(self.bounds)), dtype=None, finite=False)
        return RowBlocks.of_arrays(X, y).gathered(self.view)

    def facts(self, n_rows: int) -> tuple[str, dict[str, float], str]:
        """Those of objective perturbation."""
        logistic = self.noise.loss.slope == "logistic"
        numbers = perturbed_numbers(self.noise, self.level, n_rows)
        return "logistic" if logistic else "objective", numbers, self.column_unit

    @property
    def column_unit(self) -> str:
        """What columns are divided by."""
        if self.scaling is not None:
            return "its standard deviation"
        if self.estimate is None:
            return "half the range of its bounds"
        found = "half the range that is found"
        return "its scale, which is found with noise" if self.estimate.scales else found

    def worst(self, X: np.ndarray, y: np.ndarray) -> list[Table]:
        """Tables whose first record shows as much as it can: with the data, and the worst case.

        The first is along the direction in which the other rows vary least.
        """
        rows, _ = self.rows(X, np.zeros(len(X)))
        weakest = np.linalg.eigh(rows.T @ rows)[1][:, 0][: X.shape[1]]
        corner = np.where(weakest > 0.0, self.bounds[:, 1], self.bounds[:, 0])
        return [at_bounds(X, y, corner, self.y_bounds), self._worst_case(len(X))]

    def _worst_case(self, n_rows: int) -> Table:
        """All others are empty, so that the sign of a residual follows the noise: that tells most.

        It is for residuals that are clipped. The empty ones are at the other bounds, so that the
        mirror image of the record is there, too.
        """
        X, labels = np.tile(self.bounds[:, 0], (n_rows, 1)), np.full(n_rows, np.nan)
        X[0] = self.bounds[:, 1]
        labels[0] = self._middle if self.fit_intercept else np.clip(0.0, *self.y_bounds)
        return X, labels, "a record made up among empty ones"

    @cached_property
    def view(self) -> RecordMap:
        """How a record becomes a row and a label."""
        return RecordMap(
            self.bounds,
            *self._scaling(),
            self.y_bounds,
            self._middle,
            self.width,
            bool(self.fit_intercept),
            self.noise.radius,
            self.noise.neighbours.empties,
        )

    @property
    def origin(self) -> np.ndarray:
        """What is subtracted from each column."""
        return self._scaling()[0]

    def _scaling(self) -> tuple[np.ndarray, np.ndarray]:
        """Origin and scale of each column."""
        if self.scaling is not None:
            return self.scaling
        if self.fit_intercept:
            return measured(self.bounds, self.indicators)
        return half_ranges(self.bounds, centred=False)


class OnTable(Program):
    """A program for rows that a perturbed objective scales; it has the settings of that one."""

    table: PerturbedObjective

    @property
    def lam(self) -> float:
        """The λ that is used unless another one is given, in units of the labels."""
        return self.table.lam

    @property
    def kappa(self) -> float:
        """Where residuals are clipped, as a part of the range of the labels."""
        return self.table.noise.kappa

    def worst(self, X: np.ndarray, y: np.ndarray) -> list[Table]:
        """The data with a record at all upper bounds."""
        return [at_bounds(X, y, self.table.bounds[:, 1], self.table.y_bounds)]


def perturbed_numbers(noise: ObjectiveNoise, level: Level | None, n_rows: int) -> dict[str, float]:
    """Numbers of a perturbed objective, with the noise that corrects the intercept."""
    keys = ("kappa", "radius", "ridge", "t", "sigma", "c")
    numbers = {key: getattr(noise, key) for key in keys}
    return numbers if level is None else {**numbers, "level": level.noise(n_rows)}


@dataclass(frozen=True, eq=False)
class LogisticMap:
    """Records as scaled rows, as long as they are, with labels 0 and 1; zeros for empty records.

    A label above ½ counts as 1, any other as 0.

    Attributes
    ----------
    bounds, origin, half, intercept, radius
        As for `RecordMap`.
    reach : float
        K.
    """

    bounds: np.ndarray = field(repr=False)
    origin: np.ndarray = field(repr=False)
    half: np.ndarray = field(repr=False)
    intercept: bool
    radius: float
    reach: float

    grid = None
    largest_label = 1.0

    @property
    def n_columns(self) -> int:
        """Entries of a row."""
        return len(self.bounds) + self.intercept

    def __call__(
        self, X: np.ndarray, y: np.ndarray, start: int, stop: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows and labels of some records of a chunk."""
        labels, rows = y[start:stop], np.ones((stop - start, self.n_columns))
        part = within(X[start:stop], self.bounds)
        part -= self.origin
        part /= np.where(self.half > 0.0, self.half, 1.0)
        part[:, self.half == 0.0] = 0.0
        rows[:, : len(self.bounds)] = part
        rows[empty_records(labels)] = 0.0
        return rows, np.where(labels > 0.5, 1.0, 0.0)

    def weights(self, rows: np.ndarray) -> np.ndarray:
        """Weights of rows; each depends on its own record only."""
        length = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        radius = self.radius * shorter(rows.shape[1])
        with np.errstate(divide="ignore"):
            w = np.minimum(radius / length, radius * self.reach / length**2)
        return np.minimum(1.0, w)


@dataclass(frozen=True, eq=False)
class PerturbedLogistic(PerturbedObjective):
    """A perturbed logistic regression on scaled rows f with labels 0 and 1.

    Rows have the weights w = min(1, R/‖f‖, RK/‖f‖²), so that none pulls harder than R, and no pull
    changes by more than RK/4 per unit of the coefficients.

    Attributes
    ----------
    reach : float
        K.
    """

    reach: float = 0.0

    @cached_property
    def view(self) -> LogisticMap:  # pyright: ignore[reportIncompatibleVariableOverride]
        """How a record becomes a row and a label."""
        scaling, radius = self._scaling(), self.noise.radius
        return LogisticMap(self.bounds, *scaling, bool(self.fit_intercept), radius, self.reach)

    def _worst_case(self, n_rows: int) -> Table:
        """All others are at the same place and of the other class, so that its pull is full."""
        X, labels = np.tile(self.bounds[:, 1], (n_rows, 1)), np.zeros(n_rows)
        labels[0] = 1.0
        return X, labels, "a record made up among others of the other class"

    @property
    def _middle(self) -> float:
        """Nothing is subtracted from classes, and their range is 1, so that these are log odds."""
        return 0.0
