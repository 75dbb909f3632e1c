"""`privasso design`: its numbers are the library's, and bad input ends in one sentence."""

import json

import pytest

import privasso as pv
from privasso.cli import main
from privasso.design import load_design
from privasso.privacy import RecordBudget


@pytest.fixture(autouse=True)
def without_pictures():
    """Here figures are rendered."""


MODEL = pv.Model(0.7, 0.2, 0.05, pv.LogNormal(0.0, 0.5))
OPTIONS = "--scales lognormal:0,0.5 --alpha 0.7 --rho 0.2 --sigma-xi 0.05"


def run(options):
    return main(["design", *options.split()])


def test_json_and_file_are_the_optimal_design(tmp_path, capsys):
    path = tmp_path / "design.json"
    assert run(f"{OPTIONS} --max-onavekl 1.5 --json --out {path}") == 0
    record = json.loads(capsys.readouterr().out)
    best = pv.optimal_design(MODEL, pv.MaxLeakage(1.5))
    assert record["lam"] == best.lam
    assert record["E"] == best.E
    assert record["onavekl"] == best.onavekl()
    assert record["multiplier"] == best.multiplier
    assert record["noise"] == {
        "name": "PowerLaw",
        "sigma": best.noise.sigma,
        "gamma": best.noise.gamma,  # pyright: ignore
    }
    assert record["comparison"]["gram"]["ratio"] == best.comparison["gram"].ratio
    saved = load_design(path)
    assert (saved.lam, saved.noise) == (best.lam, best.noise)


def test_answer_in_words(capsys):
    assert run(f"{OPTIONS} --max-onavekl 1.5") == 0
    out = capsys.readouterr().out
    best = pv.optimal_design(MODEL, pv.MaxLeakage(1.5))
    assert f"Use λ = {best.lam:.4g}, σ_η = {best.noise.sigma:.4g}" in out
    assert "∝ v^" in out
    less = 1 - 1 / best.comparison["isotropic"].ratio
    assert f"{less:.0%} lower than with isotropic noise" in out
    assert "not an ε" in out
    assert run("--max-onavekl 0.5") == 0
    assert "Isotropic noise on all columns cannot meet the target" in capsys.readouterr().out
    assert run("--max-onavekl 0.0001 --scales lognormal") == 0
    assert "hardly worth fitting" in capsys.readouterr().out


def test_other_questions(capsys):
    assert run(f"{OPTIONS} --max-error 0.1 --json") == 0
    record = json.loads(capsys.readouterr().out)
    best = pv.optimal_design(MODEL, pv.MaxError(0.1))
    assert (record["onavekl"], record["noise"]["name"]) == (best.onavekl(), "PowerLaw")
    budget = "--label-dp --epsilon 4 --delta 1e-5 --y-bounds -2 2 --alpha 5 --n-features 200"
    assert run(f"{budget} --lam 8 --json") == 0
    record = json.loads(capsys.readouterr().out)
    model = pv.Model(alpha=5.0)
    privacy = pv.LabelDP(4.0, 1e-5, (-2.0, 2.0))
    best = pv.optimal_design(model, pv.Budget(privacy), lam=8.0, n_features=200)
    assert (record["lam"], record["E"]) == (8.0, best.E)
    assert run(budget) == 0
    assert "ε = 4, δ = 1e-05" in capsys.readouterr().out
    assert run(f"{OPTIONS} --max-onavekl 2 --scale-error 0.5 --json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["E"] == pv.optimal_design(MODEL, pv.MaxLeakage(2.0), scale_error=0.5).E


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "exactly one of"),
        ("--max-onavekl 1 --max-error 0.1", "exactly one of"),
        ("--max-onavekl -1", "--max-onavekl must be positive"),
        ("--max-onavekl 1 --epsilon 1", "need --label-dp"),
        ("--label-dp --epsilon 1", "needs --epsilon, --delta and --y-bounds"),
        ("--label-dp --epsilon 1 --delta 2 --y-bounds 0 1", "delta is a probability"),
        ("--label-dp --epsilon 1 --delta 1e-5 --y-bounds 1 0", "--y-bounds must increase"),
        ("--max-error 0.0001", "cannot be reached: the least is"),
        ("--max-error 3", "releasing nothing at all"),
        ("--max-onavekl 0.01 --lam 0.1", "the least is"),
        ("--max-onavekl 1 --family cubic", "family must be one of"),
        ("--max-onavekl 1 --out nowhere/design.json", "nowhere/design.json"),
    ],
)
def test_bad_input(capsys, monkeypatch, tmp_path, options, message):
    monkeypatch.chdir(tmp_path)
    assert run(options) == 2
    err = capsys.readouterr().err
    assert err.startswith("privasso: error: ")
    assert message in err
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


