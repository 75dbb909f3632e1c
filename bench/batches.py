"""`solve_many` against a loop of `solve`, on matrices of many kinds."""

from __future__ import annotations

import numpy as np
import polars as pl

import privasso as pv
from bench.matrices import noisy_problems
from bench.timing import best_times

N_RHS = 8
PARTS = (2, 10, 50)
TITLE = "Eight noise vectors (`solve_many`) against a loop of `solve`"
NOTE = (
    "Noise in the row space, as if the labels had noise of a third of their size; solved says how "
    "many of the eight problems ended with a certificate, in both ways. Target: never slower."
)


def run() -> pl.DataFrame:
    rows = []
    for name, part, F, y, lam, etas in noisy_problems(PARTS, 0.3, N_RHS):
        rows.append({"matrix": name, "λmax / λ": part} | _case(F, y, lam, etas))
        print(rows[-1], flush=True)
    return pl.DataFrame(rows)


def _case(F: object, y: np.ndarray, lam: float, etas: np.ndarray) -> dict[str, object]:
    times = best_times(
        {
            "many": lambda: pv.solve_many(F, y, lam, etas, throw=False),
            "loop": lambda: [pv.solve(F, y, lam, eta, throw=False) for eta in etas.T],
        }
    )
    together = pv.solve_many(F, y, lam, etas, throw=False).status
    alone = [pv.solve(F, y, lam, eta, throw=False).status for eta in etas.T]
    solved = [sum(status is pv.Status.CONVERGED for status in found) for found in (together, alone)]
    return {
        "solved": f"{solved[0]} / {solved[1]}",
        "solve_many, s": times["many"],
        "loop, s": times["loop"],
        "ratio": f"{times['loop'] / times['many']:.2f}",
    }
