"""Outputs are claimed before anything is paid: two runs never write the same file."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from privasso._files import write_whole
from privasso.cli import main
from privasso.cli._outputs import Outputs
from privasso.fit import Plan

# Outside of the tests each command is a process of its own, which fits once.
pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")

FIT = [
    "fit",
    "data.csv",
    "--target",
    "y",
    "--label-dp",
    "--epsilon",
    "3",
    "--delta",
    "1e-6",
    "--y-bounds",
    "-4",
    "4",
    "--lam",
    "50",
]
HOLD = """
import sys, time
from pathlib import Path
from privasso.cli._outputs import Outputs
outputs = Outputs()
outputs.claim("--out", Path("model.json"))
print("claimed", flush=True)
time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    pl.DataFrame({name: rng.standard_normal(30) for name in "aby"}).write_csv("data.csv")
    return tmp_path


@pytest.fixture
def nothing_is_paid(monkeypatch):
    monkeypatch.setattr(Plan, "release", lambda *a, **k: pytest.fail("noise drawn"))


@pytest.mark.parametrize("option", ["--out", "--report", "--keep-release", "--path-out"])
def test_a_claimed_output_is_refused_before_paying(folder, capsys, nothing_is_paid, option):
    path = {"--path-out": "shared.csv"}.get(option, "shared.json")
    words = [*FIT, option, path] + (["--out", "model.json"] if option != "--out" else [])
    with Outputs() as other:
        other.claim("--out", Path(path))
        assert main(words) == 2
        assert "another run is about to write" in capsys.readouterr().err
    assert set(os.listdir()) == {"data.csv"}


def test_claims_end_with_the_run(folder):
    assert main([*FIT, "--out", "model.json", "--report", "r.html"]) == 0
    assert main([*FIT, "--out", "model.json", "--keep-release", "r.json"]) == 0
    assert set(os.listdir()) == {"data.csv", "model.json", "r.html", "r.json"}


def test_a_killed_run_leaves_no_claim_and_nothing_like_a_result(folder):
    with subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"claimed\n"
        assert main([*FIT, "--out", "model.json"]) == 2
        process.send_signal(signal.SIGKILL)
        process.wait()
    left = set(os.listdir()) - {"data.csv"}
    assert left == {".model.json.lock"}
    assert os.path.getsize(".model.json.lock") == 0
    assert main([*FIT, "--out", "model.json"]) == 0
    assert set(os.listdir()) == {"data.csv", "model.json"}


def test_two_runs_at_once_pay_once(folder):
    code = "import sys; from privasso.cli import main; sys.exit(main(sys.argv[1:]))"
    words = [*FIT, "--out", "model.json", "--keep-release", "release.json"]
    runs = [
        subprocess.Popen([sys.executable, "-c", code, *words], stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    errors = [run.communicate()[1] for run in runs]
    assert sorted(run.returncode for run in runs) == [0, 2, 2]
    for run, error in zip(runs, errors, strict=True):
        assert run.returncode == 0 or "another run" in error or "is never overwritten" in error
    assert set(os.listdir()) == {"data.csv", "model.json", "release.json"}
    assert (
        main(
            [
                "fit",
                "data.csv",
                "--from-release",
                "release.json",
                "--lam",
                "50",
                "--out",
                "again.json",
            ]
        )
        == 0
    )
    assert Path("again.json").read_text() == Path("model.json").read_text()


def test_a_release_that_appears_meanwhile_is_not_overwritten(folder, capsys, monkeypatch):
    real = Plan.release

    def release(self, *arguments, **options):
        Path("release.json").write_text("somebody else's")
        return real(self, *arguments, **options)

    monkeypatch.setattr(Plan, "release", release)
    assert main([*FIT, "--out", "model.json", "--keep-release", "release.json"]) == 2
    assert "the release is kept in model.release.json" in capsys.readouterr().err
    assert Path("release.json").read_text() == "somebody else's"
    assert set(os.listdir()) == {"data.csv", "release.json", "model.release.json"}


def test_what_could_not_be_read_back_is_refused_before_paying(folder, capsys, monkeypatch):
    assert main([*FIT, "--out", "model.json", "--keep-release", "release.json"]) == 0
    sizes = [os.path.getsize(name) for name in ("model.json", "release.json")]
    before = Path("model.json").read_text()
    monkeypatch.setattr(Plan, "release", lambda *a, **k: pytest.fail("noise drawn"))
    for size in sizes:
        monkeypatch.setattr("privasso.artefact._model_file.MAX_BYTES", size - 1)
        capsys.readouterr()
        assert main([*FIT, "--out", "model.json"]) == 2
        assert f"more than the {size - 1} that are ever read" in capsys.readouterr().err
    assert Path("model.json").read_text() == before


@pytest.mark.parametrize("links", [True, False])
def test_a_new_file_replaces_nothing(tmp_path, monkeypatch, links):
    if not links:
        monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(PermissionError()))
    path = tmp_path / "file"
    write_whole(path, "first", replace=False)
    with pytest.raises(FileExistsError):
        write_whole(path, "second", replace=False)
    assert path.read_text() == "first"
    assert os.listdir(tmp_path) == ["file"]
