"""Run experiments: load what is stored, compute the rest, summarise both in tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from privasso._validation import integer
from privasso.paper.experiments._experiment import Experiment
from privasso.paper.experiments._store import Parameters, Result, Store, Unit
from privasso.paper.experiments._workers import WorkerError, in_workers, serial

if TYPE_CHECKING:
    import polars as pl


class UnitError(RuntimeError):
    """A unit of an experiment failed; the message names the unit and the reason."""


class _Task(NamedTuple):
    """A unit, the function that computes it, and its name in progress and errors."""

    unit: Unit
    compute: Callable[[Parameters], Result]
    name: str


def run(
    experiments: Mapping[str, Experiment],
    *,
    store: Path,
    jobs: int = 1,
    progress: Callable[[int, int, str], None] | None = None,
) -> dict[str, pl.DataFrame]:
    """Run experiments and return one table for each.

    Every finished unit is stored under a hash of all that it depends on, and is not computed
    again. After an interruption the same call continues with the units that are missing. Each
    unit is computed on one thread, so that the tables are identical to the byte after any
    interruption and for any number of jobs.

    Parameters
    ----------
    experiments : mapping of str to Experiment
        The experiments by name; the tables have the same names.
    store : Path
        Folder of the finished units; created if it does not exist.
    jobs : int
        Number of processes. With 1, this process computes. With more, new processes are started,
        so a script must call this function under ``if __name__ == "__main__":``.
    progress : callable, optional
        Called in this process as ``progress(done, total, description)``: once at the beginning,
        with the number of units that are already stored, and after each unit.

    Raises
    ------
    UnitError
        When a unit fails. Finished units stay in the store.
    """
    jobs = integer("jobs", jobs, minimum=1)
    report = progress or (lambda done, total, description: None)
    units = {name: experiment.units() for name, experiment in experiments.items()}
    tasks = {
        unit.key: _Task(unit, experiments[name].compute, f"{name}: {unit.label}")
        for name, group in units.items()
        for unit in group
    }
    disk = Store(store)
    results = {key: disk.load(task.unit) for key, task in tasks.items()}
    missing = [task for key, task in tasks.items() if results[key] is None]
    done = len(tasks) - len(missing)
    with serial():
        report(done, len(tasks), "from the store")
        for task in _finished(missing, disk, jobs):
            done += 1
            report(done, len(tasks), task.name)
        # New results are read back from the store, so that this table equals the one of a later
        # run, which reads all results from there.
        results |= {task.unit.key: disk.load(task.unit) for task in missing}
        tables = {}
        for name, experiment in experiments.items():
            found = [results[unit.key] for unit in units[name]]
            complete = [result for result in found if result is not None]
            if len(complete) < len(found):
                raise UnitError(f"{store} lost results of {name} during the run; run it again")
            tables[name] = experiment.table(complete)
    return tables


def _finished(tasks: list[_Task], disk: Store, jobs: int) -> Iterator[_Task]:
    """Compute tasks; yield each one when its result is in the store."""
    work = partial(_work, disk)
    if jobs == 1 or len(tasks) < 2:
        for task in tasks:
            try:
                work(task)
            except Exception as error:
                raise UnitError(f"{task.name} failed: {error}") from error
            yield task
        return
    try:
        for index in in_workers(work, tasks, jobs):
            yield tasks[index]
    except WorkerError as error:
        raise UnitError(f"{tasks[error.task].name} failed: {error}") from None


def _work(disk: Store, task: _Task) -> None:
    with serial():
        disk.save(task.unit, task.compute(task.unit.parameters))
