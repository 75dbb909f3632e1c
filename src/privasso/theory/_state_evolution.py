"""State evolution at one point, also with noise that was shaped after other scales."""

from __future__ import annotations

import math
import warnings
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from privasso._validation import integer, nonnegative_float, positive_float
from privasso.model import Model, RotatedModel
from privasso.noise import Covariance, MatrixPower, NoiseDesign
from privasso.theory._correlated import correlated_state_evolution
from privasso.theory._draws import ColumnNoise
from privasso.theory._fixed_point import FixedPoint, point_at
from privasso.theory._nodes import Nodes, Tail, columns, has_ridge, lower_tail, quadrature
from privasso.theory._points import GridPoints, QuadratureWarning, solve_grid, solve_system
from privasso.theory._system import FloatArray


def state_evolution(
    model: Model | RotatedModel,
    lam: float,
    noise: ColumnNoise,
    *,
    kappa: float = math.inf,
    ridge: float | ColumnNoise = 0.0,
    n_features: SupportsIndex | None = None,
    draws: SupportsIndex = 8,
    rng: int | np.random.Generator | None = None,
    eta: ArrayLike | None = None,
) -> FixedPoint:
    """Predict error, sparsity, stability and privacy of the private LASSO, without data.

    The fixed point of, with Σ = (1+V)/(αv), θ = λΣ, s₀² = E/(αv) + Σ²σ_η²(v), s₁² = 1 + s₀²,
    P_k = 2Q(θ/s_k) and S₂(s, θ) = E[soft(sZ, θ)²],

        E = E_v[ v {(1−ρ) S₂(s₀,θ) + ρ (1 − 2P₁ + S₂(s₁,θ))} ] + σ_ξ²
        ρ̂ = E_v[ (1−ρ) P₀ + ρ P₁ ],    V = (1+V) ρ̂/α.

    The average over the scales is refined until E, V, ρ̂ and the OnAveKL agree to 1e-6. With
    `kappa` or `ridge` the prediction is for the minimiser that `solve_clipped` computes, by the
    recursion in `docs/derivations.md`. For a `RotatedModel`, whose covariates have a given
    spectrum, it is the fixed point of vector AMP. For a model with a covariance it is found by
    simulation of a LASSO without rows, with Monte Carlo errors.
    Both are in `docs/correlated.md`.

    Parameters
    ----------
    model : Model or RotatedModel
        The data.
    lam : float
        Regularisation λ > 0.
    noise : NoiseDesign
        The objective perturbation, with its level. For a model with a covariance, also
        ``noise.MatrixPower(sigma, gamma)``, a power of it, or any `noise.Covariance` over its
        columns.
    kappa : float
        Residuals larger than this count with the slope κ only (Huber loss); inf clips none. Label
        noise is normal of variance σ_ξ² here: other noise of the same variance, which matters where
        residuals are clipped, is not predicted.
    ridge : float or NoiseDesign
        Diagonal Q_ii of the ridge ½xᵀQx: the same number Λ for all columns, or the variances of a
        design. For Q = Λ diag(v) that is ``PowerLaw(sqrt(Λ * mean(v)), gamma=1)``. For a model with
        a covariance, Q may be any shape that noise may have.
    n_features : int, optional
        Predict for N columns whose scales are the N quantiles of the law, instead of for the
        limit of many columns. This matters where the limit has an infinite error: a few small
        columns then carry most of it. The prediction is a mean over the noise, and single data
        sets may be far from it. Under an `Empirical` law without n_features, the prediction is
        for exactly its columns. For a correlation of any number of columns the default is 1000.
    draws : int
        Number of draws of signal, noise and data over which to average; only for a model with a
        covariance.
    rng : None, int or numpy.random.Generator
        Source of the draws.
    eta : array_like of shape (N,), optional
        Predict for this noise vector instead of the mean over the noise, for a model with a
        covariance matrix, which may be diagonal; its diagonal then holds the scales at hand. It
        matters where a few columns carry most of the error.

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

    Clipped residuals and a ridge in proportion to v, as in a fit with a formal guarantee:

    >>> model = pv.Model(alpha=5.0, rho=0.1, sigma_xi=0.1)
    >>> fp = pv.state_evolution(
    ...     model, 0.1, pv.PowerLaw(0.2, 1.0), kappa=0.15, ridge=pv.PowerLaw(0.7, 1.0)
    ... )
    >>> round(fp.E, 5), round(fp.V, 5), round(fp.rho_hat, 5)
    (0.01623, 0.10547, 0.54002)

    Covariates with orthogonal rows:

    >>> model = pv.model.RotatedModel(alpha=0.5, spectrum=pv.model.Orthogonal())
    >>> fp = pv.state_evolution(model, 0.2, pv.Gram(0.1))
    >>> round(fp.E, 5), round(fp.V, 5), round(fp.rho_hat, 5)
    (0.03469, 0.24136, 0.10632)
    """
    if isinstance(model, Model) and model.covariance is not None:
        count = None if n_features is None else integer("n_features", n_features, minimum=1)
        lam, size = positive_float("lam", lam), integer("draws", draws, minimum=2)
        at_hand = None if eta is None else np.asarray(eta, dtype=np.float64)
        kappa, shrunk = _threshold(kappa), has_ridge(ridge)
        if (at_hand is not None or not shrunk) and (kappa < math.inf or shrunk):
            raise ValueError(
                "with clipped residuals on correlated columns, pass a positive ridge and no eta"
            )
        return correlated_state_evolution(
            model, lam, noise, count, size, rng, at_hand,
            kappa=kappa, ridge=ridge if shrunk else None,
        )  # fmt: skip
    if isinstance(ridge, MatrixPower | Covariance):
        raise ValueError("such a ridge goes with a model that has a covariance")
    if eta is not None:
        raise ValueError(
            "eta belongs to given columns: pass Model(covariance=...), where np.diag(v) stands for "
            "independent columns of squared scales v"
        )
    rotated = isinstance(model, RotatedModel)
    noise = check(model.independent() if rotated else model, noise)
    lam = positive_float("lam", lam)
    kappa = _threshold(kappa)
    if not isinstance(ridge, NoiseDesign):
        ridge = nonnegative_float("ridge", ridge)
    count = None if n_features is None else integer("n_features", n_features, minimum=1)
    if rotated and (kappa < math.inf or has_ridge(ridge)):
        raise ValueError(
            "no prediction is available for clipped residuals or a ridge with a RotatedModel; "
            "leave kappa and ridge out, or use a Model"
        )
    points = solve_grid(
        model, np.array([lam]), np.array([noise.sigma]), noise, count, kappa, ridge
    )  # fmt: skip
    return point_at(points, 0, model, lam, noise, kappa, ridge)


