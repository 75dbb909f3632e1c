"""Outputs are claimed before anything is paid: two runs never write the same file."""

import errno
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from privasso._files import write_whole
from privasso.cli import main
from privasso.cli._outputs import MODEL, Outputs, check_room
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
from privasso.cli._outputs import MODEL, Outputs, check_room
outputs = Outputs()
outputs.claim("--out", Path("model.json"))
print("claimed", flush=True)
time.sleep(600)
"""


def write_data():
    rng = np.random.default_rng(0)
    pl.DataFrame({name: rng.standard_normal(30) for name in "aby"}).write_csv("data.csv")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_data()
    return tmp_path


@pytest.fixture
def nothing_is_paid(monkeypatch):
    monkeypatch.setattr(Plan, "release", lambda *a, **k: pytest.fail("noise drawn"))


@pytest.mark.parametrize("option", ["--out", "--report", "--keep-release", "--path-out"])
def test_a_claimed_output_is_refused_before_paying(folder, capsys, nothing_is_paid, option):
    path = {"--path-out": "shared.csv"}.get(option, "shared.json")
    words = [*FIT, option, path] + (["--out", "model.json"] if option != "--out" else [])
    with Outputs() as other:
        other.claim("--out", Path(path), MODEL)
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
        for _ in range(2)
    ]
    errors = [run.communicate()[1] for run in runs]
    assert sorted(run.returncode for run in runs) == [0, 2]
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
        monkeypatch.setattr("privasso.artefact._header.MAX_BYTES", size - 1)
        capsys.readouterr()
        assert main([*FIT, "--out", "model.json"]) == 2
        assert f"more than the {size - 1} that are ever read" in capsys.readouterr().err
    assert Path("model.json").read_text() == before


@pytest.mark.parametrize("more", [[], ["--classes", f"{'n' * 300},{'p' * 300}"]])
def test_long_names_of_labels_count_before_paying(folder, capsys, monkeypatch, more):
    frame, name = pl.read_csv("data.csv"), "y" * 300
    frame.rename({"y": name}).write_csv("data.csv")
    bounds = FIT.index("--y-bounds")
    words = [name if word == "y" else word for word in FIT]
    words = words if not more else [*words[:bounds], *words[bounds + 3 :], *more]
    assert main([*words, "--out", "model.json"]) == 0
    size = os.path.getsize("model.json")
    monkeypatch.setattr(Plan, "release", lambda *a, **k: pytest.fail("noise drawn"))
    monkeypatch.setattr("privasso.artefact._header.MAX_BYTES", size - 1)
    capsys.readouterr()
    assert main([*words, "--out", "model.json"]) == 2
    assert f"more than the {size - 1} that are ever read" in capsys.readouterr().err


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


#: Commands that would write over one of the files that they read, as users may type them.
OVER_INPUTS = [
    "fit 'part-*.parquet' {dp} --out part-1.parquet",
    "fit 'part-*.parquet' {dp} --out model.json --path-out part-0.parquet",
    "fit whole.parquet {dp} --memory 1GB --out linked.json",
    "fit whole.parquet {dp} --out model.json --report ./hard.html",
    "fit g.bed --label-dp --epsilon 1 --delta 1e-6 --y-bounds 0 1 --out g.fam",
    "fit g.bed --label-dp --epsilon 1 --delta 1e-6 --y-bounds 0 1 --out g.bim",
    "fit g.bed --labels pheno.txt --target y --label-dp --epsilon 1 --delta 1e-6 --y-bounds 0 1 "
    "--out pheno.txt",
    "fit data.csv --target y --record-dp --epsilon 1 --delta 1e-6 --y-bounds 0 1 --bounds "
    "bounds.csv --out bounds.csv",
    "fit data.csv --target y --on-average --sigma 1 --lam 1 --scales scales.txt --out scales.txt",
    "fit data.csv {dp} --ledger book.json --out book.json",
    "fit data.csv {dp} --out claim",  # whose claim would be a file that is read
    "predict model.json g.bed --out fam.csv",
    "predict model.json whole.parquet --out whole.parquet",
    "export model.json --out linked.sql",
    "audit data.csv --target y --record-dp --epsilon 1 --delta 1e-6 --y-bounds 0 1 --bounds "
    "bounds.csv --out bounds.json",
    "bounds g.bed --out g.fam",
    "design --max-onavekl 2 --scales scales.txt --out scales.txt",
    "design --max-onavekl 2 --scales scales.txt --out hard.json",
]
DP = "--target y --label-dp --epsilon 1 --delta 1e-6 --y-bounds 0 1"


@pytest.fixture
def inputs(folder):
    """Files that are read, some of them under a second name."""
    for name in ("part-0", "part-1", "whole"):
        pl.read_csv("data.csv").write_parquet(f"{name}.parquet")
    for name in ("g.bed", "g.bim", "g.fam", "pheno.txt", "book.json"):
        Path(name).write_text(f"what {name} holds")
    Path("bounds.csv").write_text("name,low,high\na,0,1\nb,0,1\n")
    Path("bounds.json").symlink_to("bounds.csv")
    Path("scales.txt").write_text("1 2 3")
    Path("model.json").write_text('{"format": "privasso-model"}')
    Path("other.json").write_text("numbers")
    Path("other.csv").symlink_to("other.json")
    Path("linked.json").symlink_to("whole.parquet")
    Path("linked.sql").symlink_to("model.json")
    os.link("whole.parquet", "hard.html")
    os.link("g.fam", "fam.csv")
    os.link("scales.txt", "hard.json")
    Path(".claim.lock").symlink_to("data.csv")
    return folder


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.exists()}


@pytest.mark.parametrize("command", OVER_INPUTS)
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_what_is_read_is_never_written(inputs, capsys, nothing_is_paid, command, force):
    before = contents(inputs)
    words = shlex.split(command.format(dp=DP))
    if words[0] == "bounds" and force:
        return  # it replaces nothing in any case
    assert main([*words, *force]) == 2
    error = capsys.readouterr().err
    assert "are the same file" in error or "exists already and is not overwritten" in error
    assert contents(inputs) == before


#: Commands, a file that each writes, and another that it writes beside.
WRITERS = [
    (f"fit data.csv {DP} --lam 50 --out {{}}", "model.json"),
    (f"fit data.csv {DP} --lam 50 --out m.json --report {{}}", "report.html"),
    (f"fit data.csv {DP} --lam 50 --out m.json --path-out {{}} --lam-path 50,60", "path.csv"),
    ("predict kept.json data.csv --out {}", "predictions.csv"),
    ("export kept.json --out {}", "model.sql"),
    ("export kept.json --out {}", "model.R"),
    ("export kept.json --out {}", "model.onnx"),
    ("audit data.csv --target y --on-average --sigma 20 --lam 9 --releases 20 --row 0 --out {}",
     "audit.html"),
    ("design --max-onavekl 2 --out {}", "design.json"),
]  # fmt: skip


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder with a model, not all of whose coefficients are zero, and its release."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("kept"))
        write_data()
        dp = ["--epsilon", "300", "--lam", "1e-3"]
        assert main([*FIT, *dp, "--out", "kept.json", "--keep-release", "release.json"]) == 0
        return Path.cwd()


@pytest.mark.parametrize(("command", "name"), WRITERS)
def test_only_files_of_the_same_kind_are_replaced(kept, folder, capsys, command, name):
    shutil.copytree(kept, folder, dirs_exist_ok=True)
    words = shlex.split(command.format(name))
    for unrelated in (b"the work of a year", Path("release.json").read_bytes(), b""):
        Path(name).write_bytes(unrelated)
        before = contents(folder)
        capsys.readouterr()
        assert main(words) == 2
        assert "--force" in capsys.readouterr().err
        assert contents(folder) == before
    assert main([*words, "--force"]) in (0, 1)
    written = Path(name).read_bytes()
    assert written not in (b"", b"the work of a year")
    assert main(words) in (0, 1)  # over what it wrote itself
    assert Path(name).read_bytes() != b""


def test_folders_of_others_are_not_filled(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("demo").mkdir()
    Path("demo/diabetes-data.csv").write_text("mine")
    for words in (["demo", "--out", "demo"], ["demo", "--data-only", "--out", "demo"]):
        assert main(words) == 2
    assert main(["reproduce", "--quick", "--out", "demo"]) == 2
    assert Path("demo/diabetes-data.csv").read_text() == "mine"
    assert main(["demo", "--data-only", "--out", "demo", "--force"]) == 0
    assert main(["demo", "--data-only", "--out", "demo"]) == 0
    assert sorted(os.listdir("demo")) == ["diabetes-bounds.csv", "diabetes-data.csv"]


@pytest.mark.parametrize("length", range(225, 256, 3))
def test_a_name_that_is_too_long_is_refused_before_paying(folder, capsys, monkeypatch, length):
    """Writing needs longer names than that of the file: one for a part, one for a rescue."""
    monkeypatch.setattr(
        "privasso.cli._fit_run._finished",
        lambda *a, **k: (_ for _ in ()).throw(OSError(28, "full")),
    )
    name = "m" * (length - 5) + ".json"
    assert main([*FIT, "--out", name]) == 2
    error, left = capsys.readouterr().err, set(os.listdir()) - {"data.csv"}
    if "spent" in error:  # then what was paid for is kept
        assert len(left) == 1
        assert left.pop().endswith(".release.json")
    else:
        assert "cannot be written" in error
        assert not left


def test_a_place_without_room_is_refused_before_paying(
    folder, capsys, monkeypatch, nothing_is_paid
):
    real = os.fsync

    def fsync(handle):
        if os.fstat(handle).st_size > 1000:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    assert main([*FIT, "--out", "model.json"]) == 2
    assert "cannot be written: No space left on device" in capsys.readouterr().err
    assert os.listdir() == ["data.csv"]


@pytest.mark.skipif(sys.platform != "linux", reason="a small file system of its own")
def test_a_small_file_system(tmp_path, capsys):
    """A disk of 64 kB, where the test may mount one."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True
    )
    if mounted.returncode != 0:
        return  # the test before this one imitates it
    try:
        check_room({place / "one": 20_000, place / "two": 20_000})
        with pytest.raises(ValueError, match="No space left"):
            check_room({place / "one": 40_000, place / "two": 40_000})
        assert not os.listdir(place)
    finally:
        subprocess.run(["umount", str(place)], check=True)
