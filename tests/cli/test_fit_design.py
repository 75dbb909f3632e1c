"""`privasso fit --design`: what `privasso design` wrote decides the noise and λ."""

import json

import numpy as np
import polars as pl
import pytest

import privasso as pv
from privasso.cli import main
from privasso.noise import noise_to_dict

# Outside of the tests each command is a process of its own, which fits once.
pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")

DP = "--label-dp --epsilon 3 --delta 1e-6 --y-bounds -4 4"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sample = pv.Model(alpha=8.0, scales=pv.LogNormal()).sample(30, rng=0)
    columns = {f"x{k}": sample.F[:, k] for k in range(30)}
    pl.DataFrame({**columns, "y": np.clip(sample.y, -4, 4)}).write_csv("data.csv")
    assert main(f"design --scales lognormal:0,0.5 --alpha 8 {DP} --out design.json".split()) == 0
    return tmp_path


def fitted(options):
    assert main(["fit", "data.csv", "--target", "y", *options.split()]) == 0
    return pv.load("model.json")


def test_shape_and_lambda_come_from_the_design(folder):
    saved = pv.design.load_design("design.json")
    model = fitted(f"{DP} --design design.json --seed 1 --out model.json")
    frame = pl.read_csv("data.csv")
    est = pv.PrivateLasso(
        saved.lam, pv.LabelDP(3.0, 1e-6, (-4, 4)), noise=saved.noise, random_state=1
    )
    est.fit(frame.drop("y").to_numpy(), frame["y"].to_numpy())
    np.testing.assert_allclose(model.coef, est.coef_, rtol=1e-6, atol=1e-9)
    assert model.lam == saved.lam
    # The level is what (ε, δ) needs on these rows, whatever the file says.
    assert model.noise is not None
    assert model.noise.sigma == pytest.approx(est.noise_.sigma)


def test_lambda_on_the_command_line_wins(folder):
    assert fitted(f"{DP} --design design.json --lam 0.7 --out model.json").lam == 0.7


def test_on_average_takes_the_level_too(folder):
    saved = pv.design.load_design("design.json")
    model = fitted("--on-average --design design.json --seed 1 --out model.json")
    assert model.guarantee["sigma"] == saved.noise.sigma
    assert model.lam == saved.lam


def test_a_tabulated_shape_fits_and_reports(folder):
    document = json.loads((folder / "design.json").read_text())
    table = pv.Tabulated(0.1, (-1.0, 0.0, 1.0), (-0.8, 0.0, 0.5))
    document["noise"] = noise_to_dict(table)
    (folder / "table.json").write_text(json.dumps(document))
    model = fitted(f"{DP} --design table.json --out model.json --report report.html")
    assert isinstance(model.noise, pv.Tabulated)
    assert "table" in (folder / "report.html").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--design design.json --noise gram", "--noise and --design"),
        ("--design data.csv", "--design data.csv: the file is not valid JSON"),
        ("--design nowhere.json", "nowhere.json"),
        ("--design design.json --out design.json", "design.json"),
    ],
)
def test_bad_designs(folder, capsys, options, message):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    out = [] if "--out" in options else ["--out", "model.json"]
    assert main(["fit", "data.csv", "--target", "y", *DP.split(), *options.split(), *out]) == 2
    assert message in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
