"""What is asked of the explorer: its controls, and model, λ and noise by them or by a table."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Literal

import numpy as np

from privasso._documents import Fields
from privasso._text import escaped
from privasso._types import Passed
from privasso.accounting import gaussian_epsilon
from privasso.encoding import Numbers, looks_like_identifier
from privasso.model import AutoRegressive, Blocks, Factors, GivenCovariance, Model
from privasso.noise import PowerLaw
from privasso.privacy import LabelDP
from privasso.scales import Constant, Empirical, LogNormal, ScaleLaw, Uniform
from privasso.tables import Table
from privasso.theory import FixedPoint, critical_noise, label_sensitivity, state_evolution


@dataclass(frozen=True)
class Control:
    """A slider with a field for exact values.

    - `label`, `help`: what it is called, and what it means in one sentence.
    - `low`, `high`: range of the slider. The field takes values beyond it where they make sense.
    - `scale`: how positions of the slider become values.
    - `whole`: whether only whole numbers make sense.
    """

    name: str
    label: str
    help: str
    low: float
    high: float
    start: float
    scale: Literal["log", "linear"] = "log"
    whole: bool = False


DATA = (
    Control("alpha", "Rows per column, α = M/N", "Rows divided by columns.", 0.05, 100.0, 0.5),
    Control("rho", "True coefficients, ρ", "Fraction that is not zero.", 0.005, 1.0, 0.1),
    Control(
        "sigma_xi", "Label noise, σ_ξ", "Standard deviation of what the columns cannot explain.",
        0.0, 1.0, 0.1, "linear",
    ),
)  # fmt: skip
LAW = {
    "uniform": (
        Control("low", "Smallest scale", "Lower end of the interval.", 0.0, 2.0, 0.0, "linear"),
        Control("high", "Largest scale", "Upper end of the interval.", 0.1, 4.0, 1.0, "linear"),
    ),
    "lognormal": (
        Control("mu", "Mean of log s", "Centre of the law.", -2.0, 2.0, 0.0, "linear"),
        Control(
            "spread", "Deviation of log s", "How much scales differ.", 0.05, 2.0, 0.5, "linear"
        ),
    ),
    "constant": (Control("value", "The scale", "The same for all columns.", 0.1, 10.0, 1.0),),
}
CORRELATION = {
    "ar": (
        Control(
            "neighbour_r", "Correlation of neighbours", "It falls with the distance of columns.",
            0.0, 0.99, 0.8, "linear",
        ),
    ),
    "blocks": (
        Control(
            "block_size", "Columns in a block", "A whole number.", 2.0, 50.0, 10.0, "linear", True
        ),
        Control(
            "block_r", "Correlation within a block", "Blocks do not correlate with one another.",
            0.0, 0.95, 0.5, "linear",
        ),
    ),
    "factors": (
        Control(
            "n_factors", "Number of factors", "A whole number.", 1.0, 50.0, 5.0, "linear", True
        ),
        Control(
            "factor_share", "Share of the factors", "Part of the variance of the columns that is "
            "due to the factors.", 0.0, 0.95, 0.5, "linear",
        ),
    ),
}  # fmt: skip
ESTIMATE = (
    Control("lam", "Penalty, λ", "Larger values give fewer coefficients.", 1e-3, 100.0, 0.2),
    Control(
        "gamma", "Shape of the noise, γ",
        "Its variance grows as the γ-th power of the squared scale: 0 is isotropic, 2 the "
        "Gram-based design.", 0.0, 3.0, 2.0, "linear",
    ),
)  # fmt: skip
NOISE = {
    "level": (
        Control("sigma", "Noise level, σ_η", "Root of its mean variance.", 1e-3, 100.0, 0.05),
    ),
    "labels": (
        Control("epsilon", "Budget, ε", "Smaller is more private.", 0.05, 50.0, 1.0),
        Control(
            "delta", "δ", "About the chance that the guarantee fails; choose far below 1/rows.",
            1e-10, 1e-2, 1e-6,
        ),
        Control(
            "width", "Range of the labels",
            "Distance between their bounds, in standard deviations of the labels.",
            1.0, 100.0, 6.0,
        ),
    ),
}  # fmt: skip

#: Designs whose trade-offs are compared.
COMPARED = {0.0: "isotropic, γ = 0", 0.5: "γ = ½", 1.0: "γ = 1", 2.0: "Gram-based, γ = 2"}


def every_control() -> list[Control]:
    """All controls in the order of the page."""
    groups = [*LAW.values(), *CORRELATION.values(), ESTIMATE, *NOISE.values()]
    return [*DATA, *(control for group in groups for control in group)]


#: Columns and scales beyond this make a point too slow for a slider.
MOST_COLUMNS = 10_000
#: The same for correlated columns, which are simulated, and how many there are unless it is said.
MOST_CORRELATED, USUAL_CORRELATED = 1000, 300
_START = {control.name: control.start for control in every_control()}


@dataclass(frozen=True)
class Settings:
    """The state of the controls; the names are those of the controls.

    - `law`: ``"uniform"``, ``"lognormal"``, ``"constant"`` or ``"own"``, which takes `scales`.
    - `noise_by`: ``"level"``: the noise has the level `sigma`. ``"labels"``: it has the level that
      protects labels with (ε, δ), when Fᵀy is released.
    - `width`: distance between the bounds of the labels, in standard deviations of the labels.
    - `n_features`: number of columns; None for the limit of many.
    - `correlation`: ``"none"``, ``"ar"``, ``"blocks"``, ``"factors"`` or ``"table"``, which takes
      `covariance`.
    - `covariance`: covariance of the columns of a table. No page sees it.
    """

    alpha: float = _START["alpha"]
    rho: float = _START["rho"]
    sigma_xi: float = _START["sigma_xi"]
    law: str = "uniform"
    low: float = _START["low"]
    high: float = _START["high"]
    mu: float = _START["mu"]
    spread: float = _START["spread"]
    value: float = _START["value"]
    scales: tuple[float, ...] = field(default=(), repr=False)
    lam: float = _START["lam"]
    gamma: float = _START["gamma"]
    noise_by: str = "level"
    sigma: float = _START["sigma"]
    epsilon: float = _START["epsilon"]
    delta: float = _START["delta"]
    width: float = _START["width"]
    n_features: int | None = None
    correlation: str = "none"
    neighbour_r: float = _START["neighbour_r"]
    block_size: float = _START["block_size"]
    block_r: float = _START["block_r"]
    n_factors: float = _START["n_factors"]
    factor_share: float = _START["factor_share"]
    covariance: GivenCovariance | None = field(default=None, repr=False, compare=False)

    @classmethod
    def from_dict(cls, document: object, covariance: GivenCovariance | None = None) -> Settings:
        """Read settings that a page sent; anything unexpected is a `DocumentError`."""
        found = Fields(document, "settings")
        known: dict[str, Passed] = {name: found.number(name) for name in _START}
        known |= {name: found.text(name) for name in ("law", "noise_by", "correlation")}
        known["scales"] = () if found.is_null("scales") else tuple(found.numbers("scales").tolist())
        known["n_features"] = (
            None if found.is_null("n_features") else found.whole("n_features", 1, MOST_COLUMNS)
        )
        found.end()
        return cls(**known, covariance=covariance)

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON, all but the covariance of a table."""
        names = (x.name for x in fields(self) if x.name != "covariance")
        return {**{name: getattr(self, name) for name in names}, "scales": [*self.scales]}

    @cached_property
    def model(self) -> Model:
        """The model of the data: the one place that knows how controls become one."""
        return Model(self.alpha, self.rho, self.sigma_xi, self._law())

    @property
    def correlated(self) -> Model:
        """The model of the data with correlated columns."""
        if self.correlation == "table":
            if self.covariance is None:
                raise ValueError("no table was given: start with privasso explore TABLE")
            return replace(self.model, scales=None, covariance=self.covariance)
        kinds = {
            "ar": lambda: AutoRegressive(self.neighbour_r),
            "blocks": lambda: Blocks(
                _whole("the columns in a block", self.block_size), self.block_r
            ),
            "factors": lambda: Factors(
                _whole("the number of factors", self.n_factors), self.factor_share
            ),
        }
        known = ", ".join(["none", *kinds, "table"])
        if self.correlation not in kinds:
            raise ValueError(f"correlation must be one of {known}, not {self.correlation!r}")
        return replace(self.model, covariance=kinds[self.correlation]())

    @property
    def n_correlated(self) -> int:
        """Number of columns that are simulated: those of a table, as given, or usually 300."""
        if self.correlation == "table" and self.covariance is not None:
            return self.covariance.n_columns
        own = len(self.scales) if self.law == "own" else USUAL_CORRELATED
        number = self.n_features or own
        if number > MOST_CORRELATED:
            raise ValueError(f"at most {MOST_CORRELATED} correlated columns can be explored")
        return number

    @cached_property
    def noise(self) -> PowerLaw:
        """The noise with its level."""
        return PowerLaw(self.level, self.gamma)

    @cached_property
    def level(self) -> float:
        """σ_η, given or from (ε, δ)."""
        if self.noise_by == "level":
            return self.sigma
        if self.noise_by != "labels":
            raise ValueError(f"noise_by must be level or labels, not {self.noise_by!r}")
        budget = LabelDP(self.epsilon, self.delta, (0.0, self.label_range))
        needed = self.label_range * self.label_sensitivity / budget.mu
        if not math.isfinite(needed):
            raise ValueError(
                "no level of this noise protects the labels in the limit of many columns, because "
                "small columns get too little of it: choose a smaller γ or give the number of "
                "columns"
            )
        return needed

    @property
    def label_variance(self) -> float:
        """Variance of a label, and the error of releasing nothing."""
        return self.rho * self.model.scales.moment(1) + self.sigma_xi**2

    @property
    def label_range(self) -> float:
        """Distance between the bounds of the labels."""
        return self.width * math.sqrt(self.label_variance)

    @cached_property
    def prediction(self) -> FixedPoint:
        """State evolution at the settings."""
        return state_evolution(self.model, self.lam, self.noise, n_features=self.n_features)

    @cached_property
    def edge(self) -> float:
        """Level of this noise beyond which no estimator exists."""
        shape = PowerLaw(1.0, self.gamma)
        return critical_noise(self.model, self.lam, shape, n_features=self.n_features)

    @cached_property
    def label_sensitivity(self) -> float:
        """μ for labels in an interval of width 1 and noise of level 1."""
        return label_sensitivity(self.model, PowerLaw(1.0, self.gamma), n_features=self.n_features)

    def label_epsilon(self, sigma: float) -> float:
        """ε of the labels at δ, if Fᵀy is released with noise of this level."""
        mu = self.label_range * self.label_sensitivity / sigma if sigma > 0.0 else math.inf
        return gaussian_epsilon(self.delta, mu) if math.isfinite(mu) else math.inf

    def _law(self) -> ScaleLaw:
        if self.law == "uniform":
            return Uniform(self.low, self.high)
        if self.law == "lognormal":
            return LogNormal(self.mu, self.spread)
        if self.law == "constant":
            return Constant(self.value)
        if self.law != "own":
            raise ValueError(f"law must be uniform, lognormal, constant or own, not {self.law!r}")
        if not self.scales:
            raise ValueError("write the scales of your columns, with spaces between them")
        if len(self.scales) > MOST_COLUMNS:
            raise ValueError(f"at most {MOST_COLUMNS} scales can be explored")
        return Empirical(self.scales)


