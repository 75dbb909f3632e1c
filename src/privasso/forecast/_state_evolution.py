"""State evolution for the columns at hand, in the units of their labels."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np

from privasso.forecast._population import Assumptions
from privasso.model import Model
from privasso.noise import Isotropic, Noise, NoiseDesign, PowerLaw, noise_to_dict
from privasso.operators import Covariates
from privasso.planning import calibrate
from privasso.privacy import Privacy
from privasso.scales import Empirical
from privasso.theory import FixedPointStatus, critical_lambda_ratio, state_evolution

#: The best λ is searched over this many powers of ten, with this many points per power.
_DECADES, _PER_DECADE = 5, 10


@dataclass(frozen=True)
class Prediction:
    """What state evolution predicts for one noise design at one λ.

    Attributes
    ----------
    noise : NoiseDesign
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

    noise: NoiseDesign
    lam: float
    r2: float
    nonzero: float
    critical_lam: float
    onavekl: float

    def to_dict(self) -> dict[str, object]:
        """The numbers in a form for JSON; None stands for what is not finite."""
        numbers = {name: value for name, value in vars(self).items() if name != "noise"}
        known = {name: x if math.isfinite(x) else None for name, x in numbers.items()}
        return {"noise": noise_to_dict(self.noise), **known}


def predict(
    rows: Covariates, noise: NoiseDesign, assumptions: Assumptions, lam: float | None = None
) -> Prediction:
    """Predict what a fit on these covariates will do, given the level of the noise.

    The model draws coefficients of unit variance; those of variance τ² with

        ρ τ² mean(v) = R² · Var(label)

    follow by measuring labels, λ and noise in units of τ.

    Parameters
    ----------
    rows : Covariates
        Only their number and the scales of their columns are used.
    noise : NoiseDesign
        With its level, in units of Fᵀy.
    assumptions : Assumptions
        About the labels.
    lam : float, optional
        λ; by default the one with the least predicted error.
    """
    n, m = int(rows.live.sum()), rows.shape[0]
    if n == 0:
        raise ValueError("no column carries data, so there is nothing to predict")
    v = rows.squares[rows.live] * (n / m)
    label_variance = assumptions.label_sd**2
    tau = math.sqrt(assumptions.usual_r2 * label_variance / (assumptions.rho * float(np.mean(v))))
    model = Model(
        alpha=m / n,
        rho=assumptions.rho,
        sigma_xi=math.sqrt((1.0 - assumptions.usual_r2) * label_variance) / tau,
        scales=Empirical(np.sqrt(v)),
    )
    scaled_noise = noise.with_sigma(noise.sigma / tau)

    def at(scaled: float) -> tuple[float, float, float]:
        point = state_evolution(model, scaled, scaled_noise)
        if point.status is not FixedPointStatus.STABLE:
            return math.nan, math.nan, math.nan
        return 1.0 - point.E * tau**2 / label_variance, point.rho_hat * n, point.onavekl()

    if lam is None:
        # Above this λ all coefficients are zero; see `state_evolution` for the field on a column.
        spread = np.sqrt(m / n * v * label_variance / tau**2 + scaled_noise.variances(v))
        largest = 5.0 * float(np.max(spread)) + 4.0 * m / n * float(np.max(v))
        grid = largest * np.geomspace(1.0, 10.0**-_DECADES, _DECADES * _PER_DECADE)
        found = [at(float(scaled))[0] for scaled in grid]
        scaled = float(grid[int(np.nanargmax(found))]) if np.isfinite(found).any() else largest
    else:
        scaled = lam / tau
    r2, nonzero, onavekl = at(scaled)
    ratio = critical_lambda_ratio(model, scaled_noise)
    return Prediction(
        noise=noise,
        lam=scaled * tau,
        r2=r2,
        nonzero=nonzero,
        critical_lam=ratio * noise.sigma,
        onavekl=onavekl,
    )


def predictions(
    rows: Covariates,
    privacy: Privacy,
    noise: Noise | None,
    assumptions: Assumptions,
    lam: float | None = None,
) -> tuple[Prediction, ...]:
    """For a noise design and for isotropic noise at the same privacy; empty for other noise.

    ``privacy.compared_at`` names what is equal.
    """
    if not isinstance(noise, NoiseDesign):
        return ()
    even = isinstance(noise, PowerLaw) and noise.gamma == 0.0
    levels = [
        shape.with_sigma(calibrate(rows, privacy, shape).level)
        for shape in ((noise,) if even else (noise, Isotropic(1.0)))
    ]
    with warnings.catch_warnings():
        # They are about quadrature errors, which are far smaller than those of the model.
        warnings.simplefilter("ignore")
        try:
            return tuple(predict(rows, one, assumptions, lam) for one in levels)
        except ValueError:
            return ()
