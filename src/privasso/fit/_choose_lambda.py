"""The choice of λ from a release alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from privasso._blas import one_thread
from privasso._clock import Clock
from privasso._tuned import STEIN_CAUTION
from privasso.fit._charge import warn_user
from privasso.fit._postprocess import Postprocess
from privasso.fit._release_law import Posterior
from privasso.solvers import Status

#: The smallest λ of the grid, relative to the λ above which all coefficients are zero.
_SPAN = 1e-3
_POINTS = 36
#: Points solved at a time; few where the grid may run into the critical λ.
_TOGETHER = {True: 12, False: 4}
#: The grid ends once the support is larger than this part of the largest possible one: beyond it
#: the model follows the noise, and each solve takes far longer than those before.
_FULL = 0.9
#: Above this part, points are solved one at a time.
_FILLING = 0.5
#: The grid ends once this many points in a row were worse than the best by this factor.
_WORSE_POINTS, _WORSE = 6, 1.2
#: Supports larger than this are not considered: their inverse is cubic in size.
_LARGEST_SUPPORT = 3000
#: Half the width of the label bounds, in units of `Privacy.label_deviation`.
_FARTHEST = 3.0


class TimeLimitWarning(UserWarning):
    """A time limit ended a choice of λ; it was made among the values solved until then."""


def choose_lambda(
    post: Postprocess,
    guess: Posterior | None = None,
    label_variance: float = 0.0,
    *,
    clock: Clock | None = None,
) -> float:
    """λ on a geometric grid, chosen from the release alone.

    The release b ~ N(Fᵀy, Σ) has noise of a known law. So there is a best guess m of the
    coefficients, see `posterior`, and the expected squared error of any other coefficients x is
    ‖F(x − m)‖² plus a constant. λ minimises ‖F(x̂_λ − m)‖².

    Without a guess λ minimises Stein's unbiased estimate of the squared error plus two of its
    standard errors; see `_cautious_risk`.

    The grid goes downwards. It ends above the critical λ, below which no minimiser exists; where
    the coefficients are nearly as many as the rows, if F has more columns than rows; where a solve
    fails; and when the clock has expired, with a `TimeLimitWarning`. λ is chosen among the values
    before that.

    Parameters
    ----------
    post : Postprocess
        A release and its covariates.
    guess : Posterior or None
        The best guess of the coefficients.
    label_variance : float
        Variance to expect of the labels, a value that does not come from them.
    clock : Clock, optional
        The time that is left.
    """
    largest = post.largest_lam
    if post.op is None or largest == 0.0:
        return 1.0  # at every λ all coefficients are zero
    lams = largest * np.geomspace(1.0, _SPAN, _POINTS)
    path = _path(post, lams, clock or Clock())
    if guess is None:
        return _least_risk(post, lams, label_variance, path)
    return _closest(post, lams, guess.coef, path)


def _closest(
    post: Postprocess,
    lams: np.ndarray,
    mean: np.ndarray,
    path: Iterator[tuple[float, np.ndarray]],
) -> float:
    """λ whose coefficients predict most like `mean`."""
    total = _distance(post, mean)
    best, least = float(lams[0]), total
    worse = 0
    for lam, x in path:
        distance = _distance(post, x - mean)
        if distance < least:
            best, least = lam, distance
        worse = worse + 1 if distance > _WORSE * least else 0
        if worse == _WORSE_POINTS and least < total:
            break
    return best


def _distance(post: Postprocess, x: np.ndarray) -> float:
    """‖Fx‖²."""
    return float(x @ post.rows.normal_products(x[:, None])[:, 0])


def _least_risk(
    post: Postprocess,
    lams: np.ndarray,
    label_variance: float,
    path: Iterator[tuple[float, np.ndarray]],
) -> float:
    """λ with the least value of Stein's estimate plus two standard errors."""
    best, least = float(lams[0]), 0.0  # the model without coefficients has the value zero
    explainable = _FARTHEST**2 * label_variance * post.rows.shape[0]
    for lam, x in path:
        with one_thread():
            found = _cautious_risk(post, x, label_variance)
        if found is None:
            break
        risk, error = found
        if risk < least:
            best, least = lam, risk
        # From here on a model cannot be distinguished from noise.
        if 0.0 < explainable < error:
            break
    return best


def _path(post: Postprocess, lams: np.ndarray, clock: Clock) -> Iterator[tuple[float, np.ndarray]]:
    """Solutions from the largest λ down, as long as they exist, are of use, and there is time."""
    assert post.op is not None
    m, n = post.op.shape
    bounded = post.full_rank or m > n
    step, start = _TOGETHER[bounded], 0
    while start < lams.size:
        together = lams[start : start + step]
        try:
            x, status = post.solutions(together, clock=clock)
        except RuntimeError:  # neither a minimiser nor a proof that there is none
            return
        for k, lam in enumerate(together.tolist()):
            if status[k] is Status.TIME_LIMIT:
                warn_user(
                    f"the time limit was over after {start + k} of {lams.size} values of λ, and "
                    "lam is the best of those; a longer time limit may find a better one",
                    TimeLimitWarning,
                )
            if status[k] is not Status.CONVERGED:
                return
            yield lam, x[:, k]
            size = np.count_nonzero(x[:, k])
            if not bounded and size > _FULL * m:
                return
            if not bounded and size > _FILLING * m:
                step = 1
        start += together.size


def _cautious_risk(
    post: Postprocess, x: np.ndarray, label_variance: float
) -> tuple[float, float] | None:
    """SURE plus two standard errors, and one standard error; None if the support is too large.

    Let b ~ N(Fᵀy, Σ) and J = ∂x̂/∂b, which is (F_SᵀF_S)⁻¹ on the support S and zero elsewhere. By
    Stein's lemma

        SURE(λ) = ‖Fx̂‖² − 2bᵀx̂ + 2 tr(ΣJ)

    is unbiased for ‖y − Fx̂‖² − ‖y‖², with the mean squared deviation 4 E[x̂ᵀΣx̂ + tr(ΣJΣJ)]. Twice
    its root is added: a noisy curve has its minimum where its error is negative, so without that
    term λ is far too small when the noise is strong. For new labels with independent errors of
    variance τ² the squared error grows by 2τ²|S|, which is added too.
    """
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
    noise = post.covariance.restricted(support)
    x = x[support]
    sure = x @ gram @ x - 2.0 * post.b[support] @ x + 2.0 * noise.trace(J)
    error = 2.0 * np.sqrt(noise.quadratic(x) + noise.trace_of_square(J))
    return float(sure + STEIN_CAUTION * error + 2.0 * label_variance * support.size), float(error)
