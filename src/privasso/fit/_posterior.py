"""What a release says about the coefficients, given the exact law of its noise."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from privasso._blas import threads_for
from privasso.fit._gibbs import posterior_moments
from privasso.operators import Covariates
from privasso.privacy import Release

#: Largest variance of the signal, in units of that to expect of the labels: half the variance of
#: labels that are all at one of their bounds, three deviations from the middle.
_MOST_SIGNAL = 4.5
#: Variances of the signal that are tried, relative to the largest one, and the part of the
#: variance of the labels that is explained at the largest one.
_SIGNALS, _EXPLAINED = np.geomspace(1e-3, 1.0, 9), 0.9
#: Added to the covariance of the release, relative to its mean variance, against rounding.
_JITTER = 1e-10


@dataclass(frozen=True, eq=False)
class Posterior:
    """The best guess of the coefficients from a release.

    Attributes
    ----------
    coef : ndarray
        Posterior mean of the coefficients of the live columns.
    deviation : ndarray
        Their posterior standard deviations, which include the privacy noise.
    mean_label : float
        Posterior mean of the label at the means of the columns; zero without an intercept.
    """

    coef: np.ndarray = field(repr=False)
    deviation: np.ndarray = field(repr=False)
    mean_label: float


def posterior(
    release: Release, rows: Covariates, weights: np.ndarray | None, label_deviation: float
) -> Posterior:
    """Mean of the coefficients given a release, whose noise has a known law.

    With rows z_μ = (f_μ, 1) and their weights w_μ the release is B ~ N(Gx, τ²G₂ + Σ), where
    G = Σ w_μ z_μz_μᵀ, G₂ = Σ w_μ² z_μz_μᵀ, and τ² is the variance of a label around its
    prediction. In units of standardised columns the coefficients have the prior of
    `posterior_moments`, a mixture of a wide and a narrow normal law whose sizes and proportions
    follow from the release. So the guess adapts to few large coefficients as well as to many small
    ones. The size of τ² comes from a Gaussian prior, averaged by its marginal likelihood.

    Parameters
    ----------
    release : Release
        The release.
    rows : Covariates
        The covariates that it was made from.
    weights : ndarray of shape (M,) or None
        Weights of the rows in the release.
    label_deviation : float
        Standard deviation to expect of the labels, in the unit of the release; a value that does
        not come from them.

    Examples
    --------
    >>> from privasso.noise import Diagonal
    >>> rows = Covariates(np.repeat(np.eye(4), 25, axis=0), centre=False)
    >>> b = np.array([50.0, 1.0, -1.5, 0.5])
    >>> found = posterior(Release(b, Diagonal(np.ones(4)), 100, 0.0), rows, None, 1.0)
    >>> bool(1.7 < found.coef[0] < 2.1 and abs(found.coef[2]) < 0.06)
    True
    """
    scale = np.sqrt(rows.squares[rows.live] / rows.total)
    b, noise = _joint(release, rows, weights)
    n, units = scale.size, np.append(scale, 1.0) if rows.centred else scale
    G = rows.moments(weights, ones=rows.centred)
    G2 = G if weights is None else rows.moments(weights**2, ones=rows.centred)
    mean, deviation, level = _moments(G, G2, b, noise, units, n, label_deviation)
    centre = release.centre if rows.centred else 0.0
    return Posterior(mean, deviation, centre + level)


def posterior_mean(
    gram: np.ndarray, b: np.ndarray, noise: np.ndarray, n_rows: int, label_deviation: float
) -> np.ndarray:
    """The same for centred columns given by their Gram matrix alone; the mean of the coefficients.

    Examples
    --------
    >>> b = np.array([50.0, 1.0, -1.5, 0.5])
    >>> mean = posterior_mean(25.0 * np.eye(4), b, np.eye(4), n_rows=100, label_deviation=1.0)
    >>> bool(1.7 < mean[0] < 2.1 and abs(mean[2]) < 0.06)
    True
    """
    units = np.sqrt(np.diag(gram) / n_rows)
    return _moments(gram, gram, b, noise, units, b.size, label_deviation)[0]


def _moments(
    G: np.ndarray,
    G2: np.ndarray,
    b: np.ndarray,
    noise: np.ndarray,
    units: np.ndarray,
    n: int,
    label_deviation: float,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean and deviation of n coefficients, and the mean of the intercept, if there is one more.

    `units` are the scales of the columns.
    """
    both = np.outer(units, units)
    G, G2, b, noise = G / both, G2 / both, b / units / label_deviation, noise / both
    noise = noise / label_deviation**2
    V = _unexplained(G, G2, noise, b, n) * G2 + noise
    V[np.diag_indices_from(V)] += _JITTER * np.trace(V) / V.shape[0]
    with threads_for(V.shape[0] ** 3 / 3):
        solved = cho_solve(cho_factor(V, lower=True), np.column_stack([G, b]))
        A, h = G @ solved[:, :-1], G @ solved[:, -1]
    A, unit = 0.5 * (A + A.T), label_deviation / units[:n]
    if b.size == n:
        mean, deviation = posterior_moments(A, h, _MOST_SIGNAL)
        return unit * mean, unit * deviation, 0.0
    # The intercept has the prior N(0, 1) in units of the label deviation, and is integrated out.
    own, cross = A[n, n] + 1.0, A[:n, n]
    conditional = np.ascontiguousarray(A[:n, :n] - np.outer(cross, cross) / own)
    mean, deviation = posterior_moments(conditional, h[:n] - cross * h[n] / own, _MOST_SIGNAL)
    level = float(h[n] - cross @ mean) / own
    return unit * mean, unit * deviation, label_deviation * level


