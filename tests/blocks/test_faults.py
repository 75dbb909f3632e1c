"""What goes wrong on the way: the same model, or one sentence and nothing released."""

import os
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

import privasso as pv
from block_tables import BOUNDS, PRIVACY, Flaky, local_cluster, model, table, write
from privasso.blocks import (
    DataChangedError,
    RowBlocks,
    WorkersLostError,
    on_dask,
    open_files,
)
from privasso.blocks._part import Local, added
from privasso.fit import AfterReleaseError

pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")


@pytest.fixture
def ledger():
    return pv.Ledger(5.0, 1e-5)


def charges(ledger):
    return len(ledger.book.entries)


def test_missing_and_infinite_numbers_are_those_of_the_table_in_memory():
    X, y = table()
    X[1234, 2], X[1235, 0], X[1236, 1], y[7] = np.nan, np.inf, -np.inf, np.nan
    assert model(RowBlocks.of_arrays(X, y, n_parts=5)) == model(X, y)


class Shifty(Local):
    """Rows that change at one of the passes, in a way that no file would tell."""

    def __init__(self, parts, at, what):
        super().__init__(parts, jobs=1)
        self.at, self.what, self.count = at, what, 0
        self.in_memory = False  # so that they are read in each pass

    def sum(self, task, state, read):
        self.count += 1
        if self.count == self.at:
            part = self.parts[1]
            self.parts = self.what(self.parts, part)
        return super().sum(task, state, read)


def changed_label(parts, part):
    y = part.y.copy()
    y[3] = 0.5 * y[3] + 0.1
    return (parts[0], type(part)(part.X, y), *parts[2:])


def exchanged_values(parts, part):
    X = part.X.copy()
    X[3, [0, 1]] = X[3, [1, 0]]
    return (parts[0], type(part)(X, part.y), *parts[2:])


def twice(parts, part):
    return (*parts, part)


def lost(parts, part):
    return tuple(other for other in parts if other is not part)


@pytest.mark.parametrize("what", [changed_label, exchanged_values, twice, lost])
@pytest.mark.parametrize("at", [1, 2, 4])
def test_data_that_change_between_passes_are_noticed(ledger, what, at):
    X, y = table()
    blocks = RowBlocks.of_arrays(X, y, n_parts=4)
    assert isinstance(blocks.engine, Local)
    engine = Shifty(blocks.engine.parts, at, what)
    est = pv.PrivateLasso(privacy=PRIVACY, ledger=ledger)
    shifty = RowBlocks(blocks.shape, engine)
    if at == 1 and what in (changed_label, exchanged_values):
        est.fit(shifty)  # it was so from the beginning
        assert charges(ledger) == 1
        return
    error = DataChangedError if at == 1 else AfterReleaseError
    with pytest.raises(error, match="nothing was released"):
        est.fit(shifty)
    assert not hasattr(est, "coef_")
    # The noise of the first pass is none; from the second on it has been drawn.
    assert charges(ledger) == (0 if at == 1 else 1)


def test_a_file_that_changes_is_noticed_by_its_stamp(tmp_path):
    paths = write(tmp_path, *table())
    blocks = open_files(paths, "y")
    os.utime(paths[4], ns=(1, 1))
    with pytest.raises(DataChangedError, match=r"4\.parquet changed"):
        pv.PrivateLasso(privacy=PRIVACY).fit(blocks)
    paths[4].unlink()
    with pytest.raises(DataChangedError, match="vanished"):
        pv.PrivateLasso(privacy=PRIVACY).fit(blocks)


def test_sums_that_are_not_integers_are_refused():
    with pytest.raises(TypeError, match="must be integers"):
        added([{"a": np.array([0.5])}])


class KilledWorker(Exception):  # noqa: N818
    """What distributed raises when a task has taken several workers with it."""


class LosingClient:
    """A client whose workers are lost from some pass on."""

    def __init__(self, at):
        self.at, self.count = at, 0

    def compute(self, root):
        self.count += 1
        self.root = root
        return self

    def result(self):
        if self.count >= self.at:
            raise KilledWorker
        return self.root.compute(scheduler="synchronous")


@pytest.mark.parametrize(("at", "charged"), [(1, 0), (3, 1)])
def test_lost_workers_release_nothing(tmp_path, ledger, at, charged):
    pytest.importorskip("dask")
    client = LosingClient(at)
    blocks = on_dask(open_files(write(tmp_path, *table()), "y"), client)
    est = pv.PrivateLasso(privacy=PRIVACY, ledger=ledger)
    # Before noise is drawn it is one error, and afterwards another that says what was spent.
    error = AfterReleaseError if charged else WorkersLostError
    with pytest.raises(error, match="nothing was released"):
        est.fit(blocks)
    assert client.count == at
    assert not hasattr(est, "coef_")
    assert charges(ledger) == charged


