"""What is no regular file, or too large, is refused at once for every file that a command reads."""

import os
import shlex
import shutil
import signal
import socket
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from privasso.cli import main

# Outside of the tests each command is a process of its own, which fits once.
pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")

DP = "--target y --label-dp --epsilon 3 --delta 1e-6 --y-bounds -4 4 --lam 50"
AVERAGE = "--target y --on-average --sigma 1 --lam 50"
RECORDS = "--target y --record-dp --epsilon 3 --delta 1e-6 --y-bounds -4 4 --bounds bounds.csv"
GENOTYPES = "--target pheno --label-dp --epsilon 3 --delta 1e-6 --y-bounds 0 3 --lam 50"
COMMANDS = {
    "data.csv": f"fit data.csv {DP} --out out.json",
    "data.tsv": f"fit data.tsv {DP} --out out.json",
    "data.parquet": f"fit data.parquet {DP} --dry-run",
    "data.arrow": "predict model.json data.arrow --out out.csv",
    "data.npz": f"fit data.npz {DP} --out out.json",
    "model.json": "predict model.json whole.csv --out out.csv",
    "release.json": "fit whole.csv --from-release release.json --out out.json",
    "design.json": f"fit whole.csv {DP} --design design.json --out out.json",
    "prior.txt": f"fit whole.csv {AVERAGE} --scales prior.txt --out out.json",
    "scales.txt": "theory --scales scales.txt",
    "scales.csv": "design --max-onavekl 1 --scales scales.csv",
    "part-0.parquet": f"fit part-*.parquet {RECORDS} --out out.json",
    "part-0.arrow": f"fit part-*.arrow {RECORDS} --out out.json",
    "block.parquet": f"fit block.parquet {RECORDS} --memory 2GB --out out.json",
    "bounds.csv": f"fit whole.csv {RECORDS} --out out.json",
    "budget.json": f"fit whole.csv {DP} --ledger budget.json --out out.json",
    "g.bed": f"fit g.bed {GENOTYPES} --out out.json",
    "g.bim": f"fit g.bed {GENOTYPES} --out out.json",
    "g.fam": f"fit g.bed {GENOTYPES} --out out.json",
    "labels.txt": f"fit g.bed --labels labels.txt {GENOTYPES} --out out.json",
}


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A folder with a table, a model and its release."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("fitted"))
        rng = np.random.default_rng(0)
        pl.DataFrame({name: rng.standard_normal(30) for name in "aby"}).write_csv("whole.csv")
        assert main(f"fit whole.csv {DP} --out model.json --keep-release kept.json".split()) == 0
        return Path.cwd()


