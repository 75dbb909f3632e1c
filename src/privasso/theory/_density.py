"""The exact law of the released estimate, at any size and for any data.

The minimiser x̂ of ½‖y−Fx‖² + λ‖x‖₁ + ηᵀx satisfies c − η ∈ λ∂‖x‖₁ with c = Fᵀ(y − Fx). On a
support S with given signs this is a one-to-one map between (η_S) and (x_S), of Jacobian
F_SᵀF_S, while every η_j off the support may lie anywhere in [c_j − λ, c_j + λ].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, solve_triangular
from scipy.special import erf, log_ndtr

from privasso._blas import one_thread
from privasso._validation import positive_float, real_array
from privasso.noise import Covariance, Diagonal
from privasso.theory._system import FloatArray

_LOG_2PI = float(np.log(2.0 * np.pi))
#: Width of an interval (in deviations, times its distance from zero) below which its mass is
#: computed by a Taylor series.
_NARROW = 1e-3
#: With at most so many changed rows, the change of the density is computed by an update.
_FEW = 4
#: Smallest pivot of the Gram matrix of unit columns at which the update keeps enough digits.
_DEPENDENT = 1e-5


def log_density(
    F: ArrayLike, y: ArrayLike, lam: float, variances: ArrayLike | Covariance, x: ArrayLike
) -> float:
    """Log density at x of the estimate released from (F, y) with noise η_i ~ N(0, σ_i²).

    With S the support of x and c = Fᵀ(y − Fx),

        log p(x) = log det F_SᵀF_S + Σ_{i∈S} log N(c_i − λ sgn x_i; 0, σ_i²)
                   + Σ_{j∉S} log[ Φ((c_j+λ)/σ_j) − Φ((c_j−λ)/σ_j) ],

    with respect to Lebesgue measure on the coordinates in S: summed over all supports, and
    integrated over their coordinates, it gives the probability that a minimiser exists, which
    is 1 when F has full column rank.

    Parameters
    ----------
    F : array_like, shape (M, N)
    y : array_like, shape (M,)
    lam : float
        Regularisation λ > 0.
    variances : array_like, shape (N,), or Covariance
        σ_i² > 0, fixed before the data were seen (or equal for the data sets compared). A
        covariance must be diagonal: for correlated noise the density has no closed form.
    x : array_like, shape (N,)
        The point; coefficients that are exactly zero are off the support.

    Raises
    ------
    ValueError
        When the columns in the support are linearly dependent: no noise leads to such an x.

    Examples
    --------
    One column: a Gaussian censored at zero.

    >>> import privasso as pv
    >>> round(pv.log_density([[2.0]], [1.0], 0.5, [1.0], [0.0]), 6)  # Φ(2.5) − Φ(1.5)
    -2.803501
    >>> round(pv.log_density([[2.0]], [1.0], 0.5, [1.0], [0.25]), 6)  # 4·φ(0.5)
    0.342356
    """
    F, y = _records(F, y)
    lam, variances, x = _point(lam, variances, x, F.shape[1])
    S = np.flatnonzero(x)
    c = F.T @ (y - F[:, S] @ x[S])
    return _log_det(F[:, S]) + float(np.sum(log_terms(c, lam, np.sqrt(variances), x)))


def privacy_loss(
    F: ArrayLike,
    y: ArrayLike,
    F2: ArrayLike,
    y2: ArrayLike,
    lam: float,
    variances: ArrayLike | Covariance,
    x: ArrayLike,
) -> float:
    """Logarithm of p(x | F, y) / p(x | F2, y2), the evidence in x for (F, y) against (F2, y2).

    It is the statistic of the most powerful test between the two, hence of the best membership
    attack. When the data sets differ in a few rows (added, removed or replaced), the density is
    updated: for rows f_k of residual r_k with sign s_k = ±1 (added, removed), W = (f_k)_S,

        log p'/p = log det(I + diag(s) Wᵀ (F_SᵀF_S)⁻¹ W) + Σ_i [ log q_i(c + Σ s_k r_k f_k) − log q_i(c) ].

    Otherwise it is the difference of two `log_density`.

    Parameters
    ----------
    F, y, F2, y2 : array_like
        The two data sets, with the same columns and any number of rows.
    lam, variances, x
        As in `log_density`; the noise must be the same for both data sets.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> s = pv.Model(alpha=2.0).sample(n_features=50, rng=0)
    >>> variances = np.full(50, 0.1**2)
    >>> eta = 0.1 * np.random.default_rng(1).standard_normal(50)
    >>> x = pv.solve(s.F, s.y, 0.2, eta).x
    >>> fast = pv.privacy_loss(s.F, s.y, s.F[1:], s.y[1:], 0.2, variances, x)
    >>> slow = pv.log_density(s.F, s.y, 0.2, variances, x)
    >>> slow -= pv.log_density(s.F[1:], s.y[1:], 0.2, variances, x)
    >>> bool(abs(fast - slow) < 1e-8)
    True
    """  # noqa: E501
    F, y = _records(F, y)
    F2, y2 = _records(F2, y2, names=("F2", "y2"))
    if F.shape[1] != F2.shape[1]:
        raise ValueError(f"F and F2 must have the same columns, not {F.shape[1]} and {F2.shape[1]}")
    lam, variances, x = _point(lam, variances, x, F.shape[1])
    change = _changed_rows(F, y, F2, y2)
    if change is not None:
        loss = _updated_loss(F, y, change, lam, np.sqrt(variances), x)
        if loss is not None:
            return loss
    return log_density(F, y, lam, variances, x) - log_density(F2, y2, lam, variances, x)


class _Change(NamedTuple):
    """Rows by which one data set differs from the other, with sign +1 added and -1 removed."""

    rows: FloatArray
    labels: FloatArray
    signs: FloatArray


def _changed_rows(F: FloatArray, y: FloatArray, F2: FloatArray, y2: FloatArray) -> _Change | None:
    """Return rows replaced in place, or one added or removed anywhere; None for anything else."""
    m, m2 = len(y), len(y2)
    common = min(m, m2)
    if abs(m - m2) > 1:
        return None
    differs = (y[:common] != y2[:common]) | (F[:common] != F2[:common]).any(axis=1)
    index = np.flatnonzero(differs)
    if m == m2:
        if index.size > _FEW:
            return None
        signs = np.repeat([-1.0, 1.0], index.size)
        return _Change(
            np.vstack([F[index], F2[index]]), np.concatenate([y[index], y2[index]]), signs
        )
    # One data set has one row more: it is at the first difference, and the rest is shifted by one.
    k = int(index[0]) if index.size else common
    small, large = ((F, y), (F2, y2)) if m < m2 else ((F2, y2), (F, y))
    if index.size and not (
        np.array_equal(small[1][k:], large[1][k + 1 :])
        and np.array_equal(small[0][k:], large[0][k + 1 :])
    ):
        return None
    sign = 1.0 if m < m2 else -1.0
    return _Change(large[0][k : k + 1], large[1][k : k + 1], np.array([sign]))


def _updated_loss(
    F: FloatArray, y: FloatArray, change: _Change, lam: float, sigma: FloatArray, x: FloatArray
) -> float | None:
    """−log p'/p by the update, or None where the support is too ill-conditioned for it."""
    S = np.flatnonzero(x)
    F_S = F[:, S]
    c = F.T @ (y - F_S @ x[S])
    residuals = change.labels - change.rows[:, S] @ x[S]
    c2 = c + (change.signs * residuals) @ change.rows
    log_ratio = 0.0
    if S.size:
        gram = F_S.T @ F_S
        norms = np.sqrt(np.diagonal(gram))
        if not norms.all():
            return None
        gram /= np.outer(norms, norms)
        W = (change.rows[:, S] / norms).T
        try:
            factor = cho_factor(gram, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return None
        if np.min(np.diagonal(factor[0])) < _DEPENDENT:
            return None
        inner = change.signs[:, None] * (W.T @ cho_solve(factor, W, check_finite=False))
        sign, log_ratio = np.linalg.slogdet(np.eye(len(inner)) + inner)
        if sign <= 0.0 or log_ratio < np.log(1e-10):
            return None
    terms = log_terms(c2, lam, sigma, x) - log_terms(c, lam, sigma, x)
    return float(-log_ratio - np.sum(terms))


def log_terms(c: FloatArray, lam: float, sigma: FloatArray, x: FloatArray) -> FloatArray:
    """Log q_i(c_i): the density of η_i at c_i − λ sgn x_i, or the mass of [c_i − λ, c_i + λ]."""
    z = (c - lam * np.sign(x)) / sigma
    on = -0.5 * (z * z + _LOG_2PI) - np.log(sigma)
    off = log_mass((lam - np.abs(c)) / sigma, (lam + np.abs(c)) / sigma)
    return np.where(x != 0.0, on, off)


def log_mass(a: FloatArray, b: FloatArray) -> FloatArray:
    """log[Φ(a) − Φ(−b)] for b ≥ |a|, without underflow or cancellation."""
    out = np.empty_like(a)
    inside = a >= 0.0
    out[inside] = np.log(0.5 * (erf(a[inside] / np.sqrt(2.0)) + erf(b[inside] / np.sqrt(2.0))))

    a, b = a[~inside], b[~inside]
    width, mid = a + b, 0.5 * (b - a)
    upper = log_ndtr(a)
    narrow = width * (1.0 + b) < _NARROW
    gap = np.where(narrow, -1.0, log_ndtr(-b) - upper)
    wide = upper + np.log(-np.expm1(gap))
    series = np.log(width) - 0.5 * (mid * mid + _LOG_2PI) + np.log1p((mid**2 - 1) * width**2 / 24)
    out[~inside] = np.where(narrow, series, wide)
    return out


def _log_det(F_S: FloatArray) -> float:
    """Log det F_SᵀF_S, by QR of the columns scaled to length 1."""
    m, k = F_S.shape
    if k == 0:
        return 0.0
    norms = np.linalg.norm(F_S, axis=0)
    if k <= m and norms.all():
        diagonal = np.abs(np.diagonal(np.linalg.qr(F_S / norms, mode="r")))
        if diagonal.min() > 10.0 * k * np.finfo(np.float64).eps:
            return float(2.0 * np.sum(np.log(diagonal) + np.log(norms)))
    raise ValueError(
        f"the {k} columns in the support of x are linearly dependent (F has {m} rows), so x cannot "
        "be a released estimate; its coefficients off the support must be exactly zero"
    )


def _records(
    F: ArrayLike, y: ArrayLike, names: tuple[str, str] = ("F", "y")
) -> tuple[FloatArray, FloatArray]:
    F = real_array(names[0], F, ndim=2)
    return F, real_array(names[1], y, shape=(F.shape[0],))


def _point(
    lam: float, variances: ArrayLike | Covariance, x: ArrayLike, n: int
) -> tuple[float, FloatArray, FloatArray]:
    variances = check_variances(variances, n)
    return positive_float("lam", lam), variances, real_array("x", x, shape=(n,))


def check_variances(variances: ArrayLike | Covariance, n: int) -> FloatArray:
    """Positive variances of independent noise on n columns."""
    if isinstance(variances, Covariance):
        if not isinstance(variances, Diagonal):
            raise ValueError(
                "the density has no closed form for noise that is correlated over the columns; "
                "pass a diagonal covariance"
            )
        variances = variances.diagonal
    variances = real_array("variances", variances, shape=(n,))
    if np.min(variances) <= 0.0:
        raise ValueError(
            "variances must be positive: without noise on every column the estimate has no density"
        )
    return variances


def membership_losses(
    F: ArrayLike,
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

    For a release x with support S, c = Fᵀ(y − Fx), and a record (f, y_a) of residual r = y_a − fᵀx,

        log p(x|D∪a)/p(x|D) = log(1 + h) + Σ_i [ log q_i(c + r f) − log q_i(c) ],

    h = f_Sᵀ(F_SᵀF_S)⁻¹f_S and q_i as in `log_density`. For a record of D, the ratio against D
    without it is −log(1 − h) + Σ_i [ log q_i(c) − log q_i(c − r f) ].

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
