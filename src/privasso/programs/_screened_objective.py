"""A perturbed fit of the columns that a screening has chosen."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from privasso.accounting import ChoiceLoss, ObjectiveLoss
from privasso.programs._intercept import Level
from privasso.programs._program import Program, RecordFit
from privasso.programs._record_rows import PerturbedObjective, perturbed_numbers
from privasso.programs._screening import Fitted, Screening
from privasso.programs._worst_tables import Table, for_choice
from privasso.queries import Ask, ObjectiveNoise


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
class ScreenedObjective(Program):
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
    def lam(self) -> float:
        """The λ that is used unless another one is given, in units of the labels."""
        return self.table.lam

    @property
    def noise(self) -> ObjectiveNoise:
        """Of the fit."""
        return self.table.noise

    @property
    def kappa(self) -> float:
        """Where the residuals of the fit are clipped."""
        return self.table.noise.kappa

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
