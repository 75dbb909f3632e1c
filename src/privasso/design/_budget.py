"""A privacy budget as a target, also for a fit that chooses columns first."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias, cast, get_args

from scipy.special import log_ndtr

from privasso._types import Found
from privasso._validation import integer
from privasso.design._correlated import correlated_objective
from privasso.design._limits import Limit, Setting, Target
from privasso.design._objective import ObjectiveSearch
from privasso.design._program import SENSITIVITY, NonlinearProgram
from privasso.design._search import DesignRequest, least_lambda
from privasso.model import Model
from privasso.planning import Screen, ScreeningPrior, check_screen, direct_r2, usual_screening
from privasso.privacy import FormalBudget, LabelDP
from privasso.theory import FixedPoint

#: How a formal guarantee is met: noise on Fᵀy, or in the objective of a clipped-residual LASSO.
Mechanism: TypeAlias = Literal["release", "objective"]


@dataclass(frozen=True)
class Budget(Target):
    """Least error under (ε, δ)-differential privacy of labels or of whole records.

    Parameters
    ----------
    privacy : LabelDP, RecordBudget or RecordDP
        The budget.
    mechanism : {"release", "objective"}, optional
        ``"release"``: noise on Fᵀy, from which the LASSO is solved; the default for labels. Its
        level follows from (hi − lo)·`label_sensitivity` = μ(ε, δ). ``"objective"``: noise in the
        objective of a clipped-residual LASSO with a ridge; κ and the ridge are chosen too. It is
        the only mechanism for records.
    screen : "auto" or int, optional
        Choose columns before the fit: as many as are predicted to be best, or so many. The answer
        is how many, in how many rounds and at which share of the budget, with the predicted error
        of this and of a fit of all columns. It needs ``n_features``.

    Examples
    --------
    The same budget for labels, met in two ways:

    >>> import privasso as pv
    >>> model, labels = pv.Model(alpha=10.0), pv.LabelDP(1.0, 1e-6, (-1, 1))
    >>> round(pv.optimal_design(model, pv.Budget(labels)).E, 4)
    0.0372
    >>> best = pv.optimal_design(model, pv.Budget(labels, "objective"))
    >>> round(best.E, 4), round(best.kappa, 2), round(best.t, 1), round(best.lam, 1)
    (0.0181, 0.12, 0.4, 0.7)

    More columns than rows, of which ten have coefficients:

    >>> wide = pv.Model(alpha=0.5, rho=0.001, sigma_xi=0.02, scales=pv.Constant(1.0))
    >>> target = pv.Budget(pv.privacy.RecordBudget(1.0, 1e-6), screen="auto")
    >>> chosen = pv.optimal_design(wide, target, n_features=10_000)
    >>> chosen.better, 10 <= chosen.columns <= 60, chosen.r2 > 0.6 > chosen.direct_r2
    ('screened', True, True)
    """

    privacy: FormalBudget
    mechanism: Mechanism | None = None
    screen: Screen | None = None

    def __post_init__(self) -> None:
        if self.mechanism not in (None, *get_args(Mechanism)):
            known = ", ".join(map(repr, get_args(Mechanism)))
            raise ValueError(f"mechanism must be one of {known}, not {self.mechanism!r}")
        if not isinstance(self.privacy, FormalBudget):
            raise ValueError(
                "privacy must be a budget such as LabelDP(epsilon, delta, y_bounds) or "
                f"RecordBudget(epsilon, delta), not {self.privacy!r}"
            )
        if getattr(self.privacy, "finds_range", False):
            raise ValueError("a design needs y_bounds as numbers, in the units of the model")
        if self.mechanism == "release" and not self._labels:
            raise ValueError("whole records are protected by mechanism='objective' only")

    @property
    def _labels(self) -> bool:
        """Whether labels alone are private."""
        return self.privacy.pair.unit == "label"

    def design(self, setting: Setting) -> Found:
        """Return the best design for the mechanism."""
        budget = self.privacy
        if self.screen is not None:
            return self._screened(setting, self.screen)
        if self.mechanism != "objective" and self._labels:
            return _LabelLimit(cast(LabelDP, budget)).design(setting)
        if setting.scale_error != 0.0:
            raise ValueError("mechanism='objective' needs the right scales; leave scale_error out")
        if setting.correlated:
            return correlated_objective(budget, setting)
        search = ObjectiveSearch(budget, setting.lam, setting.gamma, setting.n_features)
        return search.best(setting.model)

    def _screened(self, setting: Setting, screen: Screen) -> Found:
        fixed = setting.lam is not None or setting.gamma is not None
        if fixed or setting.scale_error != 0.0 or self.mechanism:
            raise ValueError("screen goes with a model, n_features and a budget alone")
        if setting.n_features is None:
            raise ValueError("screen needs n_features, the number of columns to choose from")
        if setting.correlated:
            raise ValueError("this design is for independent columns; leave the covariance out")
        count = integer("n_features", setting.n_features, minimum=2)
        return best_screening(self.privacy, Sparse.of(setting.model, count), screen)


@dataclass(frozen=True)
class _LabelLimit(Limit):
    """Least error of noise on Fᵀy under a budget for labels."""

    budget: LabelDP

    kind: ClassVar[str] = "label_dp"
    constraint: ClassVar[str] = SENSITIVITY
    price_in_words: ClassVar[str] = "dE/dε = {:.3g}: change of the error per unit of ε allowed"

    @property
    def target(self) -> float:
        """The largest sensitivity μ(ε, δ)."""
        return self.budget.mu

    @property
    def width(self) -> float:
        return self.budget.label_width

    @property
    def log(self) -> float:
        return 2.0 * math.log(self.target / self.width)

    def design(self, setting: Setting) -> Found:
        if setting.scale_error > 0.0:
            raise ValueError(
                "scale_error does not go with label_dp: the covariates are public there, so the "
                "noise may follow their own scales at no cost"
            )
        return super().design(setting)

    def price(self, elasticity: float, fp: FixedPoint) -> float:
        # The limit is on μ². From δ = Φ(μ/2 − ε/μ) − e^ε Φ(b), b = −μ/2 − ε/μ: dμ/dε = Φ(b)/φ(b).
        mu = self.budget.mu
        b = -(0.5 * mu + self.budget.epsilon / mu)
        mills = math.exp(float(log_ndtr(b)) + 0.5 * b * b) * math.sqrt(2.0 * math.pi)
        return elasticity * fp.E * 2.0 * mills / mu

    def unmet(self, request: DesignRequest, program: NonlinearProgram) -> str:
        lam = request.setting.lam
        if lam is None:
            return "no design was found that meets this label budget; passing n_features may help"
        return (
            f"at lam = {lam:g} no estimator exists with the noise that this budget needs, for any "
            f"power of v; lam must be above {least_lambda(request, program):.4g}, or be left free, "
            "or the budget be larger"
        )


#: Most of the variance of labels that may be explained in a prediction.
_MOST = 0.999


@dataclass(frozen=True)
class Sparse:
    """What a model says of a table, as a choice of columns needs it.

    - `n_rows`, `n_columns`: size of the table.
    - `n_true`: number of columns with coefficients.
    - `explained`: part of the variance of the labels that they explain.
    - `label_sd`: standard deviation of the labels.
    """

    n_rows: int
    n_columns: int
    n_true: int
    explained: float
    label_sd: float

    @classmethod
    def of(cls, model: Model, n_features: int) -> Sparse:
        """The table of a model with so many columns."""
        signal = model.rho * model.scales.moment(1.0)
        total = signal + model.sigma_xi**2
        return cls(
            round(model.alpha * n_features),
            n_features,
            max(1, round(model.rho * n_features)),
            signal / total,
            math.sqrt(total),
        )


@dataclass(frozen=True)
class ScreenedDesign:
    """A choice of columns and a fit of these under a formal guarantee; made by `optimal_design`.

    - `covers` ("labels" or "records"): what the guarantee protects.
    - `epsilon`, `delta`: the budget of choice and fit together.
    - `columns`: how many columns are chosen in all rounds: the argument ``screen`` of
      `PrivateLasso`.
    - `rounds`: in how many rounds.
    - `share`: squared sensitivity of everything before the last fit, relative to the whole.
    - `found`: predicted chance that a column with a coefficient is chosen.
    - `r2`, `direct_r2`: predicted R² of the fit of chosen columns, and of a fit of all.
    - `table`: the table that this is for.
    """

    covers: str
    epsilon: float
    delta: float
    columns: int
    rounds: int
    share: float
    found: float
    r2: float
    direct_r2: float
    table: Sparse

    @property
    def better(self) -> str:
        """``"screened"``, or ``"direct"`` where a fit of all columns is predicted to be better."""
        return "screened" if self.r2 > self.direct_r2 else "direct"

    @property
    def E(self) -> float:
        """Predicted error of the fit of chosen columns on a new record, label noise included."""
        return (1.0 - self.r2) * self.table.label_sd**2


def best_screening(privacy: FormalBudget, table: Sparse, screen: Screen) -> ScreenedDesign:
    """Return the numbers with the largest predicted R² for this table.

    Where the labels have bounds, their deviation relative to these follows from the model.
    """
    check_screen(screen)
    epsilon, delta, neighbours = privacy.epsilon, privacy.delta, privacy.pair
    prior = ScreeningPrior(n_true=table.n_true, explained=min(table.explained, _MOST))
    if privacy.label_width is not None:
        prior = replace(prior, label_deviation=table.label_sd / privacy.label_width)
    size = table.n_rows, table.n_columns
    count = None if screen == "auto" else int(screen)
    # A number that is given, or the best one, even where a fit of all columns is better.
    settings = usual_screening(
        epsilon, delta, *size, count=count, prior=prior, neighbours=neighbours, always=True
    )
    assert settings is not None
    return ScreenedDesign(
        "labels" if neighbours.unit == "label" else "records",
        epsilon,
        delta,
        settings.columns,
        settings.further + 1,
        settings.share,
        settings.found(prior, *size),
        max(settings.r2(prior, *size), 0.0),
        max(direct_r2(prior, epsilon, delta, *size, neighbours), 0.0),
        table,
    )
