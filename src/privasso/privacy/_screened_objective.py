"""A perturbed fit of the columns that a screening has chosen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from privasso.accounting import ChoiceLoss, ObjectiveLoss
from privasso.privacy._label_level import Level
from privasso.privacy._perturbed_objective import ObjectiveNoise
from privasso.privacy._record_rows import PerturbedObjective
from privasso.privacy._rounded_gaussian import BitSource
from privasso.privacy._screening import Screening
from privasso.privacy._screening_settings import ScreeningSettings


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
        return ObjectiveLoss(noise.c, noise.t, "records"), self.choices


@dataclass(frozen=True, eq=False)
class ScreenedObjective:
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
        What all of these follow from.
    level : Level or None
        How the intercept of the last fit is corrected, if there is one.
    """

    screening: Screening
    table: PerturbedObjective
    rounds: tuple[FurtherRound, ...]
    settings: ScreeningSettings
    level: Level | None

    @property
    def mu(self) -> float:
        """Sensitivity of all sums of labels and residuals that are released."""
        return self.settings.mu_sums

    @property
    def lam(self) -> float:
        """The λ that is used unless another one is given, in units of the labels."""
        return self.table.lam

    @property
    def noise(self) -> ObjectiveNoise:
        """Of the fit."""
        return self.table.noise

    def release(
        self, X: Any, y: np.ndarray, lam: float, bits: BitSource
    ) -> tuple[np.ndarray, float, np.ndarray]:
        """Run both mechanisms; return coefficients, intercept and which columns were chosen.

        All other coefficients are zero. Of a sparse matrix only the chosen columns are filled.
        """
        screening = self.screening
        chosen = screening.choose(X, y, bits)
        for one in self.rounds:
            few, some, level = self._fitted(one.table, X, y, chosen, lam, bits)
            residuals = np.clip(y, *screening.y_bounds) - few @ some - level
            more = screening.choose_more(X, residuals, chosen, one.choices, one.clip, bits)
            chosen = np.union1d(chosen, more)
        few, some, intercept = self._fitted(self.table, X, y, chosen, lam, bits)
        if self.level is not None:
            residuals = np.clip(y, *screening.y_bounds) - few @ some - intercept
            intercept += self.level.release(residuals, bits)
        coef = np.zeros(X.shape[1])
        coef[chosen] = some
        return coef, intercept, chosen

    def _fitted(
        self,
        table: PerturbedObjective,
        X: Any,
        y: np.ndarray,
        chosen: np.ndarray,
        lam: float,
        bits: BitSource,
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """The chosen columns, their coefficients and the intercept."""
        few = X[:, chosen]
        few = few.toarray() if sp.issparse(few) else np.asarray(few)
        table = replace(table, bounds=self.screening.bounds[chosen])
        return few, *table.release(few, y, lam, bits)
