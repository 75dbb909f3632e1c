"""A few processes that take one task at a time, and leave nothing behind.

Each worker has a pipe of its own. If the parent dies, however suddenly, the pipe closes and the
worker ends after its task; if a worker dies, the parent knows which task it had; when the parent
leaves the loop, for whatever reason, the workers are ended.
"""

from __future__ import annotations

import multiprocessing as mp
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, cast


class WorkerError(RuntimeError):
    """A task failed, or the process that had it died; `task` is its index."""

    def __init__(self, task: int, message: str) -> None:
        super().__init__(message)
        self.task = task


def in_workers(function: Callable[[Any], None], tasks: Sequence[Any], jobs: int) -> Iterator[int]:
    """Call ``function(task)`` for each task in `jobs` processes; yield indices as they finish.

    The function and the tasks travel by pickle; results are for the function to write down.
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


def _serve(pipe: Connection, function: Callable[[Any], None]) -> None:
    """Take tasks until the pipe closes; answer with None, or with what went wrong."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it too, and ends this process
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
