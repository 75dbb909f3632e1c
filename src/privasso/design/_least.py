"""The exponent of least leakage at a given level of noise."""

from __future__ import annotations

import math
from typing import SupportsIndex

import numpy as np

from privasso._validation import integer, positive_float
from privasso.design._columns import search_columns
from privasso.design._evaluate import Evaluator
from privasso.design._family import Family
from privasso.design._program import LEAKAGE, NonlinearProgram
from privasso.design._result import InfeasibleError
from privasso.design._search import search
from privasso.model import Model


def least_leakage_exponent(
    model: Model, lam: float, sigma: float, *, n_features: SupportsIndex | None = None
) -> float:
    """γ for which noise σ_η² ∝ v^γ of mean variance σ² has the least OnAveKL at this λ.

    Another shape may have a smaller error. To limit the error as well, use `optimal_design` with
    ``max_error`` and ``lam``.

    Raises `InfeasibleError` when no exponent leaves an estimator at this λ and σ.
    """
    if model.covariance is not None:
        raise ValueError("this exponent is for independent columns; leave the covariance out")
    lam, sigma = positive_float("lam", lam), positive_float("sigma", sigma)
    count = None if n_features is None else integer("n_features", n_features, minimum=1)
    columns = search_columns(model.scales, count)
    evaluator = Evaluator(model, columns, Family.powers(), count)
    program = NonlinearProgram((evaluator,), LEAKAGE, None, 0.0, np.array([False, False, True]))
    found = search(program, np.array([math.log(lam), 2.0 * math.log(sigma), 0.0]))
    if found is None:
        raise InfeasibleError(
            f"at lam = {lam:g} noise of level {sigma:g} leaves no estimator, whatever its shape; "
            "use a larger lam or less noise"
        )
    return float(found[2])
