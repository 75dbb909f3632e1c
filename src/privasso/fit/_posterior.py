"""What a release says about the coefficients, given the exact law of its noise."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from privasso.fit._release_law import ReleaseLaw, RowMoments, joint_noise
from privasso.operators import Covariates
from privasso.programs import Release

#: The guess needs dense matrices over the columns.
MOST_COLUMNS = 2048


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
    """
    law, b = release_law(release, rows, weights, label_deviation)
    return posterior_of(release, rows, law, b)


def release_law(
    release: Release, rows: Covariates, weights: np.ndarray | None, label_deviation: float
) -> tuple[ReleaseLaw, np.ndarray]:
    """The law of a release, and the release itself with the label sum as last entry."""
    b, noise = _joint(release, rows, weights)
    return ReleaseLaw(RowMoments.of(rows, weights), noise, label_deviation), b


def posterior_of(release: Release, rows: Covariates, law: ReleaseLaw, b: np.ndarray) -> Posterior:
    """What `posterior` returns, for a law that is known."""
    mean, deviation, level = law.posterior(b)
    centre = release.centre + release.level if rows.centred else 0.0
    return Posterior(mean, deviation, centre + level)


def posterior_mean(
    gram: np.ndarray, b: np.ndarray, noise: np.ndarray, n_rows: int, label_deviation: float
) -> np.ndarray:
    """The same for centred columns that are given by their Gram matrix alone."""
    moments = RowMoments(gram, gram, np.sqrt(np.diag(gram) / n_rows), intercept=False)
    return ReleaseLaw(moments, noise, label_deviation).posterior(b)[0]


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
    return np.append(b, release.label_sum), joint_noise(noise, release.sigma_sum)
