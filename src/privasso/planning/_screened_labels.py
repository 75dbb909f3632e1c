"""A choice of columns and a fit of these under label differential privacy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privasso._tuned import CHOICE_CLIP, SHRINK_GAIN_COMPONENTS
from privasso.accounting import objective_epsilon
from privasso.operators import Covariates
from privasso.planning._clipped_rows import clipped_settings
from privasso.planning._component_settings import PrincipalComponents, component_screening
from privasso.planning._label_objective import LabelObjective
from privasso.planning._objective_noise import calibrate_objective, label_sensitivity
from privasso.planning._screening_settings import Screen, ScreeningSettings, usual_screening
from privasso.planning._settings import label_kappa
from privasso.privacy import LabelDP
from privasso.problem import Huber
from privasso.programs import LabelScreening, Level, Table, bounded_labels, for_label_choice
from privasso.queries import coverable


@dataclass(frozen=True, eq=False)
class ScreenedLabels:
    """Columns are chosen with noise, and those that were chosen are fitted with noise.

    Attributes
    ----------
    screening : LabelScreening
        How columns are chosen.
    fit : LabelDP
        The privacy of the fit of the chosen columns alone. Together with the choice it has the
        whole budget.
    n_columns : int
        Number of columns that are chosen from.
    level : Level
        How the intercept of the fit is corrected.
    settings : ScreeningSettings
        What all of these follow from.
    """

    screening: LabelScreening
    fit: LabelDP
    n_columns: int
    level: Level
    settings: ScreeningSettings

    def residuals(
        self, X: np.ndarray, y: np.ndarray, coef: np.ndarray, intercept: float
    ) -> np.ndarray:
        """What a fit of some columns leaves of the labels."""
        labels = bounded_labels(y, self.fit.y_bounds, empty=self.fit.pair.empties)
        return labels - (X @ coef + intercept)

    def worst(self, n_rows: int) -> list[Table]:
        """A table whose first label decides which columns are chosen."""
        return for_label_choice(n_rows, self.n_columns, self.fit.y_bounds)

    def shrink(self, rows: Covariates) -> float:
        """Part of the rows of chosen columns and components that is shrunk in the fit.

        Shrunk rows pull the coefficients away from the best ones for all rows, and components are
        never quite linear in what they stand for, so that much must be gained.
        """
        fit = self.fit
        assert fit.kappa is not None
        assert fit.t is not None
        c = label_sensitivity(fit, fit.t)
        return clipped_settings(rows, fit.kappa, {fit.t: c}, gain=SHRINK_GAIN_COMPONENTS).shrink


def budget_of_fit(
    settings: ScreeningSettings, n_rows: int, kappa: float | None, t: float | None
) -> tuple[float, float, float]:
    """ε of the fit alone, κ and t, such that choice and fit together have the budget.

    The choice and the fit are composed exactly, so that ε of the fit is more than what is left when
    the ε of the choice is taken away.

    Examples
    --------
    >>> from privasso.queries import LABEL_REPLACED
    >>> settings = ScreeningSettings(10, 0.5, 1.0, 1e-6, neighbours=LABEL_REPLACED)
    >>> epsilon, kappa, t = budget_of_fit(settings, 1000, None, None)
    >>> 0.6 < epsilon < 0.75
    True
    """
    left = settings.epsilon_left
    if kappa is None:
        k = settings.columns + settings.components
        kappa = label_kappa(left, n_rows, k, settings.neighbours)
    noise = calibrate_objective(
        settings.epsilon,
        settings.delta,
        settings.neighbours,
        loss=Huber(kappa),
        radius=1.0,
        t=settings.t if t is None else t,
        n_rows=n_rows,
        mu=settings.mu_sums,
        beside=(settings.choices,),
    )
    epsilon = objective_epsilon(settings.delta, noise.c, noise.t, settings.neighbours.of_objective)
    return epsilon * (1.0 - 1e-9), kappa, noise.t


def screened_labels(
    privacy: LabelDP,
    n_rows: int,
    n_columns: int,
    *,
    screen: Screen | None,
    components: PrincipalComponents | None = None,
    rows: Covariates | None = None,
) -> ScreenedLabels | None:
    """The choice of columns and the privacy of the fit of these; None where all are fitted.

    Both are decided from the size of the table and, where they are given, from the principal
    components of the covariates, some of which are then fitted beside the chosen columns. What a
    fit of all columns can be expected to reach follows from the `rows`, where they are given.
    """
    budget = privacy.epsilon, privacy.delta
    if privacy.mechanism == "release":
        raise ValueError("screen needs mechanism='objective'; leave mechanism or screen out")
    if screen in (None, "auto") and not coverable(*budget):
        return None  # chosen columns are fitted by a computed minimiser
    if components is None:
        size, count = (n_rows, n_columns), None if screen in (None, "auto") else int(screen)
        direct = None if rows is None else LabelObjective(privacy).r2(rows)
        settings = usual_screening(
            *budget, *size, count=count, neighbours=privacy.pair, direct=direct
        )
    else:
        settings = component_screening(*budget, components, n_columns, neighbours=privacy.pair)
    if settings is None:
        return None
    epsilon, kappa, t = budget_of_fit(settings, n_rows, privacy.kappa, privacy.t)
    given = {"level": False, "neighbours": privacy.neighbours}
    fit = LabelDP(epsilon, privacy.delta, privacy.y_bounds, "objective", kappa, t, **given)
    screening = LabelScreening(
        settings.choices, settings.mu_centre, CHOICE_CLIP, privacy.y_bounds, settings.neighbours
    )
    level = Level(settings.mu_level, privacy.label_width, neighbours=privacy.pair)
    return ScreenedLabels(screening, fit, n_columns, level, settings)
