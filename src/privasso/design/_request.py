"""A request for a design, and its answer: search, accurate prediction, and the exact level."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privasso.design._columns import Family, SearchColumns, free_family, search_columns
from privasso.design._program import ERROR, SENSITIVITY, Evaluator, NonlinearProgram
from privasso.design._result import InfeasibleError, OptimalDesign
from privasso.design._search import elasticity, improve, search
from privasso.model import Model
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
            family = free_family(self._columns(setting.models[0]))
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
        found, noise, points = self._exactly(found, noise, program)
        price = math.nan
        if len(points) == 1:
            price = self.limit.price(elasticity(program, found), points[0])
        return OptimalDesign(
            points=points,
            constraint=self.limit,
            multiplier=price,
            n_features=setting.n_features,
            _again=lambda gamma: self._given(gamma=gamma, family="power").design(),
        )

    def _given(self, **changes: Any) -> DesignRequest:
        return replace(self, setting=replace(self.setting, **changes))

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

    def _columns(self, model: Model) -> SearchColumns:
        return search_columns(model.scales, self.setting.n_features, self.setting.scale_error)

    def _program(self, family: Family) -> NonlinearProgram:
        limit, setting = self.limit, self.setting
        evaluators = tuple(
            Evaluator(model, self._columns(model), family, setting.n_features, limit.measure)
            for model in setting.models
        )
        free = np.ones(2 + family.size, dtype=np.bool_)
        free[0], free[2:] = setting.lam is None, setting.gamma is None
        references = np.zeros(len(evaluators))
        if len(evaluators) > 1:
            references = np.array([self._reference(model) for model in setting.models])
        return NonlinearProgram(
            evaluators, limit.objective, limit.constraint, limit.log, free, references
        )

    def blank(self, size: int) -> FloatArray:
        """Parameters with what is given filled in, for a family of so many parameters."""
        x = np.zeros(2 + size)
        x[0] = 0.0 if self.setting.lam is None else math.log(self.setting.lam)
        x[2] = 0.0 if self.setting.gamma is None else self.setting.gamma
        return x

    def _reference(self, model: Model) -> float:
        """Log of the best value that one model could have by itself, with any power law."""
        program, found = self._given(models=(model,), gamma=None)._best_power()
        return program.merit(found)[1]

    def _check_limit(self, unit: NoiseDesign) -> None:
        """Refuse a shape whose predictions are infinite in the limit of many columns."""
        for model in self.setting.models:
            fp = state_evolution(
                model, 1.0, unit.with_sigma(1e-3), n_features=self.setting.n_features
            )
            infinite = fp.status is FixedPointStatus.INFINITE_ERROR
            if infinite or (
                self.limit.constraint == SENSITIVITY
                and not math.isfinite(
                    label_sensitivity(model, unit, n_features=self.setting.n_features)
                )
            ):
                what = "error" if infinite else "label sensitivity"
                raise InfeasibleError(
                    f"with gamma = {self.setting.gamma:g} the {what} grows with the number of "
                    f"columns of {model.scales!r}; choose another gamma or pass n_features"
                )

    def _predict(self, found: FloatArray, noise: NoiseDesign) -> tuple[FixedPoint, ...]:
        setting = self.setting
        return tuple(
            mismatched_state_evolution(
                model, self._lam(found), noise, setting.scale_error, n_features=setting.n_features
            )
            for model in setting.models
        )

    def _lam(self, found: FloatArray) -> float:
        return math.exp(found[0]) if self.setting.lam is None else self.setting.lam

    def _exactly(
        self, found: FloatArray, noise: NoiseDesign, program: NonlinearProgram
    ) -> tuple[FloatArray, NoiseDesign, tuple[FixedPoint, ...]]:
        """Adjust the level, or λ, until the accurate prediction meets the constraint."""
        if self.limit.constraint == SENSITIVITY:
            count = self.setting.n_features
            worst = max(
                label_sensitivity(model, noise, n_features=count) for model in self.setting.models
            )
            level = noise.sigma * worst * self.limit.width / self.limit.target
            noise = noise.with_sigma(level)
            return found, noise, self._stable(self._predict(found, noise))
        points = self._predict(found, noise)
        if max(value.log for value in program.excesses(found)) < -1e-4:
            return found, noise, points  # the constraint is slack
        by_lam, by_level = max(program.excesses(found), key=lambda value: value.log).gradient[:2]
        # Near the σ of least leakage, σ hardly changes it and λ does.
        through_lam = self.setting.lam is None and abs(by_level) < _STEEP
        for _ in range(_ADJUSTMENTS):
            miss = self._miss(points) + 0.5 * _EXACT
            if abs(miss) <= 0.5 * _EXACT:
                break
            slope = by_lam if through_lam else 2.0 * by_level
            step = max(min(-miss / slope, 0.1), -0.1) if abs(slope) > 1e-3 else 0.0
            if through_lam:
                found = found.copy()
                found[0] += step
            else:
                noise = noise.with_sigma(noise.sigma * math.exp(step))
            points = self._predict(found, noise)
        if self._miss(points) > _MISSED:
            raise InfeasibleError(
                f"the nearest design misses the target by {math.expm1(self._miss(points)):.2%}; "
                "choose a less strict target"
            )
        return found, noise, self._stable(points)

    def _miss(self, points: tuple[FixedPoint, ...]) -> float:
        if self.limit.constraint == ERROR:
            value = max(fp.E for fp in points)
        elif self.limit.measure == "advantage":
            value = max(fp.advantage() for fp in points)
        else:
            value = max(fp.onavekl() for fp in points)
        return math.log(value / self.limit.target)

    def _stable(self, points: tuple[FixedPoint, ...]) -> tuple[FixedPoint, ...]:
        if any(fp.status is not FixedPointStatus.STABLE for fp in points):
            raise InfeasibleError(
                "the best design found lies on the edge of stability; choose a less strict target "
                "or pass n_features"
            )
        return points
