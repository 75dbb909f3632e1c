"""What a release says about the coefficients under a Gaussian prior whose size it tells itself."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from privasso._blas import threads_for

#: Sizes of the signal that are tried, as parts of the largest one that the labels allow.
_SIZES = np.geomspace(1e-3, 1.0, 9)
#: Exponents κ of priors with variances ∝ ‖F_i‖^(−2κ): coefficients alike in the units of the data,
#: or effects alike in the units of the labels.
_EXPONENTS = (0.0, 1.0)
#: Labels lie within so many deviations of the middle of their bounds.
_FARTHEST = 3.0


def posterior_mean(
    gram: np.ndarray, b: np.ndarray, noise: np.ndarray, n_rows: int, label_variance: float
) -> np.ndarray:
    """Mean of the coefficients given a release b ~ N(Fᵀy, Σ).

    Under x ~ N(0, gD) and labels y = Fx + ξ, ξ ~ N(0, τ²), the release has the covariance
    K = g GDG + τ²G + Σ, G = FᵀF, and the mean of x given b is gDG K⁻¹b. The size g of the signal
    and the shape D are averaged over a grid with their marginal likelihoods as weights.

    Parameters
    ----------
    gram : ndarray of shape (N, N)
        G, its diagonal positive.
    b : ndarray of shape (N,)
        The release.
    noise : ndarray of shape (N, N)
        Σ.
    n_rows : int
        Rows of F.
    label_variance : float
        τ²; zero where nothing is known.

    Examples
    --------
    >>> b = np.array([20.0, 1.0, -1.5, 0.5])
    >>> mean = posterior_mean(np.eye(4), b, np.eye(4), n_rows=4, label_variance=0.0)
    >>> bool(18.0 < mean[0] < 20.0 and abs(mean[2]) < 1.5)
    True
    """
    n = b.size
    # All in columns of unit norm, so that nothing depends on their units.
    norms = np.sqrt(np.diag(gram))
    units = np.outer(norms, norms)
    G, noise, b = gram / units, noise / units, b / norms
    means, likelihoods = [], []
    for exponent in _EXPONENTS:
        prior = norms ** (2.0 - 2.0 * exponent)
        prior = prior / np.mean(prior)
        GD = G * prior
        # The mean square of the signal in a label is g·tr(GD)/M = g·N/M.
        signal = GD @ G
        most = _FARTHEST**2 * label_variance * n_rows / n
        if most == 0.0:
            most = 4.0 * float(b @ b) / float(np.trace(signal))
        for size in most * _SIZES:
            K = size * signal + label_variance * G + noise
            try:
                with threads_for(n**3 / 3):
                    factor = cho_factor(K, lower=True)
            except LinAlgError:
                continue
            solved = cho_solve(factor, b)
            means.append(size * prior * (G @ solved))
            likelihoods.append(-0.5 * b @ solved - np.sum(np.log(np.diag(factor[0]))))
    if not means:
        return np.zeros(n)
    weights = np.exp(np.array(likelihoods) - max(likelihoods))
    return (weights / weights.sum()) @ np.array(means) / norms
