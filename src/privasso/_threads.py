"""A small thread pool for kernels that release the GIL.

The kernels are memory-bound loops compiled with ``nogil=True``. A pool of plain threads runs them
in parallel: no second threading runtime is needed beside that of BLAS, and import starts nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

#: Below this many matrix elements a pass is faster on one thread.
SERIAL_BELOW = 300_000

_pool: ThreadPoolExecutor | None = None


def n_threads() -> int:
    """Number of threads a pass may use: cores of this process, capped by ``OMP_NUM_THREADS``."""
    available = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(available, int(limit)) if limit.isdigit() and int(limit) > 0 else available


def chunks(n: int, size: int, align: int = 4) -> list[tuple[int, int]]:
    """Split ``range(n)`` into one contiguous piece per thread, for a pass over ``size`` elements.

    >>> chunks(10, size=100)
    [(0, 10)]
    """
    parts = 1 if size < SERIAL_BELOW else min(n_threads(), max(1, n // align))
    edges = [n * k // parts // align * align for k in range(parts)] + [n]
    return [(lo, hi) for lo, hi in pairwise(edges) if hi > lo]


def run(tasks: list[Callable[[], None]]) -> None:
    """Run the tasks, the last one on the calling thread, and wait for all of them."""
    global _pool
    if len(tasks) > 1 and _pool is None:
        _pool = ThreadPoolExecutor(max_workers=max(1, (os.cpu_count() or 2) - 1))
    futures = [_pool.submit(task) for task in tasks[:-1]] if _pool is not None else []
    tasks[-1]()
    for future in futures:
        future.result()


def _forget_pool() -> None:
    """Drop the pool in a forked child, where its threads do not exist."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
