"""Objective perturbation for correlated columns: κ, t, λ and the power of C at a formal budget.

The shape is S ∝ C^γ with a mean diagonal of 1. In the limit of many columns every row has
‖f‖²_{S⁻¹} = R² = tr(CS⁻¹)/N, the ridge is (R²/t)S, and the noise is N(0, (κRν(t))²S) with the
`objective_noise` ν of the budget. The search starts from the design for independent columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from privasso.design._correlated import row_size
from privasso.design._objective import ObjectiveBudget, ObjectiveSearch
from privasso.design._objective_result import ObjectiveDesign
from privasso.model import Model
from privasso.noise import MatrixPower
from privasso.theory import FixedPoint, state_evolution

_DRAWS = 8
_POWERS = (0.0, 0.5, 1.0)
#: Predictions for each power.
_EVALUATIONS = 40


@dataclass(frozen=True, eq=False)
class CorrelatedObjectiveDesign(ObjectiveDesign):
    """An `ObjectiveDesign` whose shape is a power of the covariance of the columns."""

    @property
    def noise(self) -> MatrixPower:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The noise η, of mean variance σ²."""
        assert isinstance(self.point.noise, MatrixPower)
        return self.point.noise

    @property
    def ridge(self) -> MatrixPower:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The ridge ΛS: `ridge.covariance(C).matrix()` is the argument of `solve_clipped`."""
        assert isinstance(self.point.ridge, MatrixPower)
        return self.point.ridge

    @property
    def gamma(self) -> float:
        """Power of C in the shape S."""
        return self.noise.gamma


def correlated_objective(
    model: Model,
    budget: ObjectiveBudget,
    lam: float | None,
    gamma: float | None,
    n_features: int | None,
    rng: np.random.Generator,
) -> CorrelatedObjectiveDesign:
    """The design of least predicted error; the arguments have been checked."""
    model = model.realised(n_features, rng)
    seed = int(rng.integers(2**63))
    alone = replace(model, covariance=None)
    start, _ = ObjectiveSearch(budget, lam, 0.5 if gamma is None else gamma).best(alone)
    best: CorrelatedObjectiveDesign | None = None
    for power in _POWERS if gamma is None else (gamma,):
        found = _at_power(model, budget, power, lam, start, seed)
        if best is None or best.E > found.E:
            best = found
    assert best is not None
    return best


def _at_power(
    model: Model,
    budget: ObjectiveBudget,
    gamma: float,
    lam: float | None,
    start: ObjectiveDesign,
    seed: int,
) -> CorrelatedObjectiveDesign:
    shape = MatrixPower(1.0, gamma)
    radius = row_size(shape, model.covariance)
    # A wider row needs more noise, and more noise a larger λ.
    wider = radius / start.radius
    first = [math.log(start.kappa), math.log(start.t), math.log(start.lam * max(wider, 1e-3))]
    seen: list[tuple[float, FixedPoint, float]] = []

    def value(x: np.ndarray) -> float:
        kappa, t = math.exp(x[0]), math.exp(x[1])
        level = math.exp(x[2]) if lam is None else lam
        noise = shape.with_sigma(kappa * radius * budget.objective_noise(t))
        ridge = shape.with_sigma(radius / math.sqrt(t))
        fp = state_evolution(
            model, level, noise, kappa=kappa, ridge=ridge, draws=_DRAWS, rng=seed
        )  # fmt: skip
        seen.append((fp.E, fp, t))
        return math.log(fp.E)

    simplex = np.array([first, *(np.array(first) + d for d in 0.5 * np.eye(3))])
    minimize(
        value, first, method="Nelder-Mead",
        options={"initial_simplex": simplex, "maxfev": _EVALUATIONS, "fatol": 1e-3, "xatol": 0.03},
    )  # fmt: skip
    _, point, t = min(seen, key=lambda found: found[0])
    return CorrelatedObjectiveDesign(
        covers="labels" if budget.public_covariates else "records",
        epsilon=budget.epsilon, delta=budget.delta, t=t, radius=radius, point=point,
        n_features=model.covariance.n_columns,
    )  # fmt: skip
