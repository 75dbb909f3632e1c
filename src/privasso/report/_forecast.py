"""State evolution for the columns at hand, in the units of their labels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privasso._validation import positive_float
from privasso.estimator import noise_level
from privasso.mechanism import LabelDP, OnAverage, noise_levels
from privasso.model import Model
from privasso.noise import Isotropic, NoiseDesign, PowerLaw
from privasso.operators import Covariates
from privasso.scales import Empirical
from privasso.theory import FixedPointStatus, critical_lambda_ratio, state_evolution

#: λ is looked for over this many powers of ten, with this many points in each.
_DECADES, _PER_DECADE = 5, 10


@dataclass(frozen=True)
class Assumptions:
    """What a prediction must suppose about labels that it does not read.

    Parameters
    ----------
    rho : float
        Share of the coefficients that are not zero, in (0, 1].
    r2 : float
        Share of the label variance that the covariates explain, in (0, 1).
    label_sd : float
        Standard deviation of the labels.

    Examples
    --------
    >>> Assumptions(rho=0.1, r2=0.5, label_sd=20.0)
    Assumptions(rho=0.1, r2=0.5, label_sd=20.0)
    """

    rho: float
    r2: float
    label_sd: float

    def __post_init__(self) -> None:
        if positive_float("rho", self.rho) > 1.0:
            raise ValueError(f"rho is a share and must not exceed 1, not {self.rho!r}")
        if positive_float("r2", self.r2) >= 1.0:
            raise ValueError(f"r2 must be below 1, not {self.r2!r}")
        positive_float("label_sd", self.label_sd)

    def __str__(self) -> str:
        return (
            f"independent Gaussian columns of the scales at hand, {self.rho:g} of the "
            f"coefficients not zero and all of those of one size in the units of the data, "
            f"labels of standard deviation {self.label_sd:.4g} of whose variance the covariates "
            f"explain {self.r2:g}"
        )


@dataclass(frozen=True)
class Forecast:
    """What state evolution predicts for one design at one λ.

    Attributes
    ----------
    design : NoiseDesign
        At the level that the privacy demands.
    lam : float
        λ: the one given, or the one with the least predicted error.
    r2 : float
        Predicted R² on new rows; NaN where no estimator exists.
    nonzero : float
        Predicted number of non-zero coefficients.
    critical_lam : float
        Predicted λ below which no estimator exists, zero with at least as many rows as columns.
    onavekl : float
        On-average KL divergence of the released coefficients, an average under the model.
    """

    design: NoiseDesign
    lam: float
    r2: float
    nonzero: float
    critical_lam: float
    onavekl: float


def forecast(
    rows: Covariates, design: NoiseDesign, assumptions: Assumptions, lam: float | None = None
) -> Forecast:
    """Predict what a fit on these covariates will do, given the level of the noise.

    The model draws coefficients of unit variance; those of variance τ² with

        ρ τ² mean(v) = R² · Var(label)

    follow by measuring labels, λ and noise in units of τ.

    Parameters
    ----------
    rows : Covariates
        Only their number and the scales of their columns are used.
    design : NoiseDesign
        With its level, in units of Fᵀy.
    assumptions : Assumptions
        About the labels.
    lam : float, optional
        λ; by default the one with the least predicted error.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> rows = Covariates(np.random.default_rng(0).standard_normal((500, 20)), centre=True)
    >>> suppose = Assumptions(rho=0.2, r2=0.5, label_sd=1.0)
    >>> 0.45 < forecast(rows, pv.Isotropic(1.0), suppose).r2 < 0.5
    True
    """
    n, m = int(rows.live.sum()), rows.shape[0]
    if n == 0:
        raise ValueError("no column carries data, so there is nothing to predict")
    v = rows.squares[rows.live] * (n / m)
    label_variance = assumptions.label_sd**2
    tau = math.sqrt(assumptions.r2 * label_variance / (assumptions.rho * float(np.mean(v))))
    model = Model(
        alpha=m / n,
        rho=assumptions.rho,
        sigma_xi=math.sqrt((1.0 - assumptions.r2) * label_variance) / tau,
        scales=Empirical(np.sqrt(v)),
    )
    noise = design.with_sigma(design.sigma / tau)

    def at(scaled: float) -> tuple[float, float, float]:
        point = state_evolution(model, scaled, noise)
        if point.status is not FixedPointStatus.STABLE:
            return math.nan, math.nan, math.nan
        return 1.0 - point.E * tau**2 / label_variance, point.rho_hat * n, point.onavekl()

    if lam is None:
        # Beyond this no coefficient is left; see `state_evolution` for the field on a column.
        spread = np.sqrt(m / n * v * label_variance / tau**2 + noise.variances(v))
        largest = 5.0 * float(np.max(spread)) + 4.0 * m / n * float(np.max(v))
        grid = largest * np.geomspace(1.0, 10.0**-_DECADES, _DECADES * _PER_DECADE)
        found = [at(float(scaled))[0] for scaled in grid]
        scaled = float(grid[int(np.nanargmax(found))]) if np.isfinite(found).any() else largest
    else:
        scaled = lam / tau
    r2, nonzero, onavekl = at(scaled)
    ratio = critical_lambda_ratio(model, noise)
    return Forecast(
        design=design,
        lam=scaled * tau,
        r2=r2,
        nonzero=nonzero,
        critical_lam=ratio * design.sigma,
        onavekl=onavekl,
    )


def compare(
    rows: Covariates,
    privacy: LabelDP | OnAverage,
    design: NoiseDesign,
    assumptions: Assumptions,
    lam: float | None = None,
) -> list[Forecast]:
    """Forecasts of a design and of isotropic noise at the same privacy.

    Under `OnAverage` "the same" is the same mean variance, which need not protect as much.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> F = np.random.default_rng(0).standard_normal((500, 20)) * np.geomspace(1, 100, 20)
    >>> privacy = pv.LabelDP(epsilon=1.0, delta=1e-6, y_bounds=(-3, 3))
    >>> suppose = Assumptions(rho=0.2, r2=0.5, label_sd=1.0)
    >>> ours, even = compare(Covariates(F, centre=True), privacy, pv.PowerLaw(1.0, 0.5), suppose)
    >>> ours.design.sigma < even.design.sigma
    True
    """
    forecasts = []
    even = isinstance(design, PowerLaw) and design.gamma == 0.0
    for shape in (design,) if even else (design, Isotropic(1.0)):
        sigma, _ = noise_levels(rows, privacy, shape)
        levelled = shape.with_sigma(noise_level(sigma, rows))
        forecasts.append(forecast(rows, levelled, assumptions, lam))
    return forecasts
