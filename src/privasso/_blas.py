"""How many threads BLAS may use for one piece of work.

A parallel BLAS call on a small matrix costs more in waiting for its threads than it gains, and
far more when something else runs on the machine: its threads spin for one another.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

#: Floating-point operations below which one thread is the better choice.
SERIAL_BELOW = 5e8


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """A context in which BLAS runs on the calling thread alone."""
    return _controller().limit(limits=1, user_api="blas")


def threads_for(flops: float) -> AbstractContextManager[Any]:
    """A context in which BLAS uses as many threads as a job of this size deserves."""
    return one_thread() if flops < SERIAL_BELOW else nullcontext()
