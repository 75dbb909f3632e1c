"""The prediction for given columns of any covariance, at one point."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privasso.theory._correlated_leakage import (
    information_bound,
    replica_overlap,
    shared_information,
)
from privasso.theory._draws import ColumnNoise, Draws, given
from privasso.theory._fixed_point import FixedPoint, FixedPointStatus
from privasso.theory._onavekl import joint
from privasso.theory._search import Root
from privasso.theory._system import FloatArray, System, column_averages


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
    """

    _kinds: ClassVar[tuple[str, ...]] = ("joint", "paper", "bound")

    noise: ColumnNoise  # pyright: ignore[reportIncompatibleVariableOverride]
    n_draws: int = field(default=0, kw_only=True)
    _root: Root | None = field(repr=False, default=None, kw_only=True)
    _at: tuple[float, float] = field(repr=False, default=(math.nan, math.nan), kw_only=True)
    """(e, u) of the fixed point."""
    _information: FloatArray | None = field(repr=False, default=None, kw_only=True)
    """Ī in each draw: empty where it is not computed yet, None where it is not known."""
    _seed: int = field(repr=False, default=0, kw_only=True)

    @cached_property
    def trajectory(self) -> FloatArray:
        """Rows (E, V, ρ̂), shape (T, 3): of AMP where averages are exact, else of the search."""
        if isinstance(self._system, System):
            return super().trajectory
        return np.empty((0, 3)) if self._root is None else self._root.path

    @cached_property
    def columns(self) -> ColumnPredictions:
        """Sparsity and error of each column.

        Each is a mean over the draws, so that with few draws those of a single column are rough;
        pass more `draws` to `state_evolution`.

        Raises
        ------
        ValueError
            Where no estimator exists, and with clipping or a ridge.
        """
        if self.status is not FixedPointStatus.STABLE or not self._system.is_linear:
            raise ValueError(
                "there are no predictions for single columns with clipping or a ridge, or where no "
                "estimator exists"
            )
        e, u = self._at
        s = self._system
        if isinstance(s, System):
            one, zero = np.ones(1), np.zeros_like(s.v)
            each = np.array([
                column_averages(
                    s._replace(v=s.v[k], w=one, profile=s.profile[k], mean=s.mean[k]), e, u
                )[:3]
                for k in (slice(i, i + 1) for i in range(s.v.size))
            ])  # fmt: skip
            return ColumnPredictions(each[:, 2], each[:, 0] / (u * u), zero, zero)
        z = s.minimise(e, u)
        active = (z != 0.0).astype(np.float64)
        error = s.v[:, None] * (z / (s.alpha * u) - s.x0) ** 2
        size = math.sqrt(z.shape[1])
        return ColumnPredictions(
            active.mean(axis=1), error.mean(axis=1),
            active.std(axis=1, ddof=1) / size, error.std(axis=1, ddof=1) / size,
        )  # fmt: skip

    def supports(self) -> NDArray[np.bool_]:
        """Which coefficients are not zero in each draw, shape (N, n_draws); made by simulation."""
        if self._root is None or not isinstance(self._system, Draws):
            raise ValueError("the prediction was not made by simulation")
        return self._system.minimise(*self._at) != 0.0

    def onavekl(self, kind: str = "joint") -> float:
        """On-average KL divergence of the released estimate when one record is replaced.

        As for independent columns, with P = E·Ī/(1+V)² (see `docs/correlated.md`). For noise that
        is correlated over the columns, Ī is computed by a Markov chain at the first call, which
        takes about as long as the prediction; `onavekl_error` is the standard error.

        Parameters
        ----------
        kind : {"joint", "paper", "bound"}
            ``"joint"``: of the whole released vector. ``"paper"``: the component-wise P.
            ``"bound"``: an upper bound of ``"joint"`` for noise of any covariance, with
            Ī ≤ tr(CΣ⁻¹)/N.

        Raises
        ------
        ValueError
            Where the prediction is for noise at hand, and unless kind is ``"bound"`` for noise
            that does not cover all directions in which the rows vary.
        """
        if kind == "bound" and self.status is FixedPointStatus.STABLE:
            self._check_leakage()
            bound = information_bound(given(self.model), self.noise)
            return float(joint(self._at[0] * bound, self.V))
        return super().onavekl(kind)

    def _check_leakage(self) -> None:
        super()._check_leakage()
        if self._information is None:
            raise ValueError(
                "a prediction for given noise says nothing about privacy: whoever knows the noise "
                "sees through it; leave eta out"
            )

    @cached_property
    def onavekl_is_known(self) -> bool:
        """Whether `onavekl` has a value other than its bound: the noise covers all rows."""
        if self.status is not FixedPointStatus.STABLE or self._information is None:
            return False
        bound = information_bound(given(self.model), self.noise)
        return self._information.size > 0 or math.isfinite(bound)

    @cached_property
    def onavekl_error(self) -> float:
        """Monte Carlo standard error of `onavekl`; NaN where no estimator exists."""
        if self.status is not FixedPointStatus.STABLE:
            return math.nan
        self.onavekl()
        return 0.0 if self._root is None else leak_error(self._root, *self._leak)

    @cached_property
    def _leak(self) -> tuple[FloatArray, float]:
        """Ī in each draw, and P."""
        if self._information is not None and self._information.size:
            return self._information, self._component_wise
        info = shared_information(self._system, *self._at, self.noise, self._seed)
        return info, self._at[0] * float(np.mean(info))

    @property
    def _paper(self) -> float:
        known = self.status is FixedPointStatus.STABLE and self._information is not None
        return self._leak[1] if known else math.nan

    def _shared(self) -> float:
        if isinstance(self._system, System):
            return super()._shared()
        rng = np.random.default_rng(self._seed)
        return replica_overlap(self.model, self.lam, self.noise, *self._at, self.n_draws, rng)


def leak_error(root: Root, info: FloatArray, P: float) -> float:
    """Of OnAveKL = P(1 + u⁻²)/2 + 1/u + u − 2 with P = e·Ī; Ī varies by itself."""
    u = root.q
    half = 0.5 * P * (1.0 + 1.0 / u**2)
    by_u = -P / u**3 - 1.0 / u**2 + 1.0
    own = np.std(info, ddof=1) / math.sqrt(info.size) / np.mean(info) if info.size > 1 else 0.0
    return math.hypot(root.error(half, by_u), half * float(own))
