"""`privasso fit --record-dp`: the estimator's model, public decisions only, one sentence on errors.

What one cell holds must change nothing but the noisy numbers: not which columns there are, not
whether the fit runs, not what is printed.
"""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import privasso as pv
from privasso.cli import main

# Outside of the tests each command is a process of its own, which fits once.
pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")

DP = "--target y --record-dp --epsilon 1 --delta 1e-6 --y-bounds 60 200"
BOUNDS = "name,low,high,fill,levels\nage,18,98,,\ndose,0,500,0,\nward,,,,heart|skin\n"
SEED = "--seed 3 --out model.json"


def table(m=600):
    rng = np.random.default_rng(0)
    age, dose = rng.uniform(18, 90, m).round(), rng.uniform(0, 500, m).round(3)
    ward = rng.choice(["heart", "eye", "skin"], m)
    y = 100 + 0.4 * age - 0.03 * dose + 6 * (ward == "heart") + 5 * rng.standard_normal(m)
    return pl.DataFrame({"age": age, "dose": dose, "ward": ward, "y": y.round(3)})


@pytest.fixture
def folder(tmp_path, monkeypatch):
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


def test_the_model_is_the_estimator_s(folder):
    fit(f"{DP} --bounds bounds.csv {SEED}")
    privacy = pv.RecordDP(
        1.0, 1e-6, bounds=[(18, 98), (0, 500), (0, 1), (0, 1)], y_bounds=(60, 200)
    )
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
    entries = {"a": [18, 98], "b": {"low": 0, "high": 500}, "c": [0, 1], "d": [0, 1]}
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
    bounds = [(18, 98), (0, 500), (0, 1), (0, 1)]
    privacy = pv.RecordDP(1.0, 1e-6, **{"bounds": bounds, "y_bounds": (60, 200), **settings})
    est = pv.PrivateLasso(privacy=privacy, random_state=3).fit(X, table()["y"].to_numpy())
    np.testing.assert_array_equal(pv.load("model.json").coef, est.coef_)


def test_label_privacy_has_its_mechanisms_too(folder, capsys):
    label = "--target y --label-dp --epsilon 1 --delta 1e-6 --y-bounds 60 200 --lam 50 --json"
    for options, kind in (
        ("--mechanism release", "mu"),
        ("--mechanism objective --kappa 0.2 --t 0.05", "kappa"),
    ):
        fit(f"{label} {options} --out model.json")
        parameters = json.loads(capsys.readouterr().out)["guarantee"]["parameters"]
        assert kind in parameters
    assert (parameters["kappa"], parameters["t"]) == (0.2, 0.05)


BAD_OPTIONS = [
    ("", "say what to protect"),
    (f"{DP} --label-dp --bounds bounds.csv", "say what to protect"),
    (f"{DP}", "--bounds FILE"),
    ("--target y --record-dp --epsilon 1 --delta 1e-6 --bounds bounds.csv", "--y-bounds LOW HIGH"),
    (f"{DP} --bounds nowhere.csv", "nowhere.csv"),
    (f"{DP} --bounds bounds.csv --sigma 1", "--sigma belongs to --on-average"),
    (f"{DP} --bounds bounds.csv --noise gram", "--noise belongs to --label-dp"),
    (f"{DP} --bounds bounds.csv --missing mean", "--missing belongs to --label-dp"),
    (f"{DP} --bounds bounds.csv --categorical ward", "--categorical belongs to --label-dp"),
    (f"{DP} --bounds bounds.csv --keep ward", "--keep belongs to --label-dp"),
    (f"{DP} --bounds bounds.csv --time-limit 3", "--time-limit belongs to --label-dp"),
    (f"{DP} --bounds bounds.csv --share 0.1", "nothing is; leave it out"),
    (f"{DP} --bounds private --share 1", "share is a part of the budget"),
    (f"{DP} --bounds bounds.csv --mechanism release", "objective or statistics"),
    (f"{DP} --bounds bounds.csv --mechanism statistics --shape private", "shape belongs to"),
    (f"{DP} --bounds bounds.csv --kappa 0", "kappa must be positive"),
    (f"{DP} --bounds bounds.csv --t nan", "t must be finite"),
    (f"{DP} --bounds bounds.csv --lam 0", "must be positive"),
    (f"{DP} --bounds bounds.csv --keep-release r.json", "needs --mechanism statistics"),
    (f"{DP} --bounds bounds.csv --path-out path.csv", "needs --mechanism statistics"),
    (f"{DP} --bounds bounds.csv --mechanism auto --keep-release r.json", "needs --mechanism stat"),
    (f"{DP} --bounds bounds.csv --shape nowhere.csv", "nowhere.csv"),
    (f"{DP} --bounds bounds.csv --shape bounds.csv", "--shape: bounds.csv has no columns 'age'"),
    (f"{DP} --bounds bounds.csv --out bounds.csv", "the same file"),
    (f"{DP} --bounds bounds.csv --features age,y", "cannot be one of the features"),
    (f"{DP.replace('--epsilon 1', '--epsilon 0')} --bounds bounds.csv", "must be positive"),
    (f"{DP.replace('60 200', '200 60')} --bounds bounds.csv", "must increase"),
    (f"{DP.replace('60 200', '60 nan')} --bounds bounds.csv", "must be finite"),
    ("--target y --on-average --sigma 1 --lam 1 --kappa 1", "--label-dp or --record-dp"),
    ("--target y --on-average --sigma 1 --lam 1 --bounds bounds.csv", "belongs to --record-dp"),
    (f"{DP.replace('record', 'label')} --bounds bounds.csv", "belongs to --record-dp"),
    (f"{DP.replace('record', 'label')} --private-scales", "belongs to --record-dp"),
    (f"{DP.replace('record', 'label')} --mechanism statistics", "auto, objective or release"),
    (f"{DP.replace('record', 'label')} --mechanism release --t 1", "t belongs to objective"),
    ("--from-release r.json --record-dp", "cannot be given with --from-release"),
]


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS)
def test_bad_options(folder, capsys, options, message):
    fit(f"--out model.json {options}", code=2)
    error = capsys.readouterr().err
    assert error.startswith("privasso: error: ")
    assert message in error
    assert error.count("\n") == 1
    assert files(folder) == {"data.csv", "bounds.csv"}