def _whole(what: str, number: float) -> int:
    if not number.is_integer():
        raise ValueError(f"{what} must be a whole number, not {number:g}")
    return int(number)


def settings_of(
    table: Table,
    target: str | None = None,
    exclude: Sequence[str] | None = None,
    keep: Collection[str] = (),
) -> Settings:
    """Scales of the columns of numbers relative to their root mean square, and rows per column.

    A column that looks like an identifier of the rows is refused unless it is one of `keep`.
    """
    table.require([name for name in (target, *keep) if name is not None])
    columns = table.columns(table.feature_names(target, exclude=exclude))
    found = [each for each in columns.columns if isinstance(each, Numbers)]
    for each in found:
        if each.name not in keep and looks_like_identifier(each):
            raise ValueError(
                f"the column {each.name!r} looks like an identifier of the rows: leave it out with "
                "--exclude, or name it with --keep"
            )
    numbers = [each.values for each in found]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a column without any value
        spread = np.array([np.nanstd(values) for values in numbers])
    varies = np.isfinite(spread) & (spread > 0.0)
    spread = spread[varies]
    if not 1 <= spread.size <= MOST_COLUMNS:
        raise ValueError(
            f"{escaped(table.path)} has {spread.size} columns of numbers that vary; 1 to "
            f"{MOST_COLUMNS} can be explored"
        )
    unit = np.sqrt(np.mean(spread**2))
    relative = spread / unit
    covariance = None
    if 2 <= spread.size <= MOST_CORRELATED and table.n_rows > 1:
        X = np.column_stack([numbers[k] for k in np.flatnonzero(varies)])
        X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
        # `of` gives N times the covariance, for rows as they are.
        covariance = GivenCovariance.of(X / (unit * np.sqrt(spread.size)))
    return Settings(
        correlation="none" if covariance is None else "table",
        covariance=covariance,
        alpha=table.n_rows / spread.size,
        law="own",
        scales=tuple(float(f"{scale:.6g}") for scale in relative),
        gamma=1.0,
    )
