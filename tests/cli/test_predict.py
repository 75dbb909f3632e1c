"""`privasso predict`: columns by name, in any order."""

import json
import shutil

import numpy as np
import pandas as pd
import polars as pl
import pytest

import privasso as pv
from privasso.cli import main
from privasso.encoding import Encoding, LevelCode, NumberCode
from privasso.privacy import Terms


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A folder with a table and a model of it."""
    folder = tmp_path_factory.mktemp("fitted")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3)) * [1.0, 10.0, 0.1]
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": X @ [1.0, 0.1, 5.0]})
    frame.write_csv(folder / "data.csv")
    options = "--target y --label-dp --epsilon 50 --delta 1e-3 --y-bounds -5 5 --lam 1"
    words = [str(folder / "data.csv"), *options.split(), "--out", str(folder / "model.json")]
    assert main(["fit", *words]) == 0
    return folder


@pytest.fixture
def folder(fitted, tmp_path, monkeypatch):
    """A copy, in which a test may do what it likes."""
    shutil.copytree(fitted, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
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
        ("model.json less.csv --out p.csv", "less.csv has no columns 'b', 'c'"),
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


def _model(coef, names, encoding=None, bounds=(-5.0, 5.0)):
    terms = Terms(fit_intercept=True, seeded=False, n_rows=50)
    statement = pv.LabelDP(1.0, 1e-3, bounds).guarantee(terms)
    return pv.ReleasedModel(
        np.array(coef), 1.0, 1.0, statement, None, feature_names=names, encoding=encoding
    )


def test_columns_with_a_zero_coefficient_may_be_missing(folder):
    pv.save(_model([0.0, 2.0, 0.0], ("a", "b", "c")), "sparse.json")
    pl.DataFrame({"b": [1.0, 2.0], "c": ["text", "text"]}).write_csv("new.csv")
    assert main(["predict", "sparse.json", "new.csv", "--out", "p.csv"]) == 0
    np.testing.assert_allclose(pl.read_csv("p.csv")["prediction"], [3.0, 5.0])
    frame = pl.read_csv("new.csv")
    np.testing.assert_allclose(pv.load("sparse.json").predict(frame), [3.0, 5.0])
    pandas = pd.DataFrame(frame.to_dict(as_series=False))
    np.testing.assert_allclose(pv.load("sparse.json").predict(pandas), [3.0, 5.0])
    with pytest.raises(ValueError, match="lacks the column 'b'"):
        pv.load("sparse.json").predict(frame.select("c"))


def test_levels_with_zero_coefficients_may_be_missing(folder):
    ward = LevelCode("ward", ("east", "north", "west"), reference="east")
    sex = LevelCode("sex", ("f", "m"), reference="f")
    encoding = Encoding((ward, NumberCode("age", fill=40.0), sex))
    model = _model([0.0, 2.0, 0.5, 0.0], encoding.names, encoding)
    pv.save(model, "levels.json")
    assert model.needed().feature_names == ("ward=north", "ward=west", "age")
    pl.DataFrame({"age": [10.0, None], "ward": ["west", "north"]}).write_csv("new.csv")
    assert main(["predict", "levels.json", "new.csv", "--out", "p.csv"]) == 0
    np.testing.assert_allclose(pl.read_csv("p.csv")["prediction"], [8.0, 21.0])


def test_a_model_of_zeros_needs_no_column(folder):
    pv.save(_model([0.0, 0.0], ("u", "v")), "zeros.json")
    assert main(["predict", "zeros.json", "data.csv", "--out", "p.csv"]) == 0
    np.testing.assert_allclose(pl.read_csv("p.csv")["prediction"], np.ones(50))


def test_predictions_beyond_the_label_bounds(folder, capsys):
    pv.save(_model([2.0], ("b",)), "line.json")
    pl.DataFrame({"b": [-4.0, 0.0, 1.0, 3.0]}).write_csv("new.csv")
    assert main(["predict", "line.json", "new.csv", "--out", "p.csv"]) == 0
    assert "2 of them lay outside the bounds of the labels, [-5, 5]" in capsys.readouterr().out
    np.testing.assert_allclose(pl.read_csv("p.csv")["prediction"], [-7.0, 1.0, 3.0, 7.0])
    assert main(["predict", "line.json", "new.csv", "--out", "p.csv", "--clip", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["outside_bounds"] == 2
    assert record["label_bounds"] == [-5.0, 5.0]
    np.testing.assert_allclose(pl.read_csv("p.csv")["prediction"], [-5.0, 1.0, 3.0, 5.0])


def test_a_kept_release_is_no_model(folder, capsys):
    options = "--target a --label-dp --epsilon 50 --delta 1e-3 --y-bounds -5 5 --lam 1"
    kept = ["--out", "m.json", "--keep-release", "kept.json"]
    assert main(["fit", "data.csv", *options.split(), *kept]) == 0
    assert main(["predict", "kept.json", "data.csv", "--out", "p.csv"]) == 2
    assert "not a model but a kept release; `privasso fit --from" in capsys.readouterr().err
    assert main(["fit", "data.csv", "--from-release", "m.json", "--out", "n.json"]) == 2
    assert "not a kept release but a model; `privasso predict`" in capsys.readouterr().err
