"""`privasso demo` fits, compares, prints and draws; bad input ends in one sentence."""

import numpy as np
import polars as pl

import privasso as pv
import privasso.examples
from privasso.artefact import load_release
from privasso.cli import _demo, main


def test_demo(tmp_path, capsys, monkeypatch):
    small = privasso.examples.simulated_splits
    monkeypatch.setattr(privasso.examples, "simulated_splits", lambda rng: small(2000, 20, rng=rng))
    shown = {name: _demo.STUDIES[name] for name in ("diabetes-10", "simulated")}
    monkeypatch.setattr(_demo, "STUDIES", shown)
    monkeypatch.setattr(_demo, "EPSILONS", dict.fromkeys(shown, (3.0, 30.0)))
    (tmp_path / "diabetes-release.json").write_text("of an earlier run")
    assert main(["demo", "--out", str(tmp_path), "--draws", "2"]) == 0
    printed = capsys.readouterr().out
    assert "Label differential privacy with ε = 10" in printed
    assert "standardised" in printed
    for name in shown:
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        table = pl.read_csv(tmp_path / f"{name}.csv")
        assert set(table["method"]) == set(privasso.examples.METHODS)
        assert np.max(table["r2"].to_numpy()) <= 1.0
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
