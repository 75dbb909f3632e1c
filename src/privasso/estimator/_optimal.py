"""``noise="optimal"``: the shape that state evolution favours for the estimator's own model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from privasso.mechanism import LabelDP, OnAverage
from privasso.model import Model
from privasso.noise import NoiseDesign, PowerLaw
from privasso.operators import Covariates
from privasso.scales import Empirical


def optimal_shape(
    privacy: LabelDP | OnAverage, model: Model | None, lam: float | None, rows: Covariates
) -> NoiseDesign:
    """Return σ_η² ∝ v^γ with the best γ; its level is left to `privacy`.

    Under `LabelDP` γ has the least predicted error at that budget, for the shape and scales of
    the covariates, which are public, and the ρ and σ_ξ of the model; at `lam`, or with λ free
    where that is None. Under `OnAverage` γ has the least OnAveKL at that sigma and λ, for the
    model alone: the data do not enter.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> rows = Covariates(np.diag([1.0, 2.0, 3.0]), centre=False)
    >>> model = pv.Model(scales=pv.LogNormal(0.0, 0.5))
    >>> optimal_shape(OnAverage(0.05), model, 0.2, rows).gamma.__round__(2)
    0.96
    """
    from privasso.design import least_leakage_exponent, optimal_design

    if model is None:
        raise ValueError(
            "noise='optimal' needs model=Model(...), the data to expect; noise='auto' does without"
        )
    if isinstance(privacy, OnAverage):
        assert lam is not None  # λ is never chosen from the data without a guarantee
        if privacy.sigma == 0.0:
            return PowerLaw(1.0, 1.0)  # no noise has no shape
        return PowerLaw(1.0, least_leakage_exponent(model, lam, privacy.sigma))
    n = int(rows.live.sum())
    if n == 0:
        return PowerLaw(1.0, 0.5)
    m = rows.shape[0]
    scales = Empirical(np.sqrt(rows.squares[rows.live] * (n / m)))
    data = replace(model, alpha=m / n, scales=scales)
    return optimal_design(data, label_dp=privacy, lam=lam, n_features=n).noise
