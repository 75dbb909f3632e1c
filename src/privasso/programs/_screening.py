"""Columns chosen by their association with the labels, with noise, and the fit of these.

The association of a column is |Σ_μ f_μi ỹ_μ|, f in units of the bounds of its column, so that
|f| ≤ 1, and labels clipped to |ỹ| ≤ b around a centre that was found with noise. An emptied record
changes the sum by f_μi ỹ_μ, and so each association by at most b, in either direction. The
differences of two associations then change by at most 2b, and Gumbel noise of the scale 2b/ε₀ makes
each choice one of bounded range ε₀, whatever the number of columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from privasso.accounting import ChoiceLoss, ObjectiveLoss
from privasso.blocks import taken
from privasso.programs._associations import ENTRY, LABEL, IntegerColumns
from privasso.programs._clipped_sums import Level, clipped_integers, noisy_centre
from privasso.programs._program import RecordFit, Table, for_choice
from privasso.programs._record_rows import OnTable, PerturbedObjective, perturbed_numbers
from privasso.programs._records import half_ranges, ordered_residuals, within
from privasso.queries import EMPTIED, Ask, Neighbours, NoisyChoice, ObjectiveNoise, Scores


@dataclass(frozen=True, eq=False)
class Screening:
    """How columns of whole records are chosen; all of it is decided before the data are read.

    Attributes
    ----------
    choices : ChoiceLoss
        How many columns are chosen, and the range of the losses of each choice.
    mu : float
        Sensitivity of the sums from which the centre of the labels is found; zero if it is not.
    clip : float
        b, as a part of the range of the labels.
    bounds : ndarray of shape (N, 2)
        Bounds of the columns.
    y_bounds : (float, float)
        Bounds of the labels.
    centred : bool
        Whether columns are measured from the middle of their bounds and labels from their centre,
        as for a fit with an intercept; otherwise both from zero.
    neighbours : Neighbours
        How data sets differ.
    """

    choices: ChoiceLoss
    mu: float
    clip: float
    bounds: np.ndarray = field(repr=False)
    y_bounds: tuple[float, float]
    centred: bool
    neighbours: Neighbours = EMPTIED

    @property
    def count(self) -> int:
        """Number of columns to choose."""
        return self.choices.count

    def choose(self, ask: Ask) -> np.ndarray:
        """Return the indices of the columns, in increasing order."""
        centre = 0.0
        if self.centred:
            centre = noisy_centre(ask, self.y_bounds, self.radius, self.mu, self.neighbours)
        return ask(self.choice(self.choices, self.associations(centre, self.radius)))

    def choose_more(self, ask: Ask, fitted: Fitted, choices: ChoiceLoss, clip: float) -> np.ndarray:
        """Return further columns, by their association with residuals of what was released.

        Parameters
        ----------
        ask : Ask
            Who answers.
        fitted : Fitted
            The fit of the columns that were chosen before.
        choices : ChoiceLoss
            How many columns are chosen, and the range of the losses of each choice.
        clip : float
            Where residuals are clipped, as a part of the range of the labels.
        """
        radius = clip * (self.y_bounds[1] - self.y_bounds[0])
        return ask(self.choice(choices, self.associations(0.0, radius, fitted)))

    def choice(self, choices: ChoiceLoss, associations: Associations) -> NoisyChoice:
        """The question for columns that were not chosen before."""
        among, fitted = np.arange(len(self.bounds)), associations.fitted
        left = among if fitted is None else np.setdiff1d(among, fitted.columns)
        return NoisyChoice(associations, choices, left, self.neighbours)

    def associations(
        self, centre: float, radius: float, fitted: Fitted | None = None
    ) -> Associations:
        """Those of all columns with labels, or with residuals of a fit, clipped at c ± r."""
        return Associations(self.entries, self.y_bounds, centre, radius, fitted)

    @property
    def radius(self) -> float:
        """Where labels are clipped around their centre, in their units."""
        return self.clip * (self.y_bounds[1] - self.y_bounds[0])

    @property
    def origin(self) -> np.ndarray:
        """From where columns are measured."""
        return half_ranges(self.bounds, self.centred)[0]

    @cached_property
    def entries(self) -> IntegerColumns:
        """How entries become integers; columns that are all alike are described by one."""
        bounds = self.bounds[:1] if np.all(self.bounds == self.bounds[:1]) else self.bounds
        return IntegerColumns.within(bounds, *half_ranges(bounds, self.centred))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fit of some columns, whose residuals take the place of the labels.

    Attributes
    ----------
    columns : ndarray of int
        Which columns.
    bounds : ndarray of shape (K, 2)
        Their bounds.
    y_bounds : (float, float)
        Bounds of the labels.
    coef, intercept
        Coefficients of these.
    """

    columns: np.ndarray
    bounds: np.ndarray
    y_bounds: tuple[float, float]
    coef: np.ndarray
    intercept: float

    def residuals(self, few: np.ndarray, y: np.ndarray) -> np.ndarray:
        """What the fit leaves of labels; `few` holds its columns."""
        labels = np.clip(np.asarray(y, dtype=np.float64), *self.y_bounds)
        return ordered_residuals(within(few, self.bounds), labels, self.coef, self.intercept)


