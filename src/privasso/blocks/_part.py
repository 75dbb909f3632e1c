"""Parts of a table that are read by themselves, where they are summed, and checksums of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

import numpy as np
from numba import njit

from privasso._threads import n_threads
from privasso._types import Matrix

#: Covariates of shape (m, N) and labels of shape (m,).
Chunk: TypeAlias = tuple[np.ndarray, np.ndarray]
#: Integers by name; those of two parts are added by name, see `added`.
Sums: TypeAlias = dict[str, np.ndarray]
#: What is known so far, such as coefficients.
State = TypeVar("State")
#: Returns sums over the rows of some chunks, given that.
Task: TypeAlias = Callable[[Iterable[Chunk], State], Sums]


#: What is said where two passes did not see the same rows.
_CHANGED = (
    "the data changed between two passes over them, so nothing was released; fit again when they "
    "are complete"
)


class DataChangedError(RuntimeError):
    """The data are not what they were when the fit began; nothing was released."""

    def __init__(self, message: str = _CHANGED) -> None:
        super().__init__(message)


class WorkersLostError(RuntimeError):
    """The workers of a cluster were lost; nothing was released."""


class Part(ABC):
    """Some rows of a table. It can be pickled, and reads its rows where it is.

    `held` are the bytes that reading it takes beside the chunk that is at hand.
    """

    rows: int
    held: int = 0
    #: Whether its rows are at hand at no cost, and stay as they are.
    in_memory: bool = False

    @abstractmethod
    def chunks(self) -> Iterator[Chunk]:
        """Read the rows, some at a time."""

    def select(self, columns: np.ndarray) -> Part:
        """The same rows with some of their columns."""
        return SomeColumns(self, columns)


class SomeColumns(Part):
    """A part of which some columns are used, all of which are read."""

    def __init__(self, part: Part, columns: np.ndarray) -> None:
        self.part, self.columns = part, columns
        self.rows, self.held, self.in_memory = part.rows, part.held, part.in_memory

    def chunks(self) -> Iterator[Chunk]:
        """Read the rows, and take the columns."""
        for X, y in self.part.chunks():
            yield taken(X, self.columns), y


class ArrayPart(Part):
    """Rows of arrays in memory, or in files that are mapped to it.

    Sparse matrices, and genotypes of many variants, are handed on as they are.
    """

    def __init__(self, X: Matrix, y: np.ndarray) -> None:
        self.X, self.y, self.rows = X, y, len(y)
        base = X  # a file that is mapped to memory is not in memory
        while base is not None and not isinstance(base, np.memmap):
            base = getattr(base, "base", None)
        self.in_memory = base is None

    def chunks(self) -> Iterator[Chunk]:
        """All rows at once, without a copy."""
        yield self.X, self.y


class View(Protocol):
    """What records become, each by itself, before anything is computed from them."""

    @property
    def n_columns(self) -> int:
        """Entries of a row."""
        ...

    def __call__(
        self, X: np.ndarray, y: np.ndarray, start: int, stop: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows and labels of the records from one place of a chunk to another."""
        ...


def taken(X: Matrix, columns: np.ndarray | list[int]) -> np.ndarray:
    """Some columns as an array; those of a sparse matrix are filled.

    >>> import scipy.sparse as sp
    >>> taken(sp.csr_array(np.eye(3)), np.array([2])).tolist()
    [[0.0], [0.0], [1.0]]
    """
    some = X[:, columns]
    return np.asarray(some) if isinstance(some, np.ndarray) else some.toarray()


def sums_of(task: Task[State], part: Part, state: State) -> Sums:
    """The sums over one part."""
    return task(part.chunks(), state)


def added(parts: Iterable[Sums]) -> Sums:
    """Sums by name. A name that a part does not have is zero there.

    Of numbers whose name begins with "largest" the largest are kept, which does not depend on
    their order either.

    >>> found = added([{"a": np.array([1])}, {"a": np.array([2]), "b": np.array([5])}])
    >>> found["a"].tolist(), found["b"].tolist()
    ([3], [5])
    >>> added([{"largest": np.array([1])}, {"largest": np.array([7])}])["largest"].tolist()
    [7]
    """
    total: Sums = {}
    for part in parts:
        for name, value in part.items():
            if not np.issubdtype(value.dtype, np.integer):
                raise TypeError("sums over blocks must be integers: others depend on their order")
            if name not in total:
                total[name] = value
            elif name.startswith("largest"):
                total[name] = np.maximum(total[name], value)
            else:
                total[name] = total[name] + value
    return total


#: Told how many rows were read.
Reader = Callable[[int], None]


class Engine(ABC):
    """Applies a task to all parts and adds up what it returns.

    `held` are the bytes that reading one part takes at most, beside the chunk that is at hand.
    """

    held: int = 0
    #: Whether all rows are at hand at no cost, and stay as they are.
    in_memory: bool = False

    @abstractmethod
    def sum(self, task: Task[State], state: State, read: Reader) -> Sums:
        """Return the sums over all parts; each part counts once, however often it was tried."""

    @abstractmethod
    def chunks(self) -> Iterator[Chunk]:
        """Read all rows in their order."""

    @abstractmethod
    def select(self, columns: np.ndarray) -> Engine:
        """Return an engine for some of the columns of the same parts."""


class Local(Engine):
    """Some threads of this process.

    Parameters
    ----------
    parts : sequence of Part
    jobs : int, optional
        Threads; by default as many as this process may use.
    """

    def __init__(self, parts: Sequence[Part], jobs: int | None = None) -> None:
        self.parts = tuple(parts)
        self.held = max((part.held for part in self.parts), default=0)
        self.in_memory = all(part.in_memory for part in self.parts)
        self.jobs = min(n_threads() if jobs is None else jobs, max(1, len(self.parts)))

    def sum(self, task: Task[State], state: State, read: Reader) -> Sums:
        """Go through the parts in order, a few at a time."""
        if self.jobs == 1:
            total: Sums = {}
            for part in self.parts:
                total = added([total, sums_of(task, part, state)])
                read(part.rows)
            return total
        return self._in_threads(task, state, read)

    def chunks(self) -> Iterator[Chunk]:
        """Read one part after the other."""
        for part in self.parts:
            yield from part.chunks()

    def select(self, columns: np.ndarray) -> Local:
        """The same threads, whose parts have some of the columns."""
        return Local([part.select(columns) for part in self.parts], self.jobs)

    def _in_threads(self, task: Task[State], state: State, read: Reader) -> Sums:
        waiting, total = deque(self.parts), {}
        pool = ThreadPoolExecutor(self.jobs, thread_name_prefix="privasso")
        try:
            running: dict[Future[Sums], int] = {}
            while waiting or running:
                while waiting and len(running) < self.jobs:
                    part = waiting.popleft()
                    running[pool.submit(sums_of, task, part, state)] = part.rows
                for done in wait(running, return_when=FIRST_COMPLETED).done:
                    rows = running.pop(done)
                    total = added([total, done.result()])
                    read(rows)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        return total


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
