"""Grid points a second, beside a plain transcription of Algorithm 1, in one run."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from privasso._blas import one_thread
from privasso.experiments._data import DataSet
from privasso.experiments._points import Points
from privasso.experiments._points_unit import arrange
from privasso.experiments._run import run
from privasso.experiments._serial import serial
from privasso.experiments._transcription import Transcription
from privasso.solvers._amp_paper_many import amp_paper_many

#: Points on which the transcription is tried with one thread and with many.
_TRIAL = 4


@dataclass(frozen=True)
class Speed:
    """Points a second of `Points` and of the transcription, one after the other on one machine.

    Attributes
    ----------
    experiment : float
        Points a second of `run`, start of its processes and tables included: certified solver,
        literal Algorithm 1 and predictions.
    batch : float
        Points a second of Algorithm 1 alone as the experiment runs it, all points of a data set
        at once, a thread for each of the jobs.
    transcription : float
        Points a second of Algorithm 1 alone in plain NumPy, one point after the other, with the
        threads that BLAS takes of its own accord or with one, whichever is faster.
    """

    experiment: float
    batch: float
    transcription: float

    @property
    def ratio(self) -> float:
        """How many times faster the experiment is, which does more, on all its processes."""
        return self.experiment / self.transcription

    @property
    def batch_ratio(self) -> float:
        """How many times faster the same algorithm is in a batch: like with like."""
        return self.batch / self.transcription


def speed(points: Points, *, jobs: int = 1) -> Speed:
    """Time an experiment in a store of its own, and the transcription on its first data sets.

    Parameters
    ----------
    points : Points
        All its data sets are run; of each law, the transcription sees the first.
    jobs : int
        Processes of `run`. To compare whole machines, give it all cores, as BLAS takes them.

    Examples
    --------
    >>> from privasso.experiments import Points, speed
    >>> grid = Points(("lognormal",), ("gram",), (0.5,), (0.05, 0.1), n_features=100, samples=2)
    >>> found = speed(grid)
    >>> found.experiment > 0 and found.transcription > 0
    True
    """
    n_points = len(points.designs) * len(points.lams) * len(points.sigmas)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        run({"speed": points}, store=Path(folder), jobs=jobs)
        experiment = n_points * len(points.laws) * points.samples / (time.perf_counter() - begin)

    firsts = [unit.parameters for unit in points.units() if unit.parameters["index"] == 0]
    count = n_points * len(firsts)
    batch = _batch_rate(points, n_points, jobs)
    many, one = (_seconds(firsts[:1], alone, limit=_TRIAL) for alone in (False, True))
    return Speed(experiment, batch, count / _seconds(firsts, alone=one < many))


def _batch_rate(points: Points, n_points: int, jobs: int) -> float:
    """Points a second of the batched Algorithm 1, after one run that loads it."""
    units = [u.parameters for u in points.units() if u.parameters["index"] < max(jobs, 2)]
    with serial(), ThreadPoolExecutor(jobs) as pool:
        prepared = []
        for parameters in units:
            data = DataSet.draw(parameters)
            grid = arrange(parameters, data)
            prepared.append((data.sample.F, data.sample.y, grid.lam, grid.etas, grid.starts))
        amp_paper_many(*prepared[0])
        begin = time.perf_counter()
        list(pool.map(lambda problem: amp_paper_many(*problem), prepared))
        return n_points * len(units) / (time.perf_counter() - begin)


def _seconds(units: list[dict[str, Any]], alone: bool, limit: int | None = None) -> float:
    """Time of the transcription on the points of some data sets, without that of drawing them."""
    total = 0.0
    with one_thread() if alone else nullcontext():
        for parameters in units:
            for task in _tasks(parameters, limit):
                begin = time.perf_counter()
                task()
                total += time.perf_counter() - begin
    return total


def _tasks(parameters: dict[str, Any], limit: int | None) -> Iterator[Any]:
    """What the transcription does on one data set: prepare, then a run for each point."""
    data = DataSet.draw(parameters)
    grid = arrange(parameters, data)
    F, y = data.sample.F, data.sample.y
    yield partial(Transcription, F, y)
    transcription = Transcription(F, y)
    for k, lam in enumerate(grid.lam.tolist()[:limit]):
        eta, x, s = (np.ascontiguousarray(part[:, k]) for part in (grid.etas, *grid.starts))
        yield partial(transcription.run, lam, eta, x, s)
