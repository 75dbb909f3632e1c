"""Run experiments: look up what is finished, compute the rest, summarise in tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from privasso._validation import integer
from privasso.experiments import _critical, _leakage, _paper_kkt, _points_unit
from privasso.experiments._serial import serial
from privasso.experiments._store import Store
from privasso.experiments._unit import Result, Unit
from privasso.experiments._workers import WorkerError, in_workers

if TYPE_CHECKING:
    import polars as pl

_COMPUTE = {
    module.KIND: module.compute for module in (_points_unit, _critical, _paper_kkt, _leakage)
}


class Experiment(Protocol):
    """What `run` needs: units to compute, and a table made of their results."""

    def units(self) -> list[Unit]:
        """Return the units, in an order of the experiment's choice."""
        ...

    def table(self, results: list[Result]) -> pl.DataFrame:
        """Return the table, from the results in the same order."""
        ...


class UnitError(RuntimeError):
    """A unit of an experiment failed; the message says which, and how."""


def run(
    experiments: Mapping[str, Experiment],
    *,
    store: Path,
    jobs: int = 1,
    progress: Callable[[int, int, str], None] | None = None,
) -> dict[str, pl.DataFrame]:
    """Run experiments and return one table for each.

    Every finished unit is kept in the store, under a hash of all that it depends on, and never
    computed again. After an interruption at any time the same call goes on where it stopped.
    Units compute on one thread each: the tables are the same, to the byte, after any
    interruption and for any number of jobs.

    Parameters
    ----------
    experiments : mapping of str to experiment
        `Points`, `Critical`, `PaperKkt`, `Leakage`, under names of your choice.
    store : Path
        Folder of the finished units; made if it is not there.
    jobs : int
        Processes. One computes in this process. More are started afresh, so a script that calls
        this must do so under ``if __name__ == "__main__":``.
    progress : callable, optional
        Called in this process as ``progress(done, total, description)`` after each unit, and
        once at the beginning with what the store already holds.

    Raises
    ------
    UnitError
        When a unit fails. Finished units stay in the store.
    """
    jobs = integer("jobs", jobs, minimum=1)
    wanted = {name: experiment.units() for name, experiment in experiments.items()}
    labels = {unit.key: f"{name}: {unit.label}" for name, units in wanted.items() for unit in units}
    units = {unit.key: unit for group in wanted.values() for unit in group}
    keep = Store(store)
    results = {key: keep.load(unit) for key, unit in units.items()}
    todo = [unit for key, unit in units.items() if results[key] is None]
    done = len(units) - len(todo)
    with serial():
        if progress is not None:
            progress(done, len(units), "from the store")
        for unit in _finished(todo, keep, jobs, labels):
            done += 1
            if progress is not None:
                progress(done, len(units), labels[unit.key])
        # What was just computed is read back, so that a table never holds what a later run,
        # which has the store alone, could not repeat.
        results |= {unit.key: keep.load(unit) for unit in todo}
        tables = {}
        for name, experiment in experiments.items():
            found = [results[unit.key] for unit in wanted[name]]
            complete = [result for result in found if result is not None]
            if len(complete) < len(found):
                raise UnitError(f"{store} lost results of {name} during the run; run it again")
            tables[name] = experiment.table(complete)
    return tables


def _finished(todo: list[Unit], keep: Store, jobs: int, labels: dict[str, str]) -> Iterator[Unit]:
    """Compute units and keep their results; yield each when it is in the store."""
    work = partial(_work, keep)
    if jobs == 1 or len(todo) < 2:
        for unit in todo:
            try:
                work(unit)
            except Exception as error:
                raise UnitError(f"{labels[unit.key]} failed: {error}") from error
            yield unit
        return
    try:
        for index in in_workers(work, todo, jobs):
            yield todo[index]
    except WorkerError as error:
        raise UnitError(f"{labels[todo[error.task].key]} failed: {error}") from None


def _work(keep: Store, unit: Unit) -> None:
    with serial():
        keep.save(unit, _COMPUTE[unit.kind](unit.parameters))
