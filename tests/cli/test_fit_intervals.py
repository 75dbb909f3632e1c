"""`privasso fit --intervals` and `--reference`: what is printed, written, kept and refused."""

import json

import cli_labels
import cli_records
import numpy as np
import polars as pl
import pytest
from cli_records import DP, fit, prepared

import privasso as pv
from privasso.cli import main

# Outside of the tests each command is a process of its own, which fits once.
pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")

BOUNDED = f"{DP} --bounds bounds.csv --seed 3 --out model.json"
LABELS = (
    "--target y --exclude ward --label-dp --epsilon 3 --delta 1e-6 --y-bounds 60 200 --seed 3 "
    "--out model.json"
)


def names_of(model) -> list[str]:
    return list(model.feature_names or ())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    found = prepared(tmp_path, monkeypatch)
    cli_records.table(6000).write_csv("data.csv")
    return found


@pytest.mark.parametrize("options", [BOUNDED, LABELS], ids=["records", "labels"])
def test_they_are_those_of_the_estimator_and_stand_everywhere_once(folder, capsys, options):
    fit(f"{options} --intervals --report report.html --json")
    said = json.loads(capsys.readouterr().out)
    model = pv.load("model.json")
    assert model.target == "y"
    lines = said["intervals"]["least-squares"]
    assert set(said["intervals"]) == {"least-squares", "huber"}
    assert [line["column"] for line in lines] == names_of(model)
    ends = model.confint()
    shown = [(line["low"], line["high"]) for line in lines]
    np.testing.assert_allclose(np.array(shown, dtype=float), ends)
    assert said["coef_se"] is None
    assert "noisy sums of scores and of their products, for intervals" in said["statement"]
    html = (folder / "report.html").read_text()
    assert html.count("95 % interval</th>") == 1
    assert "its noise" not in html
    assert "standard error" not in html
    assert f"{ends[0, 0]:.4g} to {ends[0, 1]:.4g}" in html
    assert "For a methods section" in html
    assert "Intervals of 95 % are for the coefficients of least squares" in html
    fit(f"{options} --intervals --force".replace("model.json", "again.json"))
    printed = capsys.readouterr().out
    assert f"{ends[0, 0]:.4g} to {ends[0, 1]:.4g}" in printed
    assert "holds, in 95 of 100 fits, the coefficient of least squares" in printed


def test_the_truth_is_in_them_and_bare_fits_have_none(folder, capsys):
    fit(f"{BOUNDED} --intervals least-squares --reference ward=heart")
    model = pv.load("model.json")
    low, high = model.confint()[names_of(model).index("age")]
    assert low < 0.4 < high
    assert high - low < 0.4
    capsys.readouterr()
    fit(f"{BOUNDED} --force --json")
    said = json.loads(capsys.readouterr().out)
    assert said["intervals"] is None
    with pytest.raises(ValueError, match="fit again with intervals=True"):
        pv.load("model.json").confint()


def test_the_dry_run_says_what_they_cost(folder, capsys):
    fit(f"{LABELS.replace('--out model.json', '')} --intervals --dry-run")
    printed = capsys.readouterr().out
    assert "Intervals take a part of the budget" in printed
    expected = float(printed.split("is expected to be ")[1].split()[0])
    fit(f"{LABELS} --intervals least-squares")
    model, table = pv.load("model.json"), cli_records.table(6000)
    at = names_of(model).index("dose")
    length = float(np.diff(model.confint()[at])[0]) * float(np.std(table["dose"].to_numpy()))
    assert 0.3 < length / expected < 3.0  # the deviation of the residuals is only assumed
    small = cli_records.table(300)
    small.write_csv("small.csv")
    fit(f"{DP} --bounds bounds.csv --intervals --dry-run", "small.csv")
    assert "few columns or none will have an interval" in capsys.readouterr().out


@pytest.mark.parametrize("mechanism", ["labels", "statistics"])
def test_a_kept_release_keeps_them(folder, mechanism):
    options = f"{LABELS} --mechanism release"
    if mechanism == "statistics":
        options = f"{BOUNDED} --mechanism statistics"
    fit(f"{options} --intervals --keep-release kept.json")
    again = "--from-release kept.json --lam 500 --out again.json"
    fit(again, "data.csv" if mechanism == "labels" else None)
    before, after = pv.load("model.json"), pv.load("again.json")
    np.testing.assert_array_equal(before.confint(), after.confint())
    assert after.lam == 500.0


def test_odds_ratios(tmp_path, monkeypatch, capsys):
    cli_labels.prepared(tmp_path, monkeypatch)
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(4000, 2))
    p = 1.0 / (1.0 + np.exp(-(2.0 * X[:, 0] - 1.0)))
    y = (rng.uniform(size=4000) < p).astype(int)
    pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y}).write_csv("data.csv")
    options = "--target y --binary --label-dp --epsilon 3 --delta 1e-6 --out model.json --seed 1"
    fit(f"{options} --intervals --report report.html --json")
    lines = json.loads(capsys.readouterr().out)["intervals"]["logistic"]
    assert lines[0]["odds ratio, low"] == pytest.approx(np.exp(lines[0]["low"]))
    assert lines[0]["low"] < 2.0 < lines[0]["high"]
    assert lines[1]["note"] == "cannot be told from zero"
    assert "odds ratio</th>" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--intervals median", "--intervals must be both, least-squares or huber"),
        ("--intervals huber --binary", "with --binary intervals are about odds ratios"),
        ("--reference ward", "--reference must be COLUMN=LEVEL"),
        ("--reference ward=foot", "no such level"),
        ("--reference age=1", "no such level"),
        ("--reference ward=skin --reference ward=heart", "twice"),
    ],
)
def test_what_makes_no_sense_is_refused(folder, capsys, options, said):
    given = BOUNDED.replace("--y-bounds 60 200", "") if "--binary" in options else BOUNDED
    fit(f"{given} {options}", code=2)
    assert said in capsys.readouterr().err


def test_references_of_public_and_of_private_columns(folder, capsys):
    """The difference between two levels does not depend on what they are compared with."""
    fit(f"{BOUNDED} --reference ward=skin --report report.html")
    assert names_of(pv.load("model.json")) == ["age", "dose", "ward=heart"]
    assert "Levels are compared with ward: skin" in (folder / "report.html").read_text()
    labels = LABELS.replace("--exclude ward ", "")
    coefficients = {}
    for level in ("eye", "skin"):
        fit(f"{labels} --epsilon 300 --lam 1e-3 --reference ward={level} --force")
        model = pv.load("model.json")
        coefficients[level] = dict(zip(names_of(model), model.coef, strict=True))
    heart = {k: v["ward=heart"] for k, v in coefficients.items()}
    assert heart["eye"] - heart["skin"] == pytest.approx(-coefficients["skin"]["ward=eye"], abs=0.3)
    capsys.readouterr()
    assert main(["fit", "data.csv", *labels.split(), "--reference", "ward=foot"]) == 2
    assert "'foot'" in capsys.readouterr().err
