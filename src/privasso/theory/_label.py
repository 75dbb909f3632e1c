"""The label sensitivity of noise in a model."""

from __future__ import annotations

import math
from typing import SupportsIndex

import numpy as np

from privasso._validation import integer
from privasso.model import Model
from privasso.noise import NoiseDesign, PowerLaw
from privasso.scales import Constant, Empirical
from privasso.theory._nodes import REFINEMENTS, Nodes, Tail, columns, quadrature, tail_exponent
from privasso.theory._rows import largest_row_norm
from privasso.theory._state_evolution import check


def label_sensitivity(
    model: Model, noise: NoiseDesign, *, n_features: SupportsIndex | None = None
) -> float:
    """Predict μ = max_k (Σ_i f_ki²/σ_i²)^½ over the rows f_k, for labels in an interval of width 1.

    In the limit of many columns every row has μ² = E[v/σ_η²(v)]. With n_features the columns are
    the quantiles of the law, and the answer is the median of the maximum over M = αN rows (see
    `docs/design.md`). Multiply by the width of the label bounds, and compare with `LabelDP.mu`.
    A fit computes the maximum from its own rows; this predicts it without data.

    Returns
    -------
    float
        inf where small columns get too little noise: no level of this noise then protects the
        labels in the limit of many columns.

    Examples
    --------
    >>> import privasso as pv
    >>> from privasso.theory import label_sensitivity
    >>> round(label_sensitivity(pv.Model(), pv.PowerLaw(1.0, 0.5)), 6)  # E[√v] = 1/2
    0.5
    >>> round(label_sensitivity(pv.Model(), pv.PowerLaw(1.0, 0.5), n_features=1000), 4)
    0.5391
    >>> label_sensitivity(pv.Model(), pv.Gram(1.0))  # E[1/v] is infinite
    inf
    """
    check(model, noise)
    count = None if n_features is None else integer("n_features", n_features, minimum=1)
    if noise.sigma == 0.0:
        return math.inf
    unit = noise.with_sigma(1.0)
    law = model.scales
    if count is None and not isinstance(law, (Constant, Empirical)):
        gamma = tail_exponent(law, unit)
        if gamma == math.inf or not math.isfinite(law.moment(1.0 - gamma)):
            return math.inf
        if isinstance(unit, PowerLaw):
            return math.sqrt(law.moment(gamma) * law.moment(1.0 - gamma)) / noise.sigma
        bounded = bool(np.isfinite(law.quantile([1.0])[0]))
        nodes: Nodes | None = quadrature(
            law, unit, REFINEMENTS - 1, Tail.SLOW if bounded else Tail.LIGHT
        )
    else:
        nodes = columns(law, unit, count)
    assert nodes is not None
    with np.errstate(divide="ignore", over="ignore"):
        ratios = nodes.v / nodes.profile
    # A node so small that its variance underflows has no weight either.
    counted = nodes.w * ratios > 0.0 if count is not None else nodes.profile > 0.0
    if not np.isfinite(ratios[counted]).all():
        return math.inf
    squared, _ = largest_row_norm(ratios[counted], nodes.w[counted], count, model.alpha)
    return math.sqrt(squared) / noise.sigma
