"""The exact law of the minimiser of a perturbed clipped-residual LASSO, at any size.

The minimiser x̂ of Σ_μ w_μ ℓ(y_μ − f_μᵀx) + λΣ_i ω_i|x_i| + (Λ/2)‖x‖² + ηᵀx satisfies
−g(x) − η ∈ λω∂‖x‖₁, with g the gradient of the smooth part. On a support with given signs this is a
one-to-one map between η and x on the support, whose Jacobian is the Hessian there; every other η_j
may lie anywhere in [−g_j − λω_j, −g_j + λω_j].
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from privasso._blas import one_thread
from privasso._validation import nonnegative_float, positive_float, real_array
from privasso.problem import Loss
from privasso.theory._density import log_mass
from privasso.theory._system import FloatArray

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

    on, across = S[np.ix_(shown, shown)], S[np.ix_(~shown, shown)]
    law: Any = multivariate_normal
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
