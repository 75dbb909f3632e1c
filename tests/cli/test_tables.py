"""`privasso fit` and `predict` on tables as people have them: text, gaps, identifiers, dates."""

import json
import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import privasso as pv
from privasso.cli import main
from privasso.cli._fit import FitSettings
from privasso.cli._fit_show import command_of

# Outside of the tests each command is a process of its own, which fits once.
pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")

DP = "--target y --label-dp --epsilon 60 --delta 1e-4 --y-bounds -4 4 --lam 3"


def data(m=300, seed=0):
    rng = np.random.default_rng(seed)
    region = rng.choice(["north", "east=1", "sü,d"], m, p=[0.5, 0.3, 0.2])
    age = rng.normal(50, 9, m).round(1)
    y = np.clip(2.0 * (region == "east=1") + 0.02 * (age - 50) + 0.3 * rng.normal(size=m), -4, 4)
    flag = rng.random(m) < 0.4
    return pl.DataFrame({"age": age, "region": region, "flag": flag, "y": y})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data().write_csv("data.csv")
    return tmp_path


def run(capsys, *words, code=0):
    """Run a command; options with spaces come as words of their own."""
    flat = [part for word in words for part in ([word] if " " not in word else word.split())]
    assert main(flat) == code
    captured = capsys.readouterr()
    if code == 2:
        assert captured.err.startswith("privasso: error: ")
        assert captured.err.count("\n") == 1
    return captured.out if code == 0 else captured.err


def test_fit_and_predict_with_levels(folder, capsys):
    out = run(capsys, f"fit data.csv {DP} --out model.json --keep-release release.json --json")
    assert set(json.loads(out)["coef"]) <= {"age", "region=east=1", "region=sü,d", "flag"}
    model = pv.load("model.json")
    assert model.feature_names == ("age", "region=east=1", "region=sü,d", "flag")
    assert model.coef[1] > 1.0
    run(capsys, "predict model.json data.csv --out p.csv")
    frame = data()
    X = np.column_stack(
        [frame["age"], frame["region"] == "east=1", frame["region"] == "sü,d", frame["flag"]]
    )
    expected = X @ model.coef + model.intercept
    np.testing.assert_allclose(pl.read_csv("p.csv")["prediction"], expected, rtol=1e-12)
    # The release knows how its covariates were made: another λ needs no option and no labels.
    frame.drop("y").write_parquet("public.parquet")
    run(capsys, "fit public.parquet --from-release release.json --lam 4 --out again.json")
    assert pv.load("again.json").encoding == model.encoding
    error = run(
        capsys, "fit public.parquet --from-release release.json --missing mean --out b.json", code=2
    )
    assert "--missing cannot be given with --from-release" in error


def test_levels_that_only_the_new_table_has(folder, capsys):
    run(capsys, f"fit data.csv {DP} --out model.json")
    new = data().with_columns(region=pl.Series(["secret place"] * 2 + ["north"] * 298))
    new.write_csv("new.csv")
    error = run(capsys, "predict model.json new.csv --out p.csv", code=2)
    assert "column 'region' has levels that the model does not know in 2 rows, first in" in error
    assert "secret" not in error
    run(capsys, "predict model.json new.csv --unknown ignore --out p.csv")
    assert "must be error or ignore" in run(
        capsys, "predict model.json new.csv --unknown drop --out p.csv", code=2
    )
    data().with_columns(age=pl.lit("old")).write_csv("text.csv")
    error = run(capsys, "predict model.json text.csv --out q.csv", code=2)
    assert "column 'age' holds text; the model has numbers there" in error


