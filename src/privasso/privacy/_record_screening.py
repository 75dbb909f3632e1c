"""A fit of whole records after a choice of columns: settings and statement."""

from __future__ import annotations

from typing import Literal

import numpy as np

from privasso._validation import integer
from privasso.privacy._composition import compose_losses
from privasso.privacy._loss import GaussianLoss
from privasso.privacy._numbers import rounded_up
from privasso.privacy._perturbed_objective import calibrate_objective
from privasso.privacy._record_rows import PerturbedObjective
from privasso.privacy._record_settings import usual_kappa, usual_lam, usual_row, usual_t
from privasso.privacy._screened_objective import ScreenedObjective
from privasso.privacy._screening import Screening
from privasso.privacy._screening_settings import CLIP, ScreeningSettings, usual_screening

Screen = int | Literal["auto"]


def check_screen(screen: object) -> None:
    """Refuse what is neither None, "auto" nor a number of columns.

    Examples
    --------
    >>> check_screen("auto")
    >>> check_screen(0)
    Traceback (most recent call last):
    ...
    ValueError: screen must be at least 1, not 0
    """
    if screen is None or (isinstance(screen, str) and screen == "auto"):
        return
    if isinstance(screen, str):
        raise ValueError(f"screen must be 'auto', a number of columns or None, not {screen!r}")
    integer("screen", screen, minimum=1)


def screening_settings(
    epsilon: float,
    delta: float,
    n_rows: int,
    n_columns: int,
    screen: Screen,
    *,
    fit_intercept: bool,
) -> ScreeningSettings | None:
    """Return how many columns to choose and at which price; None where all are fitted."""
    check_screen(screen)
    if screen == "auto":
        return usual_screening(epsilon, delta, n_rows, n_columns, centred=fit_intercept)
    if screen >= n_columns:
        raise ValueError(
            f"screen={screen} columns cannot be chosen of {n_columns}; choose fewer, or leave "
            "screen out"
        )
    return usual_screening(
        epsilon, delta, n_rows, n_columns, count=int(screen), centred=fit_intercept
    )


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


def price_of_choice(screening: Screening, delta: float) -> str:
    """What was chosen, and the ε of that alone.

    Examples
    --------
    >>> from privasso.privacy import ChoiceLoss
    >>> bounds = np.tile([-1.0, 1.0], (500, 1))
    >>> one = Screening(ChoiceLoss(0.1, 10), 0.04, 0.08, bounds, (0.0, 1.0), True)
    >>> price_of_choice(one, 1e-6)
    'which 10 of 500 columns were chosen, at ε = 0.66 if it were all'
    """
    parts = [screening.choices, *([GaussianLoss(screening.mu)] if screening.mu > 0.0 else [])]
    alone = rounded_up(compose_losses(parts).epsilon(delta), 2)
    of = f"{screening.count} of {len(screening.bounds)} columns"
    return f"which {of} were chosen, at ε = {alone} if it were all"
