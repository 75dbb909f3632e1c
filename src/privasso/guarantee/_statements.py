"""The statements that the two kinds of privacy support."""

from __future__ import annotations

import math
from typing import Any

from privasso.guarantee._guarantee import Guarantee
from privasso.mechanism import LabelDP, OnAverage
from privasso.model import Model
from privasso.noise import NoiseDesign
from privasso.scales import ScaleLaw
from privasso.theory import state_evolution

_ARITHMETIC = (
    "the noise is taken as exactly Gaussian; floating-point noise only approximates that, and "
    "no defence against attacks on its low-order bits is made"
)
_FIXED = "nobody knows the fixed random state that the noise came from"
_ENTROPY = (
    "nobody can predict the noise, which came from a generator that is seeded by the operating "
    "system but not a cryptographic one"
)


def label_dp_guarantee(
    privacy: LabelDP, *, fit_intercept: bool, from_os_entropy: bool
) -> Guarantee:
    """State label differential privacy of a release and of all that is computed from it.

    Examples
    --------
    >>> import privasso as pv
    >>> privacy = pv.LabelDP(1.0, 1e-6, y_bounds=(0, 1))
    >>> label_dp_guarantee(privacy, fit_intercept=True, from_os_entropy=True)["epsilon"]
    1.0
    """
    low, high = privacy.y_bounds
    released = ["the noisy products of covariates and labels"]
    released += ["the noisy label sum"] if fit_intercept else []
    return Guarantee(
        kind="label-dp",
        parameters=(
            ("delta", privacy.delta),
            ("epsilon", privacy.epsilon),
            ("y_high", high),
            ("y_low", low),
        ),
        adjacency="one entry",
        assumptions=(
            "the covariates are public, and neither their choice nor the settings of the fit "
            "depend on the labels",
            "the label bounds were fixed before the labels were seen",
            "each person contributes one label, and the same labels are not used in another "
            "release, whose loss would add to this one",
            _ARITHMETIC,
            _ENTROPY if from_os_entropy else _FIXED,
        ),
        released=(
            *released,
            "everything computed from these and the covariates, such as coefficients at any lambda",
        ),
        for_release=from_os_entropy,
    )


def average_case_guarantee(
    privacy: OnAverage,
    *,
    scales: Any = None,
    fit_intercept: bool,
    from_os_entropy: bool,
    model: Model | None = None,
    lam: float | None = None,
    design: NoiseDesign | None = None,
) -> Guarantee:
    """State what objective perturbation of a given level supports: an average, or nothing.

    With a model, a λ and a design, the on-average KL divergence of state evolution is added
    where it is finite.

    Examples
    --------
    >>> import privasso as pv
    >>> options = {"fit_intercept": False, "from_os_entropy": True}
    >>> average_case_guarantee(pv.OnAverage(0.0), **options).kind
    'none'
    >>> average_case_guarantee(pv.OnAverage(0.1), **options).kind
    'average-case'
    """
    released = ("the coefficients and the intercept",) if fit_intercept else ("the coefficients",)
    if privacy.sigma == 0.0:
        return Guarantee("none", (), "", (), released, for_release=from_os_entropy)
    parameters = [("sigma", privacy.sigma)]
    assumptions = ["only what is listed as released is published", _scales_sentence(scales)]
    if model is not None and lam is not None and design is not None:
        point = state_evolution(model, lam, design)
        if math.isfinite(point.onavekl()):
            parameters.append(("onavekl_joint", point.onavekl()))
            parameters.append(("onavekl_paper", point.onavekl("paper")))
            assumptions.append(
                "the data follow the given model: independent Gaussian covariates, no intercept, "
                f"alpha = {model.alpha:g}, rho = {model.rho:g}, sigma_xi = {model.sigma_xi:g}, "
                f"scales {model.scales!r}"
            )
        else:
            assumptions.append(
                "nothing is read into the on-average KL divergence, which is not finite under "
                "the given model"
            )
    return Guarantee(
        kind="average-case",
        parameters=tuple(parameters),
        adjacency="one record replaced by another of the same law, on average over both",
        assumptions=(*assumptions, _ARITHMETIC, _ENTROPY if from_os_entropy else _FIXED),
        released=released,
        for_release=from_os_entropy,
    )


def _scales_sentence(scales: Any) -> str:
    if scales is None or isinstance(scales, str):
        return (
            "the size of the noise on each column, which was computed from the sensitive columns "
            "themselves, is not itself sensitive; for any worst-case reading this is a leak"
        )
    kind = "the law of the scales" if isinstance(scales, ScaleLaw) else "the scales"
    return f"{kind} given for the noise is public or prior knowledge, not taken from the data"