def _threshold(kappa: float) -> float:
    """Return κ > 0, which may be infinite."""
    return math.inf if kappa == math.inf else positive_float("kappa", kappa)


def check(model: object, noise: object) -> NoiseDesign:
    """Return the noise; raise an error unless these are a model and a noise design."""
    if isinstance(model, RotatedModel):
        raise ValueError(
            "this prediction is available for a Model only; for a RotatedModel use state_evolution"
        )
    if not isinstance(model, Model):
        raise ValueError(f"model must be a Model, not an object of type {type(model).__name__}")
    if model.covariance is not None:
        raise ValueError(
            "this prediction is available for independent columns only; leave the covariance out, "
            "or use state_evolution"
        )
    if not isinstance(noise, NoiseDesign):
        raise ValueError(
            "noise must be a noise design, such as Isotropic(sigma) or PowerLaw(sigma, gamma), "
            f"not an object of type {type(noise).__name__}"
        )
    return noise


#: Nodes of the error Z at each refinement of the scales.
_ERROR_NODES = (25, 45, 85, 165)
#: Two quadratures must agree to this.
_TOLERANCE = 1e-5


def mismatched_state_evolution(
    model: Model,
    lam: float,
    noise: NoiseDesign,
    scale_error: float,
    *,
    n_features: SupportsIndex | None = None,
) -> FixedPoint:
    """Predict with noise shaped after v̂ = v e^(τZ), Z ~ N(0, 1), on data that have v.

    Scales from a public or an older data set may be wrong, here by a factor of about e^(τ/2) up
    or down (v is the square of a scale). The variances are σ² profile(v̂)/E[profile(v̂)], so they
    need v̂ alone; the averages of state evolution run over v and Z together.

    `scale_error` is τ, the standard deviation of the error of log v, zero or more.
    """
    check(model, noise)
    lam = positive_float("lam", lam)
    scale_error = nonnegative_float("scale_error", scale_error)
    count = None if n_features is None else integer("n_features", n_features, minimum=1)
    unit = noise.with_sigma(1.0)
    nodes = columns(model.scales, unit, count)
    tail = Tail.LIGHT if nodes is not None else lower_tail(model.scales, unit)
    if scale_error == 0.0 or noise.sigma == 0.0 or tail is Tail.INFINITE:
        return state_evolution(model, lam, noise, n_features=count)
    before = None
    for level, n_errors in enumerate(_ERROR_NODES):
        given = nodes if nodes is not None else quadrature(model.scales, unit, level, tail)
        v, w, seen = with_scale_error(given.v, given.w, scale_error, n_errors)
        pairs = Nodes(v, w, unit.variances(seen, w))
        after, _ = solve_system(pairs.system(model, lam, noise.mean_power), model.scales)
        if before is not None and _agree(before, after):
            return point_at(after, 0, model, lam, noise)
        before = after
    assert before is not None
    warnings.warn(
        f"the average over {model.scales!r} and the error of the scales did not settle to "
        f"{_TOLERANCE:g}",
        QuadratureWarning,
        stacklevel=2,
    )
    return point_at(before, 0, model, lam, noise)


def with_scale_error(
    v: FloatArray, w: FloatArray, scale_error: float, n: int, reach: float = 9.0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return v, weights and v̂ = v e^(τz) for every pair of a column and one of n nodes z.

    The nodes are those of the trapezoidal rule over ±reach. It converges exponentially and,
    unlike Gauss–Hermite, has enough nodes at large z of either sign.
    """
    z = np.linspace(-reach, reach, n)
    weight: FloatArray = np.exp(-0.5 * z * z)
    weight = weight / float(np.sum(weight))
    return (
        np.repeat(v, n),
        np.outer(w, weight).ravel(),
        np.outer(v, np.exp(scale_error * z)).ravel(),
    )


def _agree(a: GridPoints, b: GridPoints) -> bool:
    pairs = ((a.E, b.E), (a.V, b.V), (a.component_wise, b.component_wise))
    return bool(a.status[0] == b.status[0]) and all(
        np.allclose(x, y, rtol=_TOLERANCE, atol=1e-14, equal_nan=True) for x, y in pairs
    )