def test_every_bad_column_is_named_at_once(folder, capsys):
    n = 300
    bad = data().with_columns(
        pl.Series("id", range(n)),
        pl.Series("when", ["2020-01-17 10:00"] * n),
        pl.Series("gap", [None, *range(1, n)], strict=False),
        pl.Series("word", [None, "u"] * (n // 2)),
        pl.Series("code", ["a", *["1", "2", "3"] * 99, "1", "2"]),
        pl.Series("name", [f"person {k}" for k in range(n)]),
    )
    bad.write_csv("bad.csv")
    error = run(capsys, f"fit bad.csv {DP} --out model.json", code=2)
    for part in ("'gap' has a missing value in row 1", "'word' has a missing text in row 1",
                 "'when' holds dates or times", "'code' holds text, first in row 1",
                 "olumns 'id' and 'name' look like identifiers"):  # fmt: skip
        assert part in error
    assert "person" not in error
    settled = "--exclude when,name --categorical code --keep id --missing indicator"
    run(capsys, f"fit bad.csv {DP} {settled} --lam 20 --out model.json")
    names = pv.load("model.json").feature_names
    assert names is not None
    assert {"id", "gap is missing", "word is missing", "code=a"} <= set(names)
    assert "is none of the covariates" in run(
        capsys, f"fit bad.csv {DP} --exclude id --keep id --out m.json", code=2
    )
    # A column that is asked for by name is used; a bad one is still refused.
    run(capsys, f"fit bad.csv {DP} --features age,id --out model.json")
    assert pv.load("model.json").feature_names == ("age", "id")


def test_what_pandas_writes_with_its_index(folder, capsys):
    frame = pd.DataFrame(data().to_dict(as_series=False))
    frame.to_csv("index.csv")
    error = run(capsys, f"fit index.csv {DP} --dry-run", code=2)
    assert "column 'Unnamed: 0' looks like an identifier of the rows" in error
    assert "--exclude" in error
    assert "--keep" in error
    words = [*f"fit index.csv {DP} --dry-run --exclude".split(), "Unnamed: 0"]
    assert main(words) == 0
    assert "'region' as 3 levels (relative to 'north')" in capsys.readouterr().out


def test_names_with_commas(folder, capsys):
    frame = data().rename({"age": "age, years", "flag": 'the "flag"'})
    frame.write_csv("names.csv")
    for options in (["--features", "age, years", "--features", 'the "flag"'],
                    ["--features", '"age, years","the ""flag"""']):  # fmt: skip
        assert main(["fit", "names.csv", *DP.split(), *options, "--out", "m.json"]) == 0
        assert pv.load("m.json").feature_names == ("age, years", 'the "flag"')


def test_the_command_of_a_report_repeats_the_options():
    settings = FitSettings(
        Path("d.csv"), categorical=["ward", "a, b"], missing="mean", keep=["id"], seed=0
    )
    words = shlex.split(command_of("fit", settings).replace("\\\n", ""))
    assert words == ["privasso", "fit", "d.csv", "--categorical", "ward", "--categorical", "a, b",
                     "--keep", "id", "--missing", "mean", "--seed", "0"]  # fmt: skip


def test_gaps_are_filled_as_in_the_fit(folder, capsys):
    frame = data().with_columns(pl.when(pl.int_range(300) % 7 > 0).then("age").alias("age"))
    frame.write_csv("gaps.csv")
    run(capsys, f"fit gaps.csv {DP} --missing mean --out model.json")
    model, mean = pv.load("model.json"), frame["age"].mean()
    one = data().head(1).with_columns(age=pl.lit(None, dtype=pl.Float64))
    one.write_parquet("one.parquet")
    run(capsys, "predict model.json one.parquet --out p.csv")
    filled = one.with_columns(age=pl.lit(mean))
    assert pl.read_csv("p.csv")["prediction"][0] == pytest.approx(model.predict(filled)[0])
    assert "--missing must be one of" in run(
        capsys, f"fit gaps.csv {DP} --missing median --out model.json", code=2
    )


def test_private_covariates_are_said_to_show_their_levels(folder, capsys):
    out = run(capsys, "fit data.csv --target y --on-average --sigma 1 --lam 20 --out a.json")
    assert "the model shows them as they are in the data" in out
    assert "ε =" not in out


BIG = """
import resource, sys
from privasso.cli import main
code = main(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
sys.exit(code)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kilobytes on Linux")
def test_many_levels_need_little_memory(tmp_path):
    # Covariances of the columns take k² entries each, whatever the rows; dense rows would take m·k.
    m, k = 500_000, 2000
    rng = np.random.default_rng(0)
    town, age = rng.integers(0, k, m), rng.normal(50, 9, m)
    y = np.clip(3.0 * (town < 20) + rng.normal(size=m), -5, 5)
    path = tmp_path / "data.csv"
    pl.DataFrame({"age": age, "town": [f"town {k}" for k in town], "y": y}).write_csv(path)
    options = "--target y --label-dp --epsilon 3 --delta 1e-7 --y-bounds -5 5 --lam 5e6"
    for last in (["--dry-run"], ["--out", str(tmp_path / "model.json")]):
        words = ["fit", str(path), *options.split(), *last]
        start = time.monotonic()
        done = subprocess.run([sys.executable, "-c", BIG, *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert 1024 * int(done.stdout.split()[-1]) < 8 * m * k / 4
        assert time.monotonic() - start < 60
    assert pv.load(tmp_path / "model.json").n_features == k
