"""Predictions of exported models in the software that they are written for."""

import json
import shutil
import subprocess

import duckdb
import numpy as np
import onnxruntime
import polars as pl
import pytest

import privasso as pv
from privasso.cli import main
from privasso.encoding import Encoding, LevelCode, NumberCode
from privasso.exports import onnx_model, r_function, sql_query
from privasso.exports._formulas import _plain, terms_of
from privasso.privacy import Terms

STRANGE = 'dose "mg"; DROP é'
#: R and ONNX take a backslash, too.
BACKSLASH = STRANGE + "\\"
STATEMENT = pv.LabelDP(1.0, 1e-3, (-5, 5)).guarantee(
    Terms(fit_intercept=True, seeded=False, n_rows=50)
)


def released(classes=None, strange=STRANGE):
    """A model with numbers and texts, filled in and not, and names that need quotes."""
    encoding = Encoding(
        (
            NumberCode("age", fill=40.0, indicator=True),
            NumberCode(strange),
            NumberCode("unused"),
            LevelCode("ward", ("O'Hara", "east", "größe"), reference="east"),
            LevelCode("sex", ("f", "m"), reference="f", missing=True),
            LevelCode("flag", ("yes",), reference=None),
            NumberCode("smoker"),
            LevelCode("test", ("again", "done"), reference="done", missing=True),
        )
    )
    coef = np.array([0.05, -0.4, 1e-7, 0.0, 0.3, -1.25, 0.125, 0.6, 2.0 / 3.0, 0.75, 0.0, -0.5])
    return pv.ReleasedModel(
        coef, -1.0 / 3.0, 1.0, STATEMENT, None, encoding.names, encoding=encoding, classes=classes
    )


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    n = 200
    age = [None if k % 7 == 0 else float(x) for k, x in enumerate(rng.normal(50, 20, n))]
    sex = [None if k % 5 == 0 else str(x) for k, x in enumerate(rng.choice(["f", "m"], n))]
    return pl.DataFrame(
        {
            "age": age,
            STRANGE: rng.normal(0, 1e6, n),
            "ward": rng.choice(["O'Hara", " east", "größe "], n).astype(str),
            "sex": sex,
            "flag": [None if k % 3 == 0 else "yes" if k % 2 else "no" for k in range(n)],
            "smoker": rng.random(n) < 0.5,
            "test": [("again", "done", "NA", "done ")[k % 4] for k in range(n)],
            "extra": np.arange(n),
        },
        schema_overrides={"age": pl.Float64},
    )


def expected(model, table):
    if model.classes is None:
        return model.predict(table)
    return model.predict_proba(table)[:, 1]


@pytest.fixture(params=[None, ("no", "yes")], ids=["linear", "logistic"])
def model(request):
    return released(request.param)


def test_the_sum_is_the_prediction(table):
    """An oracle in plain Python: the terms, row by row."""
    model = released()
    parts = terms_of(model)
    assert [term.name for term in parts] == [
        "age",
        STRANGE,
        "ward",
        "sex",
        "flag",
        "smoker",
        "test",
    ]
    for row, found in zip(table.rows(named=True), model.predict(table), strict=True):
        total = -1.0 / 3.0 + 1e-7 * row[STRANGE]
        total += 0.05 * 40.0 - 0.4 if row["age"] is None else 0.05 * row["age"]
        total += {"O'Hara": 0.3, "größe": -1.25, "east": 0.0}[row["ward"].strip()]
        total += {"f": 0.0, "m": 0.125, None: 0.6}[row["sex"]]
        total += 2.0 / 3.0 if row["flag"] == "yes" else 0.0
        total += 0.75 * row["smoker"] - 0.5 * (row["test"] == "NA")
        assert found == pytest.approx(total, abs=1e-12)


def test_a_database_predicts_the_same(model, table, tmp_path):
    table.write_parquet(tmp_path / "table.parquet")
    with duckdb.connect() as base:
        base.execute(f"CREATE TABLE data AS SELECT * FROM '{tmp_path}/table.parquet'")
        rows = base.execute(sql_query(model))
        names = [column[0] for column in rows.description]
        found = [row[-1] for row in rows.fetchall()]
    assert names == [*table.columns, "prediction" if model.classes is None else "probability"]
    np.testing.assert_allclose(found, expected(model, table), rtol=1e-9)


def test_a_missing_value_that_is_not_filled_in_gives_no_prediction():
    quoted = STRANGE.replace('"', '""')
    with duckdb.connect() as base:
        base.execute(
            f'CREATE TABLE t AS SELECT 1.0 AS age, CAST(NULL AS DOUBLE) AS "{quoted}", '
            "'east' AS ward, 'f' AS sex, 'yes' AS flag, true AS smoker, 'done' AS test"
        )
        assert base.execute(sql_query(released(), "t")).fetchall()[0][-1] is None


