"""A ledger in a file, charged by several processes at once, and by processes that are killed."""

import contextlib
import math
import multiprocessing
import os
import subprocess
import sys
import time

import pytest

import privasso as pv
from privasso.accounting import sensitivity_for
from privasso.ledger import Book
from privasso.privacy import Terms

DELTA = 1e-6
TERMS = Terms(fit_intercept=True, seeded=False, n_rows=50)
EPSILON, BUDGET = 0.3, 1.0

CHARGE = f"""
import sys, privasso as pv
from privasso.privacy import Terms
terms = Terms(fit_intercept=True, seeded=False, n_rows=1000)
small = pv.LabelDP({EPSILON}, {DELTA}, (0.0, 1.0)).guarantee(terms)
ledger = pv.Ledger.open(sys.argv[1])
input()
charged = 0
try:
    while True:
        ledger.charge(small)
        charged += 1
except pv.BudgetError:
    print(charged)
"""


@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_processes_together_do_not_exceed_the_budget(tmp_path, count):
    path = tmp_path / "budget.json"
    ledger = pv.Ledger.create(path, BUDGET, DELTA)
    command = [sys.executable, "-c", CHARGE, str(path)]
    pipe = subprocess.PIPE
    workers = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(count)]
    answers = []
    for worker in workers:  # they wait for a line, and so begin together
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    for worker in workers:
        out, _ = worker.communicate(timeout=120)
        assert worker.returncode == 0
        answers.append(int(out))
    room = (sensitivity_for(BUDGET, DELTA / 2) / sensitivity_for(EPSILON, DELTA)) ** 2
    assert len(ledger.entries) == sum(answers) == math.floor(room)
    assert ledger.spent() <= BUDGET


def charges(path, name, count):
    """In a process of its own: charge a small fit so many times, each with a name."""
    ledger, small = pv.Ledger.open(path), pv.LabelDP(0.01, DELTA, (0.0, 1.0)).guarantee(TERMS)
    for k in range(count):
        ledger.charge(small, f"{name} {k}")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(
    ("workers", "count", "changes"), [(3, 12, 30), pytest.param(8, 60, 500, marks=pytest.mark.slow)]
)
def test_no_release_is_lost_whatever_happens_to_files_beside_the_ledger(
    tmp_path, workers, count, changes
):
    """A file with the name of a lock is removed, replaced and made a link while others charge."""
    path, victim = tmp_path / "budget.json", tmp_path / "victim"
    pv.Ledger.create(path, 50.0, DELTA)
    lock, context = tmp_path / "budget.json.lock", multiprocessing.get_context("fork")
    children = [context.Process(target=charges, args=(path, k, count)) for k in range(workers)]
    for child in children:
        child.start()
    done = 0
    while any(child.is_alive() for child in children) or done < changes:
        with contextlib.suppress(FileNotFoundError):
            lock.unlink()
        with contextlib.suppress(FileExistsError):
            if done % 3 == 1:
                lock.touch(exist_ok=False)
            elif done % 3 == 2:
                lock.symlink_to(victim)
        done += 1
        time.sleep(0.002)
    for child in children:
        child.join()
        assert child.exitcode == 0
    known = [entry.what for entry in pv.Ledger.open(path).entries]
    assert sorted(known) == sorted(f"{name} {k}" for name in range(workers) for k in range(count))
    assert not victim.exists()


def test_the_lock_follows_no_link(tmp_path):
    path, other = tmp_path / "budget.json", tmp_path / "other.json"
    ledger = pv.Ledger.create(path, BUDGET, DELTA)
    path.rename(other)
    path.symlink_to(other)
    with pytest.raises(OSError, match="symbolic links"):
        ledger.charge(pv.LabelDP(0.1, DELTA, (0.0, 1.0)).guarantee(TERMS))
    assert len(pv.Ledger.open(other).entries) == 0


