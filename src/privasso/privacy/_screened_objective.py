"""A perturbed fit of the columns that a screening has chosen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from privasso.accounting import ChoiceLoss, ObjectiveLoss
from privasso.blocks import RowBlocks
from privasso.privacy._block_screening import (
    AssociationPass,
    Fitted,
    LabelPass,
    LevelPass,
    ScreenedPasses,
)
from privasso.privacy._cells import within
from privasso.privacy._label_centre import CentreSteps, moved_centre
from privasso.privacy._label_level import Level
from privasso.privacy._perturbed_objective import ObjectiveNoise
from privasso.privacy._record_rows import PerturbedObjective
from privasso.privacy._residual_pass import ordered_residuals, whole
from privasso.privacy._screening import Screening
from privasso.privacy._screening_settings import ScreeningSettings
from privasso.queries import BitSource


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
class Transcript:
    """Everything that is released on the way to a model; the guarantee covers all of it.

    Attributes
    ----------
    means : tuple of float
        Noisy means from which the centre of the labels was found.
    sets : tuple of ndarray
        Columns that were chosen in each round.
    fits : tuple of (ndarray, float)
        Coefficients and intercept of each fit.
    level : float
        What is added to the last intercept.

    Examples
    --------
    >>> first, second = np.array([7, 2]), np.array([4])
    >>> fits = (np.array([0.5, 1.0]), 0.1), (np.array([0.9, 0.3, 0.5]), 0.1)
    >>> Transcript((0.4, 0.5), (first, second), fits, level=0.02).columns
    array([2, 4, 7])
    """

    means: tuple[float, ...]
    sets: tuple[np.ndarray, ...]
    fits: tuple[tuple[np.ndarray, float], ...]
    level: float

    @property
    def columns(self) -> np.ndarray:
        """All columns that were chosen, in increasing order."""
        return np.sort(np.concatenate(self.sets))


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

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> from privasso.fit import FitOptions, plan_for
    >>> privacy = pv.RecordDP(1.0, 1e-6, bounds=[(0, 1)] * 2, y_bounds=(0, 1))
    >>> plan = plan_for(np.zeros((500, 2)), FitOptions(privacy, screen=1))
    >>> type(plan.objective).__name__, plan.objective.settings.count
    ('ScreenedObjective', 1)
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
        return self._published(self.transcript(X, y, lam, bits))

    def _published(self, found: Transcript) -> tuple[np.ndarray, float, np.ndarray]:
        coef, (some, intercept) = np.zeros(len(self.screening.bounds)), found.fits[-1]
        coef[found.columns] = some
        return coef, intercept + found.level, found.columns

    def transcript(self, X: Any, y: np.ndarray, lam: float, bits: BitSource) -> Transcript:
        """Run all mechanisms one after the other, and return everything that they release."""
        screening, means, fits = self.screening, list[float](), list[tuple[np.ndarray, float]]()
        sets = [screening.choose(X, y, bits, means)]
        for one in self.rounds:
            chosen = np.sort(np.concatenate(sets))
            few, table = self.restricted(X, chosen, one.table)
            fits.append(table.release(few, y, lam, bits))
            residuals = self.residuals(few, y, *fits[-1])
            sets.append(screening.choose_more(X, residuals, chosen, one.choices, one.clip, bits))
        few, table = self.restricted(X, np.sort(np.concatenate(sets)), self.table)
        fits.append(table.release(few, y, lam, bits))
        level = 0.0
        if self.level is not None:
            level = self.level.release(self.residuals(few, y, *fits[-1]), bits)
        return Transcript(tuple(means), tuple(sets), tuple(fits), level)

    def restricted(
        self, X: Any, chosen: np.ndarray, table: PerturbedObjective
    ) -> tuple[np.ndarray, PerturbedObjective]:
        """The chosen columns, all cells within their bounds, and the fit of them."""
        few, bounds = X[:, chosen], self.screening.bounds[chosen]
        few = few.toarray() if sp.issparse(few) else np.asarray(few)
        return within(few, bounds), replace(table, bounds=bounds)

    def residuals(
        self, few: np.ndarray, y: np.ndarray, coef: np.ndarray, intercept: float
    ) -> np.ndarray:
        """What a fit of some columns leaves of the clipped labels."""
        return ordered_residuals(few, np.clip(y, *self.screening.y_bounds), coef, intercept)

    def opened(self, blocks: RowBlocks) -> ScreenedPasses:
        """Read all rows of blocks once, before noise is drawn, so that bad data cost nothing."""
        return ScreenedPasses.opened(self, blocks)

    def release_over(
        self, passes: ScreenedPasses, lam: float, bits: BitSource
    ) -> tuple[np.ndarray, float, np.ndarray]:
        """Run both mechanisms over blocks of rows that were opened; see `release`."""
        return self._published(self.transcript_over(passes, lam, bits))

    def transcript_over(self, passes: ScreenedPasses, lam: float, bits: BitSource) -> Transcript:
        """The same as `transcript`, to the last bit, from sums over blocks of rows."""
        screening, means, fits = self.screening, list[float](), list[Fitted]()
        bounds, width = screening.y_bounds, screening.y_bounds[1] - screening.y_bounds[0]
        n_rows, n_columns = passes.blocks.shape
        centre, task = 0.0, LabelPass(bounds)
        if screening.centred:
            steps = CentreSteps(bounds, screening.radius, screening.mu, False)
            totals = iter([whole(passes.first["total"])])

            def total() -> int:
                known = next(totals, None)
                return (
                    passes.label_total(task, steps.centre, steps.within) if known is None else known
                )

            centre = moved_centre(steps, total, n_rows, bits, means)
        associated = AssociationPass(screening.columns, bounds, n_columns)

        def associations(centre: float, radius: float, fitted: Fitted | None) -> np.ndarray:
            return np.abs(passes.again(associated, (centre, radius, fitted))["sums"])

        def fit(table: PerturbedObjective) -> Fitted:
            chosen = np.sort(np.concatenate(sets))
            table = replace(table, bounds=screening.bounds[chosen])
            opened = table.opened(passes.blocks.select(chosen))
            return Fitted(chosen, table.bounds, *table.release_over(opened, lam, bits))

        first = associations(centre, screening.radius, None)
        sets = [screening.largest_left(first, np.empty(0, np.intp), screening.choices, bits)]
        for one in self.rounds:
            fits.append(fit(one.table))
            found = associations(0.0, one.clip * width, fits[-1])
            sets.append(screening.largest_left(found, fits[-1].columns, one.choices, bits))
        fits.append(fit(self.table))
        level = 0.0
        if self.level is not None:
            residuals = LevelPass(self.level, bounds)
            found = passes.again(residuals, fits[-1], fits[-1].columns)
            level = self.level.from_total(whole(found["total"]), n_rows, bits)
        pairs = tuple((one.coef, one.intercept) for one in fits)
        return Transcript(tuple(means), tuple(sets), pairs, level)
