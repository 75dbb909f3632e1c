"""Grid points of `privasso.paper.experiments` against a transcription of Algorithm 1 in NumPy."""

from __future__ import annotations

import os

import numpy as np
import polars as pl

from privasso.paper.experiments import GridExperiment, speed

TITLE = "Grid points per second at M = 500, N = 1000 (`paper.experiments`)"
NOTE = (
    "Experiment: `run` on all cores, including the start of the processes; each point takes the "
    "paper's Algorithm 1, the certified solver and the prediction for the realised columns. Batch: "
    "Algorithm 1 alone, all points of a data set at once, on all cores. NumPy: Algorithm 1 alone, "
    "one point at a time, F∘F computed once, the same stopping rule, with the default number of "
    "BLAS threads or one, whichever is faster. Two designs, three λ, sixteen σ_η. Target: 5 times."
)


def run() -> pl.DataFrame:
    sigmas = tuple(np.geomspace(0.01, 0.5, 16).round(6).tolist())
    rows = []
    for law in ("uniform", "lognormal"):
        found = speed(GridExperiment((law,), sigmas=sigmas, samples=16), jobs=os.cpu_count() or 1)
        rows.append(
            {
                "law": law,
                "experiment, points/s": found.experiment,
                "batch, points/s": found.batch,
                "NumPy, points/s": found.transcription,
                "experiment / NumPy": found.ratio,
                "batch / NumPy": found.batch_ratio,
            }
        )
    return pl.DataFrame(rows)