@pytest.fixture
def folder(fitted, tmp_path, monkeypatch):
    shutil.copytree(fitted, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bounds.csv").write_text("name,low,high\na,-4,4\nb,-4,4\n")
    (tmp_path / "g.bed").write_bytes(bytes([0x6C, 0x1B, 0x01, 0b00_10_11, 0b11_01_00]))
    (tmp_path / "g.bim").write_text("1 rs12 0 100 A G\n1 rs7 0 250 C T\n")
    (tmp_path / "g.fam").write_text("a 1 0 0 2 1.5\na 2 0 0 1 -9\nb 1 0 0 1 2.0\n")
    signal.alarm(20)
    yield tmp_path
    signal.alarm(0)


def pipe(name):
    os.mkfifo(name)


def endless(name):
    os.symlink("/dev/zero", name)


def listening(name):
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(name)


KINDS = {
    pipe: "is a pipe, not a file",
    endless: "is a device, not a file",
    listening: "is a socket, not a file",
    os.mkdir: "is a folder, not a file",
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_only_regular_files_are_read(folder, capsys, name, make):
    (folder / name).unlink(missing_ok=True)
    make(name)
    before = set(os.listdir())
    assert main(shlex.split(COMMANDS[name])) == 2
    captured = capsys.readouterr()
    assert KINDS[make] in captured.err
    assert name in captured.err or "/dev/zero" in captured.err  # where a link leads
    assert captured.err.count("\n") == 1
    assert not captured.out
    assert set(os.listdir()) == before


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_only_regular_files_are_replaced(folder, capsys, make):
    make("out.json")
    before = set(os.listdir())
    assert main(f"fit whole.csv {DP} --out out.json".split()) == 2
    error = capsys.readouterr().err
    assert "is a folder; name a file in it" in error or KINDS[make] in error
    assert set(os.listdir()) == before


@pytest.mark.parametrize("name", ["model.json", "release.json", "design.json", "scales.txt"])
def test_small_files_are_read_up_to_a_bound(folder, capsys, name):
    with open(name, "wb") as file:
        file.truncate(1 << 40)  # takes no room on the disk
    assert main(COMMANDS[name].split()) == 2
    assert "too large for what it should be" in capsys.readouterr().err


def test_a_header_that_does_not_end(folder, capsys, monkeypatch):
    monkeypatch.setattr("privasso.tables._text._LONGEST_HEADER", 1000)
    (folder / "data.csv").write_text(",".join(f"column{k}" for k in range(1000)) + "\n")
    assert main(COMMANDS["data.csv"].split()) == 2
    assert "cannot be read as csv" in capsys.readouterr().err


def test_the_memory_of_the_machine_bounds_a_table(folder, capsys, monkeypatch):
    monkeypatch.setattr("privasso.tables._table.fits_memory", lambda size: size < 100)
    for command in ("data.csv", "data.npz"):
        pl.read_csv("whole.csv").write_csv("data.csv")
        np.savez("data.npz", X=np.ones((30, 2)), y=np.ones(30))
        assert main(COMMANDS[command].split()) == 2
        assert "more numbers than fit into the memory" in capsys.readouterr().err
    monkeypatch.setattr("privasso.tables._numbers.fits_memory", lambda size: size < 100)
    assert main(COMMANDS["data.npz"].split()) == 2
    assert "too large for this machine" in capsys.readouterr().err


def test_a_name_is_no_pattern(folder):
    for name in ("data[1].parquet", "data1.parquet", "*.parquet"):
        pl.DataFrame({"a": [float(len(name))], "b": [1.0]}).write_parquet(folder / name)
    for name in ("data[1].parquet", "*.parquet"):
        assert main(["predict", "model.json", name, "--out", "out.csv"]) == 0
        assert pl.read_csv("out.csv").height == 1


NAMES = {"new\nline": "new\\nline", "\x1b[31mred": "\\x1b[31mred", "bi\u202edi": "bi\\u202edi"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if k else []) for k, name in enumerate(NAMES)],
)
def test_control_characters_in_names_are_shown_escaped(folder, capsys, name):
    shown = NAMES[name]
    X = np.random.default_rng(0).standard_normal((30, 2))
    frame = pl.DataFrame({name: X[:, 0], "constant": 1.0, f"t{name}": X[:, 0] - X[:, 1]})
    frame.with_columns(pl.Series(f"0{name}", [1.0] * 30)).write_parquet("odd.parquet")
    privacy = [
        "--label-dp",
        "--epsilon",
        "90",
        "--delta",
        "0.01",
        "--y-bounds",
        "-4",
        "4",
        "--lam",
        "0.1",
    ]
    words = ["fit", "odd.parquet", "--target", f"t{name}", *privacy]
    files = ["--out", f"m{name}.json", "--report", "r.html"]

    def printed(*command, code):
        assert main(list(command)) == code
        captured = capsys.readouterr()
        text = captured.out + captured.err
        assert all(line.isprintable() for line in text.split("\n"))
        assert name not in text
        return text

    assert f"'t{shown}'" in printed(*words, *files, code=0)
    page = (folder / "r.html").read_text()
    assert name not in page
    assert shown in page
    assert f"Constant, with coefficient zero: constant, 0{shown}." in printed(
        *words, "--dry-run", code=0
    )
    assert shown in printed("predict", f"m{name}.json", "whole.csv", "--out", "p.csv", code=2)
    assert shown in printed("predict", f"{name}.json", "whole.csv", "--out", "p.csv", code=2)
    assert shown in printed("fit", "whole.csv", "--target", name, *privacy, *files, code=2)
    (folder / f"bad{name}.parquet").write_bytes(b"PAR1")
    assert shown in printed("fit", f"bad{name}.parquet", *words[2:], *files, code=2)


def test_a_path_that_is_not_unicode_costs_nothing(folder, capsys):
    """It cannot be shown as it is, in the report least of all; the fit goes through."""
    os.rename(b"whole.csv", b"whole\xff.csv")
    data = os.fsdecode(b"whole\xff.csv")
    assert main(["fit", data, *DP.split(), "--out", "out.json", "--report", "r.html"]) == 0
    assert "$&#x27;whole\\xff.csv&#x27;" in (folder / "r.html").read_text()
    assert main(["fit", data, *DP.split(), "--out", data + ".json", "--json"]) == 0
    assert main(["predict", data, data, "--out", "p.csv"]) == 2
    assert "whole\\udcff.csv" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["a\ud800", "\udcff"])
def test_names_that_are_no_text_are_refused(folder, capsys, name):
    np.savez("data.npz", X=np.ones((30, 1)), y=np.ones(30), feature_names=np.array([name]))
    assert main(COMMANDS["data.npz"].split()) == 2
    assert "half a character" in capsys.readouterr().err
