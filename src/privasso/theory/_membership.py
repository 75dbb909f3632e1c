"""Exact log likelihood ratios of membership, for many releases and many records at once.

For a release x with support S, c = Fᵀ(y − Fx), and a record (f, y_a) of residual r = y_a − fᵀx,

    log p(x|D∪a)/p(x|D) = log(1 + h) + Σ_i [ log q_i(c + r f) − log q_i(c) ],

h = f_Sᵀ(F_SᵀF_S)⁻¹f_S and q_i as in `log_density`. For a record of D, the ratio against D without
it is −log(1 − h) + Σ_i [ log q_i(c) − log q_i(c − r f) ].
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from privasso._blas import one_thread
from privasso._validation import positive_float, real_array
from privasso.noise import Covariance
from privasso.theory._density import check_variances, log_terms
from privasso.theory._system import FloatArray


def membership_losses(
    F: Any,
    y: ArrayLike,
    lam: float,
    variances: ArrayLike | Covariance,
    x: ArrayLike,
    *,
    rows: ArrayLike,
    labels: ArrayLike,
    member: bool,
) -> FloatArray:
    """Log of p(x | with the record) / p(x | without it), for each release and each record.

    F, y, lam and variances are as in `log_density`; x holds the releases, of shape (N, K), and rows
    and labels the records, of shapes (R, N) and (R,). `member` says whether they are among the
    data; a record that is there twice leaves one behind.

    Returns
    -------
    ndarray of shape (K, R)
        inf where the data without a member could not have led to the release.
    """
    F = real_array("F", F, ndim=2)
    m, n = F.shape
    y = real_array("y", y, shape=(m,))
    x = real_array("x", x, shape=(n, None))
    rows = real_array("rows", rows, shape=(None, n))
    labels = real_array("labels", labels, shape=(rows.shape[0],))
    lam, sigma = positive_float("lam", lam), np.sqrt(check_variances(variances, n))
    sign = -1.0 if member else 1.0
    found = np.empty((x.shape[1], rows.shape[0]))
    with one_thread():
        products = F.T @ y
        for k, release in enumerate(x.T):
            S = np.flatnonzero(release)
            F_S = F[:, S]
            c = products - F.T @ (F_S @ release[S])
            residuals = labels - rows[:, S] @ release[S]
            moved = c + sign * residuals[:, None] * rows
            change = np.sum(log_terms(moved, lam, sigma, release), axis=1)
            change -= np.sum(log_terms(c, lam, sigma, release))
            found[k] = sign * (_log_ratio(F_S, rows[:, S], sign) + change)
    return found


def _log_ratio(F_S: FloatArray, W: FloatArray, sign: float) -> FloatArray:
    """log(1 ± h); −inf where a member alone makes the columns independent."""
    if F_S.shape[1] == 0:
        return np.zeros(W.shape[0])
    norms = np.linalg.norm(F_S, axis=0)
    try:
        unit = F_S / norms
        U = solve_triangular(cholesky(unit.T @ unit), (W / norms).T, trans=1, check_finite=False)
    except (LinAlgError, ValueError):
        raise ValueError(
            "the columns in the support of a release are linearly dependent; its coefficients off "
            "the support must be exactly zero"
        ) from None
    leverage = np.einsum("ij,ij->j", U, U)
    with np.errstate(divide="ignore"):
        return np.log1p(np.maximum(sign * leverage, -1.0))
