"""The best noise for columns of a given covariance: a power of it, or a full shape.

A shape Σ₀ with mean variance 1 leaves λ and the level σ. The level follows from the target:

- labels: the mean squared sensitivity of a row is (hi − lo)² tr(CΣ⁻¹)/N = μ²;
- OnAveKL: the smallest level at which it is low enough, by bisection;
- error: the largest level at which E is low enough, by bisection.

Then λ is searched for, and the exponent of a power. The full shape minimises tr(WΣ) at a given
tr(CΣ⁻¹): Σ ∝ W^(−½)(W^½CW^½)^½W^(−½), because

    tr(WΣ)·tr(CΣ⁻¹) ≥ T²,   T = tr(W^½CW^½)^½,

by the inequality of Cauchy and Schwarz. What the two sides differ by certifies the computed Σ. For
W it takes the mean response of the predicted error to the noise, E[(C_SS)⁻¹] over the supports S
that the best power leads to, and identity and diag(C)⁻¹ as well; that with the best prediction is
kept. That no other W leads to a better prediction is not proved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from privasso.design._correlated_objective import Shape, best_shape, row_size, shape_gap
from privasso.design._program import LEAKAGE, SENSITIVITY
from privasso.design._result import InfeasibleError
from privasso.model import GivenCovariance, Model
from privasso.noise import Covariance, MatrixPower, PowerLaw
from privasso.theory import FixedPoint, FixedPointStatus, noise_level, state_evolution

if TYPE_CHECKING:
    import polars as pl

    from privasso.design._limits import Limit, Setting

FloatArray = NDArray[np.float64]

_DRAWS = 8
_COMMON = (0.0, 0.5, 1.0, 2.0)
_RANGE = (-0.5, 2.5)
#: Powers of the diagonal of C among which a full shape is chosen, too.
_DIAGONAL = (0.5, 1.0)
_BISECTIONS = 12
#: Steps by which the range of λ may grow.
_WIDENINGS = 6


@dataclass(frozen=True, eq=False)
class CorrelatedDesign:
    """The best λ and noise for a model with a covariance; made by `optimal_design`.

    - `point`: what is predicted, with Monte Carlo errors, for its `lam` and `noise`.
    - `family`: ``"power"``, ``"diagonal"`` or ``"full"``.
    - `weight`: W of a full shape: ``"identity"``, ``"1/diag(C)"`` or ``"response"``; None if the
      noise is a power of C or of its diagonal, which may also be the best full shape that was
      found.
    - `certificate`: tr(WΣ)·tr(CΣ⁻¹)/T² − 1 for this W, computed from the noise itself: no shape has
      a smaller tr(WΣ) at the same sensitivity by more than this part. None without a W.
    """

    point: FixedPoint
    constraint: Limit
    family: str = "power"
    weight: str | None = None
    certificate: float | None = None
    _search: Any = field(repr=False, default=None)

    @property
    def lam(self) -> float:
        """Regularisation λ."""
        return self.point.lam

    @property
    def noise(self) -> Shape:
        """The noise, with its level."""
        return self.point.noise

    @property
    def sigma(self) -> float:
        """Level of the noise, the root of its mean variance."""
        return noise_level(self.noise)

    @property
    def E(self) -> float:
        """Predicted error."""
        return self.point.E

    def onavekl(self) -> float:
        """OnAveKL of the design; infinite for noise that leaves a direction of rows uncovered."""
        return self.point.onavekl() if self.point.onavekl_is_known else math.inf

    @property
    def value(self) -> float:
        """What is minimised: E, or the OnAveKL for a limit on E."""
        return self.onavekl() if self.constraint.objective == LEAKAGE else self.E

    @property
    def numbers(self) -> tuple[float, ...]:
        """A row of the comparison."""
        fp = self.point
        return self.lam, self.sigma, fp.E, fp.standard_errors.E, fp.rho_hat, self.onavekl()

    def comparison(self) -> pl.DataFrame:
        """Side by side, each at its best λ: common powers of C, the best one, the full shape."""
        import polars as pl

        search: _Search = self._search
        found = {f"C^{gamma:g}": search.at(MatrixPower(1.0, gamma)) for gamma in _COMMON}
        found["best power"] = search.best_power
        found |= {f"diagonal v^{g:g}": search.at(PowerLaw(1.0, g)) for g in _DIAGONAL}
        found["full shape"] = search.full
        names = ("lam", "sigma", "E", "E_se", "rho_hat", "onavekl")
        rows = [
            {"noise": name, **dict(zip(names, one.numbers if one else [None] * 6, strict=True))}
            for name, one in found.items()
        ]
        return pl.DataFrame(rows)


def correlated_design(limit: Limit, setting: Setting) -> CorrelatedDesign:
    """Return the best λ and noise."""
    rng = setting.rng
    model = setting.model.realised(setting.n_features, rng)
    search = _Search(model, limit, setting.lam, int(rng.integers(2**63)))
    if setting.family == "full":
        found = search.full
    elif setting.gamma is not None:
        found = search.at(MatrixPower(1.0, setting.gamma))
    else:
        found = search.best_power
    if found is None:
        raise InfeasibleError(
            f"no λ and noise level of this family meet {limit.kind} = "
            f"{limit.target:.6g} on these columns; ask for less"
        )
    return replace(found, family=setting.family)


def _levelled(shape: Shape, level: float) -> Shape:
    return shape.scaled(level**2) if isinstance(shape, Covariance) else shape.with_sigma(level)


class _Search:
    """Predictions with the same draws everywhere, and the best λ and level of a shape."""

    def __init__(self, model: Model, limit: Limit, lam: float | None, seed: int) -> None:
        self.model, self.limit, self._lam, self._seed = model, limit, lam, seed
        C: GivenCovariance = model.covariance
        self.C = C
        mean = float(np.mean(C.diagonal))
        # λ at which hardly anything is left in the model, to start the search for it.
        self._size = math.sqrt(model.alpha * mean * (model.sigma_xi**2 + model.rho * mean))
        self._known: dict[Shape, CorrelatedDesign | None] = {}

    def predict(self, lam: float, noise: Shape) -> FixedPoint:
        return state_evolution(self.model, lam, noise, draws=_DRAWS, rng=self._seed)

    def at(self, shape: Shape) -> CorrelatedDesign | None:
        """The best λ and level of a shape of level 1; None if it cannot meet the target."""
        if shape not in self._known:
            self._known[shape] = self._best(shape)
        return self._known[shape]

    def _best(self, shape: Shape) -> CorrelatedDesign | None:
        seen: dict[float, CorrelatedDesign | None] = {}

        def value(log_lam: float) -> float:
            answer = seen[log_lam] = self._at_lam(shape, math.exp(log_lam))
            return math.inf if answer is None else math.log(answer.value)

        if self._lam is not None:
            return self._at_lam(shape, self._lam)
        start = 0.3 * self._size
        if self.limit.constraint == SENSITIVITY:
            start += 1.5 * self.limit.width * row_size(shape, self.C) / self.limit.target
        grid = [math.log(start) + step for step in (-0.7, 0.0, 0.7)]
        values = [value(x) for x in grid]
        for _ in range(_WIDENINGS):  # until the best λ is not at an end
            best = int(np.argmin(values))
            if 0 < best < len(grid) - 1:
                break
            x = grid[0] - 0.7 if best == 0 and math.isfinite(values[0]) else grid[-1] + 0.7
            at = 0 if x < grid[0] else len(grid)
            grid.insert(at, x)
            values.insert(at, value(x))
        best = int(np.argmin(values))
        if math.isinf(values[best]):
            return None
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        minimize_scalar(
            lambda x: min(value(x), 1e6), bounds=(low, high), method="bounded",
            options={"xatol": 0.05, "maxiter": 7},
        )  # fmt: skip
        found = [answer for answer in seen.values() if answer is not None]
        return min(found, key=lambda answer: answer.value)

    def _at_lam(self, shape: Shape, lam: float) -> CorrelatedDesign | None:
        limited, target = self.limit.constraint, self.limit.target
        if limited == SENSITIVITY:
            level = self.limit.width * row_size(shape, self.C) / target
            return self._answer(shape, lam, level)
        # The OnAveKL falls with the level at first, and the error rises with it.
        low, high = 1e-3 * lam, 3.0 * lam
        best: CorrelatedDesign | None = None
        for _ in range(_BISECTIONS):
            level = math.sqrt(low * high)
            answer = self._answer(shape, lam, level)
            if limited == LEAKAGE:
                if answer is None:
                    high = level  # no estimator: too much noise
                elif answer.onavekl() <= target:
                    best, high = answer, level
                else:
                    # Beyond its minimum the leak rises again, close to the edge of stability.
                    low, high = (low, level) if answer.point.V > 3.0 else (level, high)
            elif answer is not None and target >= answer.point.E:
                best, low = answer, level
            else:
                high = level
            if high < 1.03 * low:
                break
        return best

    def _answer(self, shape: Shape, lam: float, level: float) -> CorrelatedDesign | None:
        noise = _levelled(shape, level)
        fp = self.predict(lam, noise)
        if fp.status is not FixedPointStatus.STABLE or fp.rho_hat <= 0.0:
            return None
        return CorrelatedDesign(fp, self.limit, _search=self)

    @cached_property
    def best_power(self) -> CorrelatedDesign | None:
        """The best exponent of C."""
        found: list[CorrelatedDesign] = []

        def value(gamma: float) -> float:
            answer = self.at(MatrixPower(1.0, gamma))
            if answer is None:
                return 1e6
            found.append(answer)
            return math.log(answer.value)

        grid = list(_COMMON)
        values = [value(gamma) for gamma in grid]
        best = int(np.argmin(values))
        low = grid[best - 1] if best > 0 else _RANGE[0]
        high = grid[best + 1] if best + 1 < len(grid) else _RANGE[1]
        minimize_scalar(
            value, bounds=(low, high), method="bounded", options={"xatol": 0.08, "maxiter": 6}
        )
        return min(found, key=lambda answer: answer.value) if found else None

    @cached_property
    def full(self) -> CorrelatedDesign | None:
        """The best of the full shapes (see the module), of powers and of diagonal ones."""
        first = self.best_power
        weights = {"identity": np.eye(self.C.n_columns), "1/diag(C)": np.diag(1 / self.C.diagonal)}
        if first is not None:
            weights["response"] = self._response(first.point)
        common = [self.at(PowerLaw(1.0, gamma)) for gamma in _DIAGONAL]
        found = [answer for answer in (first, *common) if answer is not None]
        for name, W in weights.items():
            shape = best_shape(W, self.C.covariance)
            answer = self.at(shape)
            if answer is not None:
                gap = shape_gap(shape, W, self.C)
                found.append(replace(answer, weight=name, certificate=gap))
        return min(found, key=lambda answer: answer.value) if found else None

    def _response(self, fp: FixedPoint) -> FloatArray:
        """E[(C_SS)⁻¹], with a small multiple of the identity for columns that are never active."""
        W = np.zeros_like(self.C.covariance)
        supports = fp.supports()
        for S in supports.T:
            index = np.flatnonzero(S)
            W[np.ix_(index, index)] += np.linalg.inv(self.C.covariance[np.ix_(index, index)])
        W /= supports.shape[1]
        return W + 0.3 * float(np.mean(np.diag(W))) * np.eye(W.shape[0])
