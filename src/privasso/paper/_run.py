"""Run experiments: load what is stored, compute the rest in processes, summarise both in tables."""

from __future__ import annotations

import hashlib
import json
import multiprocessing as mp
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import polars as pl

from privasso._blas import one_thread
from privasso._files import write_whole
from privasso._validation import integer
from privasso.paper._experiment import Experiment, Parameters, Result, Unit

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class UnitError(RuntimeError):
    """A unit of an experiment failed; the message names the unit and the reason."""


class _Task(NamedTuple):
    """A unit, the function that computes it, and its name in progress and errors."""

    unit: Unit
    compute: Callable[[Parameters], Result]
    name: str


def _path(store: Path, unit: Unit) -> Path:
    """The file of a unit: its description, its result, and the SHA-256 of the result."""
    return Path(store) / unit.key[:2] / f"{unit.key}.json"


def _load(store: Path, unit: Unit) -> Result | None:
    """The result of a unit; None without a file that can be read and matches unit and checksum."""
    try:
        content = json.loads(_path(store, unit).read_text(encoding="utf-8"))
        result = content["result"]
        same_unit = content["unit"] == json.loads(unit.description)
        return result if same_unit and content["sha256"] == _checksum(result) else None
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def _work(store: Path, task: _Task) -> None:
    """Compute a unit and store the result; the file is written completely or not at all."""
    with serial():
        result = task.compute(task.unit.parameters)
        described = json.loads(task.unit.description)
        content = {"unit": described, "sha256": _checksum(result), "result": result}
        path = _path(store, task.unit)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(content, allow_nan=False))


def _checksum(result: Result) -> str:
    return hashlib.sha256(json.dumps(result, sort_keys=True, allow_nan=False).encode()).hexdigest()


def run(
    experiments: Mapping[str, Experiment | Sequence[Experiment]],
    *,
    store: Path,
    jobs: int = 1,
    progress: Callable[[int, int, str], None] | None = None,
) -> dict[str, pl.DataFrame]:
    """Run experiments and return a table under each name, of one experiment or of several.

    Every finished unit is kept in `store` under a hash of all that it depends on, and is not
    computed again: after an interruption the same call continues. Each unit is computed on one
    thread, so that the tables are identical to the byte after any interruption and for any number
    of jobs. With more than one job, processes are started, so a script must call this under
    ``if __name__ == "__main__":``. ``progress(done, total, description)`` is called at the
    beginning and after each unit. If a unit fails, `UnitError` names it, and the others are kept.
    """
    jobs = integer("jobs", jobs, minimum=1)
    report = progress or (lambda done, total, description: None)
    parts = [
        (name, one, one.units())
        for name, given in experiments.items()
        for one in ([given] if isinstance(given, Experiment) else given)
    ]
    tasks = {
        unit.key: _Task(unit, one.compute, f"{name}: {unit.label}")
        for name, one, units in parts
        for unit in units
    }
    results = {key: _load(store, task.unit) for key, task in tasks.items()}
    missing = [task for key, task in tasks.items() if results[key] is None]
    done = len(tasks) - len(missing)
    with serial():
        report(done, len(tasks), "from the store")
        for task, finish in _in_workers(partial(_work, store), missing, jobs):
            try:
                finish()
            except Exception as error:
                raise UnitError(f"{task.name} failed: {error}") from error
            done += 1
            report(done, len(tasks), task.name)
        # New results are read back from the store, so that this table equals the one of a later
        # run, which reads all results from there.
        results |= {task.unit.key: _load(store, task.unit) for task in missing}
        tables: dict[str, list[pl.DataFrame]] = {name: [] for name in experiments}
        for name, one, units in parts:
            found = [result for unit in units if (result := results[unit.key]) is not None]
            if len(found) < len(units):
                raise UnitError(f"{store} lost results of {name} during the run; run it again")
            tables[name].append(one.table(found))
        return {name: pl.concat(some) for name, some in tables.items()}


@contextmanager
def serial() -> Iterator[None]:
    """A context in which this process, and those it starts, compute on one thread each.

    When a product is split over threads, the order of its additions, and with it the rounding,
    depends on their number. On one thread a result depends on neither the cores nor the jobs.
    """
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        with one_thread():
            yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def workers(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that end when this one does; Ctrl-C waits for what they are computing."""
    pool = ProcessPoolExecutor(jobs, mp.get_context("spawn"), initializer=_begin)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """Leave Ctrl-C to the parent, and end with it even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = mp.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _in_workers(
    function: Callable[[_Task], None], tasks: Sequence[_Task], jobs: int
) -> Iterator[tuple[_Task, Callable[[], None]]]:
    """Call ``function(task)`` for each task in `jobs` processes; yield tasks as they finish.

    With each comes a call that raises what the function raised. The function and the tasks are
    pickled, and the function must store its result itself. With one job it runs in this process.
    """
    if jobs == 1 or len(tasks) < 2:
        yield from ((task, partial(function, task)) for task in tasks)
        return
    waiting = iter(tasks)
    with workers(jobs) as pool:
        running = {pool.submit(function, task): task for task in islice(waiting, jobs)}
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                task = running.pop(future)
                yield task, future.result
                running |= {pool.submit(function, new): new for new in islice(waiting, 1)}
