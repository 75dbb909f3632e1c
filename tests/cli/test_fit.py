"""`privasso fit`: the same model from every format, nothing left behind by a failure, no leaks."""

import json
import re

import numpy as np
import polars as pl
import pytest

import privasso as pv
from privasso.cli import main
from privasso.operators import Covariates
from privasso.privacy import release_labels
from privasso.tables import open_table

# Outside of the tests each command is a process of its own, which fits once.
pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")

DP = ["--target", "y", "--label-dp", "--epsilon", "3", "--delta", "1e-6", "--y-bounds", "-4", "4"]


def data(m=400, seed=0):
    rng = np.random.default_rng(seed)
    scales = np.array([0.01, 0.3, 2.0, 40.0, 900.0])
    X = rng.standard_normal((m, 5)) * scales + scales
    y = np.clip((X - X.mean(0)) @ (np.array([1.0, 0, -0.8, 0, 0.9]) / scales), -4, 4)
    names = ["tiny", "small", "middle", "large", "huge"]
    return pl.DataFrame({**{n: X[:, k] for k, n in enumerate(names)}, "y": y})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data().write_csv("data.csv")
    return tmp_path


def files(folder):
    return {path.name for path in folder.iterdir()}


def fit(*options, code=0):
    words = [str(word) for option in options for word in str(option).split()]
    assert main(["fit", *words]) == code


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
    (" ".join([*DP, "--seed -1"]), "rng must be"),
    (" ".join([*DP, "--report nowhere/report.html"]), "cannot be written"),
    (" ".join([*DP, "--report model.json"]), "the same file"),
    (" ".join([*DP, "--report data.csv"]), "the same file"),
    (" ".join([*DP, "--keep-release data.csv"]), "the same file"),
    (" ".join([*DP, "--from-release data.csv"]), "cannot be given with --from-release"),
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


def test_a_failed_report_leaves_no_model_but_the_release(folder, capsys, monkeypatch):
    import privasso.cli._outputs as outputs

    real = outputs.write_whole

    def fails(path, content, **options):
        if path.name == "model.json":
            raise OSError(28, "No space left on device", str(path))
        real(path, content, **options)

    monkeypatch.setattr(outputs, "write_whole", fails)
    fit("data.csv", *DP, "--lam 50 --out model.json --report report.html", code=2)
    error = capsys.readouterr().err
    assert "budget of this fit is spent" in error
    assert "model.release.json" in error
    assert files(folder) == {"data.csv", "model.release.json"}
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    fit("data.csv --from-release model.release.json --lam 50 --out model.json")
    assert pv.load("model.json").lam == 50.0


def test_a_full_disk_leaves_the_release_on_the_screen(folder, capsys, monkeypatch):
    def full(path, content, **options):
        raise OSError(28, "No space left on device", str(path))

    for place in ("privasso.cli._outputs.write_whole", "privasso._files.write_whole"):
        monkeypatch.setattr(place, full)
    fit("data.csv", *DP, "--lam 50 --out model.json", code=2)
    captured = capsys.readouterr()
    assert "on standard output alone" in captured.err
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    (folder / "saved.json").write_text(captured.out)
    fit("data.csv --from-release saved.json --lam 50 --out model.json")


def test_a_failing_page_restores_what_was_there(folder, capsys, monkeypatch):
    (folder / "model.json").write_text("old")
    monkeypatch.setattr("privasso.report.fit_page", lambda facts: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        fit("data.csv", *DP, "--lam 50 --out model.json --report report.html")
    assert (folder / "model.json").read_text() == "old"
    assert files(folder) == {"data.csv", "model.json", "model.release.json"}


def test_without_a_minimiser_the_release_is_kept(folder, capsys, monkeypatch):
    # As with very many columns: the LASSO runs on the release itself, which may be unbounded.
    monkeypatch.setattr("privasso.fit._released.MOST_COLUMNS", 0)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 40)), rng.standard_normal(20)
    np.savez("wide.npz", X=X, y=y)
    privacy = "--label-dp --epsilon 1 --delta 1e-6 --y-bounds -4 4 --noise power:0.5 --lam 1e-6"
    fit("wide.npz", privacy, "--out model.json --report report.html", code=2)
    error = capsys.readouterr().err
    assert "nothing is lost" in error
    assert error.count("\n") == 1
    assert files(folder) == {"data.csv", "wide.npz", "model.release.json"}
    needed = float(re.findall(r"lam must be above ([0-9.e+]+)", error)[0].rstrip("."))
    np.savez("public.npz", X=X)  # the labels are gone
    again = "--from-release model.release.json --out model.json --report report.html"
    fit("public.npz", again, f"--lam {0.9 * needed}", code=2)
    fit("public.npz", again, f"--lam {1.5 * needed}")
    assert "no minimiser exists" in (folder / "report.html").read_text()
    # A second failed fit does not touch the release of the first.
    kept = (folder / "model.release.json").read_text()
    fit("wide.npz", privacy, "--out model.json", code=2)
    assert (folder / "model.release.json").read_text() == kept
    assert "model.release-2.json" in files(folder)


