"""Labels through objective perturbation: noise in proportion to a residual, not to a label.

In coordinates in which the noise Σ₀ of the release is the identity, rows g_μ = √w_μ Σ₀^(−½) f_μ
have a length of at most 1. The mechanism publishes the minimiser û of

    Σ_μ ℓ_κ(√w_μ (y_μ − c) − g_μᵀu) + (Λ/2)‖u‖² + ηᵀu,   η ~ N(0, σ²I).

Its optimality condition is Λû + η = Σ_μ ψ_μ g_μ, ψ_μ the clipped residuals. With public rows

    b = (GᵀG + Λ)û = Gᵀ(√w(y − c)) − η − Σ_μ (r_μ − ψ_μ) g_μ

is computed from û alone, r_μ the residuals. Where none is clipped, it is the product of rows and
labels with Gaussian noise of deviation σ ∝ κ, against the range of the labels where the products
themselves are released. So everything that uses such a release works for it too.

Where residuals are clipped the last entry of b is about the median of the labels rather than their
mean. A noisy mean of the labels then corrects it; see `Level`.
"""

from __future__ import annotations

import numpy as np

from privasso._blas import one_thread
from privasso.operators import Covariates
from privasso.privacy._cells import bounded_labels
from privasso.privacy._kind import Calibration
from privasso.privacy._label_level import Level, weighted_residuals
from privasso.privacy._release import Release
from privasso.queries import BitSource, ObjectiveNoise, perturbed_minimiser

#: Rows are shrunk by this part more than needed, so that rounding never leaves one too long.
_SHORTER = 2.0**-40
_EPS = np.finfo(np.float64).eps


def clipped_release(
    rows: Covariates,
    y: np.ndarray,
    bounds: tuple[float, float],
    calibration: Calibration,
    bits: BitSource,
    *,
    unit: float = 1.0,
    level: Level | None = None,
) -> Release:
    """Run the mechanism, and return its minimiser as products of rows and labels.

    Parameters
    ----------
    rows : Covariates
        Public covariates.
    y : ndarray of shape (M,)
        Labels.
    bounds : (float, float)
        Bounds of the labels.
    calibration : Calibration
        Noise, ridge and weights of the rows.
    bits : BitSource
        Source of all noise.
    unit : float
        Unit in which b is stated.
    level : Level, optional
        How the intercept is corrected, for residuals in units of the range of the labels.
    """
    noise = calibration.objective
    assert noise is not None
    range_ = (bounds[1] - bounds[0]) / unit
    G, roots = whitened_rows(rows, calibration, noise, noise.sigma * range_)
    scaled = scaled_labels(y, bounds)
    labels = roots * scaled
    u = perturbed_minimiser(G, labels, 0.0, noise, bits, penalty_weights=np.zeros(G.shape[1]))
    with one_thread():
        white = (G.T @ (G @ u) + noise.ridge * u) / noise.sigma
    off = 0.0
    if level is not None:
        # Rows count as in the fit, so that one far from all others, which is shrunk, does not
        # decide the mean. No weight is larger than 1, so that no label moves the sum by more.
        weights = np.minimum(roots**2, 1.0)
        mean = calibration.sigma_sum * float(white[-1]) / float(np.sum(weights)) / range_
        total = level.total(weighted_residuals(weights, scaled, mean))
        off = level.from_total(total, float(np.sum(weights)), bits)
    counted = rows.shape[0] if calibration.weights is None else float(calibration.weights.sum())
    return as_release(rows, bounds, calibration, white, off, counted, unit)


def scaled_labels(y: np.ndarray, bounds: tuple[float, float]) -> np.ndarray:
    """Clipped labels from the middle of their bounds, as parts of the range.

    >>> scaled_labels(np.array([0.0, 3.0, 9.0, np.nan]), (2.0, 6.0)).tolist()
    [-0.5, -0.25, 0.5, 0.0]
    """
    low, high = bounds
    width = high - low
    return (bounded_labels(y, bounds) - (low + 0.5 * width)) / width


def as_release(
    rows: Covariates,
    bounds: tuple[float, float],
    calibration: Calibration,
    white: np.ndarray,
    off: float,
    weight_sum: float,
    unit: float,
) -> Release:
    """What (GᵀG + Λ)û/σ = `white` says of the products of rows and labels.

    `off` is what corrects the intercept, as a part of the range of the labels.
    """
    covariance, sigma_sum = calibration.covariance, calibration.sigma_sum
    low, high = bounds
    width = high - low
    b = np.zeros(rows.shape[1])
    b[rows.live] = covariance.colour(white[: covariance.rank])
    return Release(
        b=b,
        covariance=covariance.embedded(rows.live),
        n_rows=rows.shape[0],
        centre=(low + 0.5 * width) / unit,
        label_sum=float(sigma_sum * white[-1]) if rows.centred else None,
        sigma_sum=sigma_sum if rows.centred else None,
        weight_sum=weight_sum,
        unit=unit,
        level=off * (width / unit),
    )


def whitened_rows(
    rows: Covariates, calibration: Calibration, noise: ObjectiveNoise, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """G, whose rows are no longer than the radius, and the factors of the rows; no label is read.

    The calibrated noise is `level` = σ·width/unit times the one under which rows have this length.

    Examples
    --------
    >>> import privasso as pv
    >>> from privasso.fit import FitOptions, plan_fit
    >>> privacy = pv.LabelDP(1.0, 1e-6, (0, 1), kappa=0.5, t=0.5)
    >>> plan = plan_fit(np.random.default_rng(0).standard_normal((300, 4)), FitOptions(privacy))
    >>> noise = plan.calibration.objective
    >>> G, factors = whitened_rows(plan.rows, plan.calibration, noise, noise.sigma)
    >>> G.shape, bool(np.linalg.norm(G, axis=1).max() <= noise.radius)
    ((300, 5), True)
    """
    covariance, m = calibration.covariance, rows.shape[0]
    rank = covariance.rank
    G = np.empty((m, rank + rows.centred))
    weights = np.ones(m) if calibration.weights is None else calibration.weights
    roots = np.sqrt(weights)
    everything = bool(rows.live.all())
    with one_thread():
        for span, block in rows.blocks(1 << 20):
            live = block if everything else block[:, rows.live]
            if rank:
                white = level * covariance.whiten(live.T).T
                # A row without weight may be one that the noise does not cover.
                held = roots[span, None] > 0.0
                G[span, :rank] = np.multiply(
                    roots[span, None], white, out=np.zeros_like(white), where=held
                )
    if rows.centred:
        G[:, rank] = roots * (level / calibration.sigma_sum)
    length = np.sqrt(np.einsum("ij,ij->i", G, G))
    if not np.isfinite(length).all():
        raise ValueError(
            "the noise was calibrated for other covariates; calibrate it anew for these"
        )
    most = noise.radius * (1.0 - _SHORTER - (G.shape[1] + 16) * _EPS)
    with np.errstate(divide="ignore"):
        factor = np.minimum(1.0, most / length)
    G *= factor[:, None]
    return G, factor * roots
