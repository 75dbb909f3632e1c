"""Where the parts of a table are read and their sums are made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from privasso._threads import n_threads
from privasso.blocks._part import Chunk, Part, Sums, Task, added, sums_of

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
    def sum(self, task: Task, state: Any, read: Reader) -> Sums:
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

    def sum(self, task: Task, state: Any, read: Reader) -> Sums:
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

    def _in_threads(self, task: Task, state: Any, read: Reader) -> Sums:
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
