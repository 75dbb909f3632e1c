"""Two neighbouring data sets, releases from each, and the best test between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

#: Releases from a data set: how many, and a generator or None for the operating system's entropy.
Draw = Callable[[int, "np.random.Generator | None"], FloatArray]


class World:
    """One data set, from which releases are drawn once and kept for all tests that need them.

    Releases are vectors that the guarantee covers; data and noise stay inside `draw`.
    """

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._kept: FloatArray | None = None

    def releases(self, count: int, rng: np.random.Generator | None) -> FloatArray:
        """The first `count` releases, one per row; further ones are drawn where there are fewer."""
        kept = self._kept
        have = 0 if kept is None else len(kept)
        if have < count:
            more = self._draw(count - have, rng)
            kept = more if kept is None else np.vstack([kept, more])
            self._kept = kept
        assert kept is not None
        return kept[:count]


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
        Log likelihood ratio of "in" against "out" for each release, or another score.
    """

    name: str
    into: World = field(repr=False)
    out: World = field(repr=False)
    score: Callable[[FloatArray], FloatArray] = field(repr=False)
