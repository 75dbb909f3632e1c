"""`privasso demo` fits, compares, prints and draws; bad input ends with one sentence."""

import re

import polars as pl
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Lasso
from sklearn.model_selection import KFold, cross_val_score

import privasso as pv
import privasso.examples
from privasso.cli import _demo, main

ALL = _demo.COMPARISONS


@pytest.fixture(autouse=True)
def without_pictures():
    """Here figures are rendered."""


def diabetes_lasso():
    """R² of a LASSO on held-out rows of the standardised diabetes data."""
    X, y = load_diabetes(return_X_y=True)
    folds = KFold(5, shuffle=True, random_state=0)
    return cross_val_score(Lasso(alpha=0.05), X, y, cv=folds).mean()


EXPLAINED = {"diabetes": diabetes_lasso, "simulated": lambda: 0.7}


def test_demo(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(_demo, "EPSILONS", (1.0, 10.0))
    shown = {name: (one[0], one[1] and (2000, 20)) for name, one in ALL.items()}
    monkeypatch.setattr(_demo, "COMPARISONS", shown)
    assert main(["demo", "--data-only", "--out", str(tmp_path)]) == 0
    assert main(["demo", "--out", str(tmp_path), "--draws", "2"]) == 0
    printed = capsys.readouterr().out
    assert "Differential privacy of whole records with ε = 1" in printed
    for name in shown:
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        table = pl.read_csv(tmp_path / f"{name}.csv")
        assert table["method"].to_list() == list(privasso.examples.METHODS)
        # Without privacy a LASSO explains what it should: on the diabetes data what scikit-learn
        # finds, on the simulated data the 70 % that the model sets.
        found = {method: values for method, *values in table.iter_rows()}
        best, same = found.pop("no privacy")
        assert best == same == pytest.approx(EXPLAINED[name](), abs=0.1)
        # Privacy costs accuracy, and more of it at a smaller ε.
        for one, ten in found.values():
            assert one < ten + 0.02 < best + 0.05
        # The printed table holds the numbers of the file.
        for method, *values in table.iter_rows():
            assert any(
                re.split(r"\s{2,}", line) == [method, *(f"{value:z.2f}" for value in values)]
                for line in printed.splitlines()
            )
    model = pv.load(tmp_path / "diabetes-model.json")
    assert model.guarantee.for_release
    assert model.guarantee.kind == "record-dp"
    assert "ε = 1 and δ = 1e-06" in model.guarantee.claim
    assert model.n_features == 10
    assert "progression" in (tmp_path / "diabetes-report.html").read_text()


def test_bad_input(tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path / "x"), "--draws", "1"]) == 2
    captured = capsys.readouterr()
    assert "--draws must be at least 2" in captured.err
    assert not (tmp_path / "x").exists()
