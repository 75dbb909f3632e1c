"""Tables that `privasso fit` reads in blocks: several files, an engine, a limit on memory."""

from __future__ import annotations

import contextlib
import glob
import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from privasso._text import escaped
from privasso._threads import n_threads
from privasso.blocks import Progress, RowBlocks, on_dask, open_files
from privasso.cli._fit import FitSettings
from privasso.cli._fit_read import FitTable, declared, names_in, numbers_alone, target_of
from privasso.cli._progress import counting
from privasso.encoding import Encoding, NumberCode

if TYPE_CHECKING:
    from distributed import Client

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
#: Bytes that the program itself takes, those of a process that reads files for a thread, and those
#: per entry that is read: the file's numbers, ours, and a copy on the way.
_OWN, _READER, _PER_ENTRY = 38 * 10**7, 10**8, 32
#: Bytes per entry of a table that a fit of labels holds in memory: the table, its rows, and copies.
_IN_MEMORY = 48
#: Fewest and most entries that a thread reads at a time, and matrices of N × N that it holds.
_FEWEST, _MOST, _MATRICES = 1 << 16, 1 << 21, 4


def bytes_of(memory: str) -> int:
    """The number of bytes in words such as 4GB.

    >>> bytes_of("4GB"), bytes_of("500 MB"), bytes_of("1.5g")
    (4000000000, 500000000, 1500000000)
    """
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)i?B?\s*", memory, re.IGNORECASE)
    if found is None or float(found[1]) == 0.0:
        raise ValueError(f"--memory must be a size such as 4GB, not {memory!r}")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def reading_plan(
    memory: int | None, n_columns: int, threads: int, held: int = 0
) -> tuple[int, int]:
    """Threads, and entries that each reads at a time, within that many bytes.

    `held` are the bytes that each thread needs to read from a file at all.

    >>> reading_plan(None, 500, 2), reading_plan(6 * 10**8, 500, 2)
    ((2, 2097152), (1, 2097152))
    >>> reading_plan(4 * 10**8, 5, 2)
    Traceback (most recent call last):
    ...
    ValueError: --memory is too small for 5 columns; give at least 0.49GB
    """
    if memory is None:
        return threads, _MOST
    matrices = _MATRICES * 8 * n_columns**2 + _READER
    for jobs in range(threads, 0, -1):
        entries = (memory - _OWN - jobs * (matrices + held)) // (jobs * _PER_ENTRY)
        if entries >= _FEWEST:
            return jobs, min(entries, _MOST)
    least = (_OWN + matrices + held + _FEWEST * _PER_ENTRY) / 1e9
    remedy = f"give at least {least + 0.005:.2f}GB"
    if held > _FEWEST * _PER_ENTRY:
        remedy += (
            f", of which {held / 1e9:.2f}GB are for the largest row group or batch of the files, "
            "or write them again with fewer rows in each"
        )
    raise ValueError(f"--memory is too small for {n_columns} columns; {remedy}")


def files_of(settings: FitSettings) -> list[str]:
    """The files that the pattern names."""
    pattern = str(settings.source)
    found = sorted(glob.glob(pattern)) if not Path(pattern).exists() else [pattern]
    if not found:
        raise ValueError(f"no file matches {escaped(pattern)}")
    return found


@contextlib.contextmanager
def in_blocks(settings: FitSettings, *, labels: bool, quiet: bool) -> Iterator[FitTable]:
    """The table, of which blocks hold the labels; how far each pass has come is shown.

    Without `labels` nothing is read, and no engine is needed.
    """
    target, paths = target_of(settings), files_of(settings)
    columns = open_files(paths, target).names or ()
    features, exclude = names_in(settings.features, columns), names_in(settings.exclude, columns)
    blocks = open_files(paths, target, features=features, exclude=exclude or ())
    names, (n_rows, width) = blocks.names or (), blocks.shape
    encoding, dictionary, fill = Encoding(tuple(map(NumberCode, names))), None, None
    if settings.record_dp:
        dictionary = declared(settings, names)
        encoding, fill = dictionary.encoding, numbers_alone(dictionary)
        screen = settings.screened()
        width = min(width, screen) if isinstance(screen, int) else width
    memory = None if settings.memory is None else bytes_of(settings.memory)
    jobs, entries = reading_plan(memory, width + 1, n_threads(), blocks.held)
    blocks = open_files(paths, target, features=names, jobs=jobs, entries=entries, fill=fill)
    streamed = memory is not None and memory < _OWN + _IN_MEMORY * n_rows * len(names)
    engine = _on_engine(settings, blocks, jobs) if labels else contextlib.nullcontext(blocks)
    with engine as engaged, counting("Pass 1", quiet=quiet or not labels) as show:

        def report(done: Progress) -> None:
            show(done.rows, n_rows, f"Pass {done.passes + 1}")

        shown = replace(engaged, streamed=streamed).reporting_to(report)
        yield FitTable(shown, None, names, target, dictionary, encoding)


@contextlib.contextmanager
def _on_engine(settings: FitSettings, blocks: RowBlocks, jobs: int) -> Iterator[RowBlocks]:
    """The blocks on the engine that was asked for.

    Without a scheduler Dask works with threads of this process: nothing listens on a port, and
    nothing that it holds is moved to a disk.
    """
    if settings.engine != "dask":
        yield blocks
        return
    try:
        from dask import config
        from distributed import Client
    except ImportError:
        raise ValueError("--engine dask needs distributed; install privasso[dask]") from None
    if settings.scheduler is None:
        with config.set(scheduler="threads", num_workers=jobs):
            yield on_dask(blocks)
        return
    with _client(Client, settings.scheduler) as client:
        yield on_dask(blocks, client)


def _client(kind: type[Client], address: str) -> Client:
    """A client of the scheduler at the address."""
    if not address.startswith("tls://"):
        warnings.warn(
            f"{escaped(address)} is not encrypted: whoever can reach it can read the data and run "
            "programs on the workers; use a scheduler with an address tls://",
            stacklevel=2,
        )
    try:
        return kind(address, timeout="10s")
    except (OSError, ValueError, TypeError):
        raise ValueError(
            f"no scheduler of Dask answers at {escaped(address)}; one at tls:// needs the "
            "certificates in the settings of Dask, distributed.comm.tls"
        ) from None
