"""`privasso fit --record-dp`: a cell changes nothing but noisy numbers.

Not which columns there are, not whether the fit runs, not what is printed.
"""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from cli_records import BOUNDS, DP, SEED, fit, prepared, table

import privasso as pv

# Outside of the tests each command is a process of its own, which fits once.
pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    return prepared(tmp_path, monkeypatch)


#: Numbers, and pictures of them.
NUMBER = re.compile(r"base64,[\w+/=]+|[-−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
#: One record as it may come: beyond its bounds, of another kind, missing, with fields too many.
EXTREME = [
    "1e300,-1e300,heart,1e300",
    "inf,-inf,skin,inf",
    "SECRET,SECRET,SECRET,SECRET",
    ",,,",
    "nan,nan,nan,nan",
    "61,10,eye,100,SECRET,SECRET",
    "61",
    "true,false,true,false",
    '"61","1,5","he""art",\xff',
]


def outcome(line, capsys):
    """Everything that comes of a fit whose fifth record is this line, numbers aside."""
    lines = table().write_csv().splitlines()
    lines[5] = line
    Path("data.csv").write_text("\n".join(lines) + "\n", encoding="latin-1")
    fit(f"{DP} --bounds bounds.csv --seed 3 --out model.json --report report.html")
    said = capsys.readouterr()
    written = (Path(name).read_text() for name in ("report.html", "model.json"))
    return [masked(said.out), *(NUMBER.sub("#", text) for text in (said.err, *written))]


def masked(printed):
    """What is printed, without its numbers and without the order that these put it in."""
    lines = NUMBER.sub("#", printed).replace("+#", "#").splitlines()
    return "\n".join(sorted(" ".join(line.split()) for line in lines))


def test_a_record_changes_nothing_but_numbers(folder, capsys):
    expected = outcome(table().write_csv().splitlines()[5], capsys)
    for line in EXTREME:
        found = outcome(line, capsys)
        assert found == expected, line
        assert not any("SECRET" in text for text in found)


@pytest.mark.parametrize("at", [1, 150, -1], ids=["first", "middle", "last"])
def test_a_line_that_does_not_fit_is_an_empty_record(folder, at):
    """One field too many, or a quote that does not close: as if the record were not there."""
    lines = table().write_csv().splitlines()
    record = lines[at]
    for name, line in {"more": f"1,{record}", "quote": f'"{record}', "empty": ""}.items():
        lines[at] = line
        Path("data.csv").write_text("\n".join(lines) + "\n")
        fit(f"{DP} --bounds bounds.csv --seed 3 --out {name}.json")
    more, quote, empty = (Path(f"{name}.json").read_text() for name in ("more", "quote", "empty"))
    assert more == quote == empty


def test_lines_of_write_table(folder):
    lines = table().write_csv().splitlines()
    fit(f"{DP} --bounds bounds.csv --seed 3 --out plain.json")
    named = [lines[0], *(f'"{k}",{line}' for k, line in enumerate(lines[1:]))]
    Path("data.csv").write_text("\n".join(named) + "\n")
    fit(f"{DP} --bounds bounds.csv --seed 3 --row-names --out named.json")
    assert Path("plain.json").read_text() == Path("named.json").read_text()


@pytest.mark.parametrize(
    "options",
    [
        "--bounds bounds.csv --mechanism statistics",
        "--bounds bounds.csv --private-scales",
        "--bounds bounds.csv --shape private",
        "--bounds private --features age,dose --no-intercept",
    ],
)
def test_a_record_changes_nothing_but_numbers_in_what_is_printed(folder, capsys, options):
    said = []
    lines = table().write_csv().splitlines()
    for line in (lines[5], "1e300,-inf,SECRET,SECRET"):
        lines[5] = line
        Path("data.csv").write_text("\n".join(lines) + "\n")
        fit(f"{DP} {options} {SEED}")
        texts = [*capsys.readouterr(), *json.loads(Path("model.json").read_text())]
        said.append([masked(text) for text in texts])
    assert said[0] == said[1]


def test_a_record_outside_its_bounds_is_clipped(folder):
    outside = table().with_columns(
        age=pl.when(pl.col("age") > 80).then(1e9).otherwise("age"),
        dose=pl.when(pl.col("dose") < 50).then(-7.0).otherwise("dose"),
        y=pl.when(pl.col("y") > 130).then(5e3).otherwise("y"),
    )
    clipped = outside.with_columns(
        pl.col("age").clip(18, 98), pl.col("dose").clip(0, 500), pl.col("y").clip(60, 200)
    )
    for name, frame in (("outside", outside), ("clipped", clipped)):
        frame.write_csv(f"{name}.csv")
        fit(f"{DP} --bounds bounds.csv --seed 3 --out {name}.json", f"{name}.csv")
    assert (folder / "outside.json").read_text() == (folder / "clipped.json").read_text()


def test_missing_values_are_filled_and_a_record_without_a_label_is_empty(folder):
    """A missing covariate is the fill of the dictionary, or the middle of the bounds."""
    holes = table().with_columns(
        age=pl.when(pl.col("age") > 80).then(None).otherwise("age"),
        dose=pl.when(pl.col("dose") < 50).then(None).otherwise("dose"),
        ward=pl.when(pl.col("dose") > 400).then(None).otherwise("ward"),
    )
    filled = holes.with_columns(
        pl.col("age").fill_null(58), pl.col("dose").fill_null(0), pl.col("ward").fill_null("none")
    )
    for name, frame in (("holes", holes), ("filled", filled)):
        frame.write_csv(f"{name}.csv")
        fit(f"{DP} --bounds bounds.csv --seed 3 --out {name}.json", f"{name}.csv")
    assert (folder / "holes.json").read_text() == (folder / "filled.json").read_text()
    # Records without a label: as if they were not there, but for the public number of rows.
    unlabelled = table().with_columns(y=pl.when(pl.col("age") > 50).then(None).otherwise("y"))
    unlabelled.write_csv("unlabelled.csv")
    fit(f"{DP} --bounds bounds.csv --seed 3 --lam 3 --out a.json", "unlabelled.csv")
    moved = unlabelled.with_columns(
        age=pl.when(pl.col("y").is_null()).then(18.0).otherwise("age"),
        dose=pl.when(pl.col("y").is_null()).then(500.0).otherwise("dose"),
    )
    moved.write_csv("moved.csv")
    fit(f"{DP} --bounds bounds.csv --seed 3 --lam 3 --out b.json", "moved.csv")
    assert (folder / "a.json").read_text() == (folder / "b.json").read_text()


@pytest.mark.parametrize(
    ("frame", "bounds"),
    [
        (table(1), BOUNDS),
        (table(2), BOUNDS),
        (table().with_columns(age=pl.lit(50)), BOUNDS),
        (table(), BOUNDS.replace("18,98", "50,50")),
        (table(), BOUNDS.replace("heart|skin", "nobody")),
    ],
    ids=["one row", "fewer rows than columns", "constant", "one value allowed", "no such level"],
)
def test_tables_that_say_little_still_fit(folder, frame, bounds):
    frame.write_csv("data.csv")
    (folder / "bounds.csv").write_text(bounds)
    fit(f"{DP} --bounds bounds.csv --out model.json")
    model = pv.load("model.json")
    assert np.isfinite(model.coef).all()
    if "50,50" in bounds:
        assert model.coef[0] == 0.0


def test_types_that_the_file_states_are_public(folder, capsys):
    dates = table().with_columns(dose=pl.date(2024, 1, 1))
    dates.write_parquet("data.parquet")
    fit(f"{DP} --bounds bounds.csv --out model.json", "data.parquet", code=2)
    assert "column 'dose' holds dates or times" in capsys.readouterr().err
    table().with_columns(y=pl.date(2024, 1, 1)).write_parquet("data.parquet")
    fit(f"{DP} --bounds bounds.csv --out model.json", "data.parquet", code=2)
    assert "does not hold numbers by its type" in capsys.readouterr().err
    table().write_parquet("data.parquet")
    fit(f"{DP} --bounds private --out model.json", "data.parquet", code=2)
    assert "column 'ward' holds text by its type" in capsys.readouterr().err
    np.savez("data.npz", X=np.zeros((3, 1)), y=np.array(["SECRET"] * 3), feature_names=["age"])
    (folder / "bounds.csv").write_text("name,low,high\nage,18,98\n")
    fit(f"{DP} --bounds bounds.csv --out model.json", "data.npz", code=2)
    error = capsys.readouterr().err
    assert "does not hold numbers by its type" in error
    assert "SECRET" not in error
