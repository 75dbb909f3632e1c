"""The steps of a fit, one by one: release, statement, choice of λ."""

from __future__ import annotations

from typing import Any

import numpy as np

from privasso.estimator._choose import choose_lambda
from privasso.estimator._postprocess import Postprocess
from privasso.guarantee import Guarantee, average_case_guarantee, label_dp_guarantee
from privasso.mechanism import LabelDP, OnAverage, Release, release_labels
from privasso.model import Model
from privasso.noise import NoiseDesign
from privasso.operators import Covariates


def released(
    rows: Covariates,
    y: Any,
    privacy: LabelDP | OnAverage,
    design: NoiseDesign,
    *,
    scales: Any = None,
    rng: int | np.random.Generator | None = None,
) -> tuple[Release, NoiseDesign]:
    """Run the mechanism; return what left it, and the design at the level that was used.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> rows = Covariates(np.eye(4), centre=False)
    >>> release, design = released(rows, np.ones(4), pv.OnAverage(0.1), pv.Isotropic(1.0))
    >>> release.b.shape, round(design.sigma, 6)
    ((4,), 0.1)
    """
    release = release_labels(
        rows, y, privacy, design, fit_intercept=rows.centred, scales=scales, rng=rng
    )
    return release, design.with_sigma(noise_level(release.sigma, rows))


def noise_level(sigma: np.ndarray, rows: Covariates) -> float:
    """Root mean variance over the columns that carry data."""
    return float(np.sqrt(np.mean(sigma[rows.live] ** 2))) if rows.live.any() else 0.0


def statement(
    privacy: LabelDP | OnAverage,
    design: NoiseDesign,
    *,
    scales: Any = None,
    fit_intercept: bool,
    from_os_entropy: bool,
    model: Model | None = None,
    lam: float | None = None,
) -> Guarantee:
    """Return what may be claimed about a fit with these settings.

    Examples
    --------
    >>> import privasso as pv
    >>> options = {"fit_intercept": True, "from_os_entropy": True}
    >>> statement(pv.OnAverage(0.1), pv.Gram(0.1), **options).kind
    'average-case'
    """
    if isinstance(privacy, LabelDP):
        return label_dp_guarantee(
            privacy, fit_intercept=fit_intercept, from_os_entropy=from_os_entropy
        )
    return average_case_guarantee(
        privacy,
        scales=scales,
        fit_intercept=fit_intercept,
        from_os_entropy=from_os_entropy,
        model=model,
        lam=lam,
        design=design.with_sigma(privacy.sigma),
    )


def automatic_lambda(post: Postprocess, width: float) -> float:
    """λ from the release alone, for labels whose bounds are `width` apart.

    Labels that fill their bounds have a deviation of about a sixth of the width.
    """
    return choose_lambda(post, (width / 6.0) ** 2)
