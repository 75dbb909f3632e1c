"""What state evolution predicts at one point."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from privasso.model import Model, RotatedModel
from privasso.noise import NoiseDesign
from privasso.theory._attack import Attack, advantages, overlap
from privasso.theory._correlated_leakage import (
    information_bound,
    replica_overlap,
    shared_information,
)
from privasso.theory._draws import ColumnNoise, Draws, Root, given
from privasso.theory._onavekl import joint
from privasso.theory._points import (
    CEILING,
    INFINITE,
    ROWS,
    SETTLED,
    STABLE,
    UNSTABLE,
    GridPoints,
    spectral_rank,
)
from privasso.theory._system import FloatArray, System, column_averages, iterate

_NOT_FOR = {
    "spectrum": "what a released estimate leaks is not known for covariates with a given spectrum, "
    "because their rows are not independent of each other; use a Model",
    "clipped": "what a released estimate leaks is known for the squared loss without a ridge only; "
    "with kappa or ridge, privacy is accounted for by objective_delta",
    "eta": "a prediction for given noise says nothing about privacy: whoever knows the noise sees "
    "through it; leave eta out",
}


class FixedPointStatus(Enum):
    """What becomes of the estimator in the limit of many columns."""

    STABLE = "stable"
    """The estimator exists; E, V and ρ̂ < α are its fixed point."""
    UNSTABLE = "unstable"
    """Too much noise for λ: the objective is unbounded below and there is no estimator."""
    INFINITE_ERROR = "infinite error"
    """E grows with N, as the noise does not vanish on small columns and E[v^(γ−1)] = ∞.

    A ridge that vanishes more slowly than v may prevent it."""


STATUS = {
    STABLE: FixedPointStatus.STABLE,
    UNSTABLE: FixedPointStatus.UNSTABLE,
    INFINITE: FixedPointStatus.INFINITE_ERROR,
}


class StandardErrors(NamedTuple):
    """Monte Carlo standard errors of predictions; zero where they are computed in closed form."""

    E: float = 0.0
    V: float = 0.0
    rho_hat: float = 0.0
    stability: float = 0.0
    onavekl: float = 0.0


class ColumnPredictions(NamedTuple):
    """Predictions for each column, arrays of shape (N,)."""

    sparsity: FloatArray
    """Probability that the coefficient is not zero."""
    error: FloatArray
    """C_ii E(x̂_i − x⁰_i)²; for independent columns its mean and σ_ξ² make up E."""


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """Prediction of state evolution; made by `state_evolution`.

    Attributes
    ----------
    status : FixedPointStatus
        Whether the estimator exists.
    E : float
        Prediction error E[(y − fᵀx̂)²] on a new record, label noise included; inf when there is
        no estimator or its error grows with the number of columns.
    V : float
        Variance parameter of AMP, inf where no estimator exists. Without clipping and ridge it is
        ρ̂/(α − ρ̂) at a stable point. For a `RotatedModel` it is the response ρ̂/γ₁ of VAMP,
        tr (A_SᵀA_S)⁻¹/N for the columns S in the support, and E is the error on a new record with
        independent entries of variance v/N.
    rho_hat : float
        Fraction of nonzero coefficients. Where no estimator exists, the fraction that the
        diverging recursion tends to: V then grows by the factor rho_hat/alpha ≥ 1 per iteration.
        With clipping or a ridge, V and rho_hat are NaN where E is infinite.
    model, lam, noise, kappa, ridge
        What was asked for.
    standard_errors : StandardErrors
        Monte Carlo errors of E, V, rho_hat, stability and the OnAveKL. They are zero except for
        models with a covariance, where averages are over a few draws of signal, noise and data
        unless the covariance is diagonal and the noise independent. For noise that is correlated
        over the columns the last is NaN here, because the OnAveKL is computed when it is asked for:
        see `onavekl_error`.
    n_draws : int
        Number of draws; 0 where the averages are exact.

    Examples
    --------
    >>> import privasso as pv
    >>> fp = pv.state_evolution(pv.Model(), lam=0.2, noise=pv.Gram(0.1))
    >>> fp.status.name, round(fp.E, 6), round(fp.stability, 4)
    ('STABLE', 0.040291, 0.2197)
    """

    status: FixedPointStatus
    E: float
    V: float
    rho_hat: float
    model: Model
    lam: float
    noise: ColumnNoise
    kappa: float = math.inf
    ridge: float | ColumnNoise = 0.0
    standard_errors: StandardErrors = field(default=StandardErrors(), repr=False)
    n_draws: int = field(default=0, repr=False)
    _component_wise: float = field(default=math.nan, repr=False)
    _system: Any = field(default=None, repr=False)
    _root: Root | None = field(default=None, repr=False)
    _at: tuple[float, float] = field(default=(math.nan, math.nan), repr=False)
    """(e, u) of the fixed point, for given columns."""
    _information: FloatArray | None = field(default=None, repr=False)
    """Ī in each draw, for given columns: empty where it is computed when asked for, else None."""
    _seed: int = field(default=0, repr=False)

    @property
    def stability(self) -> float:
        """V/(1 + V), which is ρ̂/α without clipping and ridge: below 1 the estimator exists.

        Where it does not exist, it is ρ̂/α ≥ 1 without clipping, and 1 with it. For a `RotatedModel`
        the rank of F, divided by the number of columns, takes the place of α if α < 1.
        """
        if self._is_rotated:
            rank = spectral_rank(self._system.d, self._system.dw)
            return self.rho_hat / (rank * max(self.model.alpha, 1.0))
        if self._system.is_linear:
            return self.rho_hat / self.model.alpha
        return 1.0 if math.inf == self.V else self.V / (1.0 + self.V)

    @property
    def _is_rotated(self) -> bool:
        return isinstance(self.model, RotatedModel)

    @property
    def _is_simulated(self) -> bool:
        return isinstance(self._system, Draws)

    @property
    def _is_stable(self) -> bool:
        return self.status is FixedPointStatus.STABLE

    @property
    def _is_open(self) -> bool:
        """Whether Ī is to be computed when it is asked for."""
        info = self._information
        return self._is_stable and info is not None and info.size == 0

    @cached_property
    def _leak(self) -> tuple[FloatArray, float]:
        """Ī in each draw, and P."""
        if not self._is_open:
            return np.empty(0) if self._information is None else self._information, self._paper
        info = shared_information(self._system, *self._at, self.noise, self._seed)
        return info, self._at[0] * float(np.mean(info))

    @property
    def _paper(self) -> float:
        """The component-wise OnAveKL P, where the estimator exists; NaN where it is not known."""
        return self._leak[1] if self._is_open else self._component_wise

    def _shared(self) -> float:
        """C/E, the overlap of two releases."""
        if not self._is_simulated:
            return overlap(self._system, self.E, self.V) / self.E
        rng = np.random.default_rng(self._seed)
        return replica_overlap(self.model, self.lam, self.noise, *self._at, self.n_draws, rng)

    def _bound(self) -> float:
        """The largest Ī that noise of this covariance may have."""
        return information_bound(given(self.model), self.noise)

    def _check_leakage(self) -> None:
        """Raise an error where what a released estimate leaks is not known."""
        if self._is_rotated:
            raise ValueError(_NOT_FOR["spectrum"])
        if not self._system.is_linear:
            raise ValueError(_NOT_FOR["clipped"])
        if self.model.covariance is not None and self._information is None:
            raise ValueError(_NOT_FOR["eta"])

    @cached_property
    def trajectory(self) -> NDArray[np.float64]:
        """Rows (E, V, ρ̂) of the iterates x⁰ = 0, x¹, x², ... of AMP, or of VAMP, shape (T, 3).

        It ends when it converges or diverges, or after 1000 rows, since it is slow near the edge
        of stability. For small α and a signal that is not very sparse it can alternate between
        two values for ever: AMP does not converge there, but the fixed point still exists and
        describes the estimator that another solver finds. Where E is infinite there are two
        rows, the start and the first iterate. For correlated columns the rows are those of the
        search for the fixed point.

        Examples
        --------
        >>> import privasso as pv
        >>> fp = pv.state_evolution(pv.Model(), lam=0.2, noise=pv.Gram(0.1))
        >>> fp.trajectory[0].round(4), bool(abs(fp.trajectory[-1, 0] / fp.E - 1) < 1e-6)
        (array([0.0433, 0.    , 0.    ]), True)
        """
        if self._is_simulated:
            return np.empty((0, 3)) if self._root is None else self._root.path
        infinite = self.status is FixedPointStatus.INFINITE_ERROR
        rows = iterate(self._system, 2 if infinite else ROWS, SETTLED, CEILING)
        if infinite:
            rows[1, 0] = np.inf
        return rows

    def onavekl(self, kind: str = "joint") -> float:
        """On-average KL divergence of the released estimate when one record is replaced.

        KL(p(x|D) ‖ p(x|D')), averaged over data sets D and a record of D replaced by a new one
        of the same law. It measures how well membership can be inferred *on average*; it is
        neither an ε nor a bound for any one person, and it holds under the model only.

        Both kinds are for the limit of many columns. With a few hundred columns, and close to
        instability, the divergence of the whole vector is larger: by Monte Carlo of the exact
        density 3 to 51 % at N = 200 and 2 to 13 % at N = 400 (``privasso reproduce leakage``).

        For correlated columns P = E·Ī/(1+V)² (see `docs/correlated.md`). For noise that is
        correlated over the columns, Ī is computed by a Markov chain at the first call, which takes
        about as long as the prediction; `onavekl_error` is the standard error.

        Parameters
        ----------
        kind : {"joint", "paper", "bound"}
            ``"joint"`` is the divergence of the whole released vector, P(1+(1+V)²)/2 + V²/(1+V).
            ``"paper"`` is the component-wise P = α⁻²E·E[R_v/v], which adds up marginal
            divergences and leaves out how the coefficients respond to each other; it is smaller,
            by far where V is large. ``"bound"``, for a model with a covariance: an upper bound of
            ``"joint"`` for noise of any covariance, with Ī ≤ tr(CΣ⁻¹)/N.

        Returns
        -------
        float
            inf without noise, or where E is infinite; NaN where no estimator exists.

        Raises
        ------
        ValueError
            With a clipped loss or a ridge, or for a `RotatedModel`: the divergence is not known;
            where the prediction is for noise at hand; and unless kind is ``"bound"`` for noise
            that does not cover all directions in which the rows vary.

        Examples
        --------
        >>> import privasso as pv
        >>> fp = pv.state_evolution(pv.Model(), lam=0.2, noise=pv.Gram(0.1))
        >>> round(fp.onavekl(), 4), round(fp.onavekl(kind="paper"), 4)
        (0.3478, 0.2164)
        """
        self._check_leakage()
        kinds = ("joint", "paper", *(() if self.model.covariance is None else ("bound",)))
        if kind not in kinds:
            raise ValueError(f"kind must be one of {', '.join(kinds)}, not {kind!r}")
        if kind == "paper" or not self._is_stable:
            return self._paper
        return float(joint(self._at[0] * self._bound() if kind == "bound" else self._paper, self.V))

    @cached_property
    def onavekl_is_known(self) -> bool:
        """Whether `onavekl` has a value other than its bound: the noise covers all rows."""
        if self._is_open:
            return math.isfinite(self._bound())
        return self._is_stable and not math.isnan(self._component_wise)

    @cached_property
    def onavekl_error(self) -> float:
        """Monte Carlo standard error of `onavekl`; NaN where no estimator exists."""
        if not self._is_stable:
            return math.nan
        self._check_leakage()
        return 0.0 if self._root is None else leak_error(self._root, *self._leak)

    def attack(self) -> Attack:
        """The best membership attack by someone who knows all other records, averaged over records.

        It is the likelihood-ratio test, which no other attack beats; `privacy_loss` computes its
        statistic exactly for given data. Like `onavekl`, it is an average under the model in the
        limit of many columns, and bounds nothing for any one person.

        Raises
        ------
        ValueError
            Where no estimator exists or its error is infinite, and where `onavekl` raises one.

        Examples
        --------
        >>> import privasso as pv
        >>> attack = pv.state_evolution(pv.Model(), lam=0.2, noise=pv.Gram(0.1)).attack()
        >>> round(attack.auc, 3), round(attack.of_quantile(0.99).auc, 3)
        (0.634, 0.772)
        """
        self._check_leakage()
        if not self._is_stable:
            raise ValueError(
                f"no attack is predicted where the status is {self.status.value!r}: there is no "
                "released estimate with a finite error; choose a larger λ or less noise, or pass "
                "n_features"
            )
        return Attack(self.V, self._paper * (1.0 + self.V) ** 2, self._shared())

    def advantage(self) -> float:
        """Advantage of `attack`, true- minus false-positive rate; it is quicker than the attack.

        Returns
        -------
        float
            NaN where no estimator exists or its error is infinite, and where the leakage is not
            known.

        Examples
        --------
        >>> import privasso as pv
        >>> fp = pv.state_evolution(pv.Model(), lam=0.2, noise=pv.Gram(0.1))
        >>> abs(fp.advantage() - fp.attack().advantage) < 1e-12
        True
        """
        if not self._is_stable or math.isnan(self._paper):
            return math.nan
        J = self._paper * (1.0 + self.V) ** 2
        return float(advantages(np.array([self.V]), np.array([J]))[0])

    @cached_property
    def columns(self) -> ColumnPredictions:
        """Sparsity and error of each column.

        Each is a mean over the draws, so that with few draws those of a single column are rough;
        pass more `draws` to `state_evolution`.

        Raises
        ------
        ValueError
            Where no estimator exists, with clipping or a ridge, and without a covariance matrix,
            which may be diagonal.
        """
        e, u = self._at
        if not (self._is_stable and self._system.is_linear and math.isfinite(e)):
            raise ValueError(
                "there are no predictions for single columns with clipping or a ridge, where no "
                "estimator exists, or without a covariance; np.diag(v) is one of independent "
                "columns"
            )
        s = self._system
        if not self._is_simulated:
            one = np.ones(1)
            each = np.array([
                column_averages(
                    s._replace(v=s.v[k], w=one, profile=s.profile[k], mean=s.mean[k]), e, u
                )[:3]
                for k in (slice(i, i + 1) for i in range(s.v.size))
            ])  # fmt: skip
            return ColumnPredictions(each[:, 2], each[:, 0] / (u * u))
        z = s.minimise(e, u)
        error = s.v[:, None] * (z / (s.alpha * u) - s.x0) ** 2
        return ColumnPredictions(np.mean(z != 0.0, axis=1), error.mean(axis=1))

    def supports(self) -> NDArray[np.bool_]:
        """Which coefficients are not zero in each draw, shape (N, n_draws); made by simulation."""
        if self._root is None:
            raise ValueError("the prediction was not made by simulation")
        return self._system.minimise(*self._at) != 0.0


def leak_error(root: Root, info: FloatArray, P: float) -> float:
    """Of OnAveKL = P(1 + u⁻²)/2 + 1/u + u − 2 with P = e·Ī; Ī varies by itself."""
    u = root.q
    half = 0.5 * P * (1.0 + 1.0 / u**2)
    by_u = -P / u**3 - 1.0 / u**2 + 1.0
    own = np.std(info, ddof=1) / math.sqrt(info.size) / np.mean(info) if info.size > 1 else 0.0
    return math.hypot(root.error(half, by_u), half * float(own))


def point_at(
    points: GridPoints,
    k: int,
    model: Model | RotatedModel,
    lam: float,
    noise: NoiseDesign,
    kappa: float = math.inf,
    ridge: float | NoiseDesign = 0.0,
) -> FixedPoint:
    """Point k of a grid."""
    system: System = points.system._replace(lam=lam, power=noise.mean_power)
    return FixedPoint(
        status=STATUS[int(points.status[k])], E=float(points.E[k]), V=float(points.V[k]),
        rho_hat=float(points.rho_hat[k]), model=cast(Model, model), lam=lam, noise=noise,
        kappa=kappa, ridge=ridge, _component_wise=float(points.component_wise[k]), _system=system,
    )  # fmt: skip