BUDGET = "--epsilon 1 --delta 1e-6"


def test_objective_perturbation(capsys):
    model = pv.Model(10.0, 0.1, 0.1, pv.LogNormal(0.0, 0.5))
    options = f"--scales lognormal:0,0.5 --alpha 10 {BUDGET}"
    assert run(f"{options} --record-dp --json") == 0
    record = json.loads(capsys.readouterr().out)
    best = pv.optimal_design(model, pv.Budget(RecordBudget(1.0, 1e-6)))
    for name in ("kappa", "t", "lam", "sigma", "gamma", "E", "rho_hat", "explained", "covers"):
        assert record[name] == getattr(best, name)
    assert run(f"{options} --label-dp --y-bounds -1 1 --mechanism objective") == 0
    out = capsys.readouterr().out
    budget = pv.LabelDP(1.0, 1e-6, (-1, 1))
    best = pv.optimal_design(model, pv.Budget(budget, "objective"))
    assert f"Clip residuals at κ = {best.kappa:.4g}; use λ = {best.lam:.4g}" in out
    assert f"{best.explained:.1%} of the signal explained" in out
    assert "ε = 1, δ = 1e-06 for labels" in out
    assert "Warning" not in out
    assert run(f"--record-dp {BUDGET}") == 0
    assert "hardly worth fitting" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--record-dp --epsilon 1", "--record-dp needs --epsilon and --delta"),
        (f"--record-dp {BUDGET} --y-bounds 0 1", "--y-bounds plays no part"),
        (f"--record-dp --label-dp {BUDGET}", "--label-dp and --record-dp were given"),
        (f"--record-dp {BUDGET} --out a.json", "--out is not for"),
        (f"--record-dp {BUDGET} --mechanism release", "mechanism='objective' only"),
        ("--mechanism objective", "none was given"),
        ("--max-onavekl 2 --mechanism objective", "--mechanism goes with --label-dp"),
        ("--record-dp --epsilon 1 --delta 1e-6 --mechanism output", "mechanism must be one of"),
    ],
)
def test_bad_requests_for_objective_perturbation(options, said, capsys):
    assert run(options) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert said in error


@pytest.mark.slow
def test_correlated_columns(capsys):
    options = "--covariance ar:0.8 --scales lognormal:0,0.5 --alpha 8 --n-features 20 --seed 0"
    assert run(f"{options} --lam 0.3 --max-onavekl 2 --json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["onavekl"] <= 2.0
    assert record["noise"].startswith("C^")
    assert {"C^0", "C^2", "best power", "full shape"} <= {
        row["noise"] for row in record["comparison"]
    }
    budget = "--lam 1 --record-dp --epsilon 1 --delta 1e-6"
    assert run(f"{options} {budget}") == 0
    out = capsys.readouterr().out
    assert "Clip residuals" in out
    assert "diagonal" in out
    model = pv.Model(8.0, scales=pv.LogNormal(0.0, 0.5), covariance=pv.model.AutoRegressive(0.8))
    best = pv.optimal_design(
        model, pv.Budget(RecordBudget(1.0, 1e-6)), lam=1.0, n_features=20, rng=0
    )
    assert f"{best.E:.4g}" in out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--covariance other --max-onavekl 2", "neither a file nor one of"),
        ("--covariance ar:0.8 --max-onavekl 2 --out a.json", "not for --covariance"),
        ("--covariance ar:0.8 --max-advantage 0.1", "targets are"),
    ],
)
def test_bad_input_with_a_covariance(options, words, capsys):
    assert run(options) == 2
    assert words in capsys.readouterr().err
