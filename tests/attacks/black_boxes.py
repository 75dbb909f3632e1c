"""An attack on any program that fits: it sees nothing but what comes out.

The program is run on a data set and on its neighbour. A linear or a quadratic score is learned from
the first half of the runs, with a set of outcomes and a point of the claim, and tested on the
second half. It is weaker than the likelihood ratio, but it needs no knowledge of the mechanism, so
that it finds mistakes that the analysis would share with the program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ks_2samp

from privasso._types import Foreign
from privasso._validation import integer, probability
from privasso.attacks._evidence import Evidence, most_promising
from privasso.attacks._pair import Score
from privasso.attacks._result import Audit, Finding
from privasso.privacy import Guarantee

FloatArray = NDArray[np.float64]

_KNOWLEDGE = (
    "The attacker sees what the program writes, for a data set and for a neighbour of it, and has "
    "learned from earlier runs on both how they differ: each release gets a score."
)


def black_box(
    run: Callable[[int], FloatArray],
    guarantee: Guarantee,
    *,
    releases: SupportsIndex = 400,
    level: float = 0.01,
    name: str = "one record",
    shape: tuple[int, int] = (0, 0),
) -> Audit:
    """Attack a program by what it returns.

    Parameters
    ----------
    run : callable
        ``run(1)`` returns the released numbers for the data, ``run(0)`` those for its neighbour,
        always as many. Each call must be a run of its own.
    guarantee : Guarantee
        What the program claims for these neighbours.
    releases : int
        Runs on each data set; half of them are for learning.
    level : float
        Probability with which a correct program is said to break its claim, at most.
    name : str
        What the two data sets differ in.
    shape : (int, int)
        Rows and columns, for the page.
    """
    count = integer("releases", releases, minimum=20)
    level = probability("level", level)
    half = count // 2

    def lot(world: int, size: int) -> FloatArray:
        return np.array([_vector(run(world)) for _ in range(size)])

    known = lot(1, half), lot(0, half)
    claim = guarantee.loss
    # What is chosen must not be chosen by scores that were learned from the same runs.
    trial = (
        None
        if claim is None
        else most_promising(*crossed(learned_score, *known), claim, count - half)
    )
    score = learned_score(*known)
    into, out = (score(lot(world, count - half)) for world in (1, 0))
    return Audit(
        guarantee=guarantee,
        findings=(
            Finding(
                name,
                Evidence(into, out, np.zeros(1), level),
                None if trial is None else trial.tested(into, out, level),
            ),
        ),
        knowledge=_KNOWLEDGE,
        releases=count - half,
        level=level,
        shape=shape,
    )


def _vector(values: FloatArray) -> FloatArray:
    found = np.asarray(values, dtype=np.float64).ravel()
    return np.nan_to_num(found, nan=0.0, posinf=1e300, neginf=-1e300)


#: Weight of the diagonal in the learned covariance: for few numbers and many runs, and otherwise.
_LITTLE, _MUCH = 1e-8, 0.2
#: Numbers whose squared correlation with the ones before them leaves less than this are copies.
_COPY = 1e-9
#: Variance in one data set below this part of that in both is taken to be as much.
_LEAST_VARIANCE = 1e-4


def learned_score(into: FloatArray, out: FloatArray) -> Score:
    """The linear or the quadratic score, whichever separates releases better that it has not seen.

    A record may show in the mean of what is released or in its spread. A row that is not clipped,
    for instance, makes the fit go through its label, so that one combination of the coefficients
    varies less with it than without it.
    """

    def apart(kind: Callable[[FloatArray, FloatArray], Score]) -> float:
        """The distance of Kolmogorov and Smirnov of scores that were learned elsewhere."""
        found: Foreign = ks_2samp(*crossed(kind, into, out), method="asymp")
        return found.statistic

    best = max(linear_score, quadratic_score, key=apart)
    return best(into, out)


def crossed(
    learn: Callable[[FloatArray, FloatArray], Score], into: FloatArray, out: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Scores of each half of the releases by what was learned from the other half."""
    one, two = (learn(into[k::2], out[k::2]) for k in (1, 0))
    return (
        np.concatenate([one(into[0::2]), two(into[1::2])]),
        np.concatenate([one(out[0::2]), two(out[1::2])]),
    )


