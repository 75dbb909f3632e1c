"""A table with private labels, and `privasso fit --label-dp` on it, for tests."""

import numpy as np
import polars as pl

from privasso.cli import main

DP = ["--target", "y", "--label-dp", "--epsilon", "3", "--delta", "1e-6", "--y-bounds", "-4", "4"]


def data(m=400, seed=0):
    rng = np.random.default_rng(seed)
    scales = np.array([0.01, 0.3, 2.0, 40.0, 900.0])
    X = rng.standard_normal((m, 5)) * scales + scales
    y = np.clip((X - X.mean(0)) @ (np.array([1.0, 0, -0.8, 0, 0.9]) / scales), -4, 4)
    names = ["tiny", "small", "middle", "large", "huge"]
    return pl.DataFrame({**{n: X[:, k] for k, n in enumerate(names)}, "y": y})


def prepared(tmp_path, monkeypatch):
    """The folder with the table in it, which becomes the present one."""
    monkeypatch.chdir(tmp_path)
    data().write_csv("data.csv")
    return tmp_path


def files(folder):
    return {path.name for path in folder.iterdir()}


def fit(*options, code=0):
    words = [str(word) for option in options for word in str(option).split()]
    assert main(["fit", *words]) == code
