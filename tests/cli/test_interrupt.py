"""Ctrl-C ends a fit quickly, in one sentence, and what was paid for is kept."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from privasso.artefact import load_release
from privasso.cli import main

#: Runs the command line with solvers that take for ever once the release is made.
ENDLESS = """
import sys, time
from privasso.fit import Released
def solve(self, lam=None):
    print("solving", file=sys.stderr, flush=True)
    while True:
        time.sleep(0.01)
Released.solve = solve
from privasso.cli import main
sys.exit(main(sys.argv[1:]))
"""
FIT = [
    "fit", "data.csv", "--target", "y", "--label-dp", "--epsilon", "10", "--delta", "1e-6",
    "--y-bounds", "-3", "3", "--out", "model.json",
]  # fmt: skip
#: Seconds between Ctrl-C and the end of the process, on a machine that is busy.
QUICK = 3.0


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = X[:, 0] + 0.1 * rng.standard_normal(60)
    table = np.column_stack([X, y])
    np.savetxt(tmp_path / "data.csv", table, delimiter=",", header="a,b,c,y", comments="")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def interrupted(words, until):
    """Run a command until it writes `until`, press Ctrl-C; its stderr, exit code and delay."""
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, *words], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    for line in process.stderr:
        if until in line:
            break
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    with process.stderr:
        error = process.stderr.read()
    return error, process.wait(timeout=30), time.monotonic() - start


@pytest.mark.skipif(os.name == "nt", reason="SIGINT cannot be sent to one process on Windows")
def test_an_interrupted_fit_keeps_the_release_and_says_how_to_go_on(folder):
    error, code, seconds = interrupted(FIT, "solving")
    assert code == 130
    assert seconds < QUICK
    assert "Traceback" not in error
    assert re.fullmatch(r"\s*privasso: interrupted\. .*\n", error)
    assert "the release is kept in model.release.json" in error
    assert "--from-release model.release.json" in error
    assert set(os.listdir()) == {"data.csv", "model.release.json"}
    assert load_release(Path("model.release.json")).target == "y"
    words = ["fit", "data.csv", "--from-release", "model.release.json", "--out", "model.json"]
    assert main(words) == 0


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL on Windows")
def test_a_killed_fit_keeps_the_release(folder):
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, *FIT], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    assert any("solving" in line for line in process.stderr)
    process.kill()
    process.wait(timeout=30)
    process.stderr.close()
    assert load_release(Path("model.release.json")).target == "y"


def test_a_fit_that_ends_leaves_no_release_behind(folder):
    assert main(FIT) == 0
    assert set(os.listdir()) == {"data.csv", "model.json"}


@pytest.mark.filterwarnings("default::privasso.fit.TimeLimitWarning")
def test_a_time_limit_is_positive_and_reaches_the_solver(folder, capsys):
    assert main([*FIT, "--time-limit", "0"]) == 2
    assert "--time-limit" in capsys.readouterr().err
    assert main([*FIT, "--time-limit", "1e-9"]) == 0
    assert "the time limit of 1e-09 s ended the choice of lam" in capsys.readouterr().err