class Deadly:
    """A task that kills every worker that tries it."""

    def __init__(self, task):
        self.task = task

    def __call__(self, chunks, state):
        os.kill(os.getpid(), signal.SIGKILL)
        return self.task(chunks, state)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize(("at", "charged"), [(1, 0), (3, 1)])
def test_workers_of_a_cluster_that_die_again_and_again(tmp_path, monkeypatch, ledger, at, charged):
    import dask
    import distributed

    paths = write(tmp_path, *table())
    summed, passes = RowBlocks.sum, []

    def deadly(self, task, state):
        passes.append(None)
        return summed(self, Deadly(task) if len(passes) == at else task, state)

    monkeypatch.setattr(RowBlocks, "sum", deadly)
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):  # type: ignore[attr-defined]
        cluster = local_cluster(2)
        with cluster, distributed.Client(cluster) as client:
            est = pv.PrivateLasso(privacy=PRIVACY, ledger=ledger)
            error = AfterReleaseError if charged else WorkersLostError
            with pytest.raises(error, match="nothing was released"):
                est.fit(on_dask(open_files(paths, "y"), client))
    assert not hasattr(est, "coef_")
    assert charges(ledger) == charged


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("kind", ["kill", "twice"])
def test_a_killed_worker_and_a_repeated_task_change_nothing(tmp_path, monkeypatch, kind):
    import distributed

    paths = write(tmp_path, *table())
    expected = model(paths, "y")
    summed = RowBlocks.sum
    passes = []

    def flaky(self, task, state):
        passes.append(None)
        if len(passes) in (1, 4):
            (tmp_path / kind).touch()
        return summed(self, Flaky(task, tmp_path), state)

    monkeypatch.setattr(RowBlocks, "sum", flaky)
    cluster = local_cluster(2)
    with cluster, distributed.Client(cluster) as client:
        blocks = on_dask(open_files(paths, "y"), client)
        assert model(blocks) == expected
    assert not (tmp_path / kind).exists()


LOST_CLIENT = """
import sys
import numpy as np
import privasso as pv
from privasso.blocks import RowBlocks, open_files

folder, at = sys.argv[1], int(sys.argv[2])
summed, passes = RowBlocks.sum, []

def waiting(self, task, state):
    passes.append(None)
    if len(passes) == at:
        print("ready", flush=True)
        sys.stdin.read()
    return summed(self, task, state)

RowBlocks.sum = waiting
ledger = pv.Ledger.create(folder + "/book.json", 5.0, 1e-5)
privacy = pv.RecordDP(1.0, 1e-6, bounds={bounds}, y_bounds=(0.0, 1.0))
est = pv.PrivateLasso(privacy=privacy, ledger=ledger).fit([folder + "/0.parquet"], "y")
pv.save(est, folder + "/model.json")
"""


@pytest.mark.slow
@pytest.mark.parametrize(("at", "charged"), [(1, 0), (3, 1)])
def test_a_client_that_is_lost_leaves_a_right_ledger_and_no_model(tmp_path, at, charged):
    write(tmp_path, *table())
    script = tmp_path / "lost.py"
    script.write_text(LOST_CLIENT.replace("{bounds}", repr(BOUNDS)))
    words = [sys.executable, str(script), str(tmp_path), str(at)]
    run = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    assert run.stdin is not None
    assert run.stdout.readline() == "ready\n"
    run.kill()
    run.wait()
    run.stdout.close()
    run.stdin.close()
    time.sleep(0.1)
    assert not (tmp_path / "model.json").exists()
    book = tmp_path / "book.json"
    assert charges(pv.Ledger.open(book)) == charged


def test_types_of_dask_are_checked_before_any_row_is_read():
    import dask.array as da

    two: Any = 2  # the type that Dask states for chunks is too narrow
    X, text = da.ones((4, 2), chunks=2), np.array(["1", "SECRET", "2", "3"], dtype=object)
    for given in (
        (da.from_array(text[:, None], two), np.ones(4)),
        (X, da.from_array(text, two)),
        (X, text),
    ):
        with pytest.raises(ValueError, match="numbers") as caught:
            pv.PrivateLasso(privacy=PRIVACY).fit(*given)
        assert "SECRET" not in str(caught.value)
        assert "SECRET" not in str(caught.value.__context__)
