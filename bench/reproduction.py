"""Grid points of `privasso.paper` against a transcription of Algorithm 1 in NumPy."""

from __future__ import annotations

import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from privasso._blas import one_thread
from privasso.paper._experiment import DataSet, Parameters
from privasso.paper._grid import GridExperiment, GridPoints
from privasso.paper._run import run as run_experiments
from privasso.paper._run import serial
from privasso.solvers import amp_paper_many

TITLE = "Grid points per second at M = 500, N = 1000 (`paper`)"
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


#: Grid points on which the transcription is timed with one thread and with many.
_TRIAL = 4


@dataclass(frozen=True)
class Speed:
    """Grid points per second of an experiment and of the transcription, on one machine.

    `experiment` is `run` with all that it does, from the start of the processes to the tables.
    `batch` is Algorithm 1 alone as the experiment runs it: all points of a data set at once, on as
    many threads as there are jobs. `transcription` is Algorithm 1 alone with the default number of
    BLAS threads or with one, whichever is faster.
    """

    experiment: float
    batch: float
    transcription: float

    @property
    def ratio(self) -> float:
        """Speed of the whole experiment over that of the transcription, which computes less."""
        return self.experiment / self.transcription

    @property
    def batch_ratio(self) -> float:
        """Speed of Algorithm 1 in a batch over that of the transcription."""
        return self.batch / self.transcription


def speed(experiment: GridExperiment, *, jobs: int = 1) -> Speed:
    """Time an experiment in a temporary store, and the transcription on the first data sets.

    BLAS uses all cores, so for a fair comparison `jobs` should be their number.
    """
    units = [unit.parameters for unit in experiment.units()]
    n_points = len(experiment.designs) * len(experiment.lams) * len(experiment.sigmas)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        run_experiments({"speed": experiment}, store=Path(folder), jobs=jobs)
        whole = n_points * len(units) / (time.perf_counter() - begin)

    problems = [_problem(unit) for unit in units if unit["index"] < max(jobs, 2)]
    with serial(), ThreadPoolExecutor(jobs) as pool:
        amp_paper_many(*problems[0])  # loads it
        begin = time.perf_counter()
        list(pool.map(lambda problem: amp_paper_many(*problem), problems))
        batch = n_points * len(problems) / (time.perf_counter() - begin)

    firsts = [_problem(unit) for unit in units if unit["index"] == 0]
    many, one = (_seconds(firsts[:1], alone, limit=_TRIAL) for alone in (False, True))
    plain = n_points * len(firsts) / _seconds(firsts, alone=one < many)
    return Speed(whole, batch, plain)


def _problem(parameters: Parameters) -> tuple[Any, ...]:
    """The arguments of `amp_paper_many` for all points of a data set."""
    data = DataSet.draw(parameters)
    points = GridPoints.of(parameters, data)
    return data.sample.F, data.sample.y, points.lam, points.etas, points.starts


def _seconds(problems: list[tuple[Any, ...]], alone: bool, limit: int | None = None) -> float:
    """Time of the transcription on some data sets, with one thread if `alone`."""
    begin = time.perf_counter()
    with one_thread() if alone else nullcontext():
        for F, y, lams, etas, starts in problems:
            plain = Transcription(F, y)
            for k, lam in enumerate(lams.tolist()[:limit]):
                plain.run(lam, *(np.ascontiguousarray(part[:, k]) for part in (etas, *starts)))
    return time.perf_counter() - begin


class Transcription:
    """Algorithm 1 on one data set in plain NumPy, a grid point at a time; F∘F is computed once."""

    def __init__(self, F: np.ndarray, y: np.ndarray) -> None:
        self.F, self.y = F, y
        self.F2 = F * F
        self.M, self.N = F.shape
        self.alpha = self.M / self.N
        self.v = self.F2.sum(axis=0) / self.alpha

    def run(
        self,
        lam: float,
        eta: np.ndarray,
        x: np.ndarray,
        s: np.ndarray,
        *,
        tol: float = 1e-8,
        max_iter: int = 500,
        lost: float = 1e6,
    ) -> tuple[np.ndarray, bool, int]:
        """Return the last iterate, whether it converged, and the number of iterations.

        A run ends as in `amp_paper_many`: when the relative change of √v·x is below `tol`, when
        s_θ exceeds `lost`, or after `max_iter` iterations.
        """
        F, F2, y, v, alpha = self.F, self.F2, self.y, self.v, self.alpha
        weight = np.sqrt(v)
        g = np.zeros(self.M)
        for iteration in range(1, max_iter + 1):
            theta = F @ x - g * (F2 @ s)
            s_theta = v @ s / self.N
            g = (y - theta) / (1 + s_theta)
            Sigma = (1 + s_theta) / (alpha * v)
            m = Sigma * (F.T @ g + alpha * x * v / (1 + s_theta)) - eta * Sigma
            new = np.sign(m) * np.maximum(np.abs(m) - lam * Sigma, 0)
            s = Sigma * (np.abs(m) > lam * Sigma)
            change = np.linalg.norm(weight * (new - x))
            x = new
            if change <= tol * np.linalg.norm(weight * x):
                return x, True, iteration
            if not s_theta <= lost:
                return x, False, iteration
        return x, False, max_iter
