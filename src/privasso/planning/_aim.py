"""What λ is for: to predict, or to select columns that noise alone would not select.

A coefficient is zero if the slope of the objective at zero is at most λ. For labels that have
nothing to do with the columns it is noise: that of sampling, of clipped residuals, and that of
privacy, whose law is public.
"""

from __future__ import annotations

import math
from typing import Any, Literal, cast, get_args

import numpy as np
from scipy.optimize import root_scalar
from scipy.special import ndtr, ndtri

from privasso._tuned import (
    PULL,
    ROW,
    SELECT_CHANCE,
    SELECT_LEVEL,
    SELECT_LOG_ODDS,
    SELECT_MEAN,
    STANDARD_REACH,
    STANDARD_ROW,
)
from privasso.problem import Logistic
from privasso.programs import PerturbedObjective, Program, ScreenedObjective
from privasso.queries import ObjectiveNoise

Aim = Literal["auto", "predict", "select"]
AIMS = get_args(Aim)


def select_threshold(deviations: np.ndarray, among: int | None = None) -> float:
    """What any of several normal slopes exceeds in size with a chance of `SELECT_CHANCE` at most.

    They may be correlated. Where they were chosen `among` more, the chance is for any of these.

    >>> round(select_threshold(np.ones(10)), 3), select_threshold(np.zeros(2))
    (2.807, 0.0)
    """
    size, positive = max(deviations.size, among or 0), deviations[deviations > 0.0]
    if not positive.size:
        return 0.0
    chance = SELECT_CHANCE * positive.size / size
    top = -float(ndtri(0.5 * chance / positive.size)) * float(positive.max())

    def excess(threshold: float) -> float:
        return 2.0 * float(np.sum(ndtr(-threshold / positive))) - chance

    return root_scalar(excess, bracket=(0.0, top * (1.0 + 1e-9)), xtol=1e-9 * top).root


def select_lam(noise: ObjectiveNoise, n_rows: int, square: float, among: int) -> float:
    """λ of a perturbed objective for `among` columns, in units of the range of the labels.

    A slope has the noise η of its own. Those of clipped residuals have at most the variance κ² M
    times the mean `square` of an entry. A column whose mean is not where it is measured from takes
    its part of the slope of the intercept, which is what the ridge asks of that, and its noise.
    """
    logistic = isinstance(noise.loss, Logistic)
    pull, level = (0.5, SELECT_LOG_ODDS) if logistic else (noise.loss.largest_pull, SELECT_LEVEL)
    own = noise.sigma**2 * (1.0 + SELECT_MEAN**2)
    deviation = math.sqrt(own + n_rows * square * pull**2)
    return select_threshold(np.full(among, deviation)) + SELECT_MEAN * level * noise.ridge


def aimed_lam(program: Program, aim: Aim, n_rows: int) -> float:
    """λ of a fit of private rows, from public numbers; each λ is a release of its own.

    Without an aim it is to predict. What selecting costs depends on how much of their bounds labels
    and columns fill: forecasts that supposed little of them still missed up to 0.1 of R² on real
    tables.
    """
    usual: float = cast(Any, program).lam
    if aim != "select":
        return usual
    screened = program if isinstance(program, ScreenedObjective) else None
    table = program if screened is None else screened.table
    if not isinstance(table, PerturbedObjective):
        raise ValueError(
            "aim='select' is for perturbed objectives without a shape: of others it is not known "
            "which coefficients noise alone would give; leave aim, mechanism or shape out"
        )
    among = len(table.bounds if screened is None else screened.screening.bounds)
    scaled = table.scaling is not None or (table.estimate is not None and table.estimate.scales)
    if isinstance(table.noise.loss, Logistic):
        side = PULL * (STANDARD_REACH if scaled else 1.0)
    else:
        side = STANDARD_ROW if scaled else ROW
    return max(table.width * select_lam(table.noise, n_rows, side**2, among), usual)
