"""Objective perturbation for correlated columns: κ, t, λ and the power of C at a formal budget.

The shape is S ∝ C^γ with a mean diagonal of 1. In the limit of many columns every row has
‖f‖²_{S⁻¹} = R² = tr(CS⁻¹)/N, the ridge is (R²/t)S, and the noise is N(0, (κRν(t))²S) with the
`objective_noise` ν of the budget. The search starts from the design for independent columns.

It begins with what both designs for correlated columns need: the size of a row in units of a shape,
and the best shape.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from privasso._blas import one_thread
from privasso.design._objective import ObjectiveSearch
from privasso.design._result import ObjectiveDesign
from privasso.model import GivenCovariance, Model
from privasso.noise import Covariance, Factored, MatrixPower, NoiseDesign, PowerLaw
from privasso.planning import objective_noise
from privasso.privacy import FormalBudget
from privasso.theory import state_evolution

if TYPE_CHECKING:
    import polars as pl

    from privasso.design._limits import Setting


FloatArray = NDArray[np.float64]
Shape = NoiseDesign | MatrixPower | Covariance


def row_size(shape: Shape, C: GivenCovariance) -> float:
    """Root of tr(CΣ⁻¹)/N at level 1: the root mean square of ‖f‖_{Σ⁻¹} over rows."""
    if isinstance(shape, MatrixPower):
        with one_thread():
            d = np.linalg.eigvalsh(C.covariance)
        d = d[d > 1e-10 * d[-1]]
        mean = float(np.sum(d**shape.gamma)) / C.n_columns
        return math.sqrt(mean * float(np.sum(d ** (1.0 - shape.gamma))) / C.n_columns)
    if isinstance(shape, NoiseDesign):
        return math.sqrt(float(np.mean(C.diagonal / shape.variances(C.diagonal))))
    white = shape.whiten(C.root)
    return math.sqrt(float(np.sum(white * white)) / C.n_columns)


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
    white = shape.whiten(C.root)
    with one_thread():
        # T is the sum of the singular values of W^½C^½, and any roots of W and C will do.
        T = float(np.sum(np.linalg.svd(np.linalg.cholesky(W).T @ C.root, compute_uv=False)))
    return shape.trace(W) * float(np.sum(white * white)) / T**2 - 1.0


LevelledShape: TypeAlias = MatrixPower | PowerLaw

_DRAWS = 8
_POWERS = (0.0, 0.5, 1.0)
#: Predictions for each power.
_EVALUATIONS = 40


#: What a comparison adds: the full Gram matrix, and shapes on the diagonal of C.
_OTHERS: dict[str, LevelledShape] = {
    "C^2": MatrixPower(1.0, 2.0),
    "diagonal v^0.5": PowerLaw(1.0, 0.5),
    "diagonal v^1": PowerLaw(1.0, 1.0),
}


@dataclass(frozen=True, eq=False, repr=False)
class CorrelatedObjectiveDesign(ObjectiveDesign):
    """An `ObjectiveDesign` whose shape is a power of the covariance of the columns."""

    _search: _Search | None = field(default=None, repr=False)

    def comparison(self) -> pl.DataFrame:
        """Side by side, each at its best κ, t and λ for the budget: powers of C, and diagonals."""
        import polars as pl

        search = self._search
        assert search is not None
        shapes: dict[str, LevelledShape] = {
            f"C^{gamma:g}": MatrixPower(1.0, gamma) for gamma in sorted({*_POWERS, self.gamma})
        }
        rows = []
        for name, shape in (shapes | _OTHERS).items():
            found = search.at(shape)
            names = ("kappa", "t", "lam", "sigma", "E")
            row = {"noise": name, **{each: getattr(found, each) for each in names}}
            rows.append(row | {"E_se": found.point.standard_errors.E, "rho_hat": found.rho_hat})
        return pl.DataFrame(rows)


def correlated_objective(budget: FormalBudget, setting: Setting) -> CorrelatedObjectiveDesign:
    """Return the design of least predicted error."""
    lam, gamma, rng = setting.lam, setting.gamma, setting.rng
    model = setting.model.realised(setting.n_features, rng)
    seed = int(rng.integers(2**63))
    alone = replace(model, covariance=None)
    start = ObjectiveSearch(budget, lam, 0.5 if gamma is None else gamma).best(alone)
    search = _Search(model, budget, lam, start, seed)
    powers = _POWERS if gamma is None else (gamma,)
    return min((search.at(MatrixPower(1.0, power)) for power in powers), key=lambda f: f.E)


class _Search:
    """The best settings of each shape, with the same draws everywhere."""

    def __init__(
        self,
        model: Model,
        budget: FormalBudget,
        lam: float | None,
        start: ObjectiveDesign,
        seed: int,
    ) -> None:
        self._model, self._budget, self._lam, self._seed = model, budget, lam, seed
        self._start = start
        self._known: dict[LevelledShape, CorrelatedObjectiveDesign] = {}

    def at(self, shape: LevelledShape) -> CorrelatedObjectiveDesign:
        """The settings of least predicted error for a shape of level 1."""
        if shape not in self._known:
            self._known[shape] = self._best(shape)
        return self._known[shape]

    def _best(self, shape: LevelledShape) -> CorrelatedObjectiveDesign:
        start, budget = self._start, self._budget
        radius = row_size(shape, self._model.covariance)
        # A wider row needs more noise, and more noise a larger λ.
        wider = radius / start.radius
        first = [math.log(start.kappa), math.log(start.t), math.log(start.lam * max(wider, 1e-3))]
        seen: list[CorrelatedObjectiveDesign] = []

        def value(x: np.ndarray) -> float:
            kappa, t = math.exp(x[0]), math.exp(x[1])
            lam = math.exp(x[2]) if self._lam is None else self._lam
            sigma = kappa * radius * objective_noise(budget, t)
            fp = state_evolution(
                self._model, lam, shape.with_sigma(sigma), kappa=kappa,
                ridge=shape.with_sigma(radius / math.sqrt(t)), draws=_DRAWS, rng=self._seed,
            )  # fmt: skip
            seen.append(
                CorrelatedObjectiveDesign(
                    fp, "labels" if budget.pair.unit == "label" else "records", budget.epsilon,
                    budget.delta, t, radius, self._model.covariance.n_columns, self,
                )
            )  # fmt: skip
            return math.log(fp.E)

        simplex = np.array([first, *(np.array(first) + d for d in 0.5 * np.eye(3))])
        minimize(
            value, first, method="Nelder-Mead",
            options={
                "initial_simplex": simplex, "maxfev": _EVALUATIONS, "fatol": 1e-3, "xatol": 0.03,
            },
        )  # fmt: skip
        return min(seen, key=lambda found: found.E)
