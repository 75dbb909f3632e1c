"""`privasso fit --record-dp`: the model of the estimator, every mechanism, and what is written."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from cli_records import BOUNDS, DP, SEED, files, fit, matrix, prepared, table

import privasso as pv
from privasso.cli import main
from privasso.queries import UncertifiedError

# Outside of the tests each command is a process of its own, which fits once.
pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    return prepared(tmp_path, monkeypatch)


def test_the_model_is_the_estimator_s(folder):
    fit(f"{DP} --bounds bounds.csv {SEED}")
    privacy = pv.RecordDP(1.0, 1e-6, bounds=[(18, 98), (0, 500), "0/1", "0/1"], y_bounds=(60, 200))
    est = pv.PrivateLasso(privacy=privacy, random_state=3)
    est.fit(matrix(table()).astype(float), table()["y"].to_numpy())
    model = pv.load("model.json")
    assert model.feature_names == ("age", "dose", "ward=heart", "ward=skin")
    np.testing.assert_array_equal(model.coef, est.coef_)
    assert model.intercept == est.intercept_
    assert set(est.guarantee_.assumptions) < set(model.guarantee.assumptions)


@pytest.mark.parametrize("ending", ["parquet", "arrow", "tsv"])
def test_every_format_gives_the_same_model(folder, ending):
    write = {
        "parquet": pl.DataFrame.write_parquet,
        "arrow": pl.DataFrame.write_ipc,
        "tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    }[ending]
    write(table(), f"data.{ending}")
    fit(f"{DP} --bounds bounds.csv --seed 3 --out csv.json")
    fit(f"{DP} --bounds bounds.csv {SEED}", f"data.{ending}")
    np.testing.assert_array_equal(pv.load("model.json").coef, pv.load("csv.json").coef)


def test_numbers_alone_from_npz_and_a_dictionary_in_json(folder):
    frame = table()
    X = matrix(frame).astype(float)
    np.savez("data.npz", X=X, y=frame["y"].to_numpy(), feature_names=["a", "b", "c", "d"])
    entries = {"a": [18, 98], "b": {"low": 0, "high": 500}, "c": "0/1", "d": "0/1"}
    (folder / "bounds.json").write_text(json.dumps(entries))
    fit(f"{DP} --bounds bounds.json {SEED}", "data.npz")
    fit(f"{DP} --bounds bounds.csv --seed 3 --out csv.json")
    np.testing.assert_array_equal(pv.load("model.json").coef, pv.load("csv.json").coef)


MECHANISMS = [
    ("--bounds bounds.csv --kappa 0.1 --t 0.4", {"kappa": 0.1, "t": 0.4}),
    ("--bounds bounds.csv --private-scales --share 0.3", {"scales": "private", "share": 0.3}),
    ("--bounds bounds.csv --shape private", {"shape": "private"}),
    ("--bounds bounds.csv --shape data.csv", {"shape": "data"}),
    ("--bounds bounds.csv --mechanism statistics", {"mechanism": "statistics"}),
    ("--bounds private --exclude ward", {"bounds": "private"}),
]


@pytest.mark.parametrize(("options", "settings"), MECHANISMS)
def test_every_mechanism_is_the_estimator_s(folder, options, settings):
    fit(f"{DP} {options} {SEED}")
    X = matrix(table()).astype(float)[:, : 2 if "exclude" in options else 4]
    if settings.get("shape") == "data":
        settings = {"shape": X}
    bounds = [(18, 98), (0, 500), "0/1", "0/1"]
    privacy = pv.RecordDP(1.0, 1e-6, **{"bounds": bounds, "y_bounds": (60, 200), **settings})
    est = pv.PrivateLasso(privacy=privacy, random_state=3).fit(X, table()["y"].to_numpy())
    np.testing.assert_array_equal(pv.load("model.json").coef, est.coef_)


def test_label_privacy_has_its_mechanisms_too(folder, capsys):
    label = "--target y --label-dp --epsilon 1 --delta 1e-6 --y-bounds 60 200 --lam 50 --json"
    for options, kind in (
        ("--mechanism release", "gaussian"),
        ("--mechanism objective --kappa 0.2 --t 0.05", "objective"),
    ):
        fit(f"{label} {options} --out model.json")
        losses = json.loads(capsys.readouterr().out)["guarantee"]["losses"]
        assert losses[0]["type"] == kind
    assert losses[0]["t"] == 0.05


def test_an_interrupt_says_that_the_budget_is_spent(folder, capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("privasso.queries._minimiser.noisy_output", interrupted)
    fit(f"{DP} --bounds bounds.csv --out model.json", code=130)
    assert "count its budget as spent" in capsys.readouterr().err
    assert files(folder) == {"data.csv", "bounds.csv"}


def test_a_ledger_is_charged_once(folder, capsys):
    assert main(["ledger", "create", "budget.json", "--epsilon", "1.2", "--delta", "1e-6"]) == 0
    fit(f"{DP} --bounds bounds.csv --ledger budget.json --out model.json")
    assert "Ledger." in capsys.readouterr().out
    fit(f"{DP} --bounds bounds.csv --ledger budget.json --out second.json", code=2)
    assert "budget" in capsys.readouterr().err
    assert "second.json" not in files(folder)


def test_an_uncertified_fit_publishes_nothing(folder, capsys, monkeypatch):
    monkeypatch.setattr(
        "privasso.queries._minimiser.noisy_output",
        lambda *_, **__: (_ for _ in ()).throw(UncertifiedError("no certificate")),
    )
    fit(f"{DP} --bounds bounds.csv --out model.json", code=2)
    error = capsys.readouterr().err
    assert "count its budget as spent" in error
    assert files(folder) == {"data.csv", "bounds.csv"}


def test_an_uncertified_fit_of_labels_is_one_sentence(folder, capsys, monkeypatch):
    def fails(*_, **__):
        raise UncertifiedError("no certificate, so nothing was published")

    monkeypatch.setattr("privasso.fit.Plan.release", fails)
    label = DP.replace("record", "label")
    fit(f"{label} --lam 50 --out model.json", code=2)
    assert "privasso: error: no certificate" in capsys.readouterr().err
    assert files(folder) == {"data.csv", "bounds.csv"}


def test_statistics_are_kept_and_solved_again_without_data(folder, capsys):
    kept = "--mechanism statistics --keep-release s.json --path-out path.csv --lam 9"
    fit(f"{DP} --bounds bounds.csv {kept} {SEED} --report report.html")
    for name in ("data.csv", "bounds.csv"):
        (folder / name).unlink()
    fit("--from-release s.json --lam 9 --out again.json --report again.html", None)
    first, again = pv.load("model.json"), pv.load("again.json")
    np.testing.assert_array_equal(first.coef, again.coef)
    assert first.guarantee == again.guarantee
    assert first.encoding == again.encoding
    path = pl.read_csv("path.csv")
    fit(f"--from-release s.json --lam {path['lam'][20]} --out other.json", None)
    np.testing.assert_allclose(pv.load("other.json").coef[0], path["coef:age"][20], rtol=1e-9)
    capsys.readouterr()
    fit("--from-release s.json --out model.json --features age", None, code=2)
    assert "cannot be given with --from-release" in capsys.readouterr().err


def test_without_data_a_fit_says_so(folder, capsys):
    fit(f"{DP} --bounds bounds.csv --out model.json", None, code=2)
    assert "DATA" in capsys.readouterr().err


def test_predictions_use_the_dictionary(folder, capsys):
    fit(f"{DP} --bounds bounds.csv {SEED}")
    model = pv.load("model.json")
    new = pl.DataFrame(
        {"ward": ["heart", "other", None], "dose": [1.0, None, 5.0], "age": [58, 30, None]}
    )
    new.write_csv("new.csv")
    assert main(["predict", "model.json", "new.csv", "--out", "predictions.csv"]) == 0
    X = np.array([[58, 1, 1, 0], [30, 0, 0, 0], [58, 5, 0, 0]], dtype=float)
    found = pl.read_csv("predictions.csv")["prediction"].to_numpy()
    np.testing.assert_allclose(found, X @ model.coef + model.intercept, rtol=1e-12)


def test_columns_are_chosen_first(folder, capsys):
    """The same as in Python; the dry run tells the price and the chances."""
    fit(f"{DP} --bounds bounds.csv --screen 2 {SEED}")
    bounds = [(18, 98), (0, 500), "0/1", "0/1"]
    privacy = pv.RecordDP(1.0, 1e-6, bounds=bounds, y_bounds=(60, 200))
    est = pv.PrivateLasso(privacy=privacy, screen=2, random_state=3)
    est.fit(matrix(table()).astype(float), table()["y"].to_numpy())
    model = pv.load("model.json")
    np.testing.assert_array_equal(model.coef, est.coef_)
    assert model.guarantee.kind == "record-dp"
    capsys.readouterr()
    fit(f"{DP} --bounds bounds.csv --screen 2 --dry-run")
    said = capsys.readouterr().out
    assert "which columns were chosen" in said
    assert "chance that a column is chosen which explains 5% of the labels" in said
    fit(f"{DP} --bounds bounds.csv --screen many --dry-run", code=2)
    assert "--screen must be auto, all or a number of columns" in capsys.readouterr().err


def test_a_record_without_a_label_does_not_count_in_the_choice(folder):
    frame = table()
    y = frame["y"].to_numpy().copy()
    y[:40] = np.nan
    frame.with_columns(pl.Series("y", y).fill_nan(None)).write_csv("gaps.csv")
    fit(f"{DP} --bounds bounds.csv --screen 2 {SEED}", "gaps.csv")
    # The same records with any other covariates give the same model.
    changed = frame.with_columns(
        pl.when(pl.int_range(pl.len()) < 40).then(98.0).otherwise(pl.col("age")).alias("age"),
        pl.Series("y", y).fill_nan(None),
    )
    changed.write_csv("changed.csv")
    first = pv.load("model.json").coef
    fit(f"{DP} --bounds bounds.csv --screen 2 --seed 3 --out other.json", "changed.csv")
    np.testing.assert_array_equal(first, pv.load("other.json").coef)
    assert first.size == 4


def test_levels_are_texts_even_if_they_look_like_numbers(folder):
    fit(f"{DP} --bounds bounds.csv --seed 3 --out words.json")
    codes = {"heart": "01", "skin": "02", "eye": "03"}
    table().with_columns(pl.col("ward").replace(codes)).write_csv("data.csv")
    (folder / "bounds.csv").write_text(BOUNDS.replace("heart|skin", "01|02"))
    fit(f"{DP} --bounds bounds.csv {SEED}")
    np.testing.assert_array_equal(pv.load("model.json").coef, pv.load("words.json").coef)
    # One more record that is no number, far down, changes nothing about the others.
    lines = table().write_csv().splitlines()
    many = [lines[0], *(lines[1:] * 20), "SECRET,SECRET,SECRET,SECRET"]
    (folder / "data.csv").write_text("\n".join(many) + "\n")
    (folder / "bounds.csv").write_text(BOUNDS)
    fit(f"{DP} --bounds bounds.csv {SEED}")
    assert pv.load("model.json").guarantee["n_rows"] == 12_001


def test_the_report_shows_public_numbers_and_what_is_covered(folder):
    options = "--bounds bounds.csv --seed 3 --out model.json --report report.html"
    fit(f"{DP} {options}")
    page = Path("report.html").read_text()
    for heading in ("What is stated", "Coefficients", "How it was fitted", "What could be exp"):
        assert heading in page
    assert "its noise" not in page  # nothing was released that standard errors could come from
    assert "scale of the column" not in page
    fit(f"{DP} {options} --mechanism statistics --keep-release s.json")
    page = Path("report.html").read_text()
    assert "standard error" in page
    assert "Other values of λ" in page
    assert "--from-release s.json" in page
    errors = pv.load_release("s.json").solve().coef_se  # pyright: ignore
    assert errors is not None
    for error in errors[np.isfinite(errors)]:
        assert f"{error:.2g}" in page


def test_neighbours_are_chosen(folder, capsys):
    """A replaced record takes more noise, and the statement says what data sets differ in."""
    said = {}
    for relation in ("emptied", "replaced"):
        fit(f"{DP} --bounds bounds.csv --neighbours {relation} --dry-run --json")
        said[relation] = json.loads(capsys.readouterr().out)
    assert said["replaced"]["guarantee"]["neighbours"] == "replaced"
    noise = [said[one]["mechanism"]["sigma"] for one in ("emptied", "replaced")]
    assert 1.3 * noise[0] < noise[1] < 3.0 * noise[0]
    label = "--target y --label-dp --epsilon 1 --delta 1e-6 --y-bounds 60 200 --dry-run"
    fit(f"{label} --neighbours emptied")
    assert "one entry replaced by an empty one" in capsys.readouterr().out
    fit(f"{label} --neighbours added", code=2)
    assert "'emptied' or 'replaced'" in capsys.readouterr().err


def test_a_quantile(folder, capsys):
    """In a dry run, in a ledger and in an audit."""
    ask = f"{DP} --bounds bounds.csv --loss quantile:0.8"
    assert main(["ledger", "create", "budget.json", "--epsilon", "2", "--delta", "1e-5"]) == 0
    fit(f"{ask} --dry-run")
    fit(f"{ask} {SEED} --ledger budget.json")
    said = "the minimiser of the perturbed objective, whose predictions are the 0.8-quantile"
    shown = capsys.readouterr().out
    assert shown.count(said) == 2
    assert "fits of the 0.8-quantile of the labels are not simulated" in shown
    (entry,) = pv.Ledger.open("budget.json").entries
    assert any(said in released for released in entry.guarantee.released)
    model = pv.load("model.json")
    frame = table()
    assert np.mean(frame["y"].to_numpy() <= model.predict(matrix(frame))) > 0.7
    attack = f"audit data.csv {ask} --releases 20 --row 3 --seed 1 --json"
    assert main(attack.split()) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--loss median", "a loss is one of huber, logistic, quantile"),
        ("--loss quantile:2", "a loss is one of huber, logistic, quantile"),
        ("--loss quantile", "a loss is one of huber, logistic, quantile"),
        ("--loss huber --binary", "both say what the fit is about"),
        ("--loss quantile:0.9 --mechanism statistics", "cannot be found from statistics"),
    ],
)
def test_a_loss_that_is_none(folder, capsys, options, said):
    bounds = DP.replace("60 200", "0 1") if "binary" in options else DP
    fit(f"{bounds} --bounds bounds.csv {options} --out model.json", code=2)
    assert said in " ".join(capsys.readouterr().err.split())
    assert "model.json" not in files(folder)
