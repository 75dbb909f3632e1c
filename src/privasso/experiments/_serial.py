"""One thread for everything, so that a result depends on neither the machine's cores nor jobs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from privasso._blas import one_thread

_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@contextmanager
def serial() -> Iterator[None]:
    """A context in which this process, and those it starts, compute on one thread each.

    The order of additions in a product that is split over threads depends on their number.
    """
    before = {name: os.environ.get(name) for name in _VARIABLES}
    os.environ.update(dict.fromkeys(_VARIABLES, "1"))
    try:
        with one_thread():
            yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
