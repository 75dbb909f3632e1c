"""The best settings for columns of a given covariance, by simulated state evolution.

A shape Σ₀ with mean variance 1 leaves numbers to choose: λ and the level of noise on Fᵀy, or κ, t
and λ of objective perturbation.

**Noise on Fᵀy.** The level follows from the target:

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

**Objective perturbation.** In the limit of many columns every row has ‖f‖²_{S⁻¹} = R² = tr(CS⁻¹)/N
for a shape S ∝ C^γ, the ridge is (R²/t)S, and the noise is N(0, (κRν(t))²S) with the
`objective_noise` ν of the budget. The search starts from the design for independent columns.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar

from privasso._blas import one_thread
from privasso.design._objective import ObjectiveSearch
from privasso.design._program import LEAKAGE, SENSITIVITY
from privasso.design._result import Design, InfeasibleError, ObjectiveDesign
from privasso.model import GivenCovariance
from privasso.noise import Covariance, Factored, MatrixPower, NoiseDesign, PowerLaw
from privasso.planning import objective_noise
from privasso.privacy import FormalBudget
from privasso.theory import (
    FixedPoint,
    FixedPointStatus,
    information_bound,
    noise_level,
    state_evolution,
)

if TYPE_CHECKING:
    import polars as pl

    from privasso.design._limits import Limit, Setting

FloatArray = NDArray[np.float64]
Shape = NoiseDesign | MatrixPower | Covariance
S = TypeVar("S", bound=Shape)
D = TypeVar("D", bound=Design)

_DRAWS = 8
_COMMON = (0.0, 0.5, 1.0, 2.0)
_RANGE = (-0.5, 2.5)
#: Powers of the diagonal of C, which are compared with those of C and among full shapes.
_DIAGONAL = {f"diagonal v^{gamma:g}": PowerLaw(1.0, gamma) for gamma in (0.5, 1.0)}
_BISECTIONS = 12
#: Steps by which the range of λ may grow.
_WIDENINGS = 6
#: Powers for objective perturbation, and predictions for each.
_POWERS, _EVALUATIONS = (0.0, 0.5, 1.0), 40


def row_size(shape: Shape, C: GivenCovariance) -> float:
    """Root of tr(CΣ⁻¹)/N at level 1: the root mean square of ‖f‖_{Σ⁻¹} over rows."""
    return math.sqrt(information_bound(C, shape))


def best_shape(W: FloatArray, C: FloatArray) -> Factored:
    """Σ ∝ W^(−½)(W^½CW^½)^½W^(−½), of mean variance 1: least tr(WΣ) at a given tr(CΣ⁻¹)."""
    with one_thread():
        d, Q = np.linalg.eigh(W)
        root, inverse = (Q * np.sqrt(d)) @ Q.T, (Q / np.sqrt(d)) @ Q.T
        d, Q = np.linalg.eigh(root @ C @ root)
        half = inverse @ (Q * np.maximum(d, 1e-12 * d[-1]) ** 0.25)
    return Factored(half * math.sqrt(W.shape[0] / float(np.sum(half * half))))


def shape_gap(shape: Covariance, W: FloatArray, C: GivenCovariance) -> float:
    """tr(WΣ)·tr(CΣ⁻¹)/T² − 1, which is zero for the best shape alone."""
    with one_thread():
        # T is the sum of the singular values of W^½C^½, and any roots of W and C will do.
        T = float(np.sum(np.linalg.svd(np.linalg.cholesky(W).T @ C.root, compute_uv=False)))
    return shape.trace(W) * information_bound(C, shape) * C.n_columns / T**2 - 1.0


class _Search(ABC, Generic[S, D]):
    """Predictions with the same draws everywhere, and the best settings of each shape."""

    def __init__(self, setting: Setting) -> None:
        self.model = setting.model.realised(setting.n_features, setting.rng)
        self.C: GivenCovariance = self.model.covariance
        self._lam, self._seed = setting.lam, int(setting.rng.integers(2**63))
        self._known: dict[S, D | None] = {}

    def at(self, shape: S) -> D | None:
        """The best settings for a shape of level 1; None if it cannot meet the target."""
        if shape not in self._known:
            self._known[shape] = self._best(shape)
        return self._known[shape]

    @abstractmethod
    def _best(self, shape: S) -> D | None: ...

    @abstractmethod
    def compared(self, gamma: float) -> dict[str, D | None]:
        """Designs to compare with one of this exponent, by their names in a table."""


@dataclass(frozen=True, eq=False)
class CorrelatedDesign(Design):
    """The best λ and noise for a model with a covariance; made by `optimal_design`.

    - `point`: what is predicted, with Monte Carlo errors, for its `lam` and `noise`.
    - `family`: ``"power"``, ``"diagonal"`` or ``"full"``.
    - `weight`: W of a full shape: ``"identity"``, ``"1/diag(C)"`` or ``"response"``; None if the
      noise is a power of C or of its diagonal, which may also be the best full shape that was
      found.
    - `certificate`: tr(WΣ)·tr(CΣ⁻¹)/T² − 1 for this W, computed from the noise itself: no shape has
      a smaller tr(WΣ) at the same sensitivity by more than this part. None without a W.
    """

    constraint: Limit
    _search: _ReleaseSearch = field(repr=False)
    family: str = "power"
    weight: str | None = None
    certificate: float | None = None

    @property
    def noise(self) -> Shape:
        """The noise, with its level."""
        return self.point.noise

    @property
    def sigma(self) -> float:
        """Level of the noise, the root of its mean variance."""
        return noise_level(self.noise)

    def onavekl(self) -> float:
        """OnAveKL of the design; infinite for noise that leaves a direction of rows uncovered."""
        return self.point.onavekl() if self.point.onavekl_is_known else math.inf

    @property
    def value(self) -> float:
        """What is minimised: E, or the OnAveKL for a limit on E."""
        return self.onavekl() if self.constraint.objective == LEAKAGE else self.E

    @property
    def numbers(self) -> dict[str, float]:
        """A row of the comparison."""
        errors = {"E": self.E, "E_se": self.point.standard_errors.E, "rho_hat": self.rho_hat}
        return {"lam": self.lam, "sigma": self.sigma, **errors, "onavekl": self.onavekl()}

    def comparison(self) -> pl.DataFrame:
        """Side by side, each at its best λ: common powers of C, the best one, the full shape."""
        return _table(self._search, math.nan)


@dataclass(frozen=True, eq=False, repr=False)
class CorrelatedObjectiveDesign(ObjectiveDesign):
    """An `ObjectiveDesign` whose shape is a power of the covariance of the columns."""

    _search: _ObjectiveSearch = field(repr=False)

    @property
    def numbers(self) -> dict[str, float]:
        """A row of the comparison."""
        errors = {"E": self.E, "E_se": self.point.standard_errors.E, "rho_hat": self.rho_hat}
        return {"kappa": self.kappa, "t": self.t, "lam": self.lam, "sigma": self.sigma, **errors}

    def comparison(self) -> pl.DataFrame:
        """Side by side, each at its best κ, t and λ for the budget: powers of C, and diagonals."""
        return _table(self._search, self.gamma)


def _table(search: _ReleaseSearch | _ObjectiveSearch, gamma: float) -> pl.DataFrame:
    import polars as pl

    found = search.compared(gamma)
    return pl.DataFrame(
        [{"noise": name, **(one.numbers if one else {})} for name, one in found.items()]
    )


def correlated_design(limit: Limit, setting: Setting) -> CorrelatedDesign:
    """Return the best λ and noise on Fᵀy."""
    search = _ReleaseSearch(limit, setting)
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


def correlated_objective(budget: FormalBudget, setting: Setting) -> CorrelatedObjectiveDesign:
    """Return the design of least predicted error for objective perturbation."""
    search = _ObjectiveSearch(budget, setting)
    powers = _POWERS if setting.gamma is None else (setting.gamma,)
    return min((search.at(MatrixPower(1.0, power)) for power in powers), key=lambda f: f.E)


class _ReleaseSearch(_Search[Shape, CorrelatedDesign]):
    def __init__(self, limit: Limit, setting: Setting) -> None:
        super().__init__(setting)
        self.limit = limit
        mean, model = float(np.mean(self.C.diagonal)), self.model
        # λ at which hardly anything is left in the model, to start the search for it.
        self._size = math.sqrt(model.alpha * mean * (model.sigma_xi**2 + model.rho * mean))

    def compared(self, gamma: float) -> dict[str, CorrelatedDesign | None]:
        found = {f"C^{gamma:g}": self.at(MatrixPower(1.0, gamma)) for gamma in _COMMON}
        found["best power"] = self.best_power
        found |= {name: self.at(shape) for name, shape in _DIAGONAL.items()}
        return found | {"full shape": self.full}

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
        whole = isinstance(shape, Covariance)
        noise = shape.scaled(level**2) if whole else shape.with_sigma(level)
        fp = state_evolution(self.model, lam, noise, draws=_DRAWS, rng=self._seed)
        if fp.status is not FixedPointStatus.STABLE or fp.rho_hat <= 0.0:
            return None
        return CorrelatedDesign(fp, self.limit, self)

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

        values = [value(gamma) for gamma in _COMMON]
        best = int(np.argmin(values))
        low = _COMMON[best - 1] if best > 0 else _RANGE[0]
        high = _COMMON[best + 1] if best + 1 < len(_COMMON) else _RANGE[1]
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
        common = [self.at(shape) for shape in _DIAGONAL.values()]
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
        for on in supports.T:
            index = np.flatnonzero(on)
            W[np.ix_(index, index)] += np.linalg.inv(self.C.covariance[np.ix_(index, index)])
        W /= supports.shape[1]
        return W + 0.3 * float(np.mean(np.diag(W))) * np.eye(W.shape[0])


class _ObjectiveSearch(_Search[MatrixPower | PowerLaw, CorrelatedObjectiveDesign]):
    def __init__(self, budget: FormalBudget, setting: Setting) -> None:
        super().__init__(setting)
        self._budget = budget
        gamma = 0.5 if setting.gamma is None else setting.gamma
        alone = replace(self.model, covariance=None)
        self._start = ObjectiveSearch(budget, setting.lam, gamma).best(alone)

    def at(self, shape: MatrixPower | PowerLaw) -> CorrelatedObjectiveDesign:
        found = super().at(shape)
        assert found is not None
        return found

    def compared(self, gamma: float) -> dict[str, CorrelatedObjectiveDesign | None]:
        powers = {f"C^{g:g}": MatrixPower(1.0, g) for g in sorted({*_POWERS, gamma})}
        shapes = powers | {"C^2": MatrixPower(1.0, 2.0)} | _DIAGONAL
        return {name: self.at(shape) for name, shape in shapes.items()}

    def _best(self, shape: MatrixPower | PowerLaw) -> CorrelatedObjectiveDesign:
        start, budget = self._start, self._budget
        radius = row_size(shape, self.C)
        # A wider row needs more noise, and more noise a larger λ.
        wider = radius / start.radius
        first = [math.log(start.kappa), math.log(start.t), math.log(start.lam * max(wider, 1e-3))]
        covers = "labels" if budget.pair.unit == "label" else "records"
        seen: list[CorrelatedObjectiveDesign] = []

        def value(x: np.ndarray) -> float:
            kappa, t = math.exp(x[0]), math.exp(x[1])
            lam = math.exp(x[2]) if self._lam is None else self._lam
            fp = state_evolution(
                self.model, lam, shape.with_sigma(kappa * radius * objective_noise(budget, t)),
                kappa=kappa, ridge=shape.with_sigma(radius / math.sqrt(t)), draws=_DRAWS,
                rng=self._seed,
            )  # fmt: skip
            seen.append(
                CorrelatedObjectiveDesign(
                    fp, covers, budget.epsilon, budget.delta, t, radius, self.C.n_columns, self
                )
            )
            return math.log(fp.E)

        simplex = np.array([first, *(np.array(first) + d for d in 0.5 * np.eye(3))])
        minimize(
            value, first, method="Nelder-Mead",
            options={
                "initial_simplex": simplex, "maxfev": _EVALUATIONS, "fatol": 1e-3, "xatol": 0.03,
            },
        )  # fmt: skip
        return min(seen, key=lambda found: found.E)
