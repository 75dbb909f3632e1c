"""The best noise on Fᵀy: a search with exact gradients, and then the exact level."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from privasso.design._columns import search_columns
from privasso.design._program import (
    ERROR,
    FAR,
    SENSITIVITY,
    Evaluator,
    NonlinearProgram,
    bounds,
    largest_log_lambda,
    starts,
)
from privasso.design._result import InfeasibleError, OptimalDesign
from privasso.noise import Gram, Isotropic, NoiseDesign, PowerLaw
from privasso.theory import (
    FixedPoint,
    FixedPointStatus,
    label_sensitivity,
    mismatched_state_evolution,
    state_evolution,
)

if TYPE_CHECKING:
    from privasso.design._limits import Limit, Setting

FloatArray = NDArray[np.float64]

#: Exponents to start from, the likeliest first; the next is tried only if the search fails.
_EXPONENTS = (1.0, 0.5, 1.5, 0.25, 2.0)
_EXPONENTS_LABELS = (0.6, 1.0, 0.3, 1.3, 0.0)
#: Largest excess, in the logarithm, that counts as meeting the constraint.
_MET = 1e-5
_ITERATIONS = 100
_RUNS = 14
#: Half widths of the box of one run: log λ, log σ², the exponent.
_REACH = np.array([1.0, 2.0, 1.5])


def search(program: NonlinearProgram, x: FloatArray) -> FloatArray | None:
    """Return the best parameters from any of several starts, or None where none meets the limit.

    `x` holds the parameters that are not free.
    """
    if program.free[2]:
        exponents = _EXPONENTS_LABELS if program.constraint == SENSITIVITY else _EXPONENTS
    else:
        exponents = (float(x[2]),)
    for start in starts(program, x, exponents):
        found = improve(program, start)
        if found is not None:
            return found
    return None


def improve(program: NonlinearProgram, x: FloatArray) -> FloatArray | None:
    """Return the optimum near x, or None where the constraint cannot be met from there.

    Each run stays in a box around its start: towards large λ both the error and the leakage level
    off at what releasing nothing has, and a long step would end on that plateau.
    """
    if program.merit(x)[1] >= FAR:
        return None
    found, merit = x.copy(), program.merit(x)
    radius = 1.0
    for _ in range(_RUNS):
        new, ended_well, inside = _slsqp(program, found, radius)
        after = program.merit(new)
        if _better(after, merit):
            gain = merit[1] - after[1] if merit[0] <= _MET else 1.0
            found, merit = new, after
            if ended_well and inside:
                break
            if inside and gain < 1e-7:
                break
        elif ended_well and inside and merit[0] <= _MET:
            break
        else:
            radius *= 0.3
            if radius < 0.02:
                break
    return found if merit[0] <= _MET else None


def _better(merit: tuple[float, float], than: tuple[float, float]) -> bool:
    if max(merit[0], than[0]) <= _MET:
        return merit[1] < than[1]
    return merit[0] < than[0]


def _slsqp(
    program: NonlinearProgram, x: FloatArray, radius: float
) -> tuple[FloatArray, bool, bool]:
    """One run over the free parameters z.

    Returns the parameters, whether the run ended well, and whether it ended inside its box.
    """
    free = np.flatnonzero(program.free)

    def whole(z: FloatArray) -> FloatArray:
        point = x.copy()
        point[free] = z
        return point

    def objective(z: FloatArray) -> tuple[float, FloatArray]:
        value = program.value(whole(z))
        return value.log, value.gradient[free]

    constraints: list[dict[str, object]] = []
    if program.constraint is not None:
        margin = {
            "fun": lambda z: -program.excess(whole(z)).log,
            "jac": lambda z: -program.excess(whole(z)).gradient[free],
        }
        constraints.append({"type": "ineq", **margin})
    outer = np.array(bounds(program, x))[free]
    reach = radius * _REACH[free]
    lower = np.clip(x[free] - reach, outer[:, 0], outer[:, 1])
    upper = np.clip(x[free] + reach, outer[:, 0], outer[:, 1])
    limits = list(zip(lower.tolist(), upper.tolist(), strict=True))
    result = minimize(
        objective, np.clip(x[free], lower, upper), jac=True, method="SLSQP", bounds=limits,
        constraints=constraints, options={"maxiter": _ITERATIONS, "ftol": 1e-9},
    )  # fmt: skip
    found = whole(result.x)
    z = found[free]
    edge = 1e-3 * reach
    pressed = ((z < lower + edge) & (lower > outer[:, 0])) | (
        (z > upper - edge) & (upper < outer[:, 1])
    )
    return found, bool(result.success), not bool(pressed.any())


def elasticity(program: NonlinearProgram, x: FloatArray) -> float:
    """Return d log(objective) / d log(limit) at an optimum; 0 if the limit is slack.

    At an optimum the gradients obey ∇log f + b ∇log c = 0 with b ≥ 0, and the answer is −b.
    """
    value, excess = program.value(x), program.excess(x)
    if excess.log < -10.0 * _MET:
        return 0.0
    f, c = value.gradient[program.free], excess.gradient[program.free]
    size = float(c @ c)
    return min(float(f @ c) / size, 0.0) if size > 0.0 else -math.inf


#: Halvings of an interval of log λ, and the largest log λ that is considered.
_HALVINGS, _LARGEST = 24, 700.0


def least(request: DesignRequest, program: NonlinearProgram, what: str) -> tuple[float, str]:
    """The least of what the constraint limits, and where it is found."""
    bare = replace(program, objective=what, constraint=None)
    found = search(bare, request.blank)
    if found is None:
        return math.inf, "since no estimator exists"
    value = math.exp(bare.merit(found)[1])
    return value, (
        f"at lam = {math.exp(found[0]):.4g}, sigma = {math.exp(found[1] / 2.0):.4g}, "
        f"gamma = {found[2]:.3g}"
    )


def least_without_noise(request: DesignRequest, program: NonlinearProgram) -> tuple[float, str]:
    """The least error with almost no noise, which is mostly the least of all."""
    free = program.free & np.array([True, False, False])
    bare = replace(program, objective=ERROR, constraint=None, free=free)
    x = request.blank
    x[1], x[2] = 2.0 * largest_log_lambda(bare, x) - 40.0, 1.0
    found = search(bare, x) if free.any() else x
    if found is None:
        return math.inf, "since no estimator exists"
    return math.exp(bare.merit(found)[1]), f"at lam = {math.exp(found[0]):.4g} without noise"


def least_lambda(request: DesignRequest, program: NonlinearProgram) -> float:
    """Return the smallest λ at which some power law meets a label budget and an estimator exists.

    The noise follows from the budget and the exponent alone, and below the critical λ there is
    no estimator: bisection in log λ for each of a few exponents.
    """
    least = math.inf
    given = request.setting.gamma
    gammas = np.linspace(0.0, 1.4, 15).tolist() if given is None else [given]
    for gamma in gammas:
        x = request.blank
        x[2] = gamma
        x[1] = program.excess(x).log  # at σ = 1, so that this is the level needed
        low, high = x[0], largest_log_lambda(program, x) + 3.0
        if high > _LARGEST:
            continue
        for _ in range(_HALVINGS):
            x[0] = 0.5 * (low + high)
            if program.evaluator.at(x, leak=False).error.log < FAR:
                high = x[0]
            else:
                low = x[0]
        least = min(least, math.exp(high))
    return least


FloatArray = NDArray[np.float64]

#: The level is adjusted until the accurate prediction meets the target to this.
_EXACT = 1e-6
_ADJUSTMENTS = 8
#: Largest excess over the target, in the logarithm, that is accepted.
_MISSED = 1e-4
#: Slope of the constraint in log σ² below which λ is adjusted instead.
_STEEP = 0.1
_NAMED: dict[float | None, NoiseDesign] = {0.0: Isotropic(1.0), 2.0: Gram(1.0)}


@dataclass(frozen=True)
class DesignRequest:
    """A limit, and the setting in which it is to be met."""

    limit: Limit
    setting: Setting

    def design(self) -> OptimalDesign:
        """Return the best power law, or the one of the given exponent, with its λ and its price."""
        setting = self.setting
        if setting.gamma is not None:
            self._check_limit(PowerLaw(1.0, setting.gamma))
        program = self._program()
        found = search(program, self.blank)
        if found is None:
            raise InfeasibleError(self.limit.unmet(self, program))
        noise = _NAMED.get(setting.gamma, PowerLaw(1.0, float(found[2])))
        noise = noise.with_sigma(math.exp(found[1] / 2.0))
        found, noise, point = self._exactly(found, noise, program)
        return OptimalDesign(
            point=point,
            constraint=self.limit,
            multiplier=self.limit.price(elasticity(program, found), point),
            n_features=setting.n_features,
            _again=self._of_power,
        )

    def _of_power(self, gamma: float) -> OptimalDesign:
        """The answer with the power law of this exponent."""
        return replace(self, setting=replace(self.setting, gamma=gamma)).design()

    @property
    def where(self) -> str:
        """The λ that was given, in words."""
        return "" if self.setting.lam is None else f" at lam = {self.setting.lam:g}"

    def _program(self) -> NonlinearProgram:
        limit, setting = self.limit, self.setting
        columns = search_columns(setting.model.scales, setting.n_features, setting.scale_error)
        evaluator = Evaluator(setting.model, columns, setting.n_features, limit.measure)
        free = np.array([setting.lam is None, True, setting.gamma is None])
        return NonlinearProgram(evaluator, limit.objective, limit.constraint, limit.log, free)

    @property
    def blank(self) -> FloatArray:
        """Parameters with what is given filled in."""
        lam, gamma = self.setting.lam, self.setting.gamma
        return np.array([0.0 if lam is None else math.log(lam), 0.0, gamma or 0.0])

    def _check_limit(self, unit: NoiseDesign) -> None:
        """Refuse a shape whose predictions are infinite in the limit of many columns."""
        model, count = self.setting.model, self.setting.n_features
        fp = state_evolution(model, 1.0, unit.with_sigma(1e-3), n_features=count)
        infinite = fp.status is FixedPointStatus.INFINITE_ERROR
        if infinite or (
            self.limit.constraint == SENSITIVITY
            and not math.isfinite(label_sensitivity(model, unit, n_features=count))
        ):
            what = "error" if infinite else "label sensitivity"
            raise InfeasibleError(
                f"with gamma = {self.setting.gamma:g} the {what} grows with the number of "
                f"columns of {model.scales!r}; choose another gamma or pass n_features"
            )

    def _predict(self, found: FloatArray, noise: NoiseDesign) -> FixedPoint:
        setting = self.setting
        lam = math.exp(found[0]) if setting.lam is None else setting.lam
        return mismatched_state_evolution(
            setting.model, lam, noise, setting.scale_error, n_features=setting.n_features
        )

    def _exactly(
        self, found: FloatArray, noise: NoiseDesign, program: NonlinearProgram
    ) -> tuple[FloatArray, NoiseDesign, FixedPoint]:
        """Adjust the level, or λ, until the accurate prediction meets the constraint."""
        if self.limit.constraint == SENSITIVITY:
            setting = self.setting
            worst = label_sensitivity(setting.model, noise, n_features=setting.n_features)
            level = noise.sigma * worst * self.limit.width / self.limit.target
            noise = noise.with_sigma(level)
            return found, noise, self._stable(self._predict(found, noise))
        point, excess = self._predict(found, noise), program.excess(found)
        if excess.log < -1e-4:
            return found, noise, point  # the constraint is slack
        by_lam, by_level = excess.gradient[:2]
        # Near the σ of least leakage, σ hardly changes it and λ does.
        through_lam = self.setting.lam is None and abs(by_level) < _STEEP
        for _ in range(_ADJUSTMENTS):
            miss = self._miss(point) + 0.5 * _EXACT
            if abs(miss) <= 0.5 * _EXACT:
                break
            slope = by_lam if through_lam else 2.0 * by_level
            step = max(min(-miss / slope, 0.1), -0.1) if abs(slope) > 1e-3 else 0.0
            if through_lam:
                found = found.copy()
                found[0] += step
            else:
                noise = noise.with_sigma(noise.sigma * math.exp(step))
            point = self._predict(found, noise)
        if self._miss(point) > _MISSED:
            raise InfeasibleError(
                f"the nearest design misses the target by {math.expm1(self._miss(point)):.2%}; "
                "choose a less strict target"
            )
        return found, noise, self._stable(point)

    def _miss(self, point: FixedPoint) -> float:
        if self.limit.constraint == ERROR:
            value = point.E
        else:
            value = point.advantage() if self.limit.measure == "advantage" else point.onavekl()
        return math.log(value / self.limit.target)

    def _stable(self, point: FixedPoint) -> FixedPoint:
        if point.status is not FixedPointStatus.STABLE:
            raise InfeasibleError(
                "the best design found lies on the edge of stability; choose a less strict target "
                "or pass n_features"
            )
        return point
