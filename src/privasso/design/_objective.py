"""The settings of a fit by objective perturbation that have the least error at a budget."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator
from scipy.optimize import minimize

from privasso.design._columns import search_columns
from privasso.design._result import InfeasibleError, ObjectiveDesign
from privasso.model import Model
from privasso.noise import PowerLaw
from privasso.planning import objective_noise
from privasso.privacy import FormalBudget
from privasso.theory import clipped_point, label_sensitivity, largest_row_norm, state_evolution

FloatArray = NDArray[np.float64]

#: The noise is computed at so many values of t, and interpolated while the search runs.
_T_NODES = 8
#: The least and the largest t, and the same as parts of e^ε − 1, beyond which δ is never small.
_T_RANGE, _T_PARTS = (0.05, 300.0), (0.02, 0.9)
#: Starts: κ in units of the label noise or of the signal, t between its ends, λ against the noise.
_KAPPAS = (0.3, 1.0, 3.0)
_PLACES = (0.4, 0.75)
_RATIOS = (0.1, 0.7, 2.5)
#: Range of the power of v, and its end where small columns would need ever more noise.
_POWERS, _STEEPEST = (0.0, 2.0), 1.4
#: Distance in log κ and log λ that the search may go from its start.
_REACH = 12.0
#: Stands for the logarithm of an infinite error, and the least error beside the label noise.
_FAR, _LEAST = 300.0, 1e-200
_FIRST_SIMPLEX = np.array([0.5, 0.4, 0.5, 0.25])


@dataclass(frozen=True, eq=False)
class ObjectiveSearch:
    """The search for κ, t, λ and the power of v, in x = (log κ, log t, log λ, γ).

    The shape is S = diag(v^γ)/E[v^γ], rows have ‖f‖_{S⁻¹} ≤ R, the ridge is (R²/t)S and the noise
    N(0, (κRν(t))²S), where ν is the `objective_noise` of the budget.
    """

    budget: FormalBudget
    lam: float | None = None
    gamma: float | None = None
    n_features: int | None = None

    def best(self, model: Model) -> ObjectiveDesign:
        """Return the design of least error."""
        error = _Error(self, model)
        if self.gamma is not None and not self.radius(model, PowerLaw(1.0, self.gamma)) < math.inf:
            raise InfeasibleError(
                f"with gamma = {self.gamma:g} the size of a row grows with the number of columns "
                f"of {model.scales!r}; choose another gamma or pass n_features"
            )
        x = error.polished(error.first())
        kappa, t = math.exp(x[0]), math.exp(x[1])
        lam = math.exp(x[2]) if self.lam is None else self.lam
        shape = PowerLaw(1.0, float(x[3]))
        radius = self.radius(model, shape)
        noise = shape.with_sigma(kappa * radius * objective_noise(self.budget, t))
        ridge = shape.with_sigma(radius / math.sqrt(t))
        point = state_evolution(
            model, lam, noise, kappa=kappa, ridge=ridge, n_features=self.n_features
        )
        return ObjectiveDesign(
            covers="labels" if self.budget.pair.unit == "label" else "records",
            epsilon=self.budget.epsilon,
            delta=self.budget.delta,
            t=t,
            radius=radius,
            point=point,
            n_features=self.n_features,
        )

    def radius(self, model: Model, shape: PowerLaw) -> float:
        """R, the largest ‖f‖_{S⁻¹}: the label sensitivity of noise with the covariance S."""
        return label_sensitivity(model, shape, n_features=self.n_features)

    @cached_property
    def log_noise(self) -> PchipInterpolator:
        """Log ν as a function of log t."""
        log_t = np.linspace(*self.t_range, _T_NODES)
        return PchipInterpolator(
            log_t, [math.log(objective_noise(self.budget, math.exp(x))) for x in log_t]
        )

    @cached_property
    def t_range(self) -> tuple[float, float]:
        """Logarithms of the least and the largest t that are considered."""
        end = math.expm1(min(self.budget.epsilon, 50.0))
        low, high = _T_PARTS
        return math.log(min(low * end, _T_RANGE[0])), math.log(min(high * end, _T_RANGE[1]))


class _Error:
    """log(E − σ_ξ²) in one model as a function of x; each point starts from the last."""

    def __init__(self, search: ObjectiveSearch, model: Model) -> None:
        self.search, self.model = search, model
        self.v, self.w, self.log_v = search_columns(model.scales, search.n_features)
        self._start: tuple[float, float] | None = None
        self._shape: tuple[float, FloatArray, float] = (math.nan, self.v, 0.0)
        small = search.n_features is None and not model.scales.inverse_mean_is_finite
        self.powers = (_POWERS[0], _STEEPEST if small else _POWERS[1])

    def at(self, x: FloatArray) -> float:
        search = self.search
        profile, squared = self.shape(float(x[3]))
        kappa, t = math.exp(x[0]), math.exp(x[1])
        level = kappa * math.exp(float(search.log_noise(x[1])))
        lam = math.exp(x[2]) if search.lam is None else search.lam
        point = clipped_point(
            self.model, lam, kappa, self.v, self.w,
            squared * level * level * profile, squared / t * profile, self._start,
        )  # fmt: skip
        if point is None or not math.isfinite(point.E):
            return _FAR
        self._start = point.start
        return math.log(max(point.E - self.model.sigma_xi**2, _LEAST))

    def shape(self, gamma: float) -> tuple[FloatArray, float]:
        """S on the columns, and R²."""
        if gamma != self._shape[0]:
            profile = np.exp(gamma * (self.log_v - self.log_v.max()))
            profile = profile / float(self.w @ profile)
            squared, _ = largest_row_norm(
                self.v / profile, self.w, self.search.n_features, self.model.alpha
            )
            self._shape = (gamma, profile, squared)
        return self._shape[1:]

    def first(self) -> FloatArray:
        """Return the best point of a coarse grid."""
        model, search = self.model, self.search
        gamma = 1.0 if search.gamma is None else search.gamma
        typical_scale = math.sqrt(float(self.w @ self.v))
        signal = math.sqrt(model.rho) * typical_scale
        low, high = search.t_range
        best, least = np.zeros(4), math.inf
        size = model.sigma_xi if model.sigma_xi > 0.1 * signal else 0.3 * signal
        for kappa in _KAPPAS:
            for place in _PLACES:
                log_t = low + place * (high - low)
                squared = self.shape(gamma)[1]
                level = kappa * size * math.sqrt(squared) * math.exp(float(search.log_noise(log_t)))
                # A column of mean scale has noise of this size in its gradient.
                typical = math.hypot(
                    level, math.sqrt(model.alpha * model.scales.moment(1.0)) * size
                )
                for ratio in _RATIOS:
                    x = np.array([math.log(kappa * size), log_t, math.log(ratio * typical), gamma])
                    value = self.at(x)
                    if value < least:
                        best, least = x, value
        return best

    def polished(self, x: FloatArray) -> FloatArray:
        """Return the minimum near x, by the method of Nelder and Mead."""
        search = self.search
        different = float(np.ptp(self.log_v)) > 0.0
        free = np.array([True, True, search.lam is None, search.gamma is None and different])
        bounds = [
            (x[0] - _REACH, x[0] + _REACH),
            search.t_range,
            (x[2] - _REACH, x[2] + _REACH),
            self.powers,
        ]
        outer = [bound for bound, is_free in zip(bounds, free, strict=True) if is_free]
        lower, upper = np.array(outer).T
        found = np.clip(x[free], lower, upper)

        def value(z: FloatArray) -> float:
            whole = x.copy()
            whole[free] = z
            return self.at(whole)

        for size in (1.0, 0.3):
            simplex = np.vstack([found, found + np.diag(size * _FIRST_SIMPLEX[free])])
            # A corner beyond an end goes to the other side of the start.
            simplex = np.where(simplex > upper, 2.0 * found - simplex, simplex)
            found = minimize(
                value,
                found,
                method="Nelder-Mead",
                bounds=outer,
                options={"initial_simplex": simplex, "xatol": 2e-3, "fatol": 1e-4, "maxiter": 400},
            ).x
        x = x.copy()
        x[free] = found
        return x
