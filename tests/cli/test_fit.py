"""`privasso fit`: the same model from every format, one sentence on errors, no leaks."""

import json
import re

import numpy as np
import polars as pl
import pytest
from cli_labels import DP, data, files, fit, prepared

import privasso as pv
from privasso.operators import Covariates

# Outside of the tests each command is a process of its own, which fits once.
pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    return prepared(tmp_path, monkeypatch)


def test_the_model_is_the_estimator_s(folder, capsys):
    fit("data.csv", *DP, "--lam 50 --seed 3 --out model.json --json")
    record = json.loads(capsys.readouterr().out)
    frame = data()
    est = pv.PrivateLasso(50.0, pv.LabelDP(3.0, 1e-6, (-4, 4)), random_state=3)
    est.fit(frame.drop("y").to_numpy(), frame["y"].to_numpy())
    model = pv.load("model.json")
    assert model.feature_names == tuple(frame.columns[:-1])
    np.testing.assert_allclose(model.coef, est.coef_, rtol=1e-6)
    assert model.intercept == pytest.approx(est.intercept_)
    assert record["coef"]["tiny"] == pytest.approx(est.coef_[0], rel=1e-6)
    assert record["for_release"] is False


@pytest.mark.parametrize("ending", ["parquet", "arrow", "feather", "npz", "tsv"])
def test_every_format_gives_the_same_model(folder, ending):
    frame = data()
    if ending == "npz":
        X = frame.drop("y").to_numpy()
        np.savez("data.npz", X=X, y=frame["y"].to_numpy(), feature_names=frame.columns[:-1])
    elif ending == "tsv":
        frame.write_csv("data.tsv", separator="\t")
    else:
        getattr(frame, "write_parquet" if ending == "parquet" else "write_ipc")(f"data.{ending}")
    fit("data.csv", *DP, "--seed 3 --out a.json")
    fit(f"data.{ending}", *DP, "--seed 3 --out b.json")
    assert (folder / "a.json").read_text() == (folder / "b.json").read_text()


def test_a_seed_is_loud(folder, capsys):
    fit("data.csv", *DP, "--seed 3 --out model.json --report report.html")
    captured = capsys.readouterr()
    assert "NOT FOR RELEASE" in captured.err
    assert "NOT FOR RELEASE" in captured.out
    assert "NOT FOR RELEASE" in (folder / "report.html").read_text()
    fit("data.csv", *DP, "--out model.json --report report.html")
    captured = capsys.readouterr()
    assert "NOT FOR RELEASE" not in captured.err + captured.out
    assert "NOT FOR RELEASE" not in (folder / "report.html").read_text()


BAD = [
    ("--target gone --label-dp --epsilon 1 --delta 1e-6 --y-bounds 0 1", "no column 'gone'"),
    ("--label-dp --epsilon 1 --delta 1e-6 --y-bounds 0 1", "--target COLUMN"),
    ("--target y --label-dp --epsilon 1 --delta 1e-6", "--y-bounds LOW HIGH"),
    ("--target y --label-dp --epsilon 1 --y-bounds 0 1", "needs --epsilon, --delta and --y-bounds"),
    ("--target y --epsilon 1 --delta 1e-6 --y-bounds 0 1", "say what to protect"),
    ("--target y --label-dp --on-average --sigma 1", "say what to protect"),
    ("--target y --label-dp --epsilon 0 --delta 1e-6 --y-bounds 0 1", "epsilon must be positive"),
    ("--target y --label-dp --epsilon 1 --delta 2 --y-bounds 0 1", "probability below 1"),
    ("--target y --label-dp --epsilon 1 --delta 1e-6 --y-bounds 1 0", "must increase"),
    ("--target y --label-dp --epsilon 1 --delta 1e-6 --y-bounds 0 1 --sigma 1", "--on-average"),
    ("--target y --on-average --sigma 1 --epsilon 1 --lam 1", "has no ε"),
    ("--target y --on-average --lam 1", "needs --sigma"),
    ("--target y --on-average --sigma 1", "needs a number for --lam"),
    ("--target y --on-average --sigma 1 --lam 1 --keep-release r.json", "needs --label-dp"),
    (" ".join([*DP, "--features tiny,y"]), "cannot be one of the features"),
    (" ".join([*DP, "--features tiny,tiny"]), "named twice"),
    (" ".join([*DP, "--features tinny"]), "did you mean 'tiny'"),
    (" ".join([*DP, "--features tiny --exclude huge"]), "not both"),
    (" ".join([*DP, "--noise round"]), "--noise 'round' is none of"),
    (" ".join([*DP, "--noise optimal"]), "privasso design"),
    (" ".join([*DP, "--lam zero"]), "not a number"),
    (" ".join([*DP, "--lam -1"]), "must be positive"),
    (" ".join([*DP, "--lam-path 1,2"]), "--path-out or --report"),
    (" ".join([*DP, "--path-out path.txt"]), ".csv or .parquet"),
    (" ".join([*DP, "--seed -1"]), "--seed must be a non-negative integer, not -1"),
    (" ".join([*DP, "--dry-run --assume-r2 2"]), "--assume-r2 must be below 1, not 2"),
    (" ".join([*DP, "--report nowhere/report.html"]), "cannot be written"),
    (" ".join([*DP, "--report model.json"]), "the same file"),
    (" ".join([*DP, "--report data.csv"]), "the same file"),
    (" ".join([*DP, "--keep-release data.csv"]), "the same file"),
    (" ".join([*DP, "--from-release data.csv"]), "cannot be given with --from-release"),
    ("--from-release data.csv --seed 0", "--seed cannot be given with --from-release"),
    ("--from-release data.csv", "not valid JSON"),
    ("--from-release nowhere.json", "nowhere.json"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_options(folder, capsys, options, message):
    before = (folder / "data.csv").read_text()
    fit("data.csv", "--out model.json", options, code=2)
    error = capsys.readouterr().err
    assert error.startswith("privasso: error: ")
    assert message in error
    assert error.count("\n") == 1
    assert files(folder) == {"data.csv"}
    assert (folder / "data.csv").read_text() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"middle": [None, *[1.0] * 399]}, "column 'middle' has a missing value in row 1"),
        ({"middle": [*[1.0] * 399, float("inf")]}, "column 'middle' is infinite in row 400"),
        ({"middle": ["a", *["1"] * 399]}, "column 'middle' holds text, first in row 1"),
        (dict.fromkeys(["tiny", "small", "middle", "large", "huge"], [2.0] * 400), "is constant"),
    ],
)
def test_bad_data(folder, capsys, change, message):
    data().with_columns(**{k: pl.Series(v) for k, v in change.items()}).write_csv("bad.csv")
    fit("bad.csv", *DP, "--out model.json --report report.html --keep-release r.json", code=2)
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert files(folder) == {"data.csv", "bad.csv"}


