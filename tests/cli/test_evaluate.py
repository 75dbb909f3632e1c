"""`privasso evaluate`: reads as a fit does, charges, prints and writes one file."""

import json

import numpy as np
import polars as pl
import pytest

import privasso as pv
from privasso.cli import main

pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
BUDGET = ["--epsilon", "2", "--delta", "1e-5"]
LABELS, RECORDS = ["--label-dp", *BUDGET], ["--record-dp", *BUDGET, "--bounds", "bounds.csv"]
BOUNDS = ["--y-bounds", "-0.2", "1.2"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1500, 2))
    y = X @ [0.5, 0.3] + 0.1 * rng.standard_normal(1500)
    region = rng.choice(["north", "south"], 1500)
    frame = pl.DataFrame({"b": X[:, 1], "a": X[:, 0], "region": region, "y": y})
    frame = frame.with_columns(yes=(pl.col("y") > 0.4).cast(int))
    frame.write_csv("data.csv")
    frame.with_columns(a=pl.lit("?")).write_csv("text.csv")
    (tmp_path / "bounds.csv").write_text(
        "name,low,high,levels\na,0,1,\nb,0,1,\nregion,,,south\n", encoding="utf-8"
    )
    return tmp_path


def fitted(*words):
    assert main(["fit", "data.csv", *words, "--seed", "0", "--out", "model.json"]) == 0


def evaluated(capsys, *words):
    capsys.readouterr()
    assert main(["evaluate", "model.json", "data.csv", *words, "--seed", "1"]) == 0
    return capsys.readouterr().out


def test_labels(capsys, folder):
    fitted("--target", "y", "--exclude", "yes", *LABELS, *BOUNDS)
    assert main(["ledger", "create", "ledger.json", "--epsilon", "2", "--delta", "1e-5"]) == 0
    words = ["--target", "y", *LABELS, "--metrics", "r2, mae,prediction-interval"]
    words += ["--ledger", "ledger.json"]
    printed = evaluated(capsys, *words, "--out", "found.json")
    assert "prediction-interval" in printed
    assert "of the prediction for 90 % of new rows" in printed
    assert "Label differential privacy" in printed
    record = json.loads((folder / "found.json").read_text())
    assert list(record["metrics"]) == ["r2", "mae", "prediction-interval"]
    assert len(pv.Ledger.open("ledger.json").entries) == 1
    # In Python, with the bounds of the fit.
    frame = pl.read_csv("data.csv")
    found = pv.evaluate(
        pv.load("model.json"), frame, frame["y"], privacy=pv.LabelDP(2.0, 1e-5, (-0.2, 1.2)),
        metrics=("r2", "mae", "prediction-interval"), random_state=1,
    )  # fmt: skip
    assert {name: one["value"] for name, one in record["metrics"].items()} == found.values
    assert main(["evaluate", "model.json", "data.csv", *words]) == 2  # nothing is left
    assert "does not fit into the budget" in capsys.readouterr().err


def test_a_model_of_zeros_needs_no_column(capsys):
    fitted("--target", "y", "--exclude", "yes", *LABELS, *BOUNDS, "--lam", "1e9")
    assert not pv.load("model.json").coef.any()
    pl.read_csv("data.csv").select("y").write_csv("less.csv")
    words = ["evaluate", "model.json", "less.csv", "--target", "y", *LABELS, "--metrics", "mae"]
    assert main(words) == 0


@pytest.mark.parametrize("binary", [False, True], ids=["linear", "classes"])
def test_records(capsys, binary):
    target, other = ("yes", "y") if binary else ("y", "yes")
    more = ["--binary"] if binary else BOUNDS
    fitted("--target", target, "--exclude", other, *RECORDS, *more)
    one = json.loads(evaluated(capsys, "--target", target, *RECORDS, "--json"))
    assert list(one["metrics"]) == (["auc", "log-loss"] if binary else ["r2", "mae"])
    assert "the types of the columns in the file" in " ".join(one["guarantee"]["assumptions"])
    assert "data dictionary" in " ".join(one["guarantee"]["assumptions"])
    # A cell that is no number is a missing one, which no error may tell.
    capsys.readouterr()
    words = ["evaluate", "model.json", "text.csv", "--target", target, *RECORDS]
    assert main(words) == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--target y --label-dp", "--label-dp needs --epsilon"),
        ("--target y", "say what to protect"),
        ("--target y --label-dp --epsilon 1 --delta 1e-5 --metrics auc", "r2, mae, mse"),
        ("--target z --label-dp --epsilon 1 --delta 1e-5", "no column 'z'"),
        ("--target y --label-dp --epsilon 1 --delta 1e-5 --out e.txt", "ends in .json"),
        ("--target y --label-dp --epsilon 1 --delta 1e-5 --out data.csv", ".json"),
        ("--target y --label-dp --epsilon 1 --delta 1e-5 --out model.json", "the same file"),
        ("--target y --record-dp --epsilon 1 --delta 1e-5", "--bounds FILE"),
        ("--target y --record-dp --epsilon 1 --delta 1e-5 --bounds private", "beforehand"),
    ],
)
def test_refusals(capsys, words, said):
    fitted("--target", "y", "--exclude", "yes", *LABELS, *BOUNDS)
    capsys.readouterr()
    assert main(["evaluate", "model.json", "data.csv", *words.split()]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