def test_onnxruntime_predicts_the_same(model, table):
    model, table = released(model.classes, BACKSLASH), table.rename({STRANGE: BACKSLASH})
    session = onnxruntime.InferenceSession(onnx_model(model))
    inputs = {}
    for one in session.get_inputs():
        column = table[one.name]
        if one.type == "tensor(double)":
            values = column.cast(pl.Float64).fill_null(float("nan")).to_numpy()
        else:
            values = np.array([(x or "").strip() for x in column], dtype=object)
        inputs[one.name] = values[:, None]
    assert set(inputs) == {"age", BACKSLASH, "ward", "sex", "flag", "smoker", "test"}
    (found,) = session.run(None, inputs)
    np.testing.assert_allclose(np.asarray(found)[:, 0], expected(model, table), rtol=1e-9)


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_r_predicts_the_same(model, table, tmp_path):
    model, table = released(model.classes, BACKSLASH), table.rename({STRANGE: BACKSLASH})
    table.write_csv(tmp_path / "table.csv")
    script = (
        f"{r_function(model)}\n"
        f"data <- read.csv('{tmp_path}/table.csv', check.names = FALSE, na.strings = '',"
        " encoding = 'UTF-8')\n"
        "cat(sprintf('%.17g', predict_privasso(data)), sep = '\\n')\n"
    )
    (tmp_path / "script.R").write_text(script, encoding="utf-8")
    done = subprocess.run(
        ["Rscript", "--vanilla", str(tmp_path / "script.R")],
        capture_output=True,
        text=True,
        check=True,
        env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
    )
    found = np.array(done.stdout.split(), dtype=float)
    np.testing.assert_allclose(found, expected(model, table), rtol=1e-9)


def test_the_command_line(tmp_path, monkeypatch, capsys, table):
    monkeypatch.chdir(tmp_path)
    model = released()
    pv.save(model, "model.json")
    for name in ("model.sql", "model.R", "model.onnx"):
        assert main(["export", "model.json", "--out", name]) == 0
    assert "model.onnx is an ONNX graph" in capsys.readouterr().out
    assert main(["export", "model.json", "--out", "m.sql", "--table", "t", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "sql"
    with open("m.sql", encoding="utf-8") as file:
        text = file.read()
    assert text.startswith(
        "-- privasso export\n-- Label differential privacy with ε = 1 and δ = 0.001"
    )
    assert text.endswith('FROM "t"\n')
    assert main(["export", "model.json", "--out", "model.txt"]) == 2
    assert "must end in .sql, .R or .onnx" in capsys.readouterr().err


def test_what_cannot_be_exported():
    nameless = pv.ReleasedModel(np.ones(2), 0.0, 1.0, STATEMENT, None)
    with pytest.raises(ValueError, match="no names of columns"):
        sql_query(nameless)
    zeros = pv.ReleasedModel(np.zeros(2), 0.5, 1.0, STATEMENT, None, ("a", "b"))
    with pytest.raises(ValueError, match=r"the prediction is 0\.5"):
        onnx_model(zeros)
    with duckdb.connect() as base:
        base.execute("CREATE TABLE data AS SELECT 1 AS a")
        assert base.execute(sql_query(zeros)).fetchall() == [(1, 0.5)]


@pytest.mark.parametrize("text", ["\\", "a\\", "\\' OR 1=1 --", "C:\\new"])
def test_a_backslash_is_refused_where_it_could_end_a_text(text):
    """MySQL, BigQuery and others escape by it: '\\' is an open text there, and a text in others."""
    levels = Encoding((LevelCode("ward", ("a", text), reference="a"),))
    names = ((text,), None), (levels.names, levels)
    for columns, encoding in names:
        model = pv.ReleasedModel(np.ones(1), 0.5, 1.0, STATEMENT, None, columns, encoding=encoding)
        with pytest.raises(ValueError, match="holds a backslash"):
            sql_query(model)
    with pytest.raises(ValueError, match="holds a backslash"):
        sql_query(released(), table=text)


@pytest.mark.parametrize("classes", [None, ("no", "yes")])
def test_a_column_that_is_named_as_the_output(classes):
    names = ("prediction", "probability", "prediction_", "/1")
    model = pv.ReleasedModel(
        np.array([1.0, 2.0, 4.0, 8.0]), 0.5, 1.0, STATEMENT, None, names, classes=classes
    )
    session = onnxruntime.InferenceSession(onnx_model(model))
    assert session.get_outputs()[0].name == ("prediction__" if classes is None else "probability_")
    (found,) = session.run(None, {name: np.array([[1.0]]) for name in names})
    expected = 15.5 if classes is None else 1.0 / (1.0 + np.exp(-15.5))
    assert float(np.asarray(found).item()) == pytest.approx(expected)


def test_a_column_without_a_name_is_refused(tmp_path, capsys):
    model = pv.ReleasedModel(np.array([1.0]), 0.5, 1.0, STATEMENT, None, ("",))
    pv.save(model, tmp_path / "model.json")
    words = ["export", str(tmp_path / "model.json"), "--out", str(tmp_path / "model.onnx")]
    assert main(words) == 2
    assert "empty name" in capsys.readouterr().err


def test_a_comment_of_r_is_plain():
    assert _plain("ε = 1, (p − δ)·e^(−ε)") == "epsilon = 1, (p - delta)*e^(-epsilon)"
