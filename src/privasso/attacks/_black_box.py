"""An attack on any program that fits: it sees nothing but what comes out.

The program is run on a data set and on its neighbour. A linear score is learned from the first
half of the runs, with the thresholds, and tested on the second half. It is weaker than the
likelihood ratio, but it needs no knowledge of the mechanism, so that it finds mistakes that the
analysis would share with the program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from privasso._validation import integer, probability
from privasso.attacks._evidence import Evidence
from privasso.attacks._result import Audit, Finding
from privasso.privacy import Guarantee

FloatArray = NDArray[np.float64]

_KNOWLEDGE = (
    "The attacker sees what the program writes, for a data set and for a neighbour of it, and has "
    "learned from earlier runs on both how they differ: each release gets a linear score."
)
#: Weight of the diagonal in the learned covariance: for few numbers and many runs, and otherwise.
_LITTLE, _MUCH = 1e-8, 0.2
#: Digits of a number that are looked for in what a program writes.
_DIGITS = 9


def black_box(
    run: Callable[[int], FloatArray],
    guarantee: Guarantee,
    *,
    releases: SupportsIndex = 200,
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

    Examples
    --------
    A program whose noise is too small for what it claims:

    >>> import numpy as np, privasso as pv
    >>> from privasso.attacks import black_box
    >>> from privasso.privacy import Terms
    >>> terms = Terms(fit_intercept=False, seeded=False, n_rows=50)
    >>> claim = pv.LabelDP(1.0, 1e-6, y_bounds=(0, 1)).guarantee(terms)
    >>> rng = np.random.default_rng(0)
    >>> black_box(lambda world: world + 0.5 * rng.standard_normal(1), claim).passed
    False
    >>> black_box(lambda world: world + 4.2 * rng.standard_normal(1), claim).passed
    True
    """
    count = integer("releases", releases, minimum=20)
    level = probability("level", level)
    half = count // 2
    learning = [np.array([_vector(run(world)) for _ in range(half)]) for world in (1, 0)]
    direction, centre, scale = _learned(*learning)

    def score(values: FloatArray) -> FloatArray:
        return (values - centre) / scale @ direction

    into, out = (score(values) for values in learning)
    # Sets that hold few of one side and many of the other, chosen before the second half is seen.
    edges = np.quantile(np.concatenate([out, -into]), [0.5, 0.8, 0.9, 0.97, 1.0])
    tested = (
        score(np.array([_vector(run(world)) for _ in range(count - half)])) for world in (1, 0)
    )
    evidence = Evidence(*tested, thresholds=np.unique(edges), level=level)
    closest = None if guarantee.loss is None else evidence.closest(guarantee.loss)
    return Audit(
        guarantee=guarantee,
        findings=(Finding(name, evidence, closest),),
        knowledge=_KNOWLEDGE,
        releases=count - half,
        level=level,
        shape=shape,
    )


def traces(written: Iterable[str], secrets: FloatArray) -> list[float]:
    """Return the secret numbers whose leading digits stand in any of the texts.

    Use secrets with many digits, such as labels drawn at random: numbers like 0.5 occur by chance.

    Examples
    --------
    >>> traces(['{"mean": 0.7310585786300049}', "nothing"], np.array([0.73105857863, 0.25]))
    [0.73105857863]
    """
    found = set()
    for text in written:
        for number in re.findall(r"\d+\.?\d*(?:[eE][-+]?\d+)?", text):
            found.add(_digits(float(number)))
    return [float(x) for x in np.asarray(secrets).ravel() if _digits(abs(float(x))) in found]


def _digits(number: float) -> str:
    return f"{number:.{_DIGITS - 1}e}"


def _vector(values: FloatArray) -> FloatArray:
    found = np.asarray(values, dtype=np.float64).ravel()
    return np.nan_to_num(found, nan=0.0, posinf=1e300, neginf=-1e300)


def _learned(into: FloatArray, out: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Direction, centre and scale of a linear discriminant with a regularised covariance.

    Numbers that never change within a data set but differ between the two have a tiny scale, so
    that they decide the score.
    """
    means = into.mean(axis=0), out.mean(axis=0)
    spread = np.sqrt(0.5 * (into.var(axis=0) + out.var(axis=0)))
    gap = np.abs(means[0] - means[1])
    size = np.abs(means[0]) + np.abs(means[1])
    scale = np.maximum(np.maximum(spread, 1e-3 * gap), np.maximum(1e-12 * size, 1e-300))
    centre = 0.5 * (means[0] + means[1])
    white = [(values - mean) / scale for values, mean in zip((into, out), means, strict=True)]
    both = np.vstack(white)
    covariance = both.T @ both / len(both)
    # A combination of numbers without noise must be found, if there are runs enough to find it.
    weight = _LITTLE if 4 * len(covariance) <= len(into) else _MUCH
    covariance = (1.0 - weight) * covariance + weight * np.eye(len(covariance))
    direction = np.linalg.solve(covariance, (means[0] - means[1]) / scale)
    return direction, centre, scale
