"""`privasso predict`: columns by name, in any order."""

import json

import numpy as np
import polars as pl
import pytest

import privasso as pv
from privasso.cli import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3)) * [1.0, 10.0, 0.1]
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": X @ [1.0, 0.1, 5.0]})
    frame.write_csv("data.csv")
    options = "--target y --label-dp --epsilon 50 --delta 1e-3 --y-bounds -5 5 --lam 1"
    assert main(["fit", "data.csv", *options.split(), "--out", "model.json"]) == 0
    return tmp_path


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_predictions(folder, capsys, ending):
    capsys.readouterr()
    frame = pl.read_csv("data.csv")
    frame.select("c", pl.lit("x").alias("extra"), "a", "b").write_parquet("new.parquet")
    out = f"predictions.{ending}"
    assert main(["predict", "model.json", "new.parquet", "--out", out, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    model = pv.load("model.json")
    expected = frame.select("a", "b", "c").to_numpy() @ model.coef + model.intercept
    found = (pl.read_csv if ending == "csv" else pl.read_parquet)(out)["prediction"].to_numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert record["n_rows"] == 50
    assert record["mean"] == pytest.approx(expected.mean())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("model.json less.csv --out p.csv", "less.csv has no column 'b'"),
        ("model.json data.csv --out p.txt", ".csv or .parquet"),
        ("model.json data.csv --out nowhere/p.csv", "cannot be written"),
        ("model.json data.csv --out data.csv", "the same file"),
        ("data.csv data.csv --out p.csv", "not valid JSON"),
        ("nowhere.json data.csv --out p.csv", "nowhere.json"),
        ("model.json nowhere.csv --out p.csv", "nowhere.csv"),
        ("model.json bad.csv --out p.csv", "column 'b' has a missing value in row 2"),
        ("model.json data.csv", "--out"),
    ],
)
def test_bad_input(folder, capsys, words, message):
    capsys.readouterr()
    frame = pl.read_csv("data.csv")
    frame.select("a").write_csv("less.csv")
    frame.with_columns(b=pl.Series([1.0, None, *[2.0] * 48])).write_csv("bad.csv")
    assert main(["predict", *words.split()]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (folder / "p.csv").exists()


def test_a_model_without_names(folder, capsys):
    est = pv.PrivateLasso(1.0, pv.LabelDP(5.0, 1e-3, (-5, 5))).fit(np.eye(9)[:, :2], np.ones(9))
    pv.save(est, "nameless.json")
    np.savez("two.npz", X=np.eye(2))
    assert main(["predict", "nameless.json", "two.npz", "--out", "p.csv"]) == 0
    found = pl.read_csv("p.csv")["prediction"].to_numpy()
    np.testing.assert_allclose(found, est.coef_ + est.intercept_)
    assert main(["predict", "nameless.json", "data.csv", "--out", "q.csv"]) == 2
    assert "needs exactly 2" in capsys.readouterr().err
