"""The exact law of the released estimate, at any size and for any data.

The minimiser x̂ of ½‖y−Fx‖² + λ‖x‖₁ + ηᵀx satisfies c − η ∈ λ∂‖x‖₁ with c = Fᵀ(y − Fx). On a
support S with given signs this is a one-to-one map between (η_S) and (x_S), of Jacobian
F_SᵀF_S, while every η_j off the support may lie anywhere in [c_j − λ, c_j + λ].

With clipped residuals, weights and a ridge −g(x) takes the place of c, g being the gradient of the
smooth part, and the Jacobian is the Hessian on the support.
"""

from __future__ import annotations

import math
from contextlib import suppress

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.special import erf, log_ndtr, ndtr

from privasso._blas import one_thread
from privasso._types import Foreign
from privasso._validation import nonnegative_float, positive_float, real_array
from privasso.noise import Covariance, Diagonal
from privasso.problem import Loss
from privasso.theory._system import FloatArray

_LOG_2PI = float(np.log(2.0 * np.pi))
#: Width of an interval (in deviations, times its distance from zero) below which its mass is
#: computed by a Taylor series.
_NARROW = 1e-3
#: Smallest pivot of the Gram matrix of unit columns at which its determinant keeps enough digits.
_DEPENDENT = 1e-3


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
    attack: the difference of two `log_density`.

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
    >>> loss = pv.privacy_loss(s.F, s.y, s.F[1:], s.y[1:], 0.2, variances, x)
    >>> round(loss, 3)
    -0.108
    """
    F, y = _records(F, y)
    F2, y2 = _records(F2, y2, names=("F2", "y2"))
    if F.shape[1] != F2.shape[1]:
        raise ValueError(f"F and F2 must have the same columns, not {F.shape[1]} and {F2.shape[1]}")
    return log_density(F, y, lam, variances, x) - log_density(F2, y2, lam, variances, x)


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
    """Log det F_SᵀF_S of columns scaled to length 1, by QR where they are nearly dependent."""
    m, k = F_S.shape
    if k == 0:
        return 0.0
    norms = np.linalg.norm(F_S, axis=0)
    if k <= m and norms.all():
        unit = F_S / norms
        with suppress(LinAlgError):
            diagonal = np.diagonal(cholesky(unit.T @ unit, check_finite=False))
            if diagonal.min() > _DEPENDENT:
                return float(2.0 * np.sum(np.log(diagonal) + np.log(norms)))
        diagonal = np.abs(np.diagonal(np.linalg.qr(unit, mode="r")))
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


_LOG_2PI = math.log(2.0 * math.pi)
_TINY = 1e-300
#: Entries that are worked on at a time.
_ENTRIES = 1 << 20


def clipped_log_densities(
    F: ArrayLike,
    y: ArrayLike,
    lam: float,
    sigma: float,
    x: ArrayLike,
    *,
    loss: Loss,
    ridge: float,
    penalty_weights: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    factor: FloatArray | None = None,
) -> FloatArray:
    """Log densities at several points of the minimiser with noise η ~ N(0, σ²I) in the objective.

    x has the shape (N, K), one point a column; coefficients that are exactly zero are off the
    support if they are penalised. The ridge Λ is positive, `penalty_weights` are ω and `weights` w,
    one for each if not given. With a `factor` L the noise is η ~ N(0, σ²LLᵀ) and the ridge
    (Λ/2) xᵀLLᵀx; where several coefficients are zero, the probability that all of them are is
    integrated numerically, to about 1e-4.
    """
    F = real_array("F", F, ndim=2)
    m, n = F.shape
    y, x = real_array("y", y, shape=(m,)), real_array("x", x, shape=(n, None))
    lam, sigma = nonnegative_float("lam", lam), positive_float("sigma", sigma)
    ridge = positive_float("ridge", ridge)
    omega, w = np.ones(n), np.ones(m)
    if penalty_weights is not None:
        omega = real_array("penalty_weights", penalty_weights, shape=(n,))
    if weights is not None:
        w = real_array("weights", weights, shape=(m,))
    penalty, y = (lam * omega)[:, None], loss.labels(y)[:, None]
    S = np.eye(n) if factor is None else factor @ factor.T
    found, step = np.empty(x.shape[1]), max(1, _ENTRIES // (m * n))
    with one_thread():
        for k in range(0, x.shape[1], step):
            some = x[:, k : k + step]
            u = F @ some
            g = ridge * (S @ some) - F.T @ (w[:, None] * loss.pull(y, u))
            shown = (some != 0.0) | (penalty == 0.0)
            eta = (g + penalty * np.sign(some)) / sigma
            if factor is None:
                law = _log_round(eta, shown, g / sigma, penalty / sigma)
            else:
                law = _log_shaped(S, eta, shown, g / sigma, penalty / sigma)
            law -= np.sum(shown, axis=0) * math.log(sigma)
            curved = w[:, None] * loss.curvature(y, u)
            found[k : k + step] = law + _log_jacobians(F, curved, ridge * S, shown)
    return found


def _log_jacobians(
    F: FloatArray, curved: FloatArray, Q: FloatArray, shown: NDArray[np.bool_]
) -> FloatArray:
    """Log determinants of FᵀDF + Q on each support."""
    some = np.flatnonzero(np.any(shown, axis=1))
    G, on = F[:, some], shown[some].T
    H = (curved.T[:, None, :] * G.T) @ G + Q[np.ix_(some, some)]
    H *= on[:, :, None] & on[:, None, :]
    H[:, range(some.size), range(some.size)] += ~on
    return np.linalg.slogdet(H)[1]


def _log_round(
    eta: FloatArray, shown: NDArray[np.bool_], g: FloatArray, half: FloatArray
) -> FloatArray:
    """Log densities of parts of N(0, I) that are shown, and that the rest is within g ± half."""
    logs = -0.5 * eta**2 - 0.5 * _LOG_2PI
    c, half = np.abs(g[~shown]), np.broadcast_to(half, g.shape)[~shown]
    logs[~shown] = log_mass(half - c, half + c)
    return np.sum(logs, axis=0)


def _log_shaped(
    S: FloatArray, eta: FloatArray, shown: NDArray[np.bool_], g: FloatArray, half: FloatArray
) -> FloatArray:
    """The same for N(0, S)."""
    parts = zip(eta.T, shown.T, g.T, strict=True)
    return np.array([_log_one_shaped(S, e[on], on, c[~on], half[~on, 0]) for e, on, c in parts])


def _log_one_shaped(
    S: FloatArray, eta: FloatArray, shown: NDArray[np.bool_], g: FloatArray, half: FloatArray
) -> float:
    """The same for one point; g and half of the rest."""
    from scipy.stats import multivariate_normal  # takes long to import

    law: Foreign = multivariate_normal

    on, across = S[np.ix_(shown, shown)], S[np.ix_(~shown, shown)]
    found = float(law.logpdf(eta, cov=on)) if eta.size else 0.0
    if not g.size:
        return found
    weights = np.linalg.solve(on, across.T).T if eta.size else np.zeros((g.size, 0))
    mean, rest = weights @ eta, S[np.ix_(~shown, ~shown)] - weights @ across.T
    if g.size == 1:
        low, high = ((g + sign * half - mean) / np.sqrt(rest[0, 0]) for sign in (-1.0, 1.0))
        return found + float(np.log(max(ndtr(high[0]) - ndtr(low[0]), _TINY)))
    inside = law(mean, rest, seed=0).cdf(g + half, lower_limit=g - half)
    return found + math.log(max(float(inside), _TINY))
