"""With how much noise and which ridge a perturbed objective is private.

The objective is

    Σ_μ w_μ ℓ(y_μ, g_μᵀx) + λ Σ_i ω_i|x_i| + (Λ/2)‖x‖² + ηᵀx,   η ~ N(0, σ²I),

where ℓ is the Huber loss with w_μ = 1 and ‖g_μ‖ ≤ R, or the logistic loss with w_μ‖g_μ‖ ≤ R and
w_μ‖g_μ‖² ≤ RK.

λ is there to predict, or to select columns that noise alone would not select: a coefficient is zero
if the slope of the objective at zero is at most λ. For labels that have nothing to do with the
columns it is noise: that of sampling, of clipped residuals, and that of privacy.
"""

from __future__ import annotations

import math
from typing import Any, Literal, cast, get_args

import numpy as np
from scipy.optimize import root_scalar
from scipy.special import ndtr, ndtri

from privasso._files import fits_memory
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
from privasso._validation import positive_float
from privasso.accounting import (
    Loss,
    objective_sensitivity,
    sensitivity_beside,
    shift_epsilon,
)
from privasso.privacy import FormalBudget
from privasso.problem import Clipped, Logistic
from privasso.problem import Loss as LossOfRow
from privasso.programs import PerturbedObjective, Program, ScreenedObjective
from privasso.queries import EPSILON_SHARE, Neighbours, ObjectiveNoise, check_budget

#: Output noise, relative to a lower bound of the noise that η gives a coefficient; beyond so many
#: rows it grows with their square root, because rounding errors add up, to this many times as much.
_OUTPUT_NOISE, _MANY_ROWS, _MOST_TIMES = 0.02, 20_000, 5.0
#: The least ridge relative to the squared number of rows.
_LEAST_RIDGE = 5e-11
#: What a row adds to the curvature of a coefficient under the logistic loss, at default weights.
_BEND = 0.1
#: Matrices of N × N that a solver holds at a time.
_MATRICES = 4
#: Guards products of a few numbers against their own rounding.
_SLACK = 1.0 + 1e-12


def label_sensitivity(privacy: FormalBudget, t: float) -> float:
    """2κR/σ of a perturbed objective with residuals clipped at κ and a ridge R²/t."""
    kind = privacy.pair.of_objective
    c = objective_sensitivity(privacy.epsilon, privacy.delta, t, kind)
    return c if kind == "labels" else 2.0 * c


def objective_noise(privacy: FormalBudget, t: float) -> float:
    """Return σ/(κR) of objective perturbation with residuals clipped at κ and a ridge R²/t.

    What is released before the fit is taken out of the budget.
    """
    if privacy.pair.unit == "label":
        return 2.0 / label_sensitivity(privacy, t)
    kind = privacy.pair.of_objective
    return 1.0 / sensitivity_beside(privacy.epsilon, privacy.delta, t, privacy.mu_before, kind)


def calibrate_objective(
    epsilon: float,
    delta: float,
    neighbours: Neighbours,
    *,
    loss: Clipped,
    radius: float,
    t: float,
    n_rows: int,
    mu: float = 0.0,
    beside: tuple[Loss, ...] = (),
    other_shift: float = 0.0,
) -> ObjectiveNoise:
    """Return the noise and the ridge with which a fit is (ε, δ)-differentially private.

    Parameters
    ----------
    epsilon, delta : float
        The budget.
    neighbours : Neighbours
        How data sets differ.
    loss : Clipped
        ℓ with its κ, in units of the labels.
    radius : float
        R.
    t : float
        R²/Λ: a larger one is a smaller ridge and more noise. For very many rows a smaller one is
        used, so that the ridge is at least 5·10⁻¹¹ M².
    n_rows : int
        Number of rows, which is public.
    mu : float
        Sensitivity of Gaussian releases of the same data that the budget covers too.
    beside : tuple of Loss
        Other releases of the same data that the budget covers too, choices of columns above all.
    other_shift : float
        Shifts of these, as in `ObjectiveNoise`, added up.
    """
    positive_float("kappa", loss.kappa)
    radius = positive_float("radius", radius)
    return _calibrated(
        epsilon,
        delta,
        neighbours,
        loss,
        radius,
        radius**2,
        t,
        n_rows,
        1.0,
        mu,
        beside,
        other_shift,
    )


