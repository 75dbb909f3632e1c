"""A checksum of rows that does not depend on their order, nor on how a table is cut."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numba import njit

from privasso.blocks._part import Chunk, Sums, Task

#: The name of what `Marked` adds to the sums of a task.
SEEN = "seen"

#: What the bits of a number in the first column are multiplied by; each column has its own factor.
_FACTOR = -7046029254386353131


@dataclass(frozen=True, eq=False)
class Marked:
    """A task whose sums tell how many rows it saw, and checksums of their labels and of all.

    Entries that are in memory stay as they are, and have none.
    """

    task: Task
    entries: bool

    def __call__(self, chunks: Iterable[Chunk], state: object) -> Sums:
        """Return the sums of the task with those."""
        seen = np.zeros(3, dtype=np.int64)

        def noted() -> Iterator[Chunk]:
            for X, y in chunks:
                labels = mark(np.empty((len(y), 0)), y)
                found = len(y), labels, mark(X, y) if self.entries else 0
                np.add(seen, np.array(found), out=seen)  # wraps around
                yield X, y

        return {**self.task(noted(), state), SEEN: seen}


def mark(X: np.ndarray, y: np.ndarray) -> np.int64:
    """The sum over rows of a number that all entries of a row and its label decide.

    Sums of the parts of a table add up to the same for any cut and order of its rows.
    """
    bits = np.ascontiguousarray(y, dtype=np.float64).view(np.int64)
    marks, step = bits.copy(), max(1, (1 << 18) // max(X.shape[1], 1))
    for start in range(0, len(y), step):
        rows = slice(start, start + step)
        block = np.asarray(X[rows], dtype=np.float64)
        by_columns = block.strides[0] < block.strides[1]
        flat = np.ascontiguousarray(block.T if by_columns else block).view(np.int64)
        (_add_columns if by_columns else _add_rows)(flat, marks[rows])
    return _mixed(marks)


@njit(nogil=True, cache=True)
def _add_rows(bits, marks):  # pragma: no cover
    for i in range(marks.size):
        total = np.int64(0)
        for j in range(bits.shape[1]):
            total += (bits[i, j] ^ (bits[i, j] >> 29)) * (np.int64(_FACTOR) * (2 * j + 1))
        marks[i] += total


@njit(nogil=True, cache=True)
def _add_columns(bits, marks):  # pragma: no cover
    for j in range(bits.shape[0]):
        factor = np.int64(_FACTOR) * (2 * j + 1)
        for i in range(marks.size):
            marks[i] += (bits[j, i] ^ (bits[j, i] >> 29)) * factor


@njit(nogil=True, cache=True)
def _mixed(marks):  # pragma: no cover
    total = np.int64(0)
    for i in range(marks.size):
        h = (marks[i] ^ (marks[i] >> 31)) * np.int64(1099511628211)
        h = (h ^ (h >> 29)) * np.int64(_FACTOR)
        total += h ^ (h >> 32)
    return total
