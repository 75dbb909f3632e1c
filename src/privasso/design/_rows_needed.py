"""How many rows per column a fit needs to explain a given part of the signal."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, SupportsIndex

import numpy as np
from scipy.optimize import minimize_scalar, root_scalar

from privasso._validation import integer, probability
from privasso.design._objective import ObjectiveSearch
from privasso.model import Model
from privasso.noise import Isotropic
from privasso.privacy import FormalBudget
from privasso.theory import state_evolution

#: Rows per column that are considered, as logarithms.
_FEWEST, _MOST = math.log(1e-2), math.log(1e7)
#: First step from the rows per column of the model, and the accuracy of the answer.
_STEP, _ACCURACY = 0.7, 1e-3


def rows_needed(
    model: Model,
    explained: float,
    privacy: FormalBudget | None = None,
    *,
    gamma: float | None = None,
    n_features: SupportsIndex | None = None,
) -> float:
    """Return the rows per column α at which the best fit explains a given part of the signal.

    The signal is ρE[v], the variance of the labels that the covariates explain; a fit of error E
    explains the part (ρE[v] + σ_ξ² − E)/ρE[v] of it. Settings are those of `optimal_design` with
    ``mechanism="objective"``, chosen again for each α. Without a budget the fit is the LASSO
    without privacy, at its best λ.

    Parameters
    ----------
    model : Model
        Its `alpha` is where the search starts and has no effect otherwise.
    explained : float
        Between 0 and 1.
    privacy : LabelDP, RecordBudget or RecordDP, optional
        A budget for labels or for records.
    gamma, n_features
        As in `optimal_design`.

    Returns
    -------
    float
        α, to 0.1 %; inf where ten million rows per column are not enough. Fewer than one row per
        hundred columns are not told apart.

    Examples
    --------
    >>> import privasso as pv
    >>> from privasso.design import rows_needed
    >>> budget = pv.LabelDP(epsilon=1.0, delta=1e-6, y_bounds=(-1, 1))
    >>> model = pv.Model(rho=0.1, sigma_xi=0.1, scales=pv.LogNormal(0.0, 0.5))
    >>> [round(rows_needed(model, 0.9, privacy), 1) for privacy in (None, budget)]
    [0.5, 13.8]
    """
    if model.covariance is not None:
        raise ValueError("rows_needed is for independent columns; leave the covariance out")
    explained = probability("explained", explained)
    count = None if n_features is None else integer("n_features", n_features, minimum=1)
    if privacy is None:
        kept = _without_privacy(model, count)
    else:
        kept = _with_budget(ObjectiveSearch(privacy, None, gamma, count), model)

    def excess(log_alpha: float) -> float:
        found = kept(log_alpha) - explained
        if math.isnan(found):
            raise ValueError(
                "the part that is explained leaves the range of double precision; choose scales, "
                "rho and sigma_xi nearer to one"
            )
        return found

    low = high = math.log(model.alpha)
    step, upward = _STEP, excess(low) < 0.0
    while True:
        if upward:
            low, high = high, high + step
            if excess(high) >= 0.0:
                break
            if high > _MOST:
                return math.inf
        else:
            low, high = low - step, low
            if excess(low) < 0.0:
                break
            if low < _FEWEST:
                return math.exp(low)
        step *= 1.5
    found = root_scalar(excess, bracket=(low, high), method="brentq", xtol=_ACCURACY)
    return math.exp(found.root)


def _with_budget(search: ObjectiveSearch, model: Model) -> Callable[[float], float]:
    """The part explained at log α; each search starts from the nearest one before."""
    known: list[tuple[float, np.ndarray]] = []

    def kept(log_alpha: float) -> float:
        start = min(known, key=lambda one: abs(one[0] - log_alpha))[1] if known else None
        # Where next to nothing is explained, a search from far away would end on the plateau.
        found, x = search.best(replace(model, alpha=math.exp(log_alpha)), start)
        if found.explained < 0.1 and start is not None:
            found, x = search.best(replace(model, alpha=math.exp(log_alpha)))
        if found.explained > 0.1:
            known.append((log_alpha, x))
        return found.explained

    return kept


def _without_privacy(model: Model, n_features: int | None) -> Callable[[float], float]:
    """The part that the LASSO explains at log α with its best λ."""
    signal = model.rho * model.scales.moment(1.0)

    def kept(log_alpha: float) -> float:
        one = replace(model, alpha=math.exp(log_alpha))
        typical = math.sqrt(one.alpha * model.scales.moment(1.0) * (model.sigma_xi**2 + signal))

        def error(log_lam: float) -> float:
            lam = math.exp(log_lam)
            return state_evolution(one, lam, Isotropic(0.0), n_features=n_features).E

        ends = (math.log(1e-4 * typical), math.log(10.0 * typical))
        least: Any = minimize_scalar(error, bounds=ends, method="bounded", options={"xatol": 1e-4})
        return (signal + model.sigma_xi**2 - float(least.fun)) / signal

    return kept
