"""State evolution for given columns of any covariance, at one point."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privasso._validation import generator, integer, real_array
from privasso.model import GivenCovariance, Model
from privasso.noise import Covariance, MatrixPower, NoiseDesign
from privasso.theory._attack import Attack, advantages
from privasso.theory._columns import GivenColumns
from privasso.theory._correlated_leakage import (
    information,
    information_bound,
    own_variances,
    replica_overlap,
)
from privasso.theory._draws import ColumnNoise, Draws, NotSolvedError, System, given
from privasso.theory._fixed_point import FixedPoint, FixedPointStatus, StandardErrors
from privasso.theory._nodes import Nodes
from privasso.theory._onavekl import component_wise, joint
from privasso.theory._overlap import overlap
from privasso.theory._search import Root, find_root

FloatArray = NDArray[np.float64]

#: Columns of a correlation that is for any number of them, unless n_features says otherwise.
USUAL_COLUMNS = 1000
_NO_DENSITY = (
    "for noise that is correlated over the columns the released estimate has no density in closed "
    "form; onavekl(kind='bound') is an upper bound"
)


class ColumnPredictions(NamedTuple):
    """Predictions for each column, arrays of shape (N,)."""

    sparsity: FloatArray
    """Probability that the coefficient is not zero."""
    error: FloatArray
    """C_ii E(x̂_i − x⁰_i)²; for independent columns its mean and σ_ξ² make up E."""
    sparsity_error: FloatArray
    """Standard errors of the sparsity over the draws; zero where it is exact."""
    error_error: FloatArray
    """Standard errors of the error."""


@dataclass(frozen=True, eq=False)
class CorrelatedPoint(FixedPoint):
    """Prediction for a model with a covariance; made by `state_evolution`.

    The averages are over a few draws of signal, noise and data, and have standard errors. They are
    exact for a diagonal covariance with independent noise, where the closed form is used.

    Attributes
    ----------
    n_draws : int
        Number of draws; 0 where the averages are exact.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> i = np.arange(200)
    >>> C = 0.8 ** abs(i[:, None] - i)
    >>> fp = pv.state_evolution(pv.Model(covariance=C), 0.2, pv.Isotropic(0.05), rng=0)
    >>> fp.status.name, round(fp.E, 2), fp.standard_errors.E < 0.005
    ('STABLE', 0.03, True)
    >>> fp.columns.sparsity.shape
    (200,)
    """

    noise: ColumnNoise  # pyright: ignore[reportIncompatibleVariableOverride]
    n_draws: int = field(default=0, kw_only=True)
    _root: Root | None = field(repr=False, default=None, kw_only=True)
    _system: System | None = field(repr=False, default=None, kw_only=True)
    _information: FloatArray | None = field(repr=False, default=None, kw_only=True)
    _variances: FloatArray | None = field(repr=False, default=None, kw_only=True)
    _seed: int = field(repr=False, default=0, kw_only=True)
    _path: FloatArray | None = field(repr=False, default=None, kw_only=True)

    @cached_property
    def trajectory(self) -> FloatArray:
        """Rows (E, V, ρ̂) of the search for the fixed point, shape (T, 3).

        They are not iterates of AMP, which is made for independent columns.
        """
        if self._path is not None:
            return self._path
        return np.empty((0, 3)) if self._root is None else self._root.path

    @cached_property
    def columns(self) -> ColumnPredictions:
        """Sparsity and error of each column.

        Each is a mean over the draws, so that with few draws those of a single column are rough;
        pass more `draws` to `state_evolution`.

        Raises
        ------
        ValueError
            Where no estimator exists.
        """
        if self._root is None or self._system is None:
            raise ValueError(
                "there are no predictions for single columns with clipping or a ridge, or where no "
                "estimator exists"
            )
        e, u = self._root.e, self._root.u
        if isinstance(self._system, GivenColumns):
            active, part = self._system.columns(e, u)
            zero = np.zeros_like(active)
            return ColumnPredictions(active, part / (u * u), zero, zero)
        assert isinstance(self._system, Draws)
        z = self._system.minimise(e, u)
        active = (z != 0.0).astype(np.float64)
        error = self._system.v[:, None] * (z / (self.model.alpha * u) - self._system.x0) ** 2
        size = math.sqrt(z.shape[1])
        return ColumnPredictions(
            active.mean(axis=1), error.mean(axis=1),
            active.std(axis=1, ddof=1) / size, error.std(axis=1, ddof=1) / size,
        )  # fmt: skip

    def supports(self) -> NDArray[np.bool_]:
        """Which coefficients are not zero in each draw, shape (N, n_draws); made by simulation."""
        if self._root is None or not isinstance(self._system, Draws):
            raise ValueError("the prediction was not made by simulation")
        return self._system.minimise(self._root.e, self._root.u) != 0.0

    def onavekl(self, kind: str = "joint") -> float:
        """On-average KL divergence of the released estimate when one record is replaced.

        As for independent columns, with P = E·Ī/(1+V)² (see `docs/correlated.md`).

        Parameters
        ----------
        kind : {"joint", "paper", "bound"}
            ``"joint"``: of the whole released vector. ``"paper"``: the component-wise P.
            ``"bound"``: an upper bound of ``"joint"`` for noise of any covariance, with
            Ī ≤ tr(CΣ⁻¹)/N.

        Raises
        ------
        ValueError
            For noise that is correlated over the columns, unless kind is ``"bound"``; and where
            the prediction is for noise at hand.
        """
        if self._ridge is not None:
            return super().onavekl(kind)  # which refuses
        if kind not in ("joint", "paper", "bound"):
            raise ValueError(f"kind must be one of joint, paper, bound, not {kind!r}")
        if math.isnan(self._component_wise) and self._information is None:
            raise ValueError(
                "a prediction for given noise says nothing about privacy: whoever knows the noise "
                "sees through it; leave eta out"
            )
        if self.status is not FixedPointStatus.STABLE:
            return math.nan
        if kind == "bound":
            assert self._root is not None
            return float(
                joint(self._root.e * information_bound(given(self.model), self.noise), self.V)
            )
        if self._variances is None:
            raise ValueError(_NO_DENSITY)
        return (
            self._component_wise if kind == "paper" else float(joint(self._component_wise, self.V))
        )

    def attack(self) -> Attack:
        """The best membership attack, as for independent columns.

        Raises
        ------
        ValueError
            Where no estimator exists, and where `onavekl` raises one.
        """
        self.onavekl()
        if self.status is not FixedPointStatus.STABLE or self._root is None:
            raise ValueError("no attack is predicted where no estimator exists")
        model, e, u = self.model, self._root.e, self._root.u
        if isinstance(self._system, GivenColumns):
            N = self._system.v.size
            C = overlap(
                self.E, self.V, model.alpha, model.rho, model.sigma_xi**2, self.lam,
                self._system.v, np.full(N, 1.0 / N), self._system.variances,
            )  # fmt: skip
            shared = C / self.E
        else:
            rng = np.random.default_rng(self._seed)
            shared = replica_overlap(model, self.lam, self.noise, e, u, self.n_draws, rng)
        return Attack(self.V, self._component_wise * (1.0 + self.V) ** 2, shared)

    def advantage(self) -> float:
        """Advantage of `attack`; NaN where it is not predicted."""
        if self.status is not FixedPointStatus.STABLE or self._variances is None:
            return math.nan
        J = self._component_wise * (1.0 + self.V) ** 2
        return float(advantages(np.array([self.V]), np.array([J]))[0])


def given_columns(
    model: Model, noise: ColumnNoise, n_features: int | None, rng: np.random.Generator
) -> Model:
    """The model with a covariance matrix; raises an error unless the noise is for its columns."""
    if model.covariance.n_columns is None and n_features is None:
        n_features = USUAL_COLUMNS
    model = model.realised(n_features, rng)
    _check_noise(noise, given(model).n_columns)
    return model


def correlated_state_evolution(
    model: Model,
    lam: float,
    noise: ColumnNoise,
    n_features: int | None,
    draws: int,
    rng: int | np.random.Generator | None,
    eta: FloatArray | None,
    start: tuple[float, float] | None = None,
) -> CorrelatedPoint:
    """The fixed point for a model with a covariance; λ has been checked."""
    rng = generator(rng)
    model = given_columns(model, noise, n_features, rng)
    C = given(model)
    if eta is not None:
        eta = real_array("eta", eta, shape=(C.n_columns,))
    variances = own_variances(noise, C)
    system: GivenColumns | Draws
    if C.is_diagonal and (variances is not None or eta is not None):
        own = variances if eta is None and variances is not None else np.zeros(C.n_columns)
        draws = 0
        system = GivenColumns(
            model.alpha, model.rho, model.sigma_xi**2, lam, C.diagonal, own, eta
        )  # fmt: skip
    else:
        draws = integer("draws", draws, minimum=2)
        system = Draws(model, lam, noise, draws, rng, eta)
    e, u = _start(model, C) if start is None else start
    try:
        root = find_root(system, e, u)
    except NotSolvedError:
        root = None
    seed = int(rng.integers(2**63))
    nodes = Nodes(C.diagonal, np.full(C.n_columns, 1.0 / C.n_columns), np.zeros(C.n_columns))
    point = {
        "model": model, "lam": lam, "noise": noise, "_nodes": nodes, "_system": system,
        "n_draws": draws, "_variances": None if eta is not None else variances, "_seed": seed,
    }  # fmt: skip
    if root is None:
        rho_hat = _runaway(system)
        return CorrelatedPoint(
            status=FixedPointStatus.UNSTABLE, E=math.inf, V=math.inf, rho_hat=rho_hat,
            _component_wise=math.nan, _information=np.empty(0), **point,
        )  # fmt: skip
    E, V = root.e / root.u**2, 1.0 / root.u - 1.0
    rho_hat = model.alpha * (1.0 - root.u)
    info, P = _leakage(system, root, lam, model, variances, eta)
    return CorrelatedPoint(
        status=FixedPointStatus.STABLE, E=E, V=V, rho_hat=rho_hat,
        standard_errors=_errors(root, E, V, model.alpha, info, P),
        _component_wise=P, _information=info, _root=root, **point,
    )  # fmt: skip


def _leakage(
    system: GivenColumns | Draws,
    root: Root,
    lam: float,
    model: Model,
    variances: FloatArray | None,
    eta: FloatArray | None,
) -> tuple[FloatArray | None, float]:
    """Ī in each draw and P; None for noise at hand, and NaN for P if the noise is correlated."""
    if eta is not None:
        return None, math.nan
    if isinstance(system, GivenColumns):
        N = system.v.size
        P = component_wise(
            root.e, root.u, model.alpha, model.rho, lam, 1.0, system.v,
            np.full(N, 1.0 / N), system.variances,
        )  # fmt: skip
        return np.array([P / root.e]), float(P)
    if variances is None:
        return np.empty(0), math.nan
    info = information(system, root.e, root.u, variances)
    return info, root.e * float(np.mean(info))


def _errors(
    root: Root, E: float, V: float, alpha: float, info: FloatArray | None, P: float
) -> StandardErrors:
    """By the delta method, from the errors of log e and u."""
    S = root.covariance

    def size(by_log_e: float, by_u: float) -> float:
        g = np.array([by_log_e, by_u])
        return math.sqrt(max(float(g @ S @ g), 0.0))

    u = root.u
    of_u = math.sqrt(max(S[1, 1], 0.0))
    leak = math.nan
    if math.isfinite(P) and info is not None:
        # OnAveKL = P(1 + u⁻²)/2 + 1/u + u − 2 with P = e·Ī; Ī varies by itself.
        half = 0.5 * P * (1.0 + 1.0 / u**2)
        by_u = -P / u**3 - 1.0 / u**2 + 1.0
        own = np.std(info, ddof=1) / math.sqrt(info.size) / np.mean(info) if info.size > 1 else 0.0
        leak = math.hypot(size(half, by_u), half * float(own))
    return StandardErrors(
        E=size(E, -2.0 * E / u), V=of_u / u**2, rho_hat=alpha * of_u, stability=of_u, onavekl=leak
    )


def _start(model: Model, C: GivenCovariance) -> tuple[float, float]:
    """(e, u) to start with: the error of half the signal, and a small response."""
    E = model.sigma_xi**2 + 0.5 * model.rho * float(np.mean(C.diagonal))
    return 0.5 * E, 0.75


def _runaway(system: System) -> float:
    """ρ̂ to which the diverging recursion tends: e = R(e, 0)(α/ρ̂)²."""
    rho_hat, e = 1.0, 1.0
    try:
        for _ in range(100):
            R, rho_hat = system.averages(e, 0.0).means
            if R <= 0.0 or rho_hat <= 0.0:
                e *= 10.0
                continue
            new = R * (system.alpha / max(rho_hat, system.alpha)) ** 2
            if abs(math.log(new / e)) < 1e-3:
                break
            e = new
    except NotSolvedError:
        return 1.0
    return max(rho_hat, system.alpha)


def _check_noise(noise: ColumnNoise, N: int) -> None:
    if not isinstance(noise, (NoiseDesign, MatrixPower, Covariance)):
        raise ValueError(
            "noise must be a noise design, such as Isotropic(sigma), a power of the covariance, "
            "noise.MatrixPower(sigma, gamma), or a noise.Covariance, not an object of type "
            f"{type(noise).__name__}"
        )
    if isinstance(noise, Covariance) and noise.size != N:
        raise ValueError(f"the noise is for {noise.size} columns, and the model has {N}")
