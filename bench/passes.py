"""One AMP iteration as one pass over F, against the two products it replaces."""

from __future__ import annotations

import numpy as np
import polars as pl

from bench.timing import best_times
from privasso.operators import as_operator

TITLE = "One iteration of AMP against `F @ x` and `F.T @ g`"
NOTE = "Target: at most 0.6 times the two BLAS products."


def run() -> pl.DataFrame:
    rows = []
    for m, n in ((2500, 5000), (5000, 10000), (10000, 20000)):
        rng = np.random.default_rng(0)
        F = rng.standard_normal((m, n))
        x, g = rng.standard_normal(n), rng.standard_normal(m)
        op = as_operator(F)
        buffer = g.copy()
        times = best_times(
            {
                "fused": lambda op=op, x=x, buffer=buffer: op.update(x, buffer, 0.5, 1e-3),
                "blas": lambda F=F, x=x, g=g: (F @ x, F.T @ g),
            },
            repeat=7,
            rounds=3,
        )
        rows.append(
            {
                "M": m,
                "N": n,
                "fused, ms": 1e3 * times["fused"],
                "two BLAS products, ms": 1e3 * times["blas"],
                "ratio": times["fused"] / times["blas"],
                "GB/s": F.nbytes / times["fused"] / 1e9,
            }
        )
    return pl.DataFrame(rows)
