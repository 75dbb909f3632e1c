"""`privasso bounds` and `privasso fit --record-dp --dry-run` read names and a number of rows."""

import json

import numpy as np
import polars as pl
import pytest

from privasso.cli import main
from privasso.tables import open_table

DP = "--target y --record-dp --epsilon 1 --delta 1e-6 --y-bounds 0 10"
BOUNDS = "name,low,high,levels\nage,18,98,\nward,,,heart|skin\n"


def table(m=300):
    rng = np.random.default_rng(0)
    ward = rng.choice(["heart", "skin", "SECRET"], m)
    return pl.DataFrame({"age": rng.uniform(18, 98, m), "ward": ward, "y": rng.uniform(0, 10, m)})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table().write_csv("data.csv")
    table().write_parquet("data.parquet")
    (tmp_path / "bounds.csv").write_text(BOUNDS)
    return tmp_path


def test_a_template_has_names_and_types_and_no_values(folder, capsys):
    (folder / "bounds.csv").unlink()
    assert main(["bounds", "data.parquet", "--target", "y"]) == 0
    assert "2 columns in bounds.csv, without any values" in capsys.readouterr().out
    head = "name,low,high,fill,levels,type"
    assert (folder / "bounds.csv").read_text().split() == [head, "age,,,,,number", "ward,,,,,text"]
    assert main(["bounds", "data.csv", "--out", "other.csv"]) == 0
    lines = [head, "age,,,,,", "ward,,,,,", "y,,,,,"]
    assert (folder / "other.csv").read_text().split() == lines
    # As it is, it is refused; filled in, it is a dictionary.
    assert main(["fit", "data.csv", *DP.split(), "--bounds", "bounds.csv", "--out", "m.json"]) == 2
    assert "column 'age' has no bounds" in capsys.readouterr().err
    (folder / "bounds.csv").write_text(f"{head}\nage,18,98,,,number\nward,,,,heart,text\n")
    assert main(["fit", "data.csv", *DP.split(), "--bounds", "bounds.csv", "--out", "m.json"]) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("data.csv --target gone --out new.csv", "no column 'gone'"),
        ("data.csv --out data.csv", "exists already and is not overwritten"),
        ("data.csv", "exists already and is not overwritten"),
        ("nowhere.csv --out new.csv", "nowhere.csv"),
        ("data.csv --out nowhere/new.csv", "cannot be written"),
    ],
)
def test_bad_options_of_bounds(folder, capsys, options, message):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main(["bounds", *options.split()]) == 2
    assert message in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("data", ["data.csv", "data.parquet"])
def test_a_dry_run_reads_no_values(folder, capsys, monkeypatch, data):
    def refuse(*_, **__):
        raise AssertionError("a dry run read the data")

    monkeypatch.setattr("privasso.tables._frames.FrameTable._read", refuse)
    command = ["fit", data, *DP.split(), "--bounds", "bounds.csv", "--dry-run"]
    assert main([*command, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["n_rows"], said["n_features"]) == (300, 3)
    assert said["mechanism"]["name"] == "objective"
    assert said["mechanism"]["lam"] == pytest.approx(2e-5 * 300 * 10)
    assert said["mechanism"]["ridge"] == pytest.approx(
        said["mechanism"]["radius"] ** 2 / said["mechanism"]["t"]
    )
    assert -1.0 < said["forecast"]["median"] < 0.8
    assert [one["what"] for one in said["forecast"]["changes"]] == [
        "no privacy", "epsilon", "epsilon", "rows", "label bounds"
    ]  # fmt: skip
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "nothing of the data but the names of the columns and the number of rows is used" in out
    for word in (
        "κ",
        "longest row, R",
        "ridge, Λ",
        "σ",
        "λ",
        "R² on new rows",
        "A fit would state",
    ):
        assert word in out
    assert "SECRET" not in out


def test_the_dry_run_is_the_same_for_other_data(folder, capsys):
    """Neighbouring tables, and any others with as many rows, give the same text."""
    texts = []
    for frame in (table(), table().with_columns(age=pl.lit("SECRET"), y=pl.lit(1e9))):
        frame.write_csv("data.csv")
        assert main(["fit", "data.csv", *DP.split(), "--bounds", "bounds.csv", "--dry-run"]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]


def test_the_number_of_rows_of_every_format(folder):
    table().write_ipc("data.arrow")
    np.savez("data.npz", X=np.zeros((300, 2)))
    (folder / "quoted.csv").write_text('a,b\n1,"two\nlines"\n2,x\n')
    for name in ("data.csv", "data.parquet", "data.arrow", "data.npz"):
        assert open_table(name).n_rows == 300
    assert open_table("quoted.csv").n_rows == 3  # each line is a record
    (folder / "empty.csv").write_text("a,b\n")
    with pytest.raises(ValueError, match="has no rows"):
        _ = open_table("empty.csv").n_rows


def test_a_ledger_shows_what_would_remain(folder, capsys):
    assert main(["ledger", "create", "budget.json", "--epsilon", "3", "--delta", "1e-6"]) == 0
    capsys.readouterr()
    options = "--bounds bounds.csv --dry-run --json --ledger budget.json"
    assert main(["fit", "data.csv", *DP.split(), *options.split()]) == 0
    said = json.loads(capsys.readouterr().out)["ledger"]
    assert said["spent"] == 0.0
    assert 0.99 < said["spent_after"] <= 1.0
