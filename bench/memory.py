"""Peak memory of `solve` and `solve_many` over the matrices of `bench.matrices`."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

import privasso as pv
from bench.matrices import noisy_problems

N_RHS = 8
PARTS = (10, 200, 1000)
TITLE = "Memory beyond F (`solve` and `solve_many`)"
NOTE = (
    "The largest amount of memory that a call had allocated at any time, F itself left out, "
    "relative to that of F twice and of four squares of the size of the support. `solve_many` has "
    f"{N_RHS} noise vectors in the row space. Target: at most 1; matrices of less than 1 MB do not "
    "count."
)


def run() -> pl.DataFrame:
    rows = []
    for name, part, F, y, lam, etas in noisy_problems(PARTS, 0.1, N_RHS):
        one = _relative(F, lambda F=F, y=y, lam=lam: pv.solve(F, y, lam, throw=False))
        many = _relative(
            F, lambda F=F, y=y, lam=lam, E=etas: pv.solve_many(F, y, lam, E, throw=False)
        )
        row = {
            "matrix": name,
            "λmax / λ": part,
            "F, MB": f"{_size(F) / 1e6:.1f}",
            "solve": f"{one:.2f}",
            "solve_many": f"{many:.2f}",
        }
        print(row, flush=True)
        rows.append(row)
    return pl.DataFrame(rows)


def _relative(F: Any, call: Callable[[], Any]) -> float:
    """The peak of a call over its limit; a first call compiles what has to be compiled."""
    call()
    tracemalloc.start()
    found = call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    support = int(np.max(np.count_nonzero(found.x, axis=0)))
    return peak / (2 * _size(F) + 4 * 8 * support**2)


def _size(F: Any) -> int:
    if isinstance(F, np.ndarray):
        return F.nbytes
    return F.data.nbytes + F.indices.nbytes + F.indptr.nbytes
