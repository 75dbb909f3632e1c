"""`privasso fit --binary`: the classifier's model, probabilities, no error that tells a label."""

import json

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

import privasso as pv
from privasso.cli import main

# Outside of the tests each command is a process of its own, which fits once.
pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")

LABELS = "--target relapse --binary --label-dp --epsilon 1 --delta 1e-6"
RECORDS = "--target relapse --binary --record-dp --epsilon 1 --delta 1e-6 --bounds bounds.csv"


def table(m=800):
    rng = np.random.default_rng(0)
    age, dose = rng.uniform(18, 90, m).round(), rng.uniform(0, 500, m).round(3)
    odds = 0.05 * (age - 55) - 0.006 * (dose - 250)
    relapse = (rng.random(m) < expit(odds)).astype(int)
    return pl.DataFrame({"age": age, "dose": dose, "relapse": relapse})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table().write_csv("data.csv")
    (tmp_path / "bounds.csv").write_text("name,low,high\nage,18,98\ndose,0,500\n")
    return tmp_path


def fit(options: str, code: int = 0, data: str = "data.csv"):
    assert main(["fit", data, *options.split()]) == code


def fitted(privacy):
    frame = table()
    X, y = frame.select("age", "dose").to_numpy(), frame["relapse"].to_numpy()
    return pv.PrivateLogisticLasso(privacy=privacy, random_state=3).fit(X, y)


def test_labels(folder, capsys):
    extra = "--report report.html --keep-release release.json --path-out path.csv --json"
    fit(f"{LABELS} --seed 3 --out model.json {extra}")
    printed = json.loads(capsys.readouterr().out)
    model, est = pv.load("model.json"), fitted(pv.LabelDP(1.0, 1e-6, (0, 1)))
    np.testing.assert_allclose(model.coef, est.coef_[0], rtol=1e-9)
    assert model.classes == (0, 1)
    assert printed["classes"] == [0, 1]
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "A sparse logistic regression, log odds of 1, for relapse" in page
    assert "standard error, of sampling and of privacy noise together" in page
    assert "--binary" in page
    # The same λ from the kept release, without labels.
    frame = table().drop("relapse")
    frame.write_csv("covariates.csv")
    again = f"--binary --from-release release.json --lam {printed['lam']!r} --out again.json"
    fit(again, data="covariates.csv")
    np.testing.assert_allclose(pv.load("again.json").coef, model.coef, rtol=1e-9)
    assert main(["predict", "model.json", "covariates.csv", "--out", "p.csv"]) == 0
    found = pl.read_csv("p.csv")
    assert found.columns == ["probability"]
    p = est.predict_proba(frame.to_numpy())[:, 1]
    np.testing.assert_allclose(found["probability"].to_numpy(), p, rtol=1e-9)


def test_records(folder, capsys):
    fit(f"{RECORDS} --seed 3 --out model.json --report report.html")
    shown = capsys.readouterr().out
    assert "objective perturbation of a logistic regression" in shown
    est = fitted(pv.RecordDP(1.0, 1e-6, [(18, 98), (0, 500)], (0, 1)))
    np.testing.assert_allclose(pv.load("model.json").coef, est.coef_[0], rtol=1e-9)
    assert pv.load("model.json").guarantee.kind == "record-dp"
    assert main(["predict", "model.json", "data.csv", "--out", "p.csv"]) == 0
    assert 0.0 < pl.read_csv("p.csv")["probability"].min() < 1.0  # type: ignore[operator]


def test_dry_runs_read_no_labels(folder, capsys):
    table().drop("relapse").write_csv("covariates.csv")
    fit(f"{LABELS} --dry-run --no-target-column", data="covariates.csv")
    fit(f"{RECORDS} --dry-run --no-target-column", data="covariates.csv")
    shown = capsys.readouterr().out
    assert shown.count("fits of the log odds of the positive class are not simulated") == 1
    assert "without privacy" in shown
    assert "R² is that of probabilities" in shown
    assert "Differential privacy of whole records" in shown
    assert "Label differential privacy" in shown


def test_a_label_that_is_neither_counts_half_or_empties_its_record(folder):
    frame = table()
    labels = frame["relapse"].to_list()
    labels[5] = 7919
    frame = frame.with_columns(pl.Series("relapse", labels))
    frame.write_csv("odd.csv")
    frame.with_columns(
        pl.Series("relapse", ["?" if x == 7919 else str(x) for x in labels])
    ).write_csv("text.csv")
    for privacy in (LABELS, RECORDS):
        for name, data in (("odd", "odd.csv"), ("text", "text.csv"), ("whole", "data.csv")):
            fit(f"{privacy} --seed 3 --out {name}.json", data=data)
        odd, text, whole = (pv.load(f"{name}.json").coef for name in ("odd", "text", "whole"))
        assert odd.tolist() == text.tolist() != whole.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (f"{LABELS} --y-bounds 0 5 --out m.json", "bounds are 0 and 1, not 0 and 5"),
        (f"{LABELS} --mechanism objective --out m.json", "needs the same noise"),
        (f"{RECORDS} --mechanism statistics --out m.json", "no choice of mechanism"),
        ("--target relapse --binary --on-average --sigma 1 --lam 1 --out m.json", "two classes"),
    ],
)
def test_options_that_do_not_fit(folder, capsys, options, message):
    fit(options, code=2)
    assert message in capsys.readouterr().err
