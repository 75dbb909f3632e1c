"""Worker processes, and computing on one thread."""

from __future__ import annotations

import multiprocessing as mp
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from itertools import islice
from threading import Thread
from typing import TypeVar

from privasso._blas import one_thread

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Task = TypeVar("Task")


@contextmanager
def serial() -> Iterator[None]:
    """A context in which this process, and those it starts, compute on one thread each.

    When a product is split over threads, the order of its additions, and with it the rounding,
    depends on their number. On one thread a result depends on neither the cores nor the jobs.
    """
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        with one_thread():
            yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def workers(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that end when this one does; Ctrl-C waits for what they are computing."""
    pool = ProcessPoolExecutor(jobs, mp.get_context("spawn"), initializer=_begin)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """Leave Ctrl-C to the parent, and end with it even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = mp.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def in_workers(
    function: Callable[[Task], None], tasks: Sequence[Task], jobs: int
) -> Iterator[tuple[Task, Callable[[], None]]]:
    """Call ``function(task)`` for each task in `jobs` processes; yield tasks as they finish.

    With each comes a call that raises what the function raised. The function and the tasks are
    pickled, and the function must store its result itself. With one job it runs in this process.
    """
    if jobs == 1 or len(tasks) < 2:
        yield from ((task, partial(function, task)) for task in tasks)
        return
    waiting = iter(tasks)
    with workers(jobs) as pool:
        running = {pool.submit(function, task): task for task in islice(waiting, jobs)}
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                task = running.pop(future)
                yield task, future.result
                running |= {pool.submit(function, new): new for new in islice(waiting, 1)}
