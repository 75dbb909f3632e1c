"""Worker processes that take one task at a time, and computing on one thread.

Each worker has its own pipe. If the parent dies, the pipe closes and the worker ends after its
current task. If a worker dies, the parent knows which task it had. When the parent leaves the loop,
for any reason, it ends the workers.
"""

from __future__ import annotations

import multiprocessing as mp
import os
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import TypeVar, cast

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


class WorkerError(RuntimeError):
    """A task failed, or the process that computed it died; `task` is the index of the task."""

    def __init__(self, task: int, message: str) -> None:
        super().__init__(message)
        self.task = task


def in_workers(function: Callable[[Task], None], tasks: Sequence[Task], jobs: int) -> Iterator[int]:
    """Call ``function(task)`` for each task in `jobs` processes; yield indices as they finish.

    The function and the tasks are pickled. The function must store its result itself.
    """
    context = mp.get_context("spawn")
    waiting = iter(range(len(tasks)))
    workers: dict[Connection, BaseProcess] = {}
    busy: dict[Connection, int] = {}

    def give(pipe: Connection) -> None:
        index = next(waiting, None)
        if index is not None:
            busy[pipe] = index
            pipe.send(tasks[index])

    try:
        for _ in range(min(jobs, len(tasks))):
            pipe, far_end = context.Pipe()
            worker = context.Process(target=_serve, args=(far_end, function), daemon=True)
            worker.start()
            far_end.close()  # else the pipe would stay open when the worker dies
            workers[pipe] = worker
            give(pipe)
        while busy:
            for pipe in cast(list[Connection], wait(list(busy))):
                index = busy.pop(pipe)
                try:
                    failure = pipe.recv()
                except EOFError:
                    workers[pipe].join()
                    code = workers[pipe].exitcode
                    raise WorkerError(index, f"its process died with exit code {code}") from None
                if failure is not None:
                    raise WorkerError(index, failure)
                give(pipe)
                yield index
    finally:
        for pipe, worker in workers.items():
            worker.terminate()
            worker.join()
            pipe.close()


def _serve(pipe: Connection, function: Callable[[Task], None]) -> None:
    """Compute tasks until the pipe closes; answer each with None, or with the error message."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it too, and ends this process
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        try:
            function(task)
            answer = None
        except Exception:
            answer = traceback.format_exc()
        try:
            pipe.send(answer)
        except BrokenPipeError:
            return
