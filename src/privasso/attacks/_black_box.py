"""An attack on any program that fits: it sees nothing but what comes out.

The program is run on a data set and on its neighbour. A linear or a quadratic score is learned from
the first half of the runs, with a set of outcomes and a point of the claim, and tested on the
second half. It is weaker than the likelihood ratio, but it needs no knowledge of the mechanism, so
that it finds mistakes that the analysis would share with the program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from privasso._validation import integer, probability
from privasso.attacks._evidence import Evidence
from privasso.attacks._learned import crossed, learned_score
from privasso.attacks._result import Audit, Finding
from privasso.attacks._trial import most_promising
from privasso.privacy import Guarantee

FloatArray = NDArray[np.float64]

_KNOWLEDGE = (
    "The attacker sees what the program writes, for a data set and for a neighbour of it, and has "
    "learned from earlier runs on both how they differ: each release gets a score."
)
#: Digits of a number that are looked for in what a program writes.
_DIGITS = 9


def black_box(
    run: Callable[[int], FloatArray],
    guarantee: Guarantee,
    *,
    releases: SupportsIndex = 400,
    level: float = 0.01,
    name: str = "one record",
    shape: tuple[int, int] = (0, 0),
    progress: Callable[[int, int], None] | None = None,
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
    progress : callable, optional
        Called with the number of runs done and in all.

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
    half, done = count // 2, 0

    def lot(world: int, size: int) -> FloatArray:
        nonlocal done
        found = []
        for _ in range(size):
            found.append(_vector(run(world)))
            done += 1
            if progress is not None:
                progress(done, 2 * count)
        return np.array(found)

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


def traces(written: Iterable[str], secrets: FloatArray) -> list[float]:
    """Return the secret numbers whose leading digits stand in any of the texts.

    Use secrets with many digits, such as labels drawn at random: numbers like 0.5 occur by chance.
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
