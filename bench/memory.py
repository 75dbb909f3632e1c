"""Peak memory of `solve` and `solve_many` over the matrices of `bench.matrices`."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

import privasso as pv
from bench.matrices import MATRICES, noise_vectors

N_RHS = 8
PARTS = (10, 200, 1000)
#: These take long to make, and no set of columns is large beside them.
LARGE = ("wide 200 × 1,000,000", "tall 200,000 × 1,000", "tall 1,000,000 × 20")
TITLE = "Memory beyond F (`solve` and `solve_many`)"
NOTE = (
    "The largest amount of memory that a call had allocated at any time, F itself left out, "
    "relative to that of F twice and of four squares of the size of the support. `solve_many` has "
    f"{N_RHS} noise vectors in the row space. Target: at most 1; matrices of less than 1 MB do not "
    "count."
)


def run() -> pl.DataFrame:
    rows = []
    for name, make in MATRICES.items():
        if name in LARGE:
            continue
        F, y = make()
        largest = float(np.abs(F.T @ y).max())
        etas = noise_vectors(F, y, 0.1, N_RHS)
        for part in PARTS:
            lam = largest / part
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
