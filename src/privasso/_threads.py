"""How compiled kernels run: on threads that Ctrl-C can end, and where numba keeps them.

The kernels are memory-bound loops compiled with ``nogil=True``. A pool of plain threads runs them
in parallel: no second threading runtime is needed beside that of BLAS, and import starts nothing.

Python raises `KeyboardInterrupt` on the main thread only, and only between two steps of the
interpreter. So the main thread never runs a long piece of compiled code itself: it either does a
short piece or waits for another thread. All threads are daemons, because a process that was
interrupted must not wait for what they still do. What they do then has no effect. They are started
and waited for without `threading.Thread` and `threading.Event`: these are Python code, which Ctrl-C
may end in its middle with an error about a lock.

numba keeps kernels beside the source or in the user's folder for caches, and without both it
refuses to compile at all. Then they go to a new folder that no one else can write to, because
loading them runs code, and which is removed at the end: the next run compiles again.
"""

from __future__ import annotations

import _thread
import contextvars
import os
import sys
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TypeVar

#: Below this many matrix elements a pass is faster on one thread.
SERIAL_BELOW = 300_000
#: Most matrix elements of one piece, which takes some tenths of a second.
_LONGEST_PIECE = 200_000_000
#: Seconds after which a waiting thread looks whether it was interrupted; not all systems wake it.
_LOOK_UP = 0.1

#: Where numba looks for the name of a folder for kernels, and what ours begins with.
_VARIABLE, _MARK = "NUMBA_CACHE_DIR", "privasso-kernels-"

T = TypeVar("T")


def n_threads() -> int:
    """Number of threads a pass may use: cores of this process, capped by ``OMP_NUM_THREADS``."""
    available = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(available, int(limit)) if limit.isdigit() and int(limit) > 0 else available


def chunks(n: int, size: int, align: int = 4) -> list[tuple[int, int]]:
    """Split ``range(n)`` into contiguous pieces for a pass over ``size`` elements.

    There is one piece per thread, or several if a pass takes long. All of the range is covered
    also where there is nothing to read, because the results have to be written.
    """
    workers = 1 if size < SERIAL_BELOW else n_threads()
    rounds = max(1, -(-size // (workers * _LONGEST_PIECE)))
    parts = min(workers * rounds, max(1, n // align))
    edges = [n * k // parts // align * align for k in range(parts)] + [n]
    return [(lo, hi) for lo, hi in pairwise(edges) if hi > lo]


class _Job:
    """A task for the pool, and how it ended."""

    def __init__(self, task: Callable[[], object]) -> None:
        self._task, self._running = task, threading.Lock()  # held until the end
        self._running.acquire()
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._task()
        except BaseException as error:
            self._error = error
        finally:
            self._running.release()

    def done(self) -> bool:
        return not self._running.locked()

    def wait(self) -> None:
        """Wait for the end, and raise the error of the task if there was one."""
        while not self._running.acquire(timeout=_LOOK_UP):
            pass
        if self._error is not None:
            raise self._error


_queue: SimpleQueue[_Job] = SimpleQueue()
_workers: list[int] = []
_starting = threading.Lock()


def _start(task: Callable[[], None]) -> int:
    """Begin a task on a thread of its own; return the name of the thread."""

    def traced() -> None:
        sys.settrace(threading.gettrace())  # for debuggers, as `threading.Thread` does
        task()

    return _thread.start_new_thread(traced, ())


def _work() -> None:
    while True:
        _queue.get().run()


def _start_workers(count: int) -> None:
    with _starting:
        while len(_workers) < count:
            _workers.append(_start(_work))


def run(tasks: list[Callable[[], None]]) -> None:
    """Run the tasks on at most `n_threads` threads, this one among them, and wait for all of them.

    If one raises an error, or this thread is interrupted, the others are not waited for.
    """
    helpers = min(n_threads(), len(tasks)) - 1
    if helpers < 1 or threading.get_ident() in _workers:
        for task in tasks:
            task()
        return
    _start_workers(helpers)
    jobs = [_Job(task) for task in tasks[:-1]]
    for job in jobs:
        _queue.put(job)
    tasks[-1]()
    for job in jobs:
        while not job.done():
            try:
                _queue.get_nowait().run()  # rather than wait, help
            except Empty:
                break
        job.wait()


def interruptible(task: Callable[[], T]) -> T:
    """Return ``task()``, a long call that releases the GIL; Ctrl-C need not wait for its end."""
    if threading.current_thread() is not threading.main_thread():
        return task()
    results: list[T] = []
    context = contextvars.copy_context()  # such as what NumPy does about overflow
    job = _Job(lambda: results.append(context.run(task)))
    _start(job.run)
    job.wait()
    return results[0]


def _forget_workers() -> None:
    """Drop the pool in a forked child, where its threads do not exist."""
    global _queue, _starting
    _queue, _starting = SimpleQueue(), threading.Lock()
    _workers.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)


def prepare_kernels() -> None:
    """Name a folder for numba, before it is asked to compile, if it would find none."""
    here = Path(__file__).parent
    own = here / "__pycache__" if (here / "__pycache__").exists() else here
    if os.access(own, os.W_OK | os.X_OK) or os.environ.get(_VARIABLE):
        return
    import atexit
    import tempfile

    users = Path(os.environ.get("XDG_CACHE_HOME") or Path("~").expanduser())
    while not users.exists() and users != users.parent:
        users = users.parent
    try:
        tempfile.TemporaryFile(dir=users).close()
    except OSError:
        folder = tempfile.mkdtemp(prefix=_MARK)
        atexit.register(_remove, folder, os.getpid())
        os.environ[_VARIABLE] = folder
        if "numba" in sys.modules:
            sys.modules["numba"].config.reload_config()


def kernels_are_temporary() -> bool:
    """Whether kernels are kept until the end of the process only."""
    return Path(os.environ.get(_VARIABLE, "")).name.startswith(_MARK)


def _remove(folder: str, process: int) -> None:
    import shutil

    if os.getpid() == process:  # not in a process that was forked
        shutil.rmtree(folder, ignore_errors=True)
