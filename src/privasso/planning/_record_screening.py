"""A fit of whole records after a choice of columns."""

from __future__ import annotations

import math

import numpy as np

from privasso._tuned import CHOICE_CLIP, RESIDUAL_CLIP
from privasso._types import Passed
from privasso.planning._objective_noise import calibrate_objective
from privasso.planning._screening_settings import ScreeningSettings
from privasso.planning._settings import usual_kappa, usual_lam, usual_row, usual_t
from privasso.problem import Clipped
from privasso.programs import FurtherRound, Level, PerturbedObjective, ScreenedObjective, Screening


def screened_objective(
    settings: ScreeningSettings,
    bounds: np.ndarray,
    y_bounds: tuple[float, float],
    n_rows: int,
    *,
    fit_intercept: bool,
    loss: Clipped,
    t: float,
    indicators: np.ndarray | None = None,
) -> ScreenedObjective:
    """Return the choice and the fit that together have the budget of the settings.

    `t` is the one for the whole budget. What is left for the fit has a smaller one in proportion
    to the usual ones.
    """
    lam = usual_lam(n_rows, y_bounds[1] - y_bounds[0])

    def table(
        count: int, epsilon: float, left: float, ridge: float | None = None, **beside: Passed
    ) -> PerturbedObjective:
        k = count + fit_intercept
        noise = calibrate_objective(
            epsilon,
            settings.delta,
            settings.neighbours,
            loss=loss.suited(usual_kappa(left, n_rows, k)),
            radius=usual_row(k),
            t=t * usual_t(left) / usual_t(settings.epsilon) if ridge is None else ridge,
            n_rows=n_rows,
            **beside,
        )
        return PerturbedObjective(noise, bounds[:count], y_bounds, fit_intercept, lam)

    rounds, choices = [], settings.second_choices
    if choices is not None:
        left = settings.epsilon_first
        # With very many rows t depends on the number of columns; the smallest serves for all.
        ridge = table(settings.count, left, left).noise.t
        for done in range(settings.further):
            count = settings.count + done * settings.second
            rounds.append(FurtherRound(table(count, left, left, ridge), choices, RESIDUAL_CLIP))
    losses = (settings.choices, *(loss for one in rounds for loss in one.losses))
    shift = math.fsum(one.table.noise.shift for one in rounds)
    last = table(
        settings.columns,
        settings.epsilon,
        settings.epsilon_left,
        mu=settings.mu_sums,
        beside=losses,
        other_shift=shift,
    )
    mu, neighbours, width = settings.mu_centre, settings.neighbours, y_bounds[1] - y_bounds[0]
    screening = Screening(
        settings.choices, mu, CHOICE_CLIP, bounds, y_bounds, fit_intercept, neighbours
    )
    level = None
    if fit_intercept and loss.about_mean:
        level = Level(settings.mu_level, width, neighbours=neighbours)
    return ScreenedObjective(screening, last, tuple(rounds), settings, level, indicators)
