"""`privasso fit`: what is left behind by a failure, and solving again from a kept release."""

import json
import re

import numpy as np
import polars as pl
import pytest
from cli_labels import DP, data, files, fit, prepared

import privasso as pv

# Outside of the tests each command is a process of its own, which fits once.
pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    return prepared(tmp_path, monkeypatch)


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

    for place in ("privasso.cli._outputs.write_whole", "privasso.cli._fit_rescue.write_whole"):
        monkeypatch.setattr(place, full)
    fit("data.csv", *DP, "--lam 50 --out model.json", code=2)
    captured = capsys.readouterr()
    assert "on standard output alone" in captured.err
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    (folder / "saved.json").write_text(captured.out)
    fit("data.csv --from-release saved.json --lam 50 --out model.json")


def test_a_failing_page_restores_what_was_there(folder, capsys, monkeypatch):
    fit("data.csv", *DP, "--lam 50 --out model.json")
    old = (folder / "model.json").read_text()
    monkeypatch.setattr("privasso.cli._fit_write.fit_page", lambda facts: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        fit("data.csv", *DP, "--lam 50 --out model.json --report report.html")
    assert (folder / "model.json").read_text() == old
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
        for source in ("bit_source", "Answering"):
            drawn = f"privasso.fit._plan.{source}"
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


@pytest.mark.parametrize("number", [1e308, -1e308, 1e200, 5e-324])
def test_extreme_numbers_of_a_release(folder, capsys, number):
    """One sentence of privasso, and no warning of NumPy."""
    fit("data.csv", *DP, "--lam 50 --out model.json --keep-release r.json")
    document = json.loads((folder / "r.json").read_text())
    capsys.readouterr()
    for name in ("b", "label_sum", "unit"):
        if number == 5e-324 and name != "unit":
            continue
        first = [number, *document[name][1:]] if name == "b" else number
        (folder / "d.json").write_text(json.dumps({**document, name: first}))
        fit("data.csv --from-release d.json --lam 50 --out o.json", code=2)
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert name in error
    assert not (folder / "o.json").exists()