def linear_score(into: FloatArray, out: FloatArray) -> Score:
    """A linear discriminant with a regularised covariance, from releases of both data sets.

    Numbers that never change within a data set but differ between the two have a tiny scale, so
    that they decide the score.
    """
    means, scale, white = _centred(into, out)
    centre = 0.5 * (means[0] + means[1])
    both = np.vstack(white)
    covariance = both.T @ both / len(both)
    # A combination of numbers without noise must be found, if there are runs enough to find it.
    weight = _LITTLE if 4 * len(covariance) <= len(into) else _MUCH
    covariance = (1.0 - weight) * covariance + weight * np.eye(len(covariance))
    direction = np.linalg.solve(covariance, (means[0] - means[1]) / scale)
    return lambda values: (values - centre) / scale @ direction


def quadratic_score(into: FloatArray, out: FloatArray) -> Score:
    """The log ratio of two normal laws with the means and covariances of the releases.

    Numbers that are linear functions of others are left out. In coordinates in which the two
    covariances have the mean I, the axes are those along which they differ most: a variance
    2 − s in one data set is s in the other.
    """
    kept = _independent(np.vstack([into, out]))
    into, out = into[:, kept], out[:, kept]
    means, scale, white = _centred(into, out)
    count, size = len(into), len(kept)
    covariances = [part.T @ part / len(part) for part in white]
    mean = 0.5 * (covariances[0] + covariances[1])
    values, vectors = np.linalg.eigh(mean + _LITTLE * np.eye(size))
    whitening = vectors / np.sqrt(values)
    share, axes = np.linalg.eigh(whitening.T @ covariances[0] @ whitening)
    # Of few releases some axes look narrow by chance.
    share = 1.0 + (share - 1.0) * count / (count + size)
    share = np.clip(share, _LEAST_VARIANCE, 2.0 - _LEAST_VARIANCE)
    to_axes = whitening @ axes / scale[:, None]
    centres = [centre @ to_axes for centre in means]

    def score(values: FloatArray) -> FloatArray:
        at = values[:, kept] @ to_axes
        first = (at - centres[0]) ** 2 / share + np.log(share)
        second = (at - centres[1]) ** 2 / (2.0 - share) + np.log(2.0 - share)
        return 0.5 * np.sum(second - first, axis=1)

    return score


def _centred(
    into: FloatArray, out: FloatArray
) -> tuple[tuple[FloatArray, FloatArray], FloatArray, list[FloatArray]]:
    """Means, the scale of each number, and the releases in units of it around their means."""
    means = into.mean(axis=0), out.mean(axis=0)
    spread = np.sqrt(0.5 * (into.var(axis=0) + out.var(axis=0)))
    gap = np.abs(means[0] - means[1])
    size = np.abs(means[0]) + np.abs(means[1])
    scale = np.maximum(np.maximum(spread, 1e-3 * gap), np.maximum(1e-12 * size, 1e-300))
    white = [(values - mean) / scale for values, mean in zip((into, out), means, strict=True)]
    return means, scale, white


def _independent(values: FloatArray) -> list[int]:
    """Columns that are neither constant nor, up to rounding, linear functions of earlier ones."""
    left = values - values.mean(axis=0)
    lengths = np.linalg.norm(left, axis=0)
    constant = lengths <= 1e-12 * np.abs(values).max(axis=0) * np.sqrt(len(values))
    left = left / np.where(constant, 1.0, lengths)
    kept: list[int] = []
    for k in np.flatnonzero(~constant).tolist():
        if len(kept) + 1 >= len(values) // 4:
            break
        square = float(left[:, k] @ left[:, k])
        if square <= _COPY:
            continue
        kept.append(k)
        unit = left[:, k] / np.sqrt(square)
        left = left - np.outer(unit, unit @ left)
    return kept
