"""State evolution for covariates with a given spectrum, at one point, refined until it settles."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from privasso.model import RotatedModel, Spectrum
from privasso.noise import NoiseDesign
from privasso.theory._attack import Attack
from privasso.theory._edge import runaway
from privasso.theory._fixed_point import FixedPoint, FixedPointStatus
from privasso.theory._nodes import REFINEMENTS, Nodes, Tail, columns, lower_tail, quadrature
from privasso.theory._points import TOLERANCE, QuadratureWarning, out_of_range
from privasso.theory._rotated_recursion import iterate_rotated
from privasso.theory._rotated_root import rotated_fixed_point

FloatArray = NDArray[np.float64]

_ROWS = 1000
_SETTLED = 1e-10
_CEILING = 1e12
_NO_LEAKAGE = (
    "what a released estimate leaks is not known for covariates with a given spectrum, because "
    "their rows are not independent of each other; use a Model"
)


@dataclass(frozen=True, eq=False)
class RotatedPoint(FixedPoint):
    """Prediction for a `RotatedModel`; made by `state_evolution`.

    E is σ_ξ² + E[v(x̂ − x⁰)²], the error on a new record with independent entries of variance v/N.
    V is the response ρ̂/γ₁: tr (A_SᵀA_S)⁻¹/N for the columns S in the support. Both are those of
    `FixedPoint` if the spectrum is that of independent entries.

    Examples
    --------
    >>> import privasso as pv
    >>> model = pv.model.RotatedModel(alpha=2.0, spectrum=pv.model.Orthogonal())
    >>> fp = pv.state_evolution(model, 0.2, pv.Gram(0.1))
    >>> fp.status.name, fp.E > model.sigma_xi**2
    ('STABLE', True)
    """

    model: RotatedModel  # pyright: ignore[reportIncompatibleVariableOverride]
    _eigenvalues: FloatArray = field(repr=False, kw_only=True)
    _weights: FloatArray = field(repr=False, kw_only=True)

    @property
    def rank(self) -> float:
        """Rank of F divided by the number of columns, min(α, 1) unless eigenvalues are zero.

        Examples
        --------
        >>> import privasso as pv
        >>> model = pv.model.RotatedModel(alpha=0.5, spectrum=pv.model.Orthogonal())
        >>> pv.state_evolution(model, 0.2, pv.Gram(0.1)).rank
        0.5
        """
        return float(np.sum(self._weights[self._eigenvalues > 0.0]))

    @property
    def stability(self) -> float:
        """ρ̂ over the rank, and over α in addition if α > 1: below 1 the estimator exists."""
        return self.rho_hat / (self.rank * max(self.model.alpha, 1.0))

    @cached_property
    def trajectory(self) -> FloatArray:
        """Rows (E, V, ρ̂) of x = 0 and of the iterates of VAMP without damping, shape (T, 3).

        It ends when it converges or diverges, or after 1000 rows. Where E is infinite there are two
        rows, the start and the first iterate.
        """
        model, nodes = self.model, self._nodes
        infinite = self.status is FixedPointStatus.INFINITE_ERROR
        rows = iterate_rotated(
            model.rho, model.sigma_xi**2, self.lam, nodes.v, nodes.w,
            self.noise.mean_power * nodes.profile, self._eigenvalues, self._weights,
            2 if infinite else _ROWS, _SETTLED, _CEILING,
        )  # fmt: skip
        if infinite:
            rows[1, 0] = np.inf
        return rows

    def onavekl(self, kind: str = "joint") -> float:
        """Refuse: the rows of F are not independent of each other.

        Raises
        ------
        ValueError
            Always.
        """
        raise ValueError(_NO_LEAKAGE)

    def attack(self) -> Attack:
        """Refuse, as `onavekl` does.

        Raises
        ------
        ValueError
            Always.
        """
        raise ValueError(_NO_LEAKAGE)

    def advantage(self) -> float:
        """NaN: the attack is not known."""
        return math.nan


def rotated_state_evolution(
    model: RotatedModel, lam: float, noise: NoiseDesign, n_features: int | None
) -> RotatedPoint:
    """The fixed point of VAMP's recursion; the arguments have been checked."""
    unit = noise.with_sigma(1.0)
    d, dw = _eigenvalues(model.spectrum, model.alpha, n_features)
    nodes = columns(model.scales, unit, n_features)
    if nodes is not None:
        return _solve(model, lam, noise, nodes, d, dw)
    tail = Tail.LIGHT if noise.sigma == 0.0 else lower_tail(model.scales, unit)
    before = _solve(model, lam, noise, quadrature(model.scales, unit, 0, tail), d, dw, tail)
    if tail is Tail.INFINITE:
        return before
    for level in range(1, REFINEMENTS + 1):
        nodes = quadrature(model.scales, unit, level, tail)
        after = _solve(model, lam, noise, nodes, d, dw)
        if _agree(before, after):
            return after
        before = after
    warnings.warn(
        f"the average over {model.scales!r} did not settle to {TOLERANCE:g} at "
        f"{before._nodes.v.size} nodes; pass n_features to predict for that many columns",
        QuadratureWarning,
        stacklevel=3,
    )
    return before


