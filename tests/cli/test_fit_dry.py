"""`privasso fit --dry-run`: predictions and forecasts that read no label."""

import json

import numpy as np
import pytest
from cli_labels import DP, data, files, fit, prepared

import privasso as pv
from privasso.planning import release_labels
from privasso.tables import open_table

# Outside of the tests each command is a process of its own, which fits once.
pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    return prepared(tmp_path, monkeypatch)


def test_dry_run_needs_no_labels(folder, capsys):
    data().drop("y").write_csv("public.csv")
    fit("public.csv", *DP, "--dry-run --no-target-column --json")
    record = json.loads(capsys.readouterr().out)
    assert files(folder) == {"data.csv", "public.csv"}
    # The noise is what a fit adds, and its sensitivity is what (ε, δ) allows, row by row.
    privacy = pv.LabelDP(3.0, 1e-6, (-4, 4))
    frame = data()
    X = frame.drop("y").to_numpy()
    shrink = record["noise"]["shrink"]
    release = release_labels(X, frame["y"].to_numpy(), privacy, pv.Shaped(shrink=shrink))
    assert record["noise"]["largest"] == pytest.approx(release.sigma.max())
    assert record["noise"]["median"] == pytest.approx(np.median(release.sigma))
    assert release.sigma_sum is not None
    F, noise = X - X.mean(axis=0), release.covariance.matrix()
    squared = np.sum(F * np.linalg.solve(noise, F.T).T, axis=1) + release.sigma_sum**-2
    # One label moves a clipped residual by 2κ, and rows enter with the root of their weight.
    objective = record["perturbed_objective"]
    bound = objective["c"] / (2.0 * objective["kappa"] * 8.0)
    weights = np.minimum(1.0, bound**2 / squared)
    assert release.weight_sum == pytest.approx(weights.sum(), rel=1e-6)
    fit("public.csv", *DP, "--dry-run --no-target-column --noise isotropic --lam 100")
    printed = capsys.readouterr().out
    assert "no label has been read" in printed
    assert "simulated fits on these covariates at λ = 100" in printed
    assert "A fit would state" in printed


def test_dry_run_forecasts_by_simulated_fits(folder, capsys):
    strict = "--dry-run --epsilon 1 --assume-r2 0.6"
    fit("data.csv", *DP, strict, "--json")
    record = json.loads(capsys.readouterr().out)
    assert record["assumptions"] == {"rho": 0.3, "r2": 0.6, "label_sd": pytest.approx(8 / 6)}
    assert record["predictions"] == []  # state evolution is for covariates that are not public
    found = record["forecast"]
    assert found["fits"] == 6  # of this folder; see its conftest
    assert found["low"] <= found["median"] <= found["high"] < 0.9
    assert 0.0 <= found["above_zero"] <= 1.0
    rows = data().height
    assert [(one["what"], one["value"]) for one in found["changes"]] == [
        ("no privacy", None), ("epsilon", 2.0), ("epsilon", 3.0), ("rows", 2.0 * rows),
        ("label bounds", 4.0),
    ]  # fmt: skip
    assert all(one["median"] > found["median"] for one in found["changes"][:4])
    assert 0.0 < found["kept"] < 1.0
    fit("data.csv", *DP, strict)
    printed = " ".join(capsys.readouterr().out.split())
    assert f"as planned {found['median']:.2f}" in printed
    assert "explain a share of 0.33 to 0.82 of their variance" in printed


@pytest.mark.parametrize("end", ["--dry-run", "--out model.json --report report.html"])
def test_impossible_assumptions_cost_nothing(folder, capsys, end):
    fit("data.csv", *DP, end, "--assume-label-sd 4.5", code=2)
    assert "it is at most half of that" in capsys.readouterr().err
    assert files(folder) == {"data.csv"}


def test_dry_run_reads_no_label(folder, monkeypatch):
    asked = []
    table = type(open_table("data.csv"))
    real = table._read

    def read(self, wanted):
        asked.extend([*wanted.names, wanted.target])
        return real(self, wanted)

    monkeypatch.setattr(table, "_read", read)
    fit("data.csv", *DP, "--dry-run")
    assert asked == ["tiny", "small", "middle", "large", "huge", None]


def test_a_misspelt_target_is_no_covariate(folder, capsys):
    """Taken for a covariate, the label column would have its spread printed."""
    words = [word if word != "y" else "Y" for word in DP]
    fit("data.csv", *words, "--dry-run", code=2)
    captured = capsys.readouterr()
    assert "has no column 'Y'" in captured.err
    assert not captured.out
    np.savez("public.npz", X=np.eye(9))
    privacy = "--label-dp --epsilon 3 --delta 1e-6 --y-bounds -4 4"
    fit("public.npz", privacy, "--dry-run", code=2)
    fit("public.npz", privacy, "--dry-run --no-target-column")
    capsys.readouterr()
    fit("data.csv", *DP, "--dry-run --no-target-column", code=2)
    assert "has the target 'y' among its columns" in capsys.readouterr().err
    fit("data.csv", *DP, "--no-target-column --out model.json", code=2)
    assert "belongs to --dry-run" in capsys.readouterr().err


def test_dry_run_on_average(folder, capsys):
    fit("data.csv --target y --on-average --sigma 5 --dry-run", code=2)
    assert "--assume-label-sd" in capsys.readouterr().err
    fit("data.csv --target y --on-average --sigma 5 --dry-run --assume-label-sd 1.5")
    printed = capsys.readouterr().out
    assert "not an ε" in printed
    assert "OnAveKL" in printed
    assert "simulated" not in printed
    fit("data.csv --target y --on-average --sigma 5 --dry-run --assume-label-sd 1.5 --json")
    record = json.loads(capsys.readouterr().out)
    assert record["forecast"] is None
    ours, even = record["predictions"]
    assert even["noise"]["gamma"] == 0.0
    assert ours["r2"] > 0.0