BAD_DICTIONARIES = [
    ("age,18,98,,\n", "the first line must be the header"),
    ("name,low,high,low\nage,1,2,3\n", "the first line must be the header"),
    ("name,low,high\n", "no line for any column"),
    ("name,low,high\nage,18\n", "line 2 has 2 fields"),
    ("name,low,high\nage,,\n", "column 'age' has no bounds; fill in low and high"),
    ("name,low,high\nage,18,\n", "column 'age' has one bound"),
    ("name,low,high\nage,98,18\n", "low of column 'age' is above its high"),
    ("name,low,high\nage,18,nan\n", "must be finite"),
    ("name,low,high\nage,-inf,18\n", "must be finite"),
    ("name,low,high\nage,young,old\n", "low of column 'age' is not a number"),
    ("name,low,high\nage,18,98\nage,18,98\n", "has the column 'age' twice"),
    ("name,low,high,fill\nage,18,98,99\n", "fill of column 'age' must lie between"),
    ("name,low,high,levels\nward,0,1,heart|skin\n", "column 'ward' has levels, which need no low"),
    ("name,levels\nward,heart|heart\n", "must be distinct"),
    ("name,levels\nward,heart|\n", "column 'ward' has an empty level"),
    ("name,low,high\nage,18,98\ndose,0,500\n", "no line for the column 'ward'"),
    (BOUNDS + "weight,0,1,,\n", "has no column 'weight'"),
    (BOUNDS.replace("age", "aeg"), "did you mean 'age'"),
    ("\udcff".encode("utf-8", "surrogateescape"), "not text in UTF-8"),
]


@pytest.mark.parametrize(("content", "message"), BAD_DICTIONARIES)
def test_bad_dictionaries(folder, capsys, content, message):
    data = content if isinstance(content, bytes) else content.encode()
    (folder / "bounds.csv").write_bytes(data)
    fit(f"{DP} --bounds bounds.csv --out model.json", code=2)
    error = capsys.readouterr().err
    assert message in error
    assert "bounds.csv" in error
    assert error.count("\n") == 1
    assert files(folder) == {"data.csv", "bounds.csv"}


BAD_JSON = [
    ("[1, 2]", "must be an object"),
    ('{"age": [18]}', "must be a list [low, high]"),
    ('{"age": 3}', "must be an object with named fields"),
    ('{"age": {"low": 1}}', "one bound"),
    ('{"age": {"low": 1, "high": 2, "hi": 3}}', "unknown field 'hi'"),
    ('{"age": {"low": true, "high": 2}}', "low of column 'age' must be a real number"),
    ('{"age": [18, 98], "age": [1, 2]}', "same name twice"),
    ('{"age": [18, NaN]}', "finite"),
    ('{"age": [18, 98]', "not valid JSON"),
]


