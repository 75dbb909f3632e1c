"""A table of records, its bounds, and `privasso fit --record-dp` on it, for tests."""

import numpy as np
import polars as pl

from privasso.cli import main

DP = "--target y --record-dp --epsilon 1 --delta 1e-6 --y-bounds 60 200"
BOUNDS = "name,low,high,fill,levels\nage,18,98,,\ndose,0,500,0,\nward,,,,heart|skin\n"
SEED = "--seed 3 --out model.json"


def table(m=600):
    rng = np.random.default_rng(0)
    age, dose = rng.uniform(18, 90, m).round(), rng.uniform(0, 500, m).round(3)
    ward = rng.choice(["heart", "eye", "skin"], m)
    y = 100 + 0.4 * age - 0.03 * dose + 6 * (ward == "heart") + 5 * rng.standard_normal(m)
    return pl.DataFrame({"age": age, "dose": dose, "ward": ward, "y": y.round(3)})


def prepared(tmp_path, monkeypatch):
    """The folder with the table in it, which becomes the present one."""
    monkeypatch.chdir(tmp_path)
    table().write_csv("data.csv")
    (tmp_path / "bounds.csv").write_text(BOUNDS)
    return tmp_path


def fit(options: str, data: str | None = "data.csv", code: int = 0):
    assert main(["fit", *([] if data is None else [data]), *options.split()]) == code


def files(folder):
    return {path.name for path in folder.iterdir()}


def matrix(frame):
    """The same by hand: levels in alphabetical order, each a column of its own."""
    ward = frame["ward"].to_numpy()
    return np.column_stack([frame["age"], frame["dose"], ward == "heart", ward == "skin"])