@dataclass(frozen=True, eq=False)
class Associations(Scores):
    """Entries times labels, or times the residuals of a fit, all as integers.

    Attributes
    ----------
    entries : IntegerColumns
        How entries become integers.
    y_bounds : (float, float)
        Bounds of the labels.
    centre, radius : float
        Where labels or residuals are clipped.
    fitted : Fitted or None
        The fit.
    """

    entries: IntegerColumns = field(repr=False)
    y_bounds: tuple[float, float]
    centre: float
    radius: float
    fitted: Fitted | None = None

    sentence = "which columns were chosen"
    most_rows = None

    def sums(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Those of all columns."""
        if self.fitted is None:
            values = np.clip(np.asarray(y, dtype=np.float64), *self.y_bounds)
        else:
            values = self.fitted.residuals(taken(X, self.fitted.columns), y)
        labels = clipped_integers(values, self.centre, self.radius, LABEL)
        return self.entries.products(X, labels)

    def change(self, neighbours: Neighbours) -> float:
        """No record adds more than ENTRY·LABEL to a sum."""
        return (1.0 if neighbours.relation == "emptied" else 2.0) * ENTRY * LABEL


@dataclass(frozen=True, eq=False)
class FurtherRound:
    """A fit of the columns so far, and a choice of further ones by their residuals.

    Attributes
    ----------
    table : PerturbedObjective
        Noise and scaling of the fit of the columns so far.
    choices : ChoiceLoss
        How many further columns are chosen, and the range of the losses of each choice.
    clip : float
        Where residuals are clipped, as a part of the range of the labels.
    """

    table: PerturbedObjective
    choices: ChoiceLoss
    clip: float

    @property
    def losses(self) -> tuple[ObjectiveLoss, ChoiceLoss]:
        """The losses of the fit and of the choice, up to the inexactness of the fit."""
        noise = self.table.noise
        return ObjectiveLoss(noise.c, noise.t, noise.neighbours.of_objective), self.choices


@dataclass(frozen=True, eq=False)
class ScreenedObjective(OnTable):
    """Columns are chosen with noise, and those that were chosen are fitted with noise.

    Attributes
    ----------
    screening : Screening
        How columns are chosen.
    table : PerturbedObjective
        Noise and scaling of the last fit, for as many columns as are chosen.
    rounds : tuple of FurtherRound
        Each a fit, and a choice of further columns by its residuals. All have the same c and t.
    settings : ScreeningSettings
        What all of these follow from, for predictions.
    level : Level or None
        How the intercept of the last fit is corrected, if there is one.
    indicators : ndarray of bool, of shape (N,), or None
        Which columns are said to be of zeros and ones, if any.
    """

    screening: Screening
    table: PerturbedObjective
    rounds: tuple[FurtherRound, ...]
    settings: Any
    level: Level | None
    indicators: np.ndarray | None = field(default=None, repr=False)

    @property
    def noise(self) -> ObjectiveNoise:
        """Of the fit."""
        return self.table.noise

    def __call__(self, ask: Ask, lam: float) -> RecordFit:
        """Choose, fit, choose by the residuals, fit again, and correct the last intercept."""
        chosen = self.screening.choose(ask)
        for one in self.rounds:
            fitted = self._fitted(ask, one.table, chosen, lam)
            more = self.screening.choose_more(ask, fitted, one.choices, one.clip)
            chosen = np.sort(np.append(chosen, more))
        fitted = self._fitted(ask, self.table, chosen, lam)
        coef, intercept = np.zeros(len(self.screening.bounds)), fitted.intercept
        coef[chosen] = fitted.coef
        if self.level is not None:
            intercept += self.level.correction(ask, fitted.residuals, columns=chosen)
        return RecordFit(coef, intercept, screened=chosen)

    @property
    def choosing(self) -> Any:
        """The settings."""
        return self.settings

    def facts(self, n_rows: int) -> tuple[str, dict[str, float], str]:
        """Those of the last fit."""
        numbers = perturbed_numbers(self.noise, self.level, n_rows)
        return "objective", numbers, self.table.column_unit

    def worst(self, X: np.ndarray, y: np.ndarray) -> list[Table]:
        """A table whose first record decides which columns are chosen."""
        one = self.screening
        return for_choice(len(X), one.bounds, one.origin, one.y_bounds, centred=one.centred)

    def _fitted(
        self, ask: Ask, table: PerturbedObjective, chosen: np.ndarray, lam: float
    ) -> Fitted:
        """The fit of the chosen columns."""
        bounds, indicators = self.screening.bounds[chosen], self.indicators
        if indicators is not None:
            indicators = indicators[chosen]
        found = replace(table, bounds=bounds, columns=chosen, indicators=indicators)(ask, lam)
        return Fitted(chosen, bounds, table.y_bounds, found.coef, found.intercept)
