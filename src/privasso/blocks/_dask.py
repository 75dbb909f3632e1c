"""Blocks of rows on Dask: its collections, or files that its workers read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from privasso._covariates import refuse_columns
from privasso._types import Foreign
from privasso._validation import LABELS_REFUSED, attempt, numbers_only, real_labels
from privasso.blocks._files import FilePart
from privasso.blocks._part import (
    Chunk,
    Engine,
    Part,
    Reader,
    State,
    Sums,
    Task,
    WorkersLostError,
    added,
    sums_of,
)
from privasso.blocks._row_blocks import RowBlocks
from privasso.blocks._sources import is_dask

#: A part, or delayed covariates and labels.
Piece: TypeAlias = Foreign

#: Entries that one task should at least read, and tasks that there should be at least.
_ENTRIES, _TASKS = 1 << 23, 16
#: Partial sums that one task adds up.
_FAN_IN = 8
_NUMBERS = "fiub"
_NOT_COMPUTED = (
    "the collection of Dask could not be computed, so nothing was released; call compute() on it "
    "to see why, which is not shown here because it may quote data"
)
_MISSING = "fits on Dask need dask and distributed; install privasso[dask]"


class _FromTaskError(Exception):
    """What a task of ours raised, which quotes no data; other errors come from other code."""


class Dask(Engine):
    """Whatever scheduler Dask uses at the moment: a cluster if there is a client, else threads.

    Parameters
    ----------
    parts : sequence
        Parts, or pairs of delayed covariates and labels.
    client : distributed.Client, optional
        The cluster to use; by default that of the process.
    """

    def __init__(self, parts: Sequence[Piece], n_rows: int, client: Foreign = None) -> None:
        self.parts, self.n_rows, self.client = tuple(parts), n_rows, client

    def sum(self, task: Task[State], state: State, read: Reader) -> Sums:
        """Send the task to the parts, and add up there what comes of it."""
        from dask.delayed import delayed

        known = delayed((task, state), pure=False, traverse=False)
        one = delayed(_on_part, pure=False)
        plus = delayed(added, pure=False)
        level = [one(part, known) for part in self.parts]
        while len(level) > 1:
            level = [plus(level[k : k + _FAN_IN]) for k in range(0, len(level), _FAN_IN)]
        found = self._computed(level[0])
        read(self.n_rows)
        return found

    def chunks(self) -> Iterator[Chunk]:
        """Bring one part after the other here."""
        from dask.delayed import delayed

        here = delayed(_rows_of, pure=False)
        for part in self.parts:
            yield from self._computed(here(part))

    def select(self, columns: np.ndarray) -> Dask:
        """Parts with some of the columns; files are read for these alone."""
        return Dask([_selected(part, columns) for part in self.parts], self.n_rows, self.client)

    def _computed(self, root: Foreign) -> Foreign:
        try:
            if self.client is not None:
                return self.client.compute(root).result()
            return root.compute()
        except Exception as error:
            failure = _failure(error)
        raise failure  # here, so that an error that may quote data is not even its context


def _failure(error: Exception) -> Exception:
    """What to raise where Dask raised this."""
    if isinstance(error, _FromTaskError):
        return error.args[0]
    # Named by hand: distributed need not be installed for Dask's own threads.
    if type(error).__name__ in ("KilledWorker", "CommClosedError", "FutureCancelledError"):
        return WorkersLostError(
            "the workers that read the data died again and again, so nothing was released; see the "
            "logs of the cluster, and try more memory per worker or smaller partitions"
        )
    return WorkersLostError(_NOT_COMPUTED)


def _selected(part: Piece, columns: np.ndarray) -> Piece:
    if isinstance(part, Part):
        return part.select(columns)
    from dask.delayed import delayed

    X, y = part
    return delayed(_taken, pure=False)(X, columns), y


def _taken(X: ArrayLike, columns: np.ndarray) -> np.ndarray:
    return np.asarray(X)[:, columns]


def _on_part(part: Piece, known: tuple[Task[State], State]) -> Sums:
    """The sums over one part, on the worker that holds it or reads it."""
    task, state = known
    try:
        if isinstance(part, Part):
            return sums_of(task, part, state)
        return task(iter([_chunk(*part)]), state)
    except Exception as error:
        raise _FromTaskError(error) from None


def _rows_of(part: Piece) -> list[Chunk]:
    """All rows of one part."""
    try:
        return list(part.chunks()) if isinstance(part, Part) else [_chunk(*part)]
    except Exception as error:
        raise _FromTaskError(error) from None


def _chunk(X: ArrayLike, y: ArrayLike) -> Chunk:
    """A block of a collection as numbers."""
    return np.asarray(X), np.asarray(y, dtype=np.float64).reshape(-1)


def on_dask(blocks: RowBlocks, client: Foreign = None) -> RowBlocks:
    """Blocks of files, read by the workers of Dask, which must see the files under the same paths.

    Parameters
    ----------
    blocks : RowBlocks
        From `open_files`.
    client : distributed.Client, optional
        The cluster.
    """
    parts = getattr(blocks.engine, "parts", ())
    if not parts or not all(isinstance(part, FilePart) for part in parts):
        raise ValueError("only blocks of files can be read by the workers of Dask")
    m, n = blocks.shape
    grouped = _grouped(parts, max(_TASKS, m * n // _ENTRIES))
    return RowBlocks(blocks.shape, Dask(grouped, m, client), blocks.names, blocks.target)


class Group(Part):
    """Several parts that one task reads."""

    def __init__(self, parts: tuple[Part, ...]) -> None:
        self.parts, self.rows = parts, sum(part.rows for part in parts)

    def select(self, columns: np.ndarray) -> Group:
        """The same group of parts with some of the columns."""
        return Group(tuple(part.select(columns) for part in self.parts))

    def chunks(self) -> Iterator[Chunk]:
        """Read one part after the other."""
        for part in self.parts:
            yield from part.chunks()


def _grouped(parts: Sequence[Part], count: int) -> list[Group]:
    """So many groups of neighbouring parts, with about as many rows each."""
    total, seen = sum(part.rows for part in parts), 0
    groups: dict[int, list[Part]] = {}
    for part in parts:
        groups.setdefault(seen * count // total, []).append(part)
        seen += part.rows
    return [Group(tuple(group)) for group in groups.values()]


def of_dask(X: Foreign, y: Foreign) -> RowBlocks:
    """Blocks of a `dask.array` or `dask.dataframe`; labels are alike, or the name of a column.

    The number of rows is found first, if Dask does not know it: it is public.

    Parameters
    ----------
    X : dask array or dask data frame
        Covariates. If `y` is a name, the frame holds the labels too.
    y : dask array, dask series, array_like or str
        Labels.
    """
    try:
        from dask.base import optimize
    except ImportError:
        raise ValueError(_MISSING) from None
    names, target = None, None
    if hasattr(X, "columns"):
        if isinstance(y, str):
            if y not in X.columns:
                raise ValueError(f"the data frame has no column {y!r}")
            names, target = tuple(str(name) for name in X.columns if name != y), y
            if X.dtypes[y].kind not in _NUMBERS:
                raise ValueError(LABELS_REFUSED)
            # One array, so that covariates and labels are cut alike.
            X = X[[*(name for name in X.columns if name != y), y]]
        else:
            names = tuple(str(name) for name in X.columns)
        refuse_columns([str(name) for name, one in X.dtypes.items() if one.kind not in _NUMBERS])
        X = _array(X.astype(np.float64))  # of all types that hold numbers
        if target is not None:
            X, y = X[:, :-1], X[:, -1]
    X = _array(X)
    numbers_only("X", np.empty(0, X.dtype))
    if X.ndim != 2:
        raise ValueError(f"X must have rows and columns, not {X.ndim} dimensions")
    X = X.rechunk({1: -1})
    y = _array(y) if is_dask(y) else real_labels(y, X.shape[0])
    if y.dtype.kind not in _NUMBERS:
        raise ValueError(LABELS_REFUSED)
    if y.shape != X.shape[:1]:
        raise ValueError(f"X and y do not fit together: shapes {X.shape} and {y.shape}")
    # Optimised here once, so that a task reads just the blocks that it needs.
    if is_dask(y):
        X, y = optimize(X, y.rechunk((X.chunks[0],)))
        labels = y.to_delayed().tolist()
    else:
        # Inside of the tasks: results of tasks may be moved to a disk by workers, tasks are not.
        (X,) = optimize(X)
        labels = np.split(y, np.cumsum(X.chunks[0])[:-1])
    pairs = list(zip(X.to_delayed()[:, 0].tolist(), labels, strict=True))
    shape = int(X.shape[0]), int(X.shape[1])
    return RowBlocks(shape, Dask(pairs, shape[0]), names, target)


def _array(collection: Foreign) -> Foreign:
    """An array of Dask with known numbers of rows."""
    found = collection.to_dask_array() if hasattr(collection, "to_dask_array") else collection
    unknown = any(np.isnan(size) for size in found.shape)
    known = attempt(found.compute_chunk_sizes) if unknown else found
    if known is None:
        raise WorkersLostError(_NOT_COMPUTED)
    return known
