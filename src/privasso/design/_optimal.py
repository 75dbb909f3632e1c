"""The settings of least error for a given privacy, or of most privacy for a given error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import (
    Literal,
    Protocol,
    SupportsIndex,
    TypeAlias,
    get_args,
    overload,
    runtime_checkable,
)

import numpy as np
from scipy.special import log_ndtr

from privasso._validation import (
    generator,
    integer,
    nonnegative_float,
    positive_float,
    probability,
    real_float,
)
from privasso.design._correlated import CorrelatedDesign, correlated_design
from privasso.design._correlated_objective import correlated_objective
from privasso.design._family import FAMILIES
from privasso.design._objective import ObjectiveBudget, ObjectiveSearch, objective_budget
from privasso.design._objective_result import ObjectiveDesign
from privasso.design._request import DesignRequest
from privasso.design._result import Constraint, OptimalDesign
from privasso.design._screened import Screen, ScreenedDesign, ScreeningBudget, Sparse
from privasso.design._search import elasticity
from privasso.model import Model
from privasso.theory import FixedPoint


@runtime_checkable
class LabelBudget(Protocol):
    """What a design needs to know of a privacy budget for labels, such as `LabelDP`."""

    @property
    def epsilon(self) -> float:
        """ε of (ε, δ)-differential privacy."""
        ...

    @property
    def mu(self) -> float:
        """The largest Mahalanobis sensitivity that (ε, δ) allows."""
        ...

    @property
    def width(self) -> float:
        """Width of the interval that holds the labels."""
        ...


#: How a formal guarantee is met: noise on Fᵀy, or in the objective of a clipped-residual LASSO.
Mechanism: TypeAlias = Literal["release", "objective"]


@overload
def optimal_design(
    model: Model | None = None,
    *,
    lam: float | None = None,
    gamma: float | None = None,
    max_onavekl: float | None = None,
    max_advantage: float | None = None,
    max_error: float | None = None,
    label_dp: LabelBudget | None = None,
    record_dp: None = None,
    mechanism: Literal["release"] | None = None,
    family: str = "power",
    n_features: SupportsIndex | None = None,
    scale_error: float = 0.0,
    models: Sequence[Model] | None = None,
    rng: int | np.random.Generator | None = None,
) -> OptimalDesign: ...


@overload
def optimal_design(
    model: Model,
    *,
    lam: float | None = None,
    gamma: float | None = None,
    label_dp: ObjectiveBudget,
    mechanism: Literal["objective"],
    n_features: SupportsIndex | None = None,
    rng: int | np.random.Generator | None = None,
) -> ObjectiveDesign: ...


@overload
def optimal_design(
    model: Model,
    *,
    lam: float | None = None,
    gamma: float | None = None,
    record_dp: ObjectiveBudget,
    mechanism: Literal["objective"] | None = None,
    n_features: SupportsIndex | None = None,
    rng: int | np.random.Generator | None = None,
) -> ObjectiveDesign: ...


@overload
def optimal_design(
    model: Model,
    *,
    label_dp: ScreeningBudget | None = None,
    record_dp: ScreeningBudget | None = None,
    n_features: SupportsIndex,
    screen: Screen,
) -> ScreenedDesign: ...


def optimal_design(
    model: Model | None = None,
    *,
    lam: float | None = None,
    gamma: float | None = None,
    max_onavekl: float | None = None,
    max_advantage: float | None = None,
    max_error: float | None = None,
    label_dp: LabelBudget | ObjectiveBudget | ScreeningBudget | None = None,
    record_dp: ObjectiveBudget | ScreeningBudget | None = None,
    mechanism: Mechanism | None = None,
    family: str = "power",
    n_features: SupportsIndex | None = None,
    scale_error: float = 0.0,
    models: Sequence[Model] | None = None,
    rng: int | np.random.Generator | None = None,
    screen: Screen | None = None,
) -> OptimalDesign | ObjectiveDesign | CorrelatedDesign | ScreenedDesign:
    """Choose λ, the level of the noise and its shape over the columns, without data.

    Exactly one of these questions is answered:

    - ``max_onavekl=κ``: least E with the OnAveKL of the whole released vector at most κ;
    - ``max_advantage=a``: least E with an advantage of the best membership attack, averaged over
      records, of at most a (`FixedPoint.attack`);
    - ``max_error=e``: least OnAveKL with E at most e;
    - ``label_dp=LabelDP(...)``: least E under (ε, δ)-differential privacy of the labels, where
      the level follows from (hi − lo)·`label_sensitivity` = μ(ε, δ);
    - ``label_dp=LabelDP(...), mechanism="objective"`` or ``record_dp=RecordBudget(...)``: least E
      of a clipped-residual LASSO with a ridge and noise in its objective, under (ε, δ)-differential
      privacy of labels or of records; κ and the ridge are chosen too (see `ObjectiveDesign`);
    - the same with ``screen="auto"`` and `n_features`: how many columns to choose first, in how
      many rounds and at which share of the budget, with the predicted error of this and of a fit of
      all columns (see `ScreenedDesign`).

    For the first four the search is sequential quadratic programming in (log λ, log σ², shape)
    with exact gradients of the fixed point, for the others a search without derivatives. What is
    reported is `state_evolution` at the result.

    Parameters
    ----------
    model : Model
        What the data are expected to be.
    lam : float, optional
        Use this λ; it is chosen too if not given.
    gamma : float, optional
        Use this exponent of v instead of choosing one.
    max_onavekl, max_advantage, max_error : float, optional
        Targets.
    label_dp : LabelBudget, optional
        A privacy budget for labels: a `LabelDP`.
    record_dp : ObjectiveBudget, optional
        A privacy budget for whole records, such as a `RecordBudget`.
    mechanism : {"release", "objective"}, optional
        How a formal guarantee is met. ``"release"``: noise is added to Fᵀy, from which the
        LASSO is solved; the default for `label_dp`. ``"objective"``: noise in the objective of the
        fit; the only one for `record_dp`.
    family : {"power", "free"}
        ``"power"``: σ_η² ∝ v^γ. ``"free"``: σ_η²(v) is any smooth function, a natural cubic spline
        of log σ_η² in log v with up to nine knots; the design is then a `Tabulated`.
    n_features : int, optional
        Design for N columns, the quantiles of the law, instead of for the limit of many. It
        matters where small columns carry most of the error, and for the largest row under
        `label_dp`.
    scale_error : float
        τ: the noise is shaped after wrong scales, v̂ = v e^(τZ), while the data have v (see
        `mismatched_state_evolution`). Not with `label_dp`, where the right scales are public.
    models : sequence of Model, optional
        In place of `model`: one (λ, noise) for all of them. The constraint holds in every
        model, and the largest relative regret, the value in a model divided by the best that
        model could have by itself, is minimised.
    rng : None, int or numpy.random.Generator
        Source of the draws for a model with a covariance.
    screen : "auto" or int, optional
        Choose columns before the fit: as many as are predicted to be best, or so many.

    For a model with a covariance C, ``family="power"`` is noise of covariance ∝ C^γ and
    ``family="full"`` a full shape; the targets are max_onavekl, max_error, label_dp, and record_dp
    or ``mechanism="objective"`` with the powers 0, ½ and 1 of C.

    Returns
    -------
    OptimalDesign, ObjectiveDesign or CorrelatedDesign
        The second for ``mechanism="objective"``, the third for a model with a covariance.

    Raises
    ------
    InfeasibleError
        When no design meets the target; the message names the nearest one that can be met.

    Examples
    --------
    >>> import privasso as pv
    >>> model = pv.Model(alpha=0.5, rho=0.1, sigma_xi=0.1, scales=pv.LogNormal(0.0, 0.5))
    >>> best = pv.optimal_design(model, max_onavekl=2.0)
    >>> round(best.lam, 3), round(best.noise.sigma, 4), round(best.noise.gamma, 2)
    (0.251, 0.0785, 0.97)
    >>> round(best.E, 4), round(best.onavekl(), 4), round(best.multiplier, 4)
    (0.0408, 2.0, -0.0057)

    More columns than rows, of which ten have coefficients:

    >>> wide = pv.Model(alpha=0.5, rho=0.001, sigma_xi=0.02, scales=pv.Constant(1.0))
    >>> budget = pv.privacy.RecordBudget(1.0, 1e-6)
    >>> chosen = pv.optimal_design(wide, record_dp=budget, n_features=10_000, screen="auto")
    >>> chosen.better, 10 <= chosen.columns <= 60, chosen.r2 > 0.6 > chosen.direct_r2
    ('screened', True, True)

    Any function that takes a noise design takes this one:

    >>> round(pv.state_evolution(model, best.lam, best.noise).E, 4)
    0.0408

    The same budget for labels, met in two ways:

    >>> model, budget = pv.Model(alpha=10.0), pv.LabelDP(1.0, 1e-6, (-1, 1))
    >>> round(pv.optimal_design(model, label_dp=budget).E, 4)
    0.0372
    >>> best = pv.optimal_design(model, label_dp=budget, mechanism="objective")
    >>> round(best.E, 4), round(best.kappa, 2), round(best.t, 1), round(best.lam, 1)
    (0.0181, 0.12, 0.4, 0.7)
    """
    if screen is not None:
        others = (lam, gamma, max_onavekl, max_advantage, max_error, mechanism, models)
        if any(x is not None for x in others) or family != "power" or scale_error != 0.0:
            raise ValueError("screen goes with a model, n_features and a budget alone")
        return _screened_design(model, label_dp, record_dp, n_features, screen)
    if isinstance(model, Model) and model.covariance is not None:
        if max_advantage is not None or models is not None or scale_error != 0.0:
            raise ValueError(
                "for correlated columns the targets are max_onavekl, max_error, label_dp and "
                "record_dp; leave out models and scale_error"
            )
        if family not in ("power", "full"):
            raise ValueError("for correlated columns family is 'power' or 'full'")
        if record_dp is not None or mechanism == "objective":
            if mechanism == "release" or (max_onavekl, max_error) != (None, None):
                raise ValueError("mechanism='objective' goes with a budget and nothing else")
            return correlated_objective(
                model,
                objective_budget(label_dp, record_dp),
                None if lam is None else positive_float("lam", lam),
                None if gamma is None else real_float("gamma", gamma),
                None if n_features is None else integer("n_features", n_features, minimum=1),
                generator(rng),
            )
        count = None if n_features is None else integer("n_features", n_features, minimum=1)
        return correlated_design(
            model,
            _constraint(max_onavekl, None, max_error, label_dp),
            None if lam is None else positive_float("lam", lam),
            None if gamma is None else real_float("gamma", gamma),
            family,
            count,
            generator(rng),
        )
    if mechanism not in (None, *get_args(Mechanism)):
        known = ", ".join(map(repr, get_args(Mechanism)))
        raise ValueError(f"mechanism must be one of {known}, not {mechanism!r}")
    if record_dp is not None or mechanism == "objective":
        if mechanism == "release":
            raise ValueError("whole records are protected by mechanism='objective' only")
        others = (max_onavekl, max_advantage, max_error, models)
        if any(x is not None for x in others) or family != "power" or scale_error != 0.0:
            raise ValueError(
                "mechanism='objective' goes with one model and a budget; leave out max_onavekl, "
                "max_advantage, max_error, models, family and scale_error"
            )
        budget = objective_budget(label_dp, record_dp)
        return _objective_design(model, budget, lam, gamma, n_features)
    if mechanism is not None and label_dp is None:
        raise ValueError("mechanism goes with a budget, label_dp or record_dp; leave it out")
    chosen = _models(model, models)
    count = None if n_features is None else integer("n_features", n_features, minimum=1)
    if family not in FAMILIES:
        raise ValueError(f"family must be one of {', '.join(FAMILIES)}, not {family!r}")
    if lam is not None:
        lam = positive_float("lam", lam)
    if gamma is not None:
        gamma = real_float("gamma", gamma)
        if family != "power":
            raise ValueError("gamma belongs to family='power'; leave it out for a free shape")
    scale_error = nonnegative_float("scale_error", scale_error)
    constraint = _constraint(max_onavekl, max_advantage, max_error, label_dp)
    if scale_error > 0.0 and constraint.kind == "label_dp":
        raise ValueError(
            "scale_error does not go with label_dp: the covariates are public there, so the "
            "noise may follow their own scales at no cost"
        )
    null = max(m.rho * m.scales.moment(1.0) + m.sigma_xi**2 for m in chosen)
    if constraint.kind == "max_error" and lam is None and constraint.target >= null:
        raise ValueError(
            f"releasing nothing at all has the error {null:.6g}; ask for a max_error below that"
        )

    def answer(name: str, gamma: float | None) -> OptimalDesign:
        request = DesignRequest(chosen, constraint, lam, gamma, count, scale_error)
        found, program, noise, points = request.answer(name)
        price = math.nan
        if len(chosen) == 1:
            (fp,) = points
            budget = label_dp if isinstance(label_dp, LabelBudget) else None
            price = _price(elasticity(program, found), constraint, fp, budget)
        return OptimalDesign(
            lam=math.exp(found[0]) if lam is None else lam,
            noise=noise,
            points=points,
            constraint=constraint,
            multiplier=price,
            null_error=null,
            n_features=count,
            _again=lambda gamma: answer("power", gamma),
        )

    return answer(family, gamma)


def _objective_design(
    model: Model | None,
    budget: ObjectiveBudget,
    lam: float | None,
    gamma: float | None,
    n_features: SupportsIndex | None,
) -> ObjectiveDesign:
    (one,) = _models(model, None)
    search = ObjectiveSearch(
        budget,
        None if lam is None else positive_float("lam", lam),
        None if gamma is None else real_float("gamma", gamma),
        None if n_features is None else integer("n_features", n_features, minimum=1),
    )
    return search.best(one)[0]


def _screened_design(
    model: Model | None,
    label_dp: object,
    record_dp: object,
    n_features: SupportsIndex | None,
    screen: Screen,
) -> ScreenedDesign:
    (one,) = _models(model, None)
    if n_features is None:
        raise ValueError("screen needs n_features, the number of columns to choose from")
    budget = label_dp if record_dp is None else record_dp
    if (label_dp is None) == (record_dp is None) or not isinstance(budget, ScreeningBudget):
        raise ValueError(
            "screen needs one budget: label_dp=LabelDP(...) or record_dp=RecordBudget(...)"
        )
    count = integer("n_features", n_features, minimum=2)
    return budget.screened_design(Sparse.of(one, count), screen)


def _models(model: Model | None, models: Sequence[Model] | None) -> tuple[Model, ...]:
    if (model is None) == (models is None):
        raise ValueError("give one model, or several as models=[...]; not both")
    chosen = tuple(models) if models is not None else (model,)
    if not chosen or not all(isinstance(one, Model) for one in chosen):
        raise ValueError("model must be a Model, and models a sequence of them")
    if any(one.covariance is not None for one in chosen if one is not None):
        raise ValueError("this design is for independent columns; leave the covariance out")
    return chosen  # pyright: ignore[reportReturnType]


def _constraint(
    max_onavekl: float | None,
    max_advantage: float | None,
    max_error: float | None,
    label_dp: LabelBudget | ObjectiveBudget | ScreeningBudget | None,
) -> Constraint:
    given = [x for x in (max_onavekl, max_advantage, max_error, label_dp) if x is not None]
    if len(given) != 1:
        raise ValueError(
            "give exactly one of max_onavekl, max_advantage, max_error and label_dp: "
            f"{len(given) or 'none'} of them {'were' if len(given) > 1 else 'was'} given"
        )
    if max_onavekl is not None:
        return Constraint("max_onavekl", positive_float("max_onavekl", max_onavekl))
    if max_advantage is not None:
        return Constraint("max_advantage", probability("max_advantage", max_advantage))
    if max_error is not None:
        return Constraint("max_error", positive_float("max_error", max_error))
    if not isinstance(label_dp, LabelBudget):
        raise ValueError("label_dp must be LabelDP(epsilon, delta, y_bounds)")
    return Constraint("label_dp", label_dp.mu, label_dp.width)


def _price(
    elasticity: float, constraint: Constraint, fp: FixedPoint, label_dp: LabelBudget | None
) -> float:
    """From d log(value)/d log(limit) to the derivative in the target itself."""
    if constraint.kind in ("max_onavekl", "max_advantage"):
        return elasticity * fp.E / constraint.target
    if constraint.kind == "max_error":
        return elasticity * fp.onavekl() / constraint.target
    assert label_dp is not None
    # The limit is on μ². From δ = Φ(μ/2 − ε/μ) − e^ε Φ(b), b = −μ/2 − ε/μ: dμ/dε = Φ(b)/φ(b).
    mu = label_dp.mu
    b = -(0.5 * mu + label_dp.epsilon / mu)
    mills = math.exp(float(log_ndtr(b)) + 0.5 * b * b) * math.sqrt(2.0 * math.pi)
    return elasticity * fp.E * 2.0 * mills / mu
