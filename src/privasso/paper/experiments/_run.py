"""Run experiments: load what is stored, compute the rest, summarise both in tables."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import polars as pl

from privasso._files import write_whole
from privasso._validation import integer
from privasso.paper.experiments._experiment import Experiment, Parameters, Result, Unit
from privasso.paper.experiments._workers import in_workers, serial


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
    experiments: Mapping[str, Experiment],
    *,
    store: Path,
    jobs: int = 1,
    progress: Callable[[int, int, str], None] | None = None,
) -> dict[str, pl.DataFrame]:
    """Run experiments and return one table for each, under the same name.

    Every finished unit is kept in `store` under a hash of all that it depends on, and is not
    computed again: after an interruption the same call continues. Each unit is computed on one
    thread, so that the tables are identical to the byte after any interruption and for any number
    of jobs. With more than one job, processes are started, so a script must call this under
    ``if __name__ == "__main__":``. ``progress(done, total, description)`` is called at the
    beginning and after each unit. If a unit fails, `UnitError` names it, and the others are kept.
    """
    jobs = integer("jobs", jobs, minimum=1)
    report = progress or (lambda done, total, description: None)
    units = {name: experiment.units() for name, experiment in experiments.items()}
    tasks = {
        unit.key: _Task(unit, experiments[name].compute, f"{name}: {unit.label}")
        for name, group in units.items()
        for unit in group
    }
    results = {key: _load(store, task.unit) for key, task in tasks.items()}
    missing = [task for key, task in tasks.items() if results[key] is None]
    done = len(tasks) - len(missing)
    with serial():
        report(done, len(tasks), "from the store")
        for task in _finished(missing, store, jobs):
            done += 1
            report(done, len(tasks), task.name)
        # New results are read back from the store, so that this table equals the one of a later
        # run, which reads all results from there.
        results |= {task.unit.key: _load(store, task.unit) for task in missing}
        tables = {}
        for name, experiment in experiments.items():
            found = [results[unit.key] for unit in units[name]]
            complete = [result for result in found if result is not None]
            if len(complete) < len(found):
                raise UnitError(f"{store} lost results of {name} during the run; run it again")
            tables[name] = experiment.table(complete)
    return tables


def _finished(tasks: list[_Task], store: Path, jobs: int) -> Iterator[_Task]:
    """Compute tasks; yield each one when its result is in the store."""
    for task, finish in in_workers(partial(_work, store), tasks, jobs):
        try:
            finish()
        except Exception as error:
            raise UnitError(f"{task.name} failed: {error}") from error
        yield task