def test_a_column_of_dates_can_be_left_out(folder):
    data().with_columns(day=pl.lit("2020-01-17")).write_csv("more.csv")
    fit("more.csv", *DP, "--out model.json", code=2)
    fit("more.csv", *DP, "--exclude day,tiny --out model.json")
    assert pv.load("model.json").feature_names == ("small", "middle", "large", "huge")


def test_nothing_published_tells_labels_or_noise(folder):
    frame = data()
    y = frame["y"].to_numpy()
    fit("data.csv", *DP, "--lam 50 --seed 3 --out a.json --report a.html --keep-release r.json",
        "--path-out p.csv")  # fmt: skip
    rows = Covariates(frame.drop("y").to_numpy(), centre=True)
    release = json.loads((folder / "r.json").read_text())
    exact = rows.rmatvec(y)
    noise = exact - np.array(release["b"])
    assert np.all(np.abs(noise) > 0.0)
    residuals = (
        y - frame.drop("y").to_numpy() @ pv.load("a.json").coef - pv.load("a.json").intercept
    )
    secrets = np.concatenate([y, noise, exact, [y.sum(), y.mean()], residuals])
    texts = {f"{x:.6g}" for x in secrets} | {repr(float(x)) for x in secrets}
    texts -= {f"{x:g}" for x in (-4.0, 4.0)}  # the bounds, which clipped labels equal
    for name in ("a.json", "a.html", "r.json", "p.csv"):
        text = re.sub(r"base64,[A-Za-z0-9+/=]+", "", (folder / name).read_text())
        numbers = set(re.findall(r"-?\d+\.\d{3,}(?:e[+-]?\d+)?", text))
        assert not numbers & texts, name


def test_on_average_claims_nothing_and_shows_no_columns(folder, capsys):
    fit("data.csv --target y --on-average --sigma 5 --lam 200 --out a.json --report a.html")
    printed = capsys.readouterr().out
    page = (folder / "a.html").read_text()
    for text in (printed, page):
        assert "bounds nothing for any one person" in text
        assert "in the worst case it leaks information about them" in text
        assert "ε =" not in text
    # Covariates are not public here: neither scales, nor noise levels, nor the path are shown.
    for word in ("How the noise is spent", "Other values of λ", "Stability", "its noise"):
        assert word not in page
    assert files(folder) == {"data.csv", "a.json", "a.html"}


def test_prior_scales_by_name(folder, capsys):
    (folder / "scales.csv").write_text("huge,900\nlarge,40\nmiddle,2\nsmall,0.3\ntiny,0.01\n")
    options = "data.csv --target y --on-average --sigma 5 --lam 200 --seed 1 --noise power:1"
    fit(options, "--scales scales.csv --out a.json")
    assert "is public or prior knowledge" in capsys.readouterr().out
    frame = data()
    est = pv.PrivateLasso(
        200.0,
        pv.OnAverage(5.0),
        noise="power:1",
        scales=[0.01, 0.3, 2.0, 40.0, 900.0],
        random_state=1,
    ).fit(frame.drop("y").to_numpy(), frame["y"].to_numpy())
    np.testing.assert_allclose(pv.load("a.json").coef, est.coef_, rtol=1e-6)
    (folder / "scales.csv").write_text("huge,900\n")
    fit(options, "--scales scales.csv --out a.json", code=2)
    assert "no line for the column 'tiny'" in capsys.readouterr().err


def test_labels_are_gone_before_anything_is_solved(folder, monkeypatch):
    from privasso.fit import Plan, Released

    given, seen = [], []
    solve, release_labels = Released.solve, Plan.release

    def release(self, y, **options):
        given.append(y)
        np.testing.assert_array_equal(y, data()["y"])
        return release_labels(self, y, **options)

    def look(self, *lam):
        seen.append((given[0].copy(), self.rows._F))
        return solve(self, *lam)

    monkeypatch.setattr(Plan, "release", release)
    monkeypatch.setattr(Released, "solve", look)
    fit("data.csv", *DP, "--lam 50 --out model.json")
    ((labels, covariates),) = seen
    assert not labels.any()
    assert covariates.base is None  # the labels are not in the memory of the covariates either
    np.testing.assert_array_equal(covariates, data().drop("y").to_numpy())