@lru_cache(maxsize=64)
def _eigenvalues(
    spectrum: Spectrum, alpha: float, n_features: int | None
) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues and their weights: those of N columns, or nodes of the limit of many."""
    if n_features is None:
        return spectrum.rule(alpha)
    M = max(1, round(alpha * n_features))
    d = spectrum.values(M, n_features)
    return d, np.full(d.size, 1.0 / n_features)


def _solve(
    model: RotatedModel,
    lam: float,
    noise: NoiseDesign,
    nodes: Nodes,
    d: FloatArray,
    dw: FloatArray,
    tail: Tail = Tail.LIGHT,
) -> RotatedPoint:
    status, E, V, rho_hat = FixedPointStatus.UNSTABLE, math.inf, math.inf, 1.0
    rank = float(np.sum(dw[d > 0.0]))
    full = rank >= 1.0 - 1e-9
    # A ray of the objective lies in the null space of F, of which only the size matters.
    edge = 0.0 if full else nodes.critical_ratio(rank) * noise.sigma
    if math.isnan(edge):
        raise out_of_range(model.scales)
    if tail is Tail.INFINITE:
        status = FixedPointStatus.INFINITE_ERROR
        V = float(dw @ (1.0 / d)) if full else math.inf
    elif lam <= edge:
        first = noise.mean_power / rank
        with np.errstate(all="ignore"):
            rho_hat = runaway(
                first, rank, lam, noise.mean_power, nodes.v, nodes.w, nodes.profile
            )[1]  # fmt: skip
    else:
        status = FixedPointStatus.STABLE
        with np.errstate(all="ignore"):
            omega, gamma, rho_hat = rotated_fixed_point(
                model.rho, model.sigma_xi**2, lam, nodes.v, nodes.w,
                noise.mean_power * nodes.profile, d, dw,
            )  # fmt: skip
        if not (math.isfinite(omega) and gamma > 0.0):
            raise out_of_range(model.scales)
        E, V = omega + model.sigma_xi**2, rho_hat / gamma
    if math.isnan(rho_hat):
        raise out_of_range(model.scales)
    return RotatedPoint(
        status=status, E=E, V=V, rho_hat=float(rho_hat), model=model, lam=lam, noise=noise,
        _component_wise=math.nan, _nodes=nodes, _eigenvalues=d, _weights=dw,
    )  # fmt: skip


def _agree(a: FixedPoint, b: FixedPoint) -> bool:
    return a.status is b.status and all(
        x == y or abs(x - y) <= TOLERANCE * abs(y) + 1e-14
        for x, y in ((a.E, b.E), (a.V, b.V), (a.rho_hat, b.rho_hat))
    )