def test_what_takes_long_is_done_without_the_lock(tmp_path, monkeypatch):
    """Others can charge while one composes; what one composed before is then composed again."""
    path = tmp_path / "budget.json"
    ledger, other = pv.Ledger.create(path, BUDGET, DELTA), pv.Ledger.open(path)
    small, real, calls = pv.LabelDP(0.1, DELTA, (0.0, 1.0)).guarantee(TERMS), Book.charged, []

    def slow(book, entry):
        calls.append(entry.what)
        if len(calls) == 1:
            other.charge(small, "meanwhile")
        return real(book, entry)

    monkeypatch.setattr(Book, "charged", slow)
    ledger.charge(small, "slow")
    assert calls == ["slow", "meanwhile", "slow"]
    assert [entry.what for entry in ledger.entries] == ["meanwhile", "slow"]


# A fit that kills itself at the step that is named; `drawn` and `model.json` are its traces.
FIT = """
import os, signal, sys
from pathlib import Path
import numpy as np, privasso as pv
from privasso.fit import FitOptions, Released, plan_fit
from privasso.ledger import _store
from privasso.queries import _rounded_gaussian, _objective_noise

def attempt(step, mechanism):
    def wrap(place, name, what, only=lambda *a: True):
        real = getattr(place, name)
        def wrapped(*args, **options):
            if step == f"before {what}" and only(*args):
                os.kill(os.getpid(), signal.SIGKILL)
            result = real(*args, **options)
            if step == f"after {what}" and only(*args):
                os.kill(os.getpid(), signal.SIGKILL)
            return result
        setattr(place, name, wrapped)

    place = _objective_noise if mechanism == "objective" else _rounded_gaussian
    real_noise = place.rounded_gaussian
    def noise(*args):
        made = real_noise(*args)  # the charge is made when its first bit is drawn
        Path("drawn").touch()
        return made
    place.rounded_gaussian = noise

    wrap(_store, "read_json", "reading")
    wrap(_store.File, "update", "charging")
    wrap(_store, "write_whole", "writing")
    wrap(os, "fsync", "flushing")
    wrap(os, "replace", "renaming", lambda _, target: Path(target).name == "budget.json")
    wrap(place, "rounded_gaussian", "drawing")
    wrap(Released, "solve", "solving")
    wrap(os, "replace", "publishing", lambda _, target: Path(target).name == "model.json")

    fit(mechanism, pv.Ledger.open("budget.json"), "model.json")

def fit(mechanism, ledger, model):
    rng = np.random.default_rng(0)
    X, y = rng.random((50, 3)), rng.random(50)
    privacy = pv.LabelDP(0.5, 1e-6, (0.0, 1.0), mechanism)
    pv.save(plan_fit(X, FitOptions(privacy, lam=1.0, ledger=ledger)).release(y).solve(), model)

fit(sys.argv[1], None, sys.argv[2] + ".json")  # loads what each child would load for itself
for folder in sys.argv[2:]:
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        attempt(Path(folder).name, sys.argv[1])
        os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, (folder, status)
"""
STEPS = [
    # The charge is made when the first bit of the noise is asked for.
    "before drawing", "before reading", "after reading", "before charging", "before writing",
    "before flushing", "after flushing", "before renaming", "after renaming", "after writing",
    "after charging", "after drawing", "before solving", "after solving", "before publishing",
    "after publishing",
]  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that can be forked and killed")
@pytest.mark.parametrize(
    "mechanism", [pytest.param("objective", marks=pytest.mark.slow), "release"]
)
def test_whatever_is_killed_nothing_is_spent_that_the_ledger_does_not_know(tmp_path, mechanism):
    folders = [tmp_path / step for step in STEPS]
    for folder in folders:
        folder.mkdir()
        pv.Ledger.create(folder / "budget.json", 1.0, DELTA)
    command = [sys.executable, "-c", FIT, mechanism, *map(str, folders)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    seen = []
    for folder in folders:
        ledger = pv.Ledger.open(folder / "budget.json")
        known = len(ledger.entries)
        drawn, published = (folder / "drawn").exists(), (folder / "model.json").exists()
        assert known >= drawn >= published, folder.name
        seen.append((known, drawn, published))
        # The ledger is whole and can be used; what was killed holds no lock.
        ledger.charge(pv.LabelDP(0.5, DELTA, (0.0, 1.0)).guarantee(TERMS))
        assert len(ledger.entries) == known + 1
    assert seen == sorted(seen)  # the steps are in order
    assert set(seen) == {(0, False, False), (1, False, False), (1, True, False), (1, True, True)}
