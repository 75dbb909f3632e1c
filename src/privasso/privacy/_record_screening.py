"""A fit of whole records after a choice of columns."""

from __future__ import annotations

import numpy as np

from privasso.privacy._perturbed_objective import calibrate_objective
from privasso.privacy._record_rows import PerturbedObjective
from privasso.privacy._record_settings import usual_kappa, usual_lam, usual_row, usual_t
from privasso.privacy._screened_objective import ScreenedObjective
from privasso.privacy._screening import Screening
from privasso.privacy._screening_settings import CLIP, ScreeningSettings


def screened_objective(
    settings: ScreeningSettings,
    bounds: np.ndarray,
    y_bounds: tuple[float, float],
    n_rows: int,
    *,
    fit_intercept: bool,
    kappa: float | None,
    t: float,
) -> ScreenedObjective:
    """Return the choice and the fit that together have the budget of the settings.

    `t` is the one for the whole budget. What is left for the fit has a smaller one in proportion
    to the usual ones.
    """
    k, left = settings.count + fit_intercept, settings.epsilon_left
    noise = calibrate_objective(
        settings.epsilon,
        settings.delta,
        "records",
        kappa=usual_kappa(left, n_rows, k) if kappa is None else kappa,
        radius=usual_row(k),
        t=t * usual_t(left) / usual_t(settings.epsilon),
        n_rows=n_rows,
        mu=settings.mu_centre,
        choices=(settings.choices,),
    )
    width = y_bounds[1] - y_bounds[0]
    table = PerturbedObjective(
        noise, bounds[: settings.count], y_bounds, fit_intercept, usual_lam(n_rows, width)
    )
    screening = Screening(
        settings.choices, settings.mu_centre, CLIP, bounds, y_bounds, fit_intercept
    )
    return ScreenedObjective(screening, table)
