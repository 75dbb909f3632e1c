"""`RowBlocks`: a table in blocks of rows, wherever they are, with one verb."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from privasso._files import fits_memory
from privasso._types import Matrix
from privasso._validation import numbers_only, real_labels
from privasso.blocks._changes import Change, Changed, SomeOf, changed
from privasso.blocks._part import (
    SEEN,
    ArrayPart,
    Chunk,
    DataChangedError,
    Engine,
    Local,
    Marked,
    State,
    Sums,
    Task,
    View,
    mark,
)

#: Rows times columns of a part of an array, and of rows that are viewed at a time.
_PART, _VIEW = 1 << 22, 1 << 16


@dataclass(frozen=True)
class Progress:
    """How far a fit has come.

    Attributes
    ----------
    passes : int
        Passes over the table that were finished.
    rows, n_rows : int
        Rows read in the present pass, and all rows.
    seconds : float
        Since this pass began.
    """

    passes: int
    rows: int
    n_rows: int
    seconds: float


@dataclass(frozen=True, eq=False)
class RowBlocks:
    """Covariates and labels in blocks of rows, in memory, in files, or on other machines.

    Nothing that uses it knows where the blocks are. It can do one thing: apply a function to each
    block, where the block is, and add up the integers that come back. Rows and labels stay where
    they are. Integers add up to the same in any order, so that results do not depend on how the
    rows were cut into blocks, in which order these come, or how many workers there are.

    Attributes
    ----------
    shape : (int, int)
        Rows and columns of the covariates.
    engine : Engine
        Where the blocks are and who reads them.
    names : tuple of str or None
        Names of the covariates.
    target : str or None
        Name of the labels.
    progress : callable or None
        Told a `Progress` now and then.
    streamed : bool
        Whether fits that can do so leave the table where it is, however small it is.
    changes : tuple of Change
        What records become before anything else is done with them.
    """

    shape: tuple[int, int]
    engine: Engine
    names: tuple[str, ...] | None = None
    target: str | None = None
    progress: Callable[[Progress], None] | None = None
    streamed: bool = False
    changes: tuple[Change, ...] = ()
    _passes: list[int] = field(default_factory=lambda: [0], repr=False)
    _labels: list[int] = field(default_factory=list, repr=False)
    _marks: list[int] = field(default_factory=list, repr=False)
    _viewed: list[tuple[View, RowBlocks]] = field(default_factory=list, repr=False)
    _changed: list[RowBlocks] = field(default_factory=list, repr=False)

    @staticmethod
    def of_arrays(
        X: Matrix,
        y: np.ndarray,
        *,
        names: Sequence[str] | None = None,
        n_parts: int | None = None,
        jobs: int | None = None,
    ) -> RowBlocks:
        """Blocks of arrays, or of `numpy.memmap`, which need not fit in memory.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (M, N)
            Covariates; a sparse matrix is one block, which only some tasks can read.
        y : ndarray of shape (M,)
            Labels.
        names : sequence of str, optional
            Names of the covariates.
        n_parts : int, optional
            Number of blocks; by default one per four million entries.
        jobs : int, optional
            Threads that read them.
        """
        cut = isinstance(X, np.ndarray)
        if cut:
            numbers_only("X", X)
        y = real_labels(y)
        if len(X.shape) != 2 or y.shape != X.shape[:1]:
            raise ValueError(f"X and y do not fit together: shapes {X.shape} and {y.shape}")
        m, n = X.shape
        if not cut:
            return RowBlocks((m, n), Local([ArrayPart(X, y)], jobs))
        count = n_parts or max(1, m * n // _PART)
        edges = [m * k // count for k in range(count + 1)]
        parts = [ArrayPart(X[lo:hi], y[lo:hi]) for lo, hi in pairwise(edges) if hi > lo]
        return RowBlocks((m, n), Local(parts, jobs), None if names is None else tuple(names))

    @property
    def held(self) -> int:
        """Bytes that each reader holds at most, beside the rows that are at hand."""
        return self.engine.held

    def sum(self, task: Task[State], state: State, columns: np.ndarray | None = None) -> Sums:
        """Apply the task to the chunks of every part, and return the sums over all parts.

        Parameters
        ----------
        task : callable
            ``task(chunks, state)`` returns integer arrays by name. It must be possible to pickle
            it, and it must depend on its arguments only, because a part may be tried again.
        state : object
            Whatever is public so far, such as coefficients.
        columns : ndarray of int, optional
            The task needs these columns only. The first pass reads all of them, so that what cannot
            be read is noticed before anything is drawn.
        """
        if columns is not None:
            if self._marks:
                return self.select(columns).sum(task, state)
            task = Changed(task, (SomeOf(columns),))
        task = Changed(task, self.changes) if self.changes else task
        start, rows = time.monotonic(), 0

        def read(count: int) -> None:
            nonlocal rows
            rows += count
            if self.progress is not None:
                passed = time.monotonic() - start
                self.progress(Progress(self._passes[0], rows, self.shape[0], passed))

        found = self.engine.sum(Marked(task, not self.engine.in_memory), state, read)
        self._passes[0] += 1
        rows, *seen = found.pop(SEEN).tolist()
        if rows != self.shape[0]:
            raise DataChangedError
        for known, now in zip((self._labels, self._marks), seen, strict=True):
            _compare(known, now)
        return found

    @property
    def identity(self) -> bytes:
        """A checksum of the labels, private like these; the rows must have been read before."""
        return str(self._labels[0]).encode()

    def select(self, columns: np.ndarray | None) -> RowBlocks:
        """Return the same rows with some of their columns; files are read for these alone.

        None stands for all columns.
        """
        if columns is None:
            return self
        names = None if self.names is None else tuple(self.names[j] for j in columns)
        found = replace(
            self, shape=(self.shape[0], len(columns)), names=names, _viewed=[], _changed=[]
        )
        if any(change.n_columns is not None for change in self.changes):
            return replace(found, changes=(*self.changes, SomeOf(columns)))
        return replace(found, engine=self.engine.select(columns), _marks=[])

    def changed(self, change: Change) -> RowBlocks:
        """Return the rows after a change; the same ones if it is the last that was asked for."""
        if not self._changed or self._changed[0].changes[-1] is not change:
            n, changes = change.n_columns, (*self.changes, change)
            found = replace(self, changes=changes, _viewed=[], _changed=[])
            found = found if n is None else replace(found, shape=(self.shape[0], n), names=None)
            self._changed[:] = [found]
        return self._changed[0]

    def viewed(self, view: View) -> tuple[RowBlocks, View | None]:
        """What a view makes of the rows, and the view itself if it is left to each pass.

        Rows in memory are viewed once, and the result is kept for the next question.
        """
        if not self.engine.in_memory:
            return self, view
        if not self._viewed or self._viewed[0][0] is not view:
            self._viewed[:] = [(view, RowBlocks.of_arrays(*self.gathered(view)))]
        return self._viewed[0][1], None

    def gathered(self, view: View | None = None) -> tuple[np.ndarray, np.ndarray]:
        """All rows and labels, as they are or as a view makes them, in memory."""
        view = _AsTheyAre(self.shape[1]) if view is None else view
        if not fits_memory(8 * self.shape[0] * view.n_columns):
            raise ValueError(
                f"this fit gathers {self.shape[0]} × {view.n_columns} numbers in memory, which is "
                "more than this machine has; choose some columns"
            )
        rows, labels = np.empty((self.shape[0], view.n_columns)), np.empty(self.shape[0])
        step, at, seen = max(1, _VIEW // max(view.n_columns, 1)), 0, np.zeros(1, dtype=np.int64)
        for X, y in changed(self._noted(seen), self.changes):
            for start in range(0, len(y), step):
                stop = min(start + step, len(y))
                if at + stop - start > len(labels):
                    raise DataChangedError
                into = slice(at, at + stop - start)
                rows[into], labels[into] = view(X, y, start, stop)
                at = into.stop
        if at != len(labels):
            raise DataChangedError
        _compare(self._labels, int(seen[0]))
        return rows, labels

    def _noted(self, seen: np.ndarray) -> Iterator[Chunk]:
        """All chunks, whose labels are added to a checksum."""
        for X, y in self.engine.chunks():
            seen += mark(np.empty((len(y), 0)), y)
            yield X, y

    def __matmul__(self, x: np.ndarray) -> np.ndarray:
        """``X @ x``, of which the columns where x is not zero are read."""
        used = np.flatnonzero(x)
        some = self.select(used)
        parts = [X @ x[used] for X, _ in changed(some.engine.chunks(), some.changes)]
        return np.concatenate(parts)

    @property
    def labels(self) -> np.ndarray:
        """All labels, in memory."""
        return self.select(np.empty(0, dtype=np.intp)).gathered()[1]

    def reporting_to(self, progress: Callable[[Progress], None] | None) -> RowBlocks:
        """Return the same blocks, which report their progress."""
        return replace(self, progress=progress, _passes=[0])


def _compare(known: list[int], now: int) -> None:
    """Compare a checksum with that of the pass before, or keep it for the next one."""
    known[:] = known or [now]
    if known[0] != now:
        raise DataChangedError


@dataclass(frozen=True)
class _AsTheyAre:
    """A view that changes nothing."""

    n_columns: int

    def __call__(
        self, X: np.ndarray, y: np.ndarray, start: int, stop: int
    ) -> tuple[np.ndarray, np.ndarray]:
        return X[start:stop], y[start:stop]
