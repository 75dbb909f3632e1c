"""Nodes of the average over the column scales, and whether small columns make the error infinite.

Noise is passed here at the level sigma = 1, and nodes are kept for the next call.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import TypeVar

import numpy as np

from privasso.model import Model, RotatedModel, Spectrum
from privasso.noise import Covariance, MatrixPower, NoiseDesign, PowerLaw
from privasso.scales import Constant, Empirical, ScaleLaw
from privasso.theory._root import critical_ratio
from privasso.theory._system import NONE, FloatArray, System

T = TypeVar("T")

#: Nodes of the coarsest quadrature; each refinement doubles them.
COARSEST = 32
REFINEMENTS = 6
#: From this refinement on, a law with bounded scales uses `ScaleLaw.tail_quadrature`.
_STUBBORN = 5

#: Diagonal of a ridge: one number for all columns, or the variances of a design.
Ridge = float | NoiseDesign


@dataclass(frozen=True, eq=False)
class Nodes:
    """Squared scales v with weights w, and the noise variances there for sigma = 1."""

    v: FloatArray
    w: FloatArray
    profile: FloatArray

    def critical_ratio(self, alpha: float) -> float:
        """λ/σ_η at the edge of stability (see `_edge`), kept for the last few α; NaN if unknown."""
        return _critical_ratio(self, alpha)

    def system(
        self,
        model: Model | RotatedModel,
        lam: float,
        power: float = 1.0,
        kappa: float = math.inf,
        ridge: Ridge | FloatArray = 0.0,
        mean: FloatArray = NONE,
        spectrum: tuple[FloatArray, FloatArray] = (NONE, NONE),
    ) -> System:
        """What kernels average over, with noise of the variances power·profile."""
        if not isinstance(ridge, np.ndarray):
            ridge = ridge_values(ridge, self.v, self.w) if has_ridge(ridge) else NONE
        return System(
            1.0 if spectrum[0].size else float(model.alpha), float(model.rho),
            float(model.sigma_xi**2), float(lam), float(kappa), float(power),
            self.v, self.w, self.profile, ridge, mean, *spectrum,
        )  # fmt: skip


def has_ridge(ridge: Ridge | MatrixPower | Covariance) -> bool:
    """Whether it is not zero."""
    if isinstance(ridge, Covariance):
        return bool(np.any(ridge.diagonal > 0.0))
    return (ridge.sigma if isinstance(ridge, NoiseDesign | MatrixPower) else ridge) > 0.0


def ridge_values(ridge: Ridge, v: FloatArray, w: FloatArray) -> FloatArray:
    """The diagonal of the ridge on columns of squared scales v and weights w."""
    if isinstance(ridge, NoiseDesign):
        return ridge.variances(v, w)
    return np.full(v.size, float(ridge))


@lru_cache(maxsize=64)
def eigenvalues(
    spectrum: Spectrum, alpha: float, n_features: int | None
) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues and their weights: those of N columns, or nodes of the limit of many."""
    if n_features is None:
        return spectrum.rule(alpha)
    M = max(1, round(alpha * n_features))
    d = spectrum.values(M, n_features)
    return d, np.full(d.size, 1.0 / n_features)


class Tail(Enum):
    """What small columns do to the prediction error; see `lower_tail`."""

    LIGHT = "light"
    SLOW = "slow"
    INFINITE = "infinite"


def columns(scales: ScaleLaw, noise: NoiseDesign, n_features: int | None) -> Nodes | None:
    """Return the finitely many columns to predict for, or None for the limit of many columns."""
    if n_features is not None:
        return _cached(_quantile_nodes, scales, noise, n_features)
    if isinstance(scales, (Constant, Empirical)):
        return _cached(_law_nodes, scales, noise, 1)
    return None


