"""Two neighbouring data sets, releases from each, and the best test between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

#: Releases from a data set: how many, and a generator or None for the operating system's entropy.
Draw = Callable[[int, "np.random.Generator | None"], Any]
#: A score of each release, large if it speaks for "in".
Score = Callable[[Any], FloatArray]


class World:
    """One data set, from which releases are drawn.

    Releases are vectors or transcripts, which the guarantee covers; data and noise stay inside
    `draw`.
    """

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._kept: Any = None

    def releases(self, count: int, rng: np.random.Generator | None) -> Any:
        """The first lot of releases; it is kept for all pairs with this data set."""
        if self._kept is None:
            self._kept = self._draw(count, rng)
        assert len(self._kept) == count
        return self._kept

    def fresh(self, count: int, rng: np.random.Generator | None) -> Any:
        """Releases that nothing was learned from or chosen by."""
        return self._draw(count, rng)


@dataclass(frozen=True, eq=False)
class Pair:
    """What an attack is about.

    Attributes
    ----------
    name : str
        What differs, in words.
    into, out : World
        The data set and its neighbour.
    score : callable
        Log likelihood ratio of "in" against "out" for each release.
    """

    name: str
    into: World = field(repr=False)
    out: World = field(repr=False)
    score: Score = field(repr=False)
