"""`privasso demo` fits, compares, prints and draws; bad input ends with one sentence."""

import polars as pl
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Lasso
from sklearn.model_selection import KFold, cross_val_score

import privasso as pv
import privasso.examples
from privasso.artefact import load_release
from privasso.cli import _demo, main


@pytest.fixture(autouse=True)
def without_pictures():
    """Here figures are rendered."""


def diabetes_lasso():
    """R² of a LASSO on held-out rows of the standardised diabetes data."""
    X, y = load_diabetes(return_X_y=True)
    folds = KFold(5, shuffle=True, random_state=0)
    return cross_val_score(Lasso(alpha=0.05), X, y, cv=folds).mean()


EXPLAINED = {"diabetes-10": diabetes_lasso, "simulated": lambda: 0.7}


def test_demo(tmp_path, capsys, monkeypatch):
    shown = {
        name: _demo.COMPARISONS[name]._replace(epsilons=(3.0, 30.0), size=(2000, 20))
        for name in ("diabetes-10", "simulated")
    }
    monkeypatch.setattr(_demo, "COMPARISONS", shown)
    assert main(["demo", "--data-only", "--out", str(tmp_path)]) == 0
    (tmp_path / "diabetes-release.json").write_text("of an earlier run")
    assert main(["demo", "--out", str(tmp_path), "--draws", "2"]) == 0
    printed = capsys.readouterr().out
    assert "Label differential privacy with ε = 10" in printed
    assert "standardised" in printed
    for name in shown:
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        table = pl.read_csv(tmp_path / f"{name}.csv")
        assert set(table["method"]) == set(privasso.examples.METHODS)
        assert (table["lower"] <= table["r2"]).all()
        assert (table["r2"] <= table["upper"]).all()
        # Without privacy the best λ explains what a LASSO explains: on the diabetes data what
        # scikit-learn finds, on the simulated data the 70 % that the model sets.
        best = table.filter(rule="oracle", method="no privacy")["r2"].item()
        assert best == pytest.approx(EXPLAINED[name](), abs=0.1)
        # Privacy costs accuracy, and more of it at a smaller ε.
        private = table.filter(~pl.col("method").str.starts_with("no privacy"), rule="oracle")
        assert (private["r2"] < best + 0.02).all()
        by_epsilon = private.pivot("epsilon", index="method", values="r2")
        assert (by_epsilon["30.0"] >= by_epsilon["3.0"] - 0.01).all()
        # The printed table holds the numbers of the file.
        auto = table.filter(rule="auto", method="isotropic").sort("epsilon")["r2"].to_list()
        assert any(
            line.split("│")[1].strip() == "isotropic"
            and [cell.strip() for cell in line.split("│")[2:-1]] == [f"{r2:z.2f}" for r2 in auto]
            for line in printed.splitlines()
            if line.startswith("│")
        )
    model = pv.load(tmp_path / "diabetes-model.json")
    assert model.guarantee.for_release
    assert model.n_features == 10
    assert "progression" in (tmp_path / "diabetes-report.html").read_text()
    assert load_release(tmp_path / "diabetes-release.json").target == "progression"


def test_bad_input(tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path / "x"), "--draws", "1"]) == 2
    captured = capsys.readouterr()
    assert "--draws must be at least 2" in captured.err
    assert not (tmp_path / "x").exists()