def uncentred(release: Release, rows: Covariates, weights: np.ndarray | None) -> np.ndarray:
    """Return b with what the centre of the label bounds took out of it, if there is no intercept.

    The centre is public, and so is its product with the rows.
    """
    if release.centre == 0.0 or rows.centred:
        return release.b
    return release.b + release.centre * rows.rmatvec(
        np.ones(rows.shape[0]) if weights is None else weights
    )


def _joint(
    release: Release, rows: Covariates, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """The release of the live columns, the label sum as last entry, and its covariance."""
    noise = release.covariance.restricted(np.flatnonzero(rows.live)).matrix()
    b = uncentred(release, rows, weights)[rows.live]
    if release.label_sum is None or release.sigma_sum is None:
        return b, noise
    whole = np.zeros((b.size + 1, b.size + 1))
    whole[:-1, :-1], whole[-1, -1] = noise, release.sigma_sum**2
    return np.append(b, release.label_sum), whole


def _unexplained(G: np.ndarray, G2: np.ndarray, noise: np.ndarray, b: np.ndarray, n: int) -> float:
    """Variance of the labels around their predictions, from the marginal likelihood of b.

    Under x ~ N(0, D), D = g/n on the columns and 1 on the intercept, and labels of variance t
    around Fx, the release has the covariance GDG + tG₂ + Σ.
    """
    prior = np.ones(b.size)
    unexplained = 1.0 - _EXPLAINED * _SIGNALS
    likelihoods = []
    for part, rest in zip(_SIGNALS, unexplained, strict=True):
        prior[:n] = _MOST_SIGNAL * part / n
        K = (G * prior) @ G + rest * G2 + noise
        K[np.diag_indices_from(K)] += _JITTER * np.trace(K) / b.size
        try:
            with threads_for(b.size**3 / 3):
                factor = cho_factor(K, lower=True)
        except LinAlgError:
            likelihoods.append(-np.inf)
            continue
        log_root = float(np.sum(np.log(np.diag(factor[0]))))
        likelihoods.append(-0.5 * float(b @ cho_solve(factor, b)) - log_root)
    weights = np.exp(np.array(likelihoods) - max(likelihoods))
    return float(weights @ unexplained / weights.sum())
