"""Public rules by which each record becomes another one before it is used."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from privasso.blocks._part import Chunk, Sums, Task, taken


class Change(ABC):
    """A rule that reads each record by itself, and keeps their number. It can be pickled."""

    #: How many columns there are afterwards; None where covariates stay as they are.
    n_columns: int | None = None

    @abstractmethod
    def __call__(self, X: np.ndarray, y: np.ndarray) -> Chunk:
        """What covariates and labels become."""


@dataclass(frozen=True, eq=False)
class LabelsAsColumn(Change):
    """Labels are the only covariate, beside themselves."""

    n_columns = 1

    def __call__(self, X: np.ndarray, y: np.ndarray) -> Chunk:
        """They are missing where labels are."""
        return np.asarray(y, dtype=np.float64)[:, None], y


@dataclass(frozen=True, eq=False)
class LabelsWithin(Change):
    """Labels from the middle of a range, as parts of it; those outside are moved to its ends.

    Attributes
    ----------
    low, high : float
        Ends of the range, which become −½ and ½.
    """

    low: float
    high: float

    @property
    def middle(self) -> float:
        """Between the ends."""
        return 0.5 * self.low + 0.5 * self.high

    @property
    def width(self) -> float:
        """From one end to the other."""
        return self.high - self.low

    def __call__(self, X: np.ndarray, y: np.ndarray) -> Chunk:
        """Missing labels stay missing."""
        within = np.clip(np.asarray(y, dtype=np.float64), self.low, self.high)
        return X, (within - self.middle) / self.width


@dataclass(frozen=True, eq=False)
class SomeOf(Change):
    """Some of the columns."""

    columns: np.ndarray = field(repr=False)

    def __call__(self, X: np.ndarray, y: np.ndarray) -> Chunk:
        """Labels stay."""
        return taken(X, self.columns), y


def changed(chunks: Iterable[Chunk], changes: Sequence[Change]) -> Iterator[Chunk]:
    """What chunks become, one change after the other."""
    for X, y in chunks:
        for change in changes:
            X, y = change(X, y)
        yield X, y


@dataclass(frozen=True, eq=False)
class Changed:
    """A task on rows after some changes."""

    task: Task
    changes: tuple[Change, ...]

    def __call__(self, chunks: Iterable[Chunk], state: object) -> Sums:
        return self.task(changed(chunks, self.changes), state)
