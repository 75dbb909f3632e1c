"""The choice of λ from a release alone, by Stein's unbiased risk estimate and its error."""

from __future__ import annotations

import numpy as np

from privasso._blas import one_thread
from privasso.fit._postprocess import Postprocess
from privasso.solvers import Status

#: The smallest λ of the grid, relative to the λ above which all coefficients are zero.
_SPAN = 1e-3
_POINTS = 36
#: Points solved at a time; few where the grid may run into the critical λ.
_TOGETHER = {True: 12, False: 4}
#: Supports larger than this are not considered: their inverse is cubic in size.
_LARGEST_SUPPORT = 3000
#: Half the width of the label bounds, in units of `Privacy.label_deviation`.
_FARTHEST = 3.0
#: Standard errors added to the estimate. In simulations with strong noise, 0 can lead to hundreds
#: of times the best error and 1 to tens of times; 3 is no better than 2.
_CAUTION = 2.0


def choose_lambda(post: Postprocess, label_variance: float = 0.0) -> float:
    """λ on a geometric grid with the least estimated squared error plus two standard errors.

    Let b ~ N(Fᵀy, Σ) and J = ∂x̂/∂b, which is (F_SᵀF_S)⁻¹ on the support S and zero elsewhere. By
    Stein's lemma

        SURE(λ) = ‖Fx̂‖² − 2bᵀx̂ + 2 tr(ΣJ)

    is unbiased for ‖y − Fx̂‖² − ‖y‖², with the mean squared deviation

        4 E[ x̂ᵀΣx̂ + tr(ΣJΣJ) ].

    Twice its root is added: a noisy curve has its minimum where its error is negative, so without
    that term λ is far too small when the noise is strong. SURE estimates the error for the labels
    at hand; for new labels with independent errors of variance τ² the squared error grows by
    2τ²|S|, which is added too. The model without coefficients has the value zero. The grid ends
    above the critical λ, below which no minimiser exists. It also ends where one standard error
    exceeds the largest possible sum of squares of the labels: at smaller λ a model cannot be
    distinguished from noise.

    Parameters
    ----------
    post : Postprocess
        A release and its covariates.
    label_variance : float
        τ², a value that does not come from the labels.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> b, noise = np.array([20.0, 1.0, -1.5, 0.5]), pv.noise.Diagonal(np.ones(4))
    >>> rows = pv.operators.Covariates(np.eye(4), centre=False)
    >>> release = pv.privacy.Release(b, noise, n_rows=4, centre=0.0)
    >>> 1.5 < choose_lambda(Postprocess(release, rows)) < 3  # above the noise, below the signal
    True
    """
    largest = float(np.max(np.abs(post.b), initial=0.0))
    if post.op is None or largest == 0.0:
        return 1.0  # at every λ all coefficients are zero
    lams = largest * np.geomspace(1.0, _SPAN, _POINTS)
    best, least = float(lams[0]), 0.0
    m, n = post.op.shape
    step = _TOGETHER[post.full_rank or m > n]
    explainable = _FARTHEST**2 * label_variance * post.rows.shape[0]
    for start in range(0, _POINTS, step):
        together = lams[start : start + step]
        try:
            x, status = post.solutions(together)
        except RuntimeError:  # neither a minimiser nor a proof that there is none
            return best
        for k, lam in enumerate(together.tolist()):
            if status[k] is not Status.CONVERGED:
                return best
            with one_thread():
                found = _cautious_risk(post, x[:, k], label_variance)
            if found is None:
                return best
            risk, error = found
            if risk < least:
                best, least = lam, risk
            if 0.0 < explainable < error:
                return best
    return best


def _cautious_risk(
    post: Postprocess, x: np.ndarray, label_variance: float
) -> tuple[float, float] | None:
    """SURE plus two standard errors, and one standard error; None if the support is too large."""
    assert post.op is not None
    support = np.flatnonzero(x)
    if support.size == 0:
        return 0.0, 0.0
    if support.size > min(_LARGEST_SUPPORT, post.op.shape[0]):
        return None
    found = post.gram_and_inverse(support)
    if found is None:
        return None
    gram, J = found
    noise = post.release.covariance.restricted(np.flatnonzero(post.rows.live)[support])
    x = x[support]
    sure = x @ gram @ x - 2.0 * post.b[support] @ x + 2.0 * noise.trace(J)
    error = 2.0 * np.sqrt(noise.quadratic(x) + noise.trace_of_square(J))
    return float(sure + _CAUTION * error + 2.0 * label_variance * support.size), float(error)
