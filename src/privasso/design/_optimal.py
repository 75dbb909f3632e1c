"""The settings of least error for a given privacy, or of most privacy for a given error.

`best_power` is the power of v that a fit of given covariates takes under a model.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import SupportsIndex, TypeVar, cast

import numpy as np

from privasso._types import Found, Passed
from privasso._validation import generator, integer, nonnegative_float, positive_float, real_float
from privasso.design._budget import Budget
from privasso.design._columns import search_columns
from privasso.design._limits import MaxAdvantage, MaxError, MaxLeakage, Setting, Target
from privasso.design._program import LEAKAGE, Evaluator, NonlinearProgram
from privasso.design._result import InfeasibleError
from privasso.design._search import search
from privasso.model import Model
from privasso.noise import NoiseDesign, PowerLaw
from privasso.operators import Covariates
from privasso.privacy import LabelDP, OnAverage, Privacy
from privasso.scales import Empirical

D = TypeVar("D")
#: Targets by the keywords that stand for them.
_TARGETS = {
    "max_onavekl": MaxLeakage,
    "max_advantage": MaxAdvantage,
    "max_error": MaxError,
    "label_dp": Budget,
    "record_dp": Budget,
}


def optimal_design(
    model: Model,
    target: Target[D] | None = None,
    *,
    lam: float | None = None,
    gamma: float | None = None,
    family: str = "power",
    n_features: SupportsIndex | None = None,
    scale_error: float = 0.0,
    rng: int | np.random.Generator | None = None,
    **keyword: object,
) -> D:
    """Choose λ, the level of the noise and its shape over the columns, without data.

    The target says what is wanted: `MaxLeakage`, `MaxAdvantage` or `MaxError` for noise on the
    products Fᵀy, or `Budget` for (ε, δ)-differential privacy. What is reported is
    `state_evolution` at the result.

    Parameters
    ----------
    model : Model
        What the data are expected to be.
    target : MaxLeakage, MaxAdvantage, MaxError or Budget
        What the design must meet.
    lam : float, optional
        Use this λ; it is chosen too if not given.
    gamma : float, optional
        Use this exponent of v instead of choosing one.
    family : {"power", "full"}
        ``"power"``: σ_η² ∝ v^γ. For a model with a covariance C, ``"power"`` is noise of covariance
        ∝ C^γ and ``"full"`` a full shape.
    n_features : int, optional
        Design for N columns, the quantiles of the law, instead of for the limit of many. It
        matters where small columns carry most of the error, and for the largest row under a
        budget for labels.
    scale_error : float
        τ: the noise is shaped after wrong scales, v̂ = v e^(τZ), while the data have v (see
        `mismatched_state_evolution`). Not with a budget.
    rng : None, int or numpy.random.Generator
        Source of the draws for a model with a covariance.
    **keyword
        In place of `target`: ``max_onavekl=κ``, ``max_advantage=a``, ``max_error=e``, or
        ``label_dp=`` or ``record_dp=`` with a budget, and with ``mechanism`` and ``screen`` as in
        `Budget`.

    Returns
    -------
    OptimalDesign, ObjectiveDesign, ScreenedDesign or CorrelatedDesign
        The second for a budget with ``mechanism="objective"``, the third with ``screen``, the last
        for a model with a covariance.

    Raises
    ------
    InfeasibleError
        When no design meets the target; the message names the nearest one that can be met.

    Examples
    --------
    >>> import privasso as pv
    >>> model = pv.Model(alpha=0.5, rho=0.1, sigma_xi=0.1, scales=pv.LogNormal(0.0, 0.5))
    >>> best = pv.optimal_design(model, pv.MaxLeakage(onavekl=2.0))
    >>> round(best.lam, 3), round(best.noise.sigma, 4), round(best.noise.gamma, 2)
    (0.251, 0.0785, 0.97)
    >>> round(best.E, 4), round(best.onavekl(), 4), round(best.multiplier, 4)
    (0.0408, 2.0, -0.0057)

    Any function that takes a noise design takes this one:

    >>> round(pv.state_evolution(model, best.lam, best.noise).E, 4)
    0.0408
    """
    if keyword:
        target = _named(target, **keyword)
    if not isinstance(target, Target):
        raise ValueError(
            f"target must be MaxLeakage, MaxAdvantage, MaxError or Budget, not {target!r}"
        )
    if not isinstance(model, Model):
        raise ValueError(f"model must be a Model, not an object of type {type(model).__name__}")
    correlated = model.covariance is not None
    families = ("power", "full") if correlated else ("power",)
    if family not in families:
        which = "for correlated columns " if correlated else ""
        raise ValueError(f"{which}family must be one of {', '.join(families)}, not {family!r}")
    if correlated and scale_error != 0.0:
        raise ValueError("scale_error is for independent columns; leave it out")
    setting = Setting(
        model,
        None if lam is None else positive_float("lam", lam),
        None if gamma is None else real_float("gamma", gamma),
        family,
        None if n_features is None else integer("n_features", n_features, minimum=1),
        nonnegative_float("scale_error", scale_error),
        generator(rng),
    )
    return target.design(setting)


def _named(
    target: object, mechanism: Passed = None, screen: Passed = None, **keyword: Passed
) -> Found:
    """The one target that a keyword stands for."""
    if unknown := keyword.keys() - _TARGETS.keys():
        raise TypeError(f"optimal_design has no argument {min(unknown)!r}")
    given = [(name, value) for name, value in keyword.items() if value is not None]
    if target is not None or len(given) != 1:
        raise ValueError(
            f"give one target, such as MaxLeakage(0.5), or one of {', '.join(_TARGETS)}"
        )
    ((name, value),) = given
    kind = _TARGETS[name]
    if kind is Budget:
        return Budget(value, mechanism, screen)
    if mechanism is not None or screen is not None:
        raise ValueError("mechanism and screen go with a budget, label_dp or record_dp")
    return kind(value)


def best_power(privacy: Privacy, model: Model, lam: float | None, rows: Covariates) -> NoiseDesign:
    """The best power for this kind of privacy.

    With a budget it is that of least predicted error for these covariates, which are public: the
    prediction takes their number of rows and their scales, and ρ and σ_ξ from the model; λ is
    optimised too where it is None. On average it is that of least OnAveKL, and no data are used.
    """
    if not privacy.formal:
        sigma = cast(OnAverage, privacy).sigma
        if sigma == 0.0 or lam is None:
            return PowerLaw(1.0, 1.0)  # without noise every shape is the same
        return PowerLaw(1.0, least_leakage_exponent(model, lam, sigma))
    n, m = int(rows.live.sum()), rows.shape[0]
    if n == 0:
        return PowerLaw(1.0, 0.5)
    scales = Empirical(np.sqrt(rows.squares[rows.live] * (n / m)))
    data = replace(model, alpha=m / n, scales=scales)
    return optimal_design(data, Budget(cast(LabelDP, privacy)), lam=lam, n_features=n).noise


def least_leakage_exponent(model: Model, lam: float, sigma: float) -> float:
    """γ for which noise σ_η² ∝ v^γ of mean variance σ² has the least OnAveKL at this λ.

    Raises `InfeasibleError` when no exponent leaves an estimator at this λ and σ.
    """
    evaluator = Evaluator(model, search_columns(model.scales, None), None)
    program = NonlinearProgram(evaluator, LEAKAGE, None, 0.0, np.array([False, False, True]))
    found = search(program, np.array([math.log(lam), 2.0 * math.log(sigma), 0.0]))
    if found is None:
        raise InfeasibleError(
            f"at lam = {lam:g} noise of level {sigma:g} leaves no estimator, whatever its shape; "
            "use a larger lam or less noise"
        )
    return float(found[2])
