"""The λ at which labels that have nothing to do with the columns give no coefficients."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from privasso._blas import one_thread
from privasso._tuned import LABEL_WIDTH
from privasso.fit._release_law import ReleaseLaw
from privasso.operators import Covariates
from privasso.planning import select_threshold
from privasso.queries import ObjectiveNoise

#: Directions of the rows with less than this part of the largest are rounding.
_RANK = 1e-10


def selecting_lam(
    law: ReleaseLaw, rows: Covariates, noise: ObjectiveNoise | None, among: int | None
) -> float:
    """λ in the unit of the release for normal labels that vary by at most 1/6 of their range.

    All coefficients of `Denoised` are zero if no slope Gm is larger than λ, G of standardised
    columns. The best guess m is linear in the release b but for its prior, which only shrinks it:
    the covariance of m is at most that of G⁻¹b. In coordinates in which the noise of b is white and
    G is diagonal, b has the variance 1 + a; where residuals are clipped it is

        T²(1 + sa),  T = (A + Λ)/(qA + Λ),

    q the part that is not clipped, s the mean square of clipped residuals relative to that of the
    labels, and A the curvature of the objective: its minimiser is (qA + Λ)⁻¹ of the slope at zero,
    from which b is computed as if none were clipped.
    """
    G, G2, cov, n = *law.standardised, law.moments.scale.size
    cov = cov + np.eye(len(cov)) * 1e-12 * np.trace(cov) / len(cov)
    full = rows.moments(rows.weights, ones=rows.centred)
    full = full / np.outer(law.moments.units, law.moments.units)
    with one_thread():
        L = np.linalg.cholesky(cov)
        half = np.linalg.solve(L, G)
        a, U = np.linalg.eigh(np.linalg.solve(L, half.T))
        kept = a > _RANK * a[-1]
        a, U = a[kept], U[:, kept]
        spread = np.linalg.solve(L.T, U) / a
    if noise is None:
        own = np.linalg.solve(L, np.linalg.solve(L, G2).T)
        square = 1.0 + np.einsum("ij,ij->j", U, own @ U)
    else:
        clip = LABEL_WIDTH * noise.kappa
        inside = 2.0 * float(ndtr(clip)) - 1.0
        density = math.exp(-0.5 * clip**2) / math.sqrt(2.0 * math.pi)
        clipped = inside - 2.0 * clip * density + clip**2 * (1.0 - inside)
        A = (LABEL_WIDTH * noise.sigma) ** 2 * a
        square = ((A + noise.ridge) / (inside * A + noise.ridge)) ** 2 * (1.0 + clipped * a)
    slopes = full[:n] @ spread
    deviations = np.sqrt(slopes**2 @ square)
    return law.label_deviation * select_threshold(deviations, among)
