"""Spent means said: however a fit ends after its charge, it says so, and its result is kept."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import privasso as pv
from privasso.cli import main
from privasso.ledger import Ledger

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="needs fork and signals"),
    pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning"),
]
PROGRAM = Path(__file__).with_name("interrupted_fits.py")
MECHANISMS = ["release", "objective", "label-objective", "statistics", "screened"]
#: Files that hold what was paid for.
RESULTS = ("model.json", "model.rescued.json", "model.release.json", "kept.json")


def stopped(folder, mechanism, signal, count, seed=0):
    """What fits leave that are stopped at random moments; all that they leave is whole."""
    words = [sys.executable, str(PROGRAM), str(folder), mechanism, signal, str(count), str(seed)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == count
    for k, one in enumerate(found):
        one["results"] = [name for name in one["files"] if name in RESULTS]
        for name in one["results"]:
            load = pv.load if name in RESULTS[:2] else pv.load_release
            assert load(folder / str(k) / name).guarantee["epsilon"] == 3.0
        assert len(one["results"]) <= one["charged"] * len(RESULTS), one
    return found


def check_said(found):
    """Nothing is lost, and nothing is silent."""
    for one in found:
        error = one["err"]
        assert "Traceback" not in error, error
        if one["charged"] == 0:
            assert one["results"] == []
            assert "spent" not in error
            # The others ended before privasso could listen.
            assert one["code"] in (130, -15, 99), (one["code"], error)
            continue
        assert one["results"], error
        if one["code"] == 0 or one["out"].endswith("}\n"):  # all was said, perhaps just before
            assert json.loads(one["out"])["files"]["out"] == "model.json"
            continue
        assert one["code"] == 130, one
        assert "Spent: ε = 3 and δ = 1e-06, for a fit of 'y' on 200 rows and 8 columns" in error
        assert "book.json" in error
        assert any(name in error for name in one["results"]), error


@pytest.mark.parametrize(
    "mechanism", [pytest.param("release", marks=pytest.mark.slow), "objective"]
)
def test_an_interrupted_fit_loses_nothing(tmp_path, mechanism):
    check_said(stopped(tmp_path, mechanism, "SIGINT", 3))


@pytest.mark.slow
@pytest.mark.parametrize("signal", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_many_interrupted_fits_lose_nothing(tmp_path, mechanism, signal):
    found = stopped(tmp_path, mechanism, signal, 60, seed=1)
    check_said(found)
    assert {one["charged"] for one in found} == {0, 1}


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_many_killed_fits_leave_no_result_that_is_not_charged(tmp_path, mechanism):
    """Nothing can be said by a process that is killed, but its ledger knows."""
    found = stopped(tmp_path, mechanism, "SIGKILL", 60, seed=2)
    assert all(one["code"] in (0, -9) for one in found)
    assert any(one["results"] for one in found)


DP = "--target y --epsilon 3 --delta 1e-6 --y-bounds -4 4 --ledger book.json --out model.json"
KINDS = {
    "release": ("--label-dp --lam 50", "privasso.fit.Released.solve", "model.release.json"),
    "objective": (
        "--record-dp --bounds bounds.csv", "privasso.cli._fit_run.facts_of", "model.rescued.json",
    ),
    "statistics": (
        "--record-dp --bounds bounds.csv --mechanism statistics", "privasso.cli._fit_run.facts_of",
        "model.release.json",
    ),
    "screened": (
        "--label-dp --screen 2", "privasso.cli._fit_run.facts_of", "model.rescued.json",
    ),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6))
    table = np.column_stack([X, X[:, 0]])
    np.savetxt("data.csv", table, delimiter=",", header="a,b,c,d,e,f,y", comments="")
    Path("bounds.csv").write_text("name,low,high\n" + "".join(f"{x},-4,4\n" for x in "abcdef"))
    Ledger.create("book.json", 30.0, 1e-4)
    # What is left takes seconds to compute, and is tested elsewhere.
    monkeypatch.setattr("privasso.cli._fit_run.summary", lambda book: "Some is left.")
    return tmp_path


def failing(error):
    def fail(*_, **__):
        raise error

    return fail


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        MemoryError(),
        RuntimeError("the solver gave up"),
        KeyboardInterrupt(),
        ZeroDivisionError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_every_way_out_after_the_release(folder, capsys, monkeypatch, kind, error):
    options, step, name = KINDS[kind]
    monkeypatch.setattr(step, failing(error))
    words = ["fit", "data.csv", *f"{DP} {options}".split()]
    if isinstance(error, ZeroDivisionError):  # a mistake in the program: it says where it is
        with pytest.raises(ZeroDivisionError) as caught:
            main(words)
        said = " ".join(caught.value.__notes__)
    else:
        assert main(words) == (130 if isinstance(error, KeyboardInterrupt) else 2)
        said = capsys.readouterr().err
        lines = said.splitlines()
        assert len([one for one in lines if "compiling its kernels" not in one]) == 1
    assert "is spent, but nothing is lost" in said
    assert f"kept in {name}" in said
    assert "Spent: ε = 3 and δ = 1e-06, for a fit of 'y' on 60 rows" in said
    assert "book.json" in said
    assert not Path("model.json").exists()
    assert len(Ledger.open("book.json").entries) == 1
    load = pv.load if name == "model.rescued.json" else pv.load_release
    assert load(name).guarantee["epsilon"] == 3.0
    assert load(name).feature_names == tuple("abcdef")


@pytest.mark.parametrize("mechanism", ["--label-dp", "--record-dp --bounds bounds.csv"])
@pytest.mark.parametrize("error", [MemoryError(), KeyboardInterrupt(), ValueError("no")])
def test_every_way_out_of_the_mechanism(folder, capsys, monkeypatch, mechanism, error):
    """Between the charge and the result nothing can be kept, but it is said."""
    monkeypatch.setattr("privasso.queries._minimiser.noisy_output", failing(error))
    code = main(["fit", "data.csv", *f"{DP} {mechanism}".split()])
    assert code == (130 if isinstance(error, KeyboardInterrupt) else 2)
    said = capsys.readouterr().err
    assert "count its budget as spent. Spent: ε = 3 and δ = 1e-06, for a fit of 'y'" in said
    assert len(Ledger.open("book.json").entries) == 1


@pytest.mark.parametrize("mechanism", ["--label-dp", "--record-dp --bounds bounds.csv"])
def test_what_fails_before_the_first_bit_costs_nothing(folder, capsys, monkeypatch, mechanism):
    monkeypatch.setattr("privasso.queries._minimiser.drawn_eta", failing(MemoryError()))
    assert main(["fit", "data.csv", *f"{DP} {mechanism}".split()]) == 2
    assert "spent" not in capsys.readouterr().err
    assert not Ledger.open("book.json").entries


@pytest.mark.parametrize("charged", [True, False])
def test_an_interruption_of_the_charge_itself(folder, capsys, monkeypatch, charged):
    """The ledger knows whether it was charged."""
    from privasso._files import write_whole

    def stopped(path, content, **options):
        if charged:
            write_whole(path, content, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr("privasso.ledger._store.write_whole", stopped)
    assert main(["fit", "data.csv", *f"{DP} --label-dp".split()]) == 130
    assert ("count its budget as spent" in capsys.readouterr().err) is charged
    assert len(Ledger.open("book.json").entries) == charged


def test_an_interruption_after_the_files_are_written(folder, capsys, monkeypatch):
    monkeypatch.setattr("privasso.cli._fit_run.show", failing(KeyboardInterrupt()))
    assert main(["fit", "data.csv", *f"{DP} --label-dp".split()]) == 130
    said = capsys.readouterr().err
    assert "The fit is done and its files are written: model.json. Spent: ε = 3" in said
    assert not Path("model.release.json").exists()


def test_without_any_room_the_result_is_printed_even_if_nothing_else_is(folder, monkeypatch):
    """A full disk, with --quiet: standard output is the last place."""
    code = (
        "import sys, privasso._files as files, privasso.cli._outputs as outputs\n"
        "def full(path, *_, **__):\n"
        "    raise OSError(28, 'No space left on device', str(path))\n"
        "from privasso.cli import main\n"
        "import privasso.ledger\n"
        "files.write_whole = outputs.write_whole = full\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    words = ["fit", "data.csv", *f"{DP} --record-dp --bounds bounds.csv --quiet".split()]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert done.returncode == 2
    assert "the model is kept on standard output alone" in done.stderr
    Path("saved.json").write_text(done.stdout)
    assert pv.load("saved.json").guarantee["epsilon"] == 3.0
    assert re.search("Spent: ε = 3 .* charged to .*book.json", done.stderr)
