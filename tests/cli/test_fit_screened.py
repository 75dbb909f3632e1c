"""`privasso fit --label-dp --screen`: the same as the estimator, and what is told beforehand."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import privasso as pv
from privasso.cli import main

pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
DP = "--target y --label-dp --epsilon 2 --delta 1e-6 --y-bounds -6 6"


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 200))
    y = 1.5 * X[:, 3] - 1.5 * X[:, 40] + 0.5 * rng.standard_normal(300)
    names = [f"x{k}" for k in range(200)]
    pl.DataFrame(X, names).with_columns(y=pl.Series(y)).write_csv("wide.csv")
    return X, y


def run(line, capsys, code=0):
    assert main(["fit", "wide.csv", *line.split()]) == code
    return capsys.readouterr()


def test_the_command_does_what_the_estimator_does(data, capsys):
    X, y = data
    out = run(f"{DP} --screen 3 --seed 1 --out m.json --report r.html", capsys).out
    privacy = pv.LabelDP(2.0, 1e-6, (-6, 6))
    est = pv.PrivateLasso(privacy=privacy, screen=3, random_state=1).fit(X, y)
    model = pv.load("m.json")
    np.testing.assert_array_equal(model.coef, est.coef_)
    assert model.intercept == est.intercept_
    assert model.guarantee.kind == "label-dp"
    chosen = ", ".join(f"x{k}" for k in est.screened_)
    assert f"Columns that were chosen: {chosen}." in out
    page = Path("r.html").read_text(encoding="utf-8")
    assert chosen in page
    assert "in common in two choices" in page


def test_a_dry_run_of_a_given_number_of_columns(data, capsys, monkeypatch):
    monkeypatch.setattr("privasso.tables._table.Table.columns_and_labels", None)
    out = run(f"{DP} --screen 2 --dry-run", capsys).out
    assert "no label has been read (column 'y'), no budget is spent" in out
    assert "300 rows, 200 features" in out
    record = json.loads(run(f"{DP} --screen 2 --dry-run --json", capsys).out)
    assert (record["n_rows"], record["n_features"]) == (300, 200)
    assert record["guarantee"]["parameters"]["epsilon"] == 2.0


@pytest.mark.slow
def test_a_dry_run_predicts_both_fits(data, capsys, monkeypatch):
    monkeypatch.setattr("privasso.tables._table.Table.columns_and_labels", None)
    out = run(f"{DP} --screen auto --dry-run", capsys).out
    assert "no label has been read" in out
    assert "R² of chosen columns  R² of all columns" in out
    assert "Chance to miss in the first round a column that explains 10%: 0." in out
    assert "choosing columns first is better" in out
    record = json.loads(run(f"{DP} --screen auto --dry-run --json", capsys).out)["screening"]
    assert record["better"] == "screened"
    by_true = {one["columns_with_coefficients"]: one for one in record["predicted"]}
    assert by_true[1]["r2_screened"] > by_true[1]["r2_direct"] + 0.1
    assert by_true[1]["found"] > by_true[100]["found"]
    assert [one["missed"] for one in record["missed"]] == sorted(
        (one["missed"] for one in record["missed"]), reverse=True
    )


def test_all_columns_are_fitted_where_that_is_better(data, capsys):
    """With few columns a choice is not expected to pay."""
    few = " ".join(f"--features x{k}" for k in (3, 40))
    out = run(f"{DP} --screen auto {few} --seed 1 --out m.json", capsys).out
    assert "Columns that were chosen" not in out
    assert pv.load("m.json").guarantee.kind == "label-dp"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--screen 3 --out m.json --keep-release k.json", "a fit of chosen columns leaves none"),
        ("--screen 3 --out m.json --lam-path 1,2 --path-out p.csv", "leaves none"),
        ("--screen 300 --out m.json", "300 columns cannot be chosen from 200"),
        ("--screen 3 --mechanism release --out m.json", "screen needs mechanism='objective'"),
    ],
)
def test_what_cannot_be_is_refused_before_it_costs(data, capsys, options, message, monkeypatch):
    monkeypatch.setattr("privasso.fit.Plan.release", None)
    assert message in run(f"{DP} {options}", capsys, code=2).err


@pytest.mark.slow
def test_a_ledger_is_charged_for_both(data, capsys):
    pv.Ledger.create("book.json", 2.5, 1e-5)
    line = f"{DP} --screen 3 --seed 1 --ledger book.json"
    assert "Ledger." in run(f"{line} --out m.json", capsys).out
    assert "budget" in run(f"{line} --out other.json", capsys, code=2).err