def calibrate_logistic(
    epsilon: float,
    delta: float,
    neighbours: Neighbours,
    *,
    radius: float,
    reach: float,
    t: float,
    n_rows: int,
    mu: float = 0.0,
) -> ObjectiveNoise:
    """Return the same for whole records and the logistic loss.

    Its slope is at most 1 and has one sign for each record, and its curvature is at most ¼. So a
    record pulls with at most w‖g‖ ≤ R, and that pull changes by at most w‖g‖²/4 ≤ RK/4 per unit
    of x.

    Parameters
    ----------
    epsilon, delta, neighbours, n_rows, mu
        As in `calibrate_objective`.
    radius : float
        R, a bound of w‖g‖.
    reach : float
        K: RK is a bound of w‖g‖².
    t : float
        RK/(4Λ); for very many rows a smaller one is used.
    """
    radius, reach = positive_float("radius", radius), positive_float("reach", reach)
    bend = 0.25 * radius * reach
    return _calibrated(epsilon, delta, neighbours, Logistic(), radius, bend, t, n_rows, _BEND, mu)


def _calibrated(
    epsilon: float,
    delta: float,
    neighbours: Neighbours,
    loss: LossOfRow,
    radius: float,
    bend: float,
    t: float,
    n_rows: int,
    per_row: float,
    mu: float,
    beside: tuple[Loss, ...] = (),
    other_shift: float = 0.0,
) -> ObjectiveNoise:
    """Noise for rows whose pull changes by at most `bend` along themselves, Λ = bend/t.

    A row adds about `per_row` to the curvature of a coefficient.
    """
    t = positive_float("t", t)
    # Rounding errors of many rows could not be covered with a smaller ridge.
    least = _LEAST_RIDGE * float(n_rows) ** 2
    t = min(t, bend / least)
    ridge = max(bend / t, least) * _SLACK
    # δ(ε) ≤ e^ε₀ δ_ideal(ε − 2ε₀), up to 1e-86 (1 + e^ε), with ε₀ = 20 times the shift.
    check_budget(epsilon, delta)
    shift = EPSILON_SHARE * min(epsilon, 1.0) / 40.0
    lost = 2.0 * shift_epsilon(shift + other_shift) * _SLACK
    budget, kind = (epsilon - lost, delta * (1.0 - 2.0 * lost)), neighbours.of_objective
    c = sensitivity_beside(*budget, t, mu, kind, loss=loss.slope, others=beside)
    pull = loss.label_change if kind == "labels" else loss.largest_pull
    sigma = pull * radius / c * _SLACK
    # No column with entries in [−1, 1] is longer than √M, so that η moves a coefficient of
    # uncorrelated columns by this deviation at least.
    sigma_out = _output_share(n_rows) * sigma / (ridge + per_row * n_rows)
    return ObjectiveNoise(loss, radius, ridge, sigma, c, t, sigma_out, shift, mu, neighbours)


def _output_share(n_rows: int) -> float:
    """Output noise relative to that of η.

    >>> [round(_output_share(m), 3) for m in (100, 20_000, 100_000, 10**7)]
    [0.02, 0.02, 0.045, 0.1]
    """
    return _OUTPUT_NOISE * min(max(1.0, math.sqrt(n_rows / _MANY_ROWS)), _MOST_TIMES)


def check_room(n_columns: int) -> None:
    """Refuse so many columns that the linear systems of a fit exceed the memory of the machine."""
    if not fits_memory(_MATRICES * 8 * n_columns**2):
        raise ValueError(
            f"a fit of {n_columns} columns takes more memory than this machine has; choose some of "
            "them first, by hand or with screen (--screen)"
        )


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