def quadrature(scales: ScaleLaw, noise: NoiseDesign, level: int, tail: Tail) -> Nodes:
    """Nodes for the limit of many columns, twice as many at each level.

    What the law's own rule does not settle is a transition at very small scales; for bounded
    scales `ScaleLaw.tail_quadrature` then takes over.
    """
    stubborn = level >= _STUBBORN and bool(np.isfinite(scales.quantile([1.0])[0]))
    rule = _tail_nodes if tail is Tail.SLOW or stubborn else _law_nodes
    return _cached(rule, scales, noise, COARSEST << level)


def lower_tail(scales: ScaleLaw, noise: NoiseDesign, ridge: Ridge = 0.0) -> Tail:
    """Decide from moments alone whether E is finite in the limit of many columns.

    Let σ_η²(v) ∝ v^γ and Λ ∝ v^r for v → 0, r = ∞ without a ridge. A column with a small v has the
    threshold-to-noise ratio t → λ/σ_η(v), and contributes vσ_η²·g(t)/(αvq + Λ)² to E: with
    s = γ + 1 − 2 min(r, 1), that is ∝ v^s g(t).

    - γ > 0: t → ∞, and g(t) vanishes faster than any power of v. E is finite. Where
      E[v^s] = ∞ that takes effect only at very small v, and the integral needs nodes there.
    - γ ≤ 0: g(t) stays away from zero, so E is infinite exactly when E[v^s] is.

    Raises
    ------
    ValueError
        When γ < 0 and E[v^γ] = ∞: then the mean variance cannot be sigma².
    """
    return _cached(_lower_tail, scales, noise, ridge)


def _lower_tail(scales: ScaleLaw, noise: NoiseDesign, ridge: Ridge) -> Tail:
    gamma, r = tail_exponent(scales, noise), math.inf
    if has_ridge(ridge):
        r = tail_exponent(scales, ridge) if isinstance(ridge, NoiseDesign) else 0.0
    if gamma == np.inf or np.isfinite(scales.moment(gamma + 1.0 - 2.0 * min(r, 1.0))):
        return Tail.LIGHT
    if gamma > 0.0:
        return Tail.SLOW
    if gamma < 0.0 and not np.isfinite(scales.moment(gamma)):
        raise ValueError(
            f"the mean of v**{gamma:g} is infinite for {scales!r}, so this noise has no "
            "limit of many columns; pass n_features for a given number of them"
        )
    return Tail.INFINITE


def tail_exponent(scales: ScaleLaw, noise: NoiseDesign) -> float:
    """γ of σ_η² ∝ v^γ at the lower end of the law: known for a power law, else a log slope."""
    if isinstance(noise, PowerLaw):
        return noise.gamma
    v = scales.quantile([1e-60, 1e-50]) ** 2
    if not 0.0 < v[0] < v[1]:
        return 0.0
    low, high = noise.log_profile(v)
    if low == -np.inf:
        return np.inf
    gamma = float((high - low) / np.log(v[1] / v[0]))
    return gamma if abs(gamma) > 1e-3 else 0.0


def _law_nodes(scales: ScaleLaw, noise: NoiseDesign, n: int) -> Nodes:
    v, w = scales.quadrature(n)
    return Nodes(v, w, noise.variances(v, w))


def _quantile_nodes(scales: ScaleLaw, noise: NoiseDesign, n: int) -> Nodes:
    v = scales.quantiles(n) ** 2
    return Nodes(v, np.full(n, 1.0 / n), noise.variances(v))


def _tail_nodes(scales: ScaleLaw, noise: NoiseDesign, n: int) -> Nodes:
    v, w = scales.tail_quadrature(4 * n)
    return Nodes(v, w, noise.variances(v, w))


def _cached(build: Callable[..., T], *key: object) -> T:
    try:
        return _memory(build, *key)
    except TypeError:  # noise of the caller's own class may hold an array, which has no hash
        return build(*key)


@lru_cache(maxsize=128)
def _memory(build: Callable[..., T], *key: object) -> T:
    return build(*key)


@lru_cache(maxsize=512)
def _critical_ratio(nodes: Nodes, alpha: float) -> float:
    with np.errstate(all="ignore"):
        return critical_ratio(nodes.system(Model(alpha), 1.0))
