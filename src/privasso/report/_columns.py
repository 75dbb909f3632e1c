"""What the noise means for each column. Covariates must be public: this shows their scales."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from privasso._blas import one_thread
from privasso.estimator import Postprocess
from privasso.operators import Covariates

#: Supports larger than this get the noise of uncorrelated columns: the inverse is cubic in size.
_LARGEST_SUPPORT = 2000


@dataclass(frozen=True, eq=False)
class Columns:
    """Scale and noise of each column.

    Attributes
    ----------
    scale : ndarray of shape (N,)
        Root mean square of the (centred) column, ‖F_i‖/√M.
    sigma : ndarray of shape (N,)
        Standard deviation of the noise in its entry of b; zero for a column without data.
    share : ndarray of shape (N,)
        Part of the squared sensitivity that it takes up, on average over the rows.
    in_label_units : ndarray of shape (N,)
        What the noise of a column does to a prediction: the noise of the coefficient of an
        uncorrelated column, σ_i/‖F_i‖², times its scale. Zero for a column without data.
    """

    scale: np.ndarray = field(repr=False)
    sigma: np.ndarray = field(repr=False)
    share: np.ndarray = field(repr=False)
    in_label_units: np.ndarray = field(repr=False)


def columns_of(rows: Covariates, sigma: np.ndarray) -> Columns:
    """Describe the columns under noise of these standard deviations.

    Examples
    --------
    >>> import numpy as np
    >>> rows = Covariates(np.diag([1.0, 10.0]), centre=False)
    >>> columns_of(rows, np.array([1.0, 10.0])).share
    array([0.5, 0.5])
    """
    live, norms = rows.live, np.sqrt(rows.squares)
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.where(live & (sigma > 0.0), (norms / sigma) ** 2, 0.0)
        own = np.where(live, sigma / norms, 0.0)
        total = part.sum()
        share = part / total if np.isfinite(total) and total > 0.0 else np.zeros_like(part)
    return Columns(
        scale=norms / np.sqrt(rows.shape[0]),
        sigma=sigma,
        share=share,
        in_label_units=own / np.sqrt(rows.shape[0]),
    )


def coefficient_noise(post: Postprocess, coef: np.ndarray) -> np.ndarray:
    """Standard deviation that the noise gives each non-zero coefficient, NaN elsewhere.

    On the support S and its signs x_S = (F_SᵀF_S)⁻¹(b_S − λ sgn), so that the noise of b gives
    x_S the covariance (F_SᵀF_S)⁻¹ D_S (F_SᵀF_S)⁻¹. That the support itself depends on the noise
    is not counted. Where the support is too large or collinear, σ_i/‖F_i‖².

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> release = pv.Release(np.array([8.0, 0.0]), sigma=np.ones(2), n_rows=2, centre=0.0)
    >>> post = Postprocess(release, Covariates(2.0 * np.eye(2), centre=False))
    >>> coefficient_noise(post, np.array([1.5, 0.0]))
    array([0.25,  nan])
    """
    noise = np.full(coef.size, np.nan)
    support = np.flatnonzero(coef)
    if support.size == 0 or post.op is None:
        return noise
    sigma, norms = post.release.sigma[support], np.sqrt(post.rows.squares[support])
    noise[support] = sigma / norms**2
    if support.size <= _LARGEST_SUPPORT:
        position = np.cumsum(post.rows.live) - 1
        block = post.op.columns(position[support])
        block = np.asarray(block.todense() if hasattr(block, "todense") else block) / norms
        try:
            with one_thread():
                inverse = np.linalg.inv(np.linalg.cholesky(block.T @ block))
                spread = (inverse.T @ inverse) * (sigma / norms)
        except np.linalg.LinAlgError:
            return noise
        noise[support] = np.sqrt(np.sum(spread**2, axis=1)) / norms
    return noise
