"""One label at either of its bounds: the exact likelihood ratio of a label-private release."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privasso.attacks._pair import Pair, World
from privasso.fit import Plan
from privasso.privacy import LabelDP, Release, direct_level, weighted_residuals, whitened_rows
from privasso.problem import Huber
from privasso.queries import bit_source
from privasso.theory import clipped_log_densities

FloatArray = NDArray[np.float64]


def label_influence(plan: Plan) -> FloatArray:
    """Squared length of each row in the norm in which the noise is spherical."""
    calibration, rows = plan.calibration, plan.rows
    found = rows.squared_row_norms(calibration.covariance)
    if rows.centred:
        found = found + calibration.sigma_sum**-2
    weights = calibration.weights
    return found if weights is None else found * weights**2


def label_pairs(plan: Plan, y: FloatArray, records: dict[int, str]) -> list[Pair]:
    """A pair for each record: its label at the upper and at the lower bound."""
    privacy = plan.options.privacy
    assert isinstance(privacy, LabelDP)
    pairs = []
    for k, name in records.items():
        labels = labels_at_bounds(y, k, privacy.y_bounds)
        into, out = (World(partial(_draw, plan, one)) for one in labels)
        exact = _products if plan.calibration.objective is None else minimiser_ratio
        pairs.append(Pair(name, into, out, exact(plan, privacy, *labels)))
    return pairs


def labels_at_bounds(
    y: FloatArray, record: int, y_bounds: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """Clipped labels with that of one record at the upper and at the lower bound."""
    high, low = np.clip(y, *y_bounds), np.clip(y, *y_bounds)
    low[record], high[record] = y_bounds
    return high, low


def _draw(plan: Plan, y: FloatArray, count: int, rng: np.random.Generator | None) -> FloatArray:
    """Releases of the mechanism itself, each as one vector of products and label sum."""
    privacy = plan.options.privacy
    assert isinstance(privacy, LabelDP)
    bits = bit_source(rng)
    made = (privacy.release(plan.rows, y, plan.calibration, bits) for _ in range(count))
    return np.array([release_vector(plan, one) for one in made])


def release_vector(plan: Plan, release: Release) -> FloatArray:
    """The release in coordinates in which its noise is spherical."""
    white = plan.calibration.covariance.whiten(release.b[plan.rows.live])
    if release.label_sum is None or release.sigma_sum is None:
        return white
    white = np.append(white, release.label_sum / release.sigma_sum)
    privacy = plan.options.privacy
    assert isinstance(privacy, LabelDP)
    if not privacy.level:
        return white
    # What corrects the intercept, as a part of the range, tells the noisy mean it came from.
    return np.append(white, release.level / (privacy.width / privacy.unit))


def _rows(plan: Plan, privacy: LabelDP) -> tuple[FloatArray, FloatArray]:
    """Whitened rows of length at most R, and the factors of the rows, for labels of range 1."""
    noise = plan.calibration.objective
    assert noise is not None
    level = noise.sigma * (privacy.width / privacy.unit)
    return whitened_rows(plan.rows, plan.calibration, noise, level)


def _products(
    plan: Plan, privacy: LabelDP, high: FloatArray, low: FloatArray
) -> Callable[[FloatArray], FloatArray]:
    """Products with Gaussian noise: the ratio is linear in the release."""
    calibration, rows = plan.calibration, plan.rows
    weights = np.ones(rows.shape[0]) if calibration.weights is None else calibration.weights
    means = []
    for y in (high, low):
        centred = weights * (y - privacy.centre) / privacy.unit
        mean = calibration.covariance.whiten(rows.rmatvec(centred)[rows.live])
        if rows.centred:
            mean = np.append(mean, float(centred.sum()) / calibration.sigma_sum)
        means.append(mean)
    direction, middle = means[0] - means[1], 0.5 * (means[0] + means[1])
    return lambda releases: (releases - middle) @ direction


def minimiser_ratio(
    plan: Plan, privacy: LabelDP, high: FloatArray, low: FloatArray
) -> Callable[[FloatArray], FloatArray]:
    """Minimisers of a perturbed objective: the ratio of their exact densities.

    The small noise on the output is left out of the densities.
    """
    noise = plan.calibration.objective
    assert noise is not None
    G, roots = _rows(plan, privacy)
    H = G.T @ G + noise.ridge * np.eye(G.shape[1])

    level = _level_ratio(plan, privacy, roots, high, low) if privacy.level else None

    def score(releases: FloatArray) -> FloatArray:
        beside = 0.0
        if level is not None:
            beside, releases = level(releases), releases[:, :-1]
        minimisers = np.linalg.solve(H, noise.sigma * releases.T)
        one, two = (
            clipped_log_densities(
                G,
                roots * ((y - privacy.centre) / privacy.width),
                0.0,
                noise.sigma,
                minimisers,
                loss=Huber(noise.kappa),
                ridge=noise.ridge,
            )
            for y in (high, low)
        )
        return one - two + beside

    return score


def _level_ratio(
    plan: Plan, privacy: LabelDP, roots: FloatArray, high: FloatArray, low: FloatArray
) -> Callable[[FloatArray], FloatArray]:
    """The log ratio of the noisy mean of the labels, which is Gaussian given the rest."""
    m, width = plan.rows.shape[0], privacy.width / privacy.unit
    level = direct_level(privacy.epsilon, privacy.delta, m, asked=True)
    assert level is not None
    weights = np.minimum(roots**2, 1.0)
    total, per_sum = float(weights.sum()), plan.calibration.sigma_sum / width
    scaled = [(y - privacy.centre) / privacy.width for y in (high, low)]

    def ratio(releases: FloatArray) -> FloatArray:
        seen = level.observed(releases[:, -1], total)
        middle = per_sum * releases[:, -2] / total
        one, two = (
            np.array([weighted_residuals(weights, y, at).sum() / total for at in middle.tolist()])
            for y in scaled
        )
        return 0.5 * ((seen - two) ** 2 - (seen - one) ** 2) / level.noise(total) ** 2

    return ratio
