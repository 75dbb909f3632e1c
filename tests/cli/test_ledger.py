"""`privasso ledger` and `privasso fit --ledger`: a budget in a file that commands share."""

import json
import re

import numpy as np
import polars as pl
import pytest

import privasso as pv
from privasso.cli import main

FIT = "fit data.csv --target y --label-dp --delta 1e-6 --y-bounds -3 3 --ledger budget.json"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).standard_normal((300, 3))
    pl.DataFrame(X, schema=["a", "b", "c"]).with_columns(y=X[:, 0]).write_csv("data.csv")
    assert main(["ledger", "create", "budget.json", "--epsilon", "2", "--delta", "1e-6",
                 "--data", "a study of y"]) == 0  # fmt: skip
    return tmp_path


def run(text, capsys, code=0):
    capsys.readouterr()
    assert main(text.split()) == code
    printed = capsys.readouterr()
    return printed.err if code else printed.out


@pytest.mark.slow
def test_fits_share_the_budget(folder, capsys):
    out = run(f"{FIT} --epsilon 1 --out a.json --keep-release r.json", capsys)
    assert "Ledger. Spent: ε = 1 at δ = 1e-06, by 1 release." in out
    record = json.loads(run(f"{FIT} --epsilon 0.5 --out b.json --json", capsys))
    assert "by 2 releases together" in record["ledger"]
    ledger = pv.Ledger.open("budget.json")
    assert [entry.guarantee["epsilon"] for entry in ledger.entries] == [1.0, 0.5]
    assert ledger.entries[0].what.startswith("fit of 'y' on 300 rows and 3 columns, privasso")
    assert ledger.entries[0].guarantee == pv.load("a.json").guarantee
    # Solving again is free.
    run("fit data.csv --from-release r.json --lam 5000 --out c.json", capsys)
    assert len(ledger.entries) == 2
    error = run(f"{FIT} --epsilon 1.9 --out d.json", capsys, code=2)
    assert error.count("\n") == 1
    (left,) = re.findall(r"ε up to ([\d.]+);", error)
    assert not (folder / "d.json").exists()
    run(f"{FIT} --epsilon {left} --out d.json", capsys)
    assert 1.9 < ledger.spent() <= 2.0


def test_a_dry_run_says_what_would_remain_and_charges_nothing(capsys):
    out = run(f"{FIT} --epsilon 1 --dry-run", capsys)
    assert "The ledger with this fit: Spent: ε = 1 at δ = 1e-06" in out
    record = json.loads(run(f"{FIT} --epsilon 1 --dry-run --json", capsys))
    assert record["ledger"]["spent"] == 0.0
    assert record["ledger"]["spent_after"] == pytest.approx(1.0, abs=1e-4)
    assert 1.4 < record["ledger"]["left_after"] < 1.673  # that of Gaussian mechanisms
    assert "does not fit into the budget" in run(f"{FIT} --epsilon 2.5 --dry-run", capsys, code=2)
    assert pv.Ledger.open("budget.json").entries == ()


def test_show(capsys):
    run(f"{FIT} --epsilon 1 --seed 1 --out a.json", capsys)
    out = run("ledger show budget.json", capsys)
    assert "Budget for a study of y: ε = 2, δ = 1e-06" in out
    assert "fit of 'y' on 300 rows and 3 columns, fixed seed" in out
    (left,) = re.findall(r"may have ε up to ([\d.]+)\.\n", out)
    assert 1.4 < float(left) < 1.673
    record = json.loads(run("ledger show budget.json --json", capsys))
    assert (record["epsilon"], record["delta"], record["data"]) == (2.0, 1e-6, "a study of y")
    assert 0.2 < record["entries"][0]["guarantee"]["losses"][0]["c"] < 0.2367
    assert "Usage: privasso ledger" in run("ledger", capsys)


def test_fits_are_declared_beforehand(folder, capsys):
    for name, epsilon in (("first", 0.5), ("second", 1.0)):
        printed = run(f"{FIT} --epsilon {epsilon} --dry-run --json", capsys)
        (folder / f"{name}.json").write_text(printed)
    out = run("ledger reserve budget.json first.json second.json", capsys)
    assert "by 2 reserved fits, declared beforehand." in out
    spent = pv.Ledger.open("budget.json").spent()
    out = run(f"{FIT} --epsilon 1 --seed 1 --out a.json", capsys)
    assert "by 1 release and 1 reserved fit, declared beforehand." in out
    assert pv.Ledger.open("budget.json").spent() == spent
    error = run("ledger reserve budget.json first.json", capsys, code=2)
    assert "before the first release" in error
    for content, message in (("{}", "there is no guarantee in it"), ("[", "not valid JSON")):
        (folder / "plan.json").write_text(content)
        assert message in run("ledger reserve budget.json plan.json", capsys, code=2)


BAD = [
    ("ledger create budget.json --epsilon 1 --delta 1e-6", "is not overwritten"),
    ("ledger create other.json --epsilon 0 --delta 1e-6", "epsilon must be positive"),
    ("ledger create other.json --epsilon 1", "--delta"),
    ("ledger show nowhere.json", "nowhere.json"),
    ("ledger show data.csv", "data.csv: the file is not valid JSON"),
    (f"{FIT} --epsilon 1 --out budget.json", "the same file"),
    (f"{FIT} --epsilon 1 --from-release r.json --out a.json", "with --from-release"),
    (f"{FIT.replace('budget', 'nowhere')} --epsilon 1 --out a.json", "nowhere.json"),
    (
        "fit data.csv --target y --on-average --sigma 1 --lam 1 --ledger budget.json --out a.json",
        "--ledger needs --label-dp",
    ),
]


@pytest.mark.parametrize(("command", "message"), BAD)
def test_bad_commands(folder, capsys, command, message):
    before = (folder / "budget.json").read_text()
    error = run(command, capsys, code=2)
    assert error.startswith("privasso: error: ")
    assert message in error
    assert error.count("\n") == 1
    names = {path.name for path in folder.iterdir()}
    assert names == {"data.csv", "budget.json"}
    assert (folder / "budget.json").read_text() == before


def test_other_bounds_are_refused(capsys):
    run(f"{FIT} --epsilon 1 --out a.json", capsys)
    other = FIT.replace("-3 3", "-4 4")
    assert "different bounds" in run(f"{other} --epsilon 0.1 --out b.json", capsys, code=2)
