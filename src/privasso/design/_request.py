"""A request for a design, and its answer: search, accurate prediction, and the exact level."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privasso.design._columns import Family, SearchColumns, free_family, search_columns
from privasso.design._program import ERROR, SENSITIVITY, Evaluator, NonlinearProgram
from privasso.design._result import InfeasibleError, OptimalDesign
from privasso.design._search import elasticity, improve, search
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
        """Return the best noise of the family with its λ and its price."""
        setting = self.setting
        program, found = self._best_power()
        family = Family.powers()
        if setting.family == "free":
            family = free_family(self._columns)
            program = self._program(family)
            start = self.blank(family.size)
            start[:3] = found
            found = improve(program, start)
            if found is None:
                found = start
        sigma = math.exp(found[1] / 2.0)
        noise = family.noise(sigma, found[2:])
        if setting.gamma in _NAMED:
            noise = _NAMED[setting.gamma].with_sigma(sigma)
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
        setting = replace(self.setting, gamma=gamma, family="power")
        return replace(self, setting=setting).design()

    @property
    def where(self) -> str:
        """The λ that was given, in words."""
        return "" if self.setting.lam is None else f" at lam = {self.setting.lam:g}"

    def _best_power(self) -> tuple[NonlinearProgram, FloatArray]:
        """The best power law, or the best with the exponent that was given."""
        if self.setting.gamma is not None:
            self._check_limit(PowerLaw(1.0, self.setting.gamma))
        program = self._program(Family.powers())
        found = search(program, self.blank(1))
        if found is None:
            raise InfeasibleError(self.limit.unmet(self, program))
        return program, found

    @property
    def _columns(self) -> SearchColumns:
        setting = self.setting
        return search_columns(setting.model.scales, setting.n_features, setting.scale_error)

    def _program(self, family: Family) -> NonlinearProgram:
        limit, setting = self.limit, self.setting
        evaluator = Evaluator(
            setting.model, self._columns, family, setting.n_features, limit.measure
        )
        free = np.ones(2 + family.size, dtype=np.bool_)
        free[0], free[2:] = setting.lam is None, setting.gamma is None
        return NonlinearProgram(evaluator, limit.objective, limit.constraint, limit.log, free)

    def blank(self, size: int) -> FloatArray:
        """Parameters with what is given filled in, for a family of so many parameters."""
        x = np.zeros(2 + size)
        x[0] = 0.0 if self.setting.lam is None else math.log(self.setting.lam)
        x[2] = 0.0 if self.setting.gamma is None else self.setting.gamma
        return x

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
