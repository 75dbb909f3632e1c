"""State evolution at one point."""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np

from privasso._validation import integer, positive_float
from privasso.model import Model
from privasso.noise import NoiseDesign
from privasso.theory._fixed_point import FixedPoint, FixedPointStatus
from privasso.theory._grid import INFINITE, STABLE, UNSTABLE
from privasso.theory._points import GridPoints, solve_grid

STATUS = {
    STABLE: FixedPointStatus.STABLE,
    UNSTABLE: FixedPointStatus.UNSTABLE,
    INFINITE: FixedPointStatus.INFINITE_ERROR,
}


def state_evolution(
    model: Model,
    lam: float,
    noise: NoiseDesign,
    *,
    n_features: SupportsIndex | None = None,
) -> FixedPoint:
    """Predict error, sparsity, stability and privacy of the private LASSO, without data.

    The fixed point of, with Σ = (1+V)/(αv), θ = λΣ, s₀² = E/(αv) + Σ²σ_η²(v), s₁² = 1 + s₀²,
    P_k = 2Q(θ/s_k) and S₂(s, θ) = E[soft(sZ, θ)²],

        E = E_v[ v {(1−ρ) S₂(s₀,θ) + ρ (1 − 2P₁ + S₂(s₁,θ))} ] + σ_ξ²
        ρ̂ = E_v[ (1−ρ) P₀ + ρ P₁ ],    V = (1+V) ρ̂/α.

    The average over the scales is refined until E, V, ρ̂ and the OnAveKL agree to 1e-6.

    Parameters
    ----------
    model : Model
        The data.
    lam : float
        Regularisation λ > 0.
    noise : NoiseDesign
        The objective perturbation, with its level.
    n_features : int, optional
        Predict for N columns whose scales are the N quantiles of the law, instead of for the
        limit of many columns. This matters where the limit has an infinite error: a few small
        columns then carry most of it. The prediction is a mean over the noise, and single data
        sets may be far from it. Under an `Empirical` law without n_features, the prediction is
        for exactly its columns.

    Returns
    -------
    FixedPoint

    Examples
    --------
    >>> import privasso as pv
    >>> model = pv.Model(alpha=0.5, rho=0.1, sigma_xi=0.1, scales=pv.LogNormal(0.0, 0.5))
    >>> fp = pv.state_evolution(model, 0.2, pv.PowerLaw(0.1, gamma=1.0))
    >>> round(fp.E, 5), round(fp.V, 5), round(fp.rho_hat, 5)
    (0.04665, 0.6093, 0.18931)

    Uniform noise on scales that reach down to zero has no finite limit:

    >>> pv.state_evolution(pv.Model(), 0.2, pv.Isotropic(0.05)).status.name
    'INFINITE_ERROR'
    >>> fp = pv.state_evolution(pv.Model(), 0.2, pv.Isotropic(0.05), n_features=1000)
    >>> fp.status.name, round(fp.E, 3)
    ('STABLE', 0.024)
    """
    check(model, noise)
    lam = positive_float("lam", lam)
    count = None if n_features is None else integer("n_features", n_features, minimum=1)
    points = solve_grid(model, np.array([lam]), np.array([noise.sigma]), noise, count)
    return point_at(points, 0, model, lam, noise)


def point_at(
    points: GridPoints, k: int, model: Model, lam: float, noise: NoiseDesign
) -> FixedPoint:
    """Point k of a grid."""
    return FixedPoint(
        status=STATUS[int(points.status[k])],
        E=float(points.E[k]),
        V=float(points.V[k]),
        rho_hat=float(points.rho_hat[k]),
        model=model,
        lam=lam,
        noise=noise,
        _component_wise=float(points.component_wise[k]),
        _nodes=points.nodes,
    )


def check(model: Any, noise: Any) -> None:
    """Raise an error unless these are a model and a noise design."""
    if not isinstance(model, Model):
        raise ValueError(f"model must be a Model, not an object of type {type(model).__name__}")
    if not isinstance(noise, NoiseDesign):
        raise ValueError(
            "noise must be a noise design, such as Isotropic(sigma) or PowerLaw(sigma, gamma), "
            f"not an object of type {type(noise).__name__}"
        )
