"""Run what is missing of a comparison, and keep it."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterable
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from bench.real.cells import SECOND, Cell, Scores, read, split, write
from bench.real.task import TASKS

#: One thread of arithmetic for each worker: more would wait for one another.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Outcome = tuple[dict[str, float | None], float, str]


def one(cell: Cell, number: int) -> Outcome:
    """Scores by column, seconds, and what went wrong, of one split of one cell."""
    task, contender, data = TASKS[cell.task], cell.find(), split(cell, number)
    start = time.perf_counter()
    try:
        predictions = contender.run(data)
    except (ArithmeticError, RuntimeError, ValueError, np.linalg.LinAlgError) as error:
        return {}, time.perf_counter() - start, f"{type(error).__name__}: {error}"
    seconds = time.perf_counter() - start
    scores: dict[str, float | None] = {}
    for column, predicted in predictions.items():
        finite = bool(np.isfinite(predicted).all())
        scores[column] = task.score(data.y_test, predicted) if finite else None
        if task.second is not None:
            value = task.second[1](data.y_test, predicted) if finite else None
            scores[column + SECOND] = value
    return scores, seconds, ""


def complete(
    wanted: Iterable[Cell], splits: int, folder: Path, jobs: int, console: Console
) -> dict[Cell, Scores]:
    """Scores of all cells for splits 0, …, splits − 1; those that are kept are not run again."""
    found = {cell: read(folder, cell) for cell in wanted}
    missing = [
        (cell, number)
        for number in range(splits)
        for cell in found
        if number not in found[cell].seconds
    ]
    console.print(f"{len(found)} cells of {splits} splits; {len(missing)} fits are to be run")
    if not missing:
        return found
    for name in _THREADS:
        os.environ[name] = "1"
    spawn = multiprocessing.get_context("spawn")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    start = time.perf_counter()
    with (
        ProcessPoolExecutor(jobs, mp_context=spawn) as pool,
        Progress(*columns, TimeRemainingColumn(elapsed_when_finished=True), console=console) as bar,
    ):
        line = bar.add_task("fits", total=len(missing))
        under_way: dict[Future[Outcome], tuple[Cell, int]] = {
            pool.submit(one, cell, number): (cell, number) for cell, number in missing
        }
        first = sum(number == missing[0][1] for _, number in missing)
        try:
            for done, future in enumerate(as_completed(under_way), start=1):
                cell, number = under_way[future]
                _enter(found[cell], number, future.result())
                write(folder, cell, found[cell])
                bar.advance(line)
                if done == first:
                    rest = (time.perf_counter() - start) * (len(missing) / first - 1.0)
                    console.print(f"one split has been run; the others take {rest / 60:.0f} min")
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return found


def _enter(scores: Scores, number: int, outcome: Outcome) -> None:
    by_column, scores.seconds[number], failure = outcome
    if failure:
        scores.failures[number] = failure
    for column, score in by_column.items():
        scores.by_column.setdefault(column, {})[number] = score