def test_solving_again_needs_no_labels_and_draws_no_noise(folder, capsys, monkeypatch):
    fit("data.csv", *DP, "--lam 50 --out a.json --keep-release r.json --path-out a.csv",
        "--lam-path 50,80,200")  # fmt: skip
    frame = data().drop("y")
    frame.select(reversed(frame.columns)).write_parquet("public.parquet")
    frame.sample(fraction=1.0, shuffle=True, seed=1).write_parquet("shuffled.parquet")
    with monkeypatch.context() as patch:
        for source in ("bit_source", "release_labels"):
            drawn = f"privasso.privacy._mechanism.{source}"
            patch.setattr(drawn, lambda *a, **k: pytest.fail("noise drawn"))
        fit("public.parquet --from-release r.json --lam 80 --out b.json --report b.html")
        fit("shuffled.parquet --from-release r.json --lam 80 --out s.json")
    b, path = pv.load("b.json"), pl.read_csv("a.csv")
    row = path.filter(pl.col("lam") == 80.0)
    for name, value in zip(b.feature_names or (), b.coef, strict=True):
        assert value == pytest.approx(row[f"coef:{name}"].item(), rel=1e-6, abs=1e-12)
    # Sums over rows in another order differ in the last digit, and the guess by its own error.
    np.testing.assert_allclose(pv.load("s.json").predict(frame), b.predict(frame), atol=0.02)
    assert b.guarantee == pv.load("a.json").guarantee
    assert path["status"].to_list() == ["converged"] * 3
    # Other data are refused.
    data(seed=5).write_csv("other.csv")
    fit("other.csv --from-release r.json --lam 80 --out c.json", code=2)
    assert "not the covariates that the release was made from" in capsys.readouterr().err
    data(m=399).write_csv("fewer.csv")
    fit("fewer.csv --from-release r.json --lam 80 --out c.json", code=2)
    assert "X has shape (399, 5)" in capsys.readouterr().err


def test_a_release_that_was_paid_for_is_not_overwritten(folder, capsys):
    fit("data.csv", *DP, "--out a.json --keep-release r.json")
    kept = (folder / "r.json").read_text()
    fit("data.csv", *DP, "--out a.json --keep-release r.json", code=2)
    assert "is never overwritten" in capsys.readouterr().err
    assert (folder / "r.json").read_text() == kept


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
    bound = record["perturbed_objective"]["c"] / (2.0 * 0.1 * 8.0)
    weights = np.minimum(1.0, bound**2 / squared)
    assert release.weight_sum == pytest.approx(weights.sum(), rel=1e-6)
    fit("public.csv", *DP, "--dry-run --no-target-column --noise isotropic --lam 100")
    printed = capsys.readouterr().out
    assert "no label has been read" in printed
    assert "simulated fits on these columns at λ = 100" in printed
    assert "A fit would state" in printed


def test_dry_run_forecasts_by_simulated_fits(folder, capsys):
    fit("data.csv", *DP, "--dry-run --json --assume-r2 0.6")
    record = json.loads(capsys.readouterr().out)
    assert record["assumptions"] == {"rho": 0.3, "r2": 0.6, "label_sd": pytest.approx(8 / 6)}
    assert record["predictions"] == []  # state evolution is for covariates that are not public
    found = record["forecast"]
    assert found["fits"] == 6  # of this folder; see its conftest
    assert found["low"] <= found["median"] <= found["high"] < 0.9
    assert 0.0 <= found["above_zero"] <= 1.0
    rows = data().height
    assert [(one["what"], one["value"]) for one in found["changes"]] == [
        ("epsilon", 6.0), ("epsilon", 9.0), ("rows", 4.0 * rows)
    ]  # fmt: skip
    assert all(one["median"] > found["median"] for one in found["changes"])
    fit("data.csv", *DP, "--dry-run --assume-r2 0.6")
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

    def read(self, names, target, categorical):
        asked.extend([*names, target])
        return real(self, names, target, categorical)

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