@pytest.mark.parametrize(("content", "message"), BAD_JSON)
def test_bad_dictionaries_in_json(folder, capsys, content, message):
    (folder / "bounds.json").write_text(content)
    fit(f"{DP} --bounds bounds.json --out model.json", code=2)
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


NUMBER = re.compile(r"[-−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
#: One record as it may come: beyond its bounds, of another kind, missing, with fields too many.
EXTREME = [
    "1e300,-1e300,heart,1e300",
    "inf,-inf,skin,inf",
    "SECRET,SECRET,SECRET,SECRET",
    ",,,",
    "nan,nan,nan,nan",
    "61,10,eye,100,SECRET,SECRET",
    "61",
    "true,false,true,false",
    '"61","1,5","he""art",\xff',
]


def outcome(line, capsys):
    """Everything that comes of a fit whose fifth record is this line, numbers aside."""
    lines = table().write_csv().splitlines()
    lines[5] = line
    Path("data.csv").write_text("\n".join(lines) + "\n", encoding="latin-1")
    fit(f"{DP} --bounds bounds.csv --seed 3 --out model.json --report report.html")
    said = capsys.readouterr()
    written = (Path(name).read_text() for name in ("report.html", "model.json"))
    return [masked(said.out), *(NUMBER.sub("#", text) for text in (said.err, *written))]


def masked(printed):
    """What is printed, without its numbers and without the order that these put it in."""
    lines = NUMBER.sub("#", printed).replace("+#", "#").splitlines()
    return "\n".join(sorted(" ".join(line.split()) for line in lines))


def test_a_record_changes_nothing_but_numbers(folder, capsys):
    expected = outcome(table().write_csv().splitlines()[5], capsys)
    for line in EXTREME:
        found = outcome(line, capsys)
        assert found == expected, line
        assert not any("SECRET" in text for text in found)


@pytest.mark.parametrize(
    "options",
    [
        "--bounds bounds.csv --mechanism statistics",
        "--bounds bounds.csv --private-scales",
        "--bounds bounds.csv --shape private",
        "--bounds private --features age,dose --no-intercept",
    ],
)
def test_a_record_changes_nothing_but_numbers_in_what_is_printed(folder, capsys, options):
    said = []
    lines = table().write_csv().splitlines()
    for line in (lines[5], "1e300,-inf,SECRET,SECRET"):
        lines[5] = line
        Path("data.csv").write_text("\n".join(lines) + "\n")
        fit(f"{DP} {options} {SEED}")
        texts = [*capsys.readouterr(), *json.loads(Path("model.json").read_text())]
        said.append([masked(text) for text in texts])
    assert said[0] == said[1]


def test_a_record_outside_its_bounds_is_clipped(folder):
    outside = table().with_columns(
        age=pl.when(pl.col("age") > 80).then(1e9).otherwise("age"),
        dose=pl.when(pl.col("dose") < 50).then(-7.0).otherwise("dose"),
        y=pl.when(pl.col("y") > 130).then(5e3).otherwise("y"),
    )
    clipped = outside.with_columns(
        pl.col("age").clip(18, 98), pl.col("dose").clip(0, 500), pl.col("y").clip(60, 200)
    )
    for name, frame in (("outside", outside), ("clipped", clipped)):
        frame.write_csv(f"{name}.csv")
        fit(f"{DP} --bounds bounds.csv --seed 3 --out {name}.json", f"{name}.csv")
    assert (folder / "outside.json").read_text() == (folder / "clipped.json").read_text()


def test_missing_values_are_filled_and_a_record_without_a_label_is_empty(folder):
    """A missing covariate is the fill of the dictionary, or the middle of the bounds."""
    holes = table().with_columns(
        age=pl.when(pl.col("age") > 80).then(None).otherwise("age"),
        dose=pl.when(pl.col("dose") < 50).then(None).otherwise("dose"),
        ward=pl.when(pl.col("dose") > 400).then(None).otherwise("ward"),
    )
    filled = holes.with_columns(
        pl.col("age").fill_null(58), pl.col("dose").fill_null(0), pl.col("ward").fill_null("none")
    )
    for name, frame in (("holes", holes), ("filled", filled)):
        frame.write_csv(f"{name}.csv")
        fit(f"{DP} --bounds bounds.csv --seed 3 --out {name}.json", f"{name}.csv")
    assert (folder / "holes.json").read_text() == (folder / "filled.json").read_text()
    # Records without a label: as if they were not there, but for the public number of rows.
    unlabelled = table().with_columns(y=pl.when(pl.col("age") > 50).then(None).otherwise("y"))
    unlabelled.write_csv("unlabelled.csv")
    fit(f"{DP} --bounds bounds.csv --seed 3 --lam 3 --out a.json", "unlabelled.csv")
    moved = unlabelled.with_columns(
        age=pl.when(pl.col("y").is_null()).then(18.0).otherwise("age"),
        dose=pl.when(pl.col("y").is_null()).then(500.0).otherwise("dose"),
    )
    moved.write_csv("moved.csv")
    fit(f"{DP} --bounds bounds.csv --seed 3 --lam 3 --out b.json", "moved.csv")
    assert (folder / "a.json").read_text() == (folder / "b.json").read_text()


@pytest.mark.parametrize(
    ("frame", "bounds"),
    [
        (table(1), BOUNDS),
        (table(2), BOUNDS),
        (table().with_columns(age=pl.lit(50)), BOUNDS),
        (table(), BOUNDS.replace("18,98", "50,50")),
        (table(), BOUNDS.replace("heart|skin", "nobody")),
    ],
    ids=["one row", "fewer rows than columns", "constant", "one value allowed", "no such level"],
)
def test_tables_that_say_little_still_fit(folder, frame, bounds):
    frame.write_csv("data.csv")
    (folder / "bounds.csv").write_text(bounds)
    fit(f"{DP} --bounds bounds.csv --out model.json")
    model = pv.load("model.json")
    assert np.isfinite(model.coef).all()
    if "50,50" in bounds:
        assert model.coef[0] == 0.0


def test_types_that_the_file_states_are_public(folder, capsys):
    dates = table().with_columns(dose=pl.date(2024, 1, 1))
    dates.write_parquet("data.parquet")
    fit(f"{DP} --bounds bounds.csv --out model.json", "data.parquet", code=2)
    assert "column 'dose' holds dates or times" in capsys.readouterr().err
    table().with_columns(y=pl.date(2024, 1, 1)).write_parquet("data.parquet")
    fit(f"{DP} --bounds bounds.csv --out model.json", "data.parquet", code=2)
    assert "does not hold numbers by its type" in capsys.readouterr().err
    table().write_parquet("data.parquet")
    fit(f"{DP} --bounds private --out model.json", "data.parquet", code=2)
    assert "column 'ward' holds text by its type" in capsys.readouterr().err
    np.savez("data.npz", X=np.zeros((3, 1)), y=np.array(["SECRET"] * 3), feature_names=["age"])
    (folder / "bounds.csv").write_text("name,low,high\nage,18,98\n")
    fit(f"{DP} --bounds bounds.csv --out model.json", "data.npz", code=2)
    error = capsys.readouterr().err
    assert "does not hold numbers by its type" in error
    assert "SECRET" not in error


def test_an_interrupt_says_that_the_budget_is_spent(folder, capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("privasso.privacy._record_rows.exact_minimiser", interrupted)
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
        "privasso.privacy._record_rows.exact_minimiser",
        lambda *_, **__: (_ for _ in ()).throw(pv.privacy.UncertifiedError("no certificate")),
    )
    fit(f"{DP} --bounds bounds.csv --out model.json --report report.html", code=2)
    error = capsys.readouterr().err
    assert "count its budget as spent" in error
    assert files(folder) == {"data.csv", "bounds.csv"}


def test_an_uncertified_fit_of_labels_is_one_sentence(folder, capsys, monkeypatch):
    def fails(*_, **__):
        raise pv.privacy.UncertifiedError("no certificate, so nothing was published")

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
    bounds = [(18, 98), (0, 500), (0, 1), (0, 1)]
    privacy = pv.RecordDP(1.0, 1e-6, bounds=bounds, y_bounds=(60, 200))
    est = pv.PrivateLasso(privacy=privacy, screen=2, random_state=3)
    est.fit(matrix(table()).astype(float), table()["y"].to_numpy())
    model = pv.load("model.json")
    np.testing.assert_array_equal(model.coef, est.coef_)
    assert model.guarantee.kind == "record-dp-screened"
    capsys.readouterr()
    fit(f"{DP} --bounds bounds.csv --screen 2 --dry-run")
    said = capsys.readouterr().out
    assert "which 2 of 4 columns were chosen" in said
    assert "chance that a column is chosen which explains 5% of the labels" in said
    fit(f"{DP} --bounds bounds.csv --screen many --dry-run", code=2)
    assert "--screen must be auto or a number of columns" in capsys.readouterr().err


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
