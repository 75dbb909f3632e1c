"""The tables are the same after interruptions and for any number of processes."""

import io
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from privasso.paper._existence import CriticalExperiment
from privasso.paper._grid import GridExperiment
from privasso.paper._run import UnitError, run

SMALL = GridExperiment(
    ("uniform", "lognormal"), ("gram", "isotropic"), (0.3,), (0.05, 0.1, 0.4, 1.0),
    n_features=60, samples=4,
)  # fmt: skip


def as_bytes(tables):
    out = {}
    for name, table in tables.items():
        buffer = io.BytesIO()
        table.write_parquet(buffer)
        out[name] = buffer.getvalue(), table.write_csv()
    return out


def files(store):
    return {path: path.stat().st_mtime_ns for path in store.rglob("*.json")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return as_bytes(run({"small": SMALL}, store=tmp_path_factory.mktemp("whole")))


CHILD = """
import sys, time
from pathlib import Path
from privasso.paper._grid import GridExperiment
from privasso.paper._run import run
experiment = {experiment!r}
run({{"small": experiment}}, store=Path(sys.argv[1]), jobs=int(sys.argv[2]),
    progress=lambda done, total, what: time.sleep(0.2 if done else 0.0))
"""


def descendants(pid):
    """Processes whose parent has this id, from /proc."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                found.append(int(entry))
    return found


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="reads /proc")
@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_killed_and_resumed(tmp_path, whole, jobs):
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD.format(experiment=SMALL), str(tmp_path), str(jobs)]
    )
    while len(files(tmp_path)) < 3 and child.poll() is None:
        time.sleep(0.02)
    workers = descendants(child.pid)
    child.send_signal(signal.SIGKILL)
    child.wait()
    deadline = time.monotonic() + 20
    while any(os.path.exists(f"/proc/{pid}") for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(os.path.exists(f"/proc/{pid}") for pid in workers)
    stored = files(tmp_path)
    assert 3 <= len(stored) < 8

    calls = []
    tables = run(
        {"small": SMALL}, store=tmp_path, progress=lambda done, total, what: calls.append(done)
    )
    assert as_bytes(tables) == whole
    after = files(tmp_path)
    assert len(after) == 8
    assert stored.items() <= after.items()  # nothing finished was written again
    assert calls == list(range(len(stored), 9))


@pytest.mark.slow
def test_two_processes_interrupted_politely(tmp_path, whole):
    def stop(done, total, what):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run({"small": SMALL}, store=tmp_path, jobs=2, progress=stop)
    assert multiprocessing.active_children() == []
    assert 3 <= len(files(tmp_path)) < 8
    # Other processes computed all of it, and it equals what one process computes.
    assert as_bytes(run({"small": SMALL}, store=tmp_path, jobs=2)) == whole


def test_the_number_of_threads_does_not_matter(tmp_path, whole, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert as_bytes(run({"small": SMALL}, store=tmp_path)) == whole
    assert os.environ["OMP_NUM_THREADS"] == "2"


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "[]",
        lambda text: text.replace('"answer": [0', '"answer": [1', 1),
        lambda text: text.replace('"index": ', '"index": 1', 1),
    ],
    ids=["truncated", "empty", "something else", "result changed", "another unit"],
)
def test_damaged_files_are_computed_again(tmp_path, whole, damage):
    run({"small": SMALL}, store=tmp_path)
    path = min(files(tmp_path))
    text = path.read_text()
    assert damage(text) != text
    path.write_text(damage(text))
    assert as_bytes(run({"small": SMALL}, store=tmp_path)) == whole
    assert json.loads(path.read_text()) == json.loads(text)


def test_more_samples_and_shared_units_cost_only_what_is_new(tmp_path):
    seen = []

    def progress(done, total, what):
        seen.append((done, total))

    run({"a": SMALL, "b": replace(SMALL)}, store=tmp_path, progress=progress)
    assert seen[0] == (0, 8)
    seen.clear()
    run({"a": replace(SMALL, samples=5)}, store=tmp_path, progress=progress)
    assert seen == [(8, 10), (9, 10), (10, 10)]


def test_a_failing_unit_is_named(tmp_path, monkeypatch):
    def fail(parameters):
        raise ArithmeticError("out of luck")

    monkeypatch.setattr(GridExperiment, "compute", staticmethod(fail))
    with pytest.raises(UnitError, match="small: uniform, data set 0 failed: out of luck"):
        run({"small": SMALL}, store=tmp_path)
    assert files(tmp_path) == {}


def test_a_failing_worker_is_named(tmp_path):
    # Four columns at α = 0.01 have no row.
    with pytest.raises(UnitError, match=r"(?s)map: constant, gram, data set \d failed.*no rows"):
        run(
            {
                "map": CriticalExperiment(
                    ("constant",), ("gram",), n_features=4, alpha=0.01, samples=3
                )
            },
            store=tmp_path,
            jobs=2,
        )


def test_bad_jobs(tmp_path):
    with pytest.raises(ValueError, match="jobs must be at least 1"):
        run({}, store=tmp_path, jobs=0)
