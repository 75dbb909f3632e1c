"""The power of v that is best for a fit of given covariates under a model."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import cast

import numpy as np

from privasso.design._budget import Budget
from privasso.design._columns import Family, search_columns
from privasso.design._optimal import optimal_design
from privasso.design._program import LEAKAGE, Evaluator, NonlinearProgram
from privasso.design._result import InfeasibleError
from privasso.design._search import search
from privasso.model import Model
from privasso.noise import NoiseDesign, PowerLaw
from privasso.operators import Covariates
from privasso.privacy import LabelDP, OnAverage, Privacy
from privasso.scales import Empirical


def best_power(privacy: Privacy, model: Model, lam: float | None, rows: Covariates) -> NoiseDesign:
    """The best power for this kind of privacy."""
    if privacy.formal:
        return best_for_labels(cast(LabelDP, privacy), model, lam, rows)
    return best_on_average(cast(OnAverage, privacy), model, lam)


def best_for_labels(
    privacy: LabelDP, model: Model, lam: float | None, rows: Covariates
) -> NoiseDesign:
    """The power with the least predicted error at this budget.

    The prediction takes the number of rows and the scales of the columns from the covariates,
    which are public, and ρ and σ_ξ from the model; λ is optimised too where `lam` is None.

    >>> import privasso as pv
    >>> rows = Covariates(np.random.default_rng(0).random((500, 9)), centre=True)
    >>> privacy = pv.LabelDP(epsilon=1.0, delta=1e-6, y_bounds=(0, 1))
    >>> 0.3 < best_for_labels(privacy, pv.Model(), None, rows).gamma < 1.0
    True
    """
    n, m = int(rows.live.sum()), rows.shape[0]
    if n == 0:
        return PowerLaw(1.0, 0.5)
    scales = Empirical(np.sqrt(rows.squares[rows.live] * (n / m)))
    data = replace(model, alpha=m / n, scales=scales)
    return optimal_design(data, Budget(privacy), lam=lam, n_features=n).noise


def best_on_average(privacy: OnAverage, model: Model, lam: float | None) -> NoiseDesign:
    """The power with the least OnAveKL at this level and λ; no data are used.

    >>> import privasso as pv
    >>> model = pv.Model(scales=pv.LogNormal(0.0, 0.5))
    >>> best_on_average(pv.OnAverage(0.05), model, 0.2).gamma.__round__(2)
    0.96
    """
    if privacy.sigma == 0.0 or lam is None:
        return PowerLaw(1.0, 1.0)  # without noise every shape is the same
    return PowerLaw(1.0, least_leakage_exponent(model, lam, privacy.sigma))


def least_leakage_exponent(model: Model, lam: float, sigma: float) -> float:
    """γ for which noise σ_η² ∝ v^γ of mean variance σ² has the least OnAveKL at this λ.

    Raises `InfeasibleError` when no exponent leaves an estimator at this λ and σ.
    """
    evaluator = Evaluator(model, search_columns(model.scales, None), Family.powers(), None)
    program = NonlinearProgram((evaluator,), LEAKAGE, None, 0.0, np.array([False, False, True]))
    found = search(program, np.array([math.log(lam), 2.0 * math.log(sigma), 0.0]))
    if found is None:
        raise InfeasibleError(
            f"at lam = {lam:g} noise of level {sigma:g} leaves no estimator, whatever its shape; "
            "use a larger lam or less noise"
        )
    return float(found[2])
