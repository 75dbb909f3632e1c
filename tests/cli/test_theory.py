"""`privasso theory`: its numbers are the library's, and bad input ends in one sentence."""

import json
import subprocess
import sys

import numpy as np
import pytest

import privasso as pv
from privasso.cli import main


@pytest.fixture(autouse=True)
def without_pictures():
    """Here figures are rendered."""


def test_json_is_the_fixed_point(capsys):
    options = "--scales lognormal:0,0.5 --noise power:1 --sigma 0.1 --lam 0.3 --alpha 0.7"
    options += " --rho 0.2 --sigma-xi 0.05 --json"
    assert main(["theory", *options.split()]) == 0
    record = json.loads(capsys.readouterr().out)
    model = pv.Model(0.7, 0.2, 0.05, pv.LogNormal(0.0, 0.5))
    fp = pv.state_evolution(model, 0.3, pv.PowerLaw(0.1, 1.0))
    assert record["status"] == "stable"
    assert record["E"] == fp.E
    assert record["V"] == fp.V
    assert record["rho_hat"] == fp.rho_hat
    assert record["stability"] == fp.stability
    assert record["onavekl"] == fp.onavekl()
    assert record["onavekl_paper"] == fp.onavekl("paper")
    assert record["critical_noise"] == pv.critical_noise(model, 0.3, pv.PowerLaw(1.0, 1.0))


def test_what_is_not_finite_is_null(capsys):
    assert main(["theory", "--noise", "isotropic", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["status"], record["E"], record["onavekl"]) == ("infinite error", None, None)


def test_table(capsys):
    assert main(["theory", "--sigma", "0.5"]) == 0
    out = capsys.readouterr().out
    assert "unstable" in out
    assert "less noise" in out
    assert "not an ε" in out
    assert main(["theory", "--scales", "constant:2"]) == 0
    assert "stable" in capsys.readouterr().out


def test_scales_from_a_file(tmp_path, capsys):
    scales = np.random.default_rng(0).lognormal(size=50)
    fp = pv.state_evolution(pv.Model(scales=pv.Empirical(scales)), 0.2, pv.Gram(0.1))
    for name, delimiter in (("column.txt", "\n"), ("row.csv", ",")):
        path = tmp_path / name
        path.write_text(delimiter.join(repr(float(s)) for s in scales))
        assert main(["theory", "--scales", str(path), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["E"] == pytest.approx(fp.E, rel=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--alpha -1", "alpha must be positive"),
        ("--alpha nan", "alpha must be finite"),
        ("--alpha many", "--alpha"),
        ("--rho 0", "rho must be positive"),
        ("--rho 1.5", "must not exceed 1"),
        ("--sigma -0.1", "sigma must be zero or positive"),
        ("--lam 0", "lam must be positive"),
        ("--scales uniform:1", "needs 2 numbers"),
        ("--scales constant:0", "value must be positive"),
        ("--scales nowhere", "neither a file"),
        ("--noise star", "none of isotropic"),
        ("--noise power", "needs 1 number"),
        ("--n-features 0", "--n-features must be at least 1"),
        ("--colour red", "--colour"),
    ],
)
def test_bad_input(capsys, monkeypatch, tmp_path, options, message):
    monkeypatch.chdir(tmp_path)
    assert main(["theory", *options.split()]) == 2
    err = capsys.readouterr().err
    assert err.startswith("privasso: error: ")
    assert message in err
    assert err.count("\n") == 1


def test_file_that_holds_no_scales(capsys, tmp_path):
    for name, content in (("text.csv", b"a,b\n"), ("binary", b"\xff\xfe\x00\x81" * 20)):
        path = tmp_path / name
        path.write_bytes(content)
        assert main(["theory", "--scales", str(path)]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_unknown_command_and_help(capsys):
    assert main(["nonsense"]) == 2
    assert "nonsense" in capsys.readouterr().err
    assert main([]) == 0
    assert main(["theory", "--help"]) == 0
    assert "Example" in capsys.readouterr().out


def test_help_loads_neither_tables_nor_plots():
    code = (
        "import sys; from privasso.cli import main; main(['--help']); "
        "sys.exit(any(name in sys.modules for name in ('polars', 'matplotlib', 'sklearn')))"
    )
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL).returncode == 0


def test_correlated_columns(capsys):
    options = "--covariance ar:0.8 --scales constant --n-features 150 --noise isotropic --seed 0"
    assert main(["theory", *options.split(), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["status"] == "stable"
    model = pv.Model(scales=pv.Constant(), covariance=pv.model.AutoRegressive(0.8))
    fp = pv.state_evolution(model, 0.2, pv.Isotropic(0.1), n_features=150, draws=24, rng=1)
    error = np.hypot(record["standard_errors"]["E"], fp.standard_errors.E)
    assert abs(record["E"] - fp.E) < 4 * error
    assert record["onavekl"] < record["onavekl_bound"]
    assert 0.5 < record["attack_auc"] < 1.0
    full = "--covariance blocks:5,0.5 --n-features 100 --noise matrix:1 --seed 0 --sigma 0.05"
    assert main(["theory", *full.split()]) == 0
    assert "upper bound" in capsys.readouterr().out


def test_public_covariates(capsys, tmp_path):
    file = tmp_path / "public.csv"
    rows = np.random.default_rng(0).standard_normal((60, 3)) @ [[1, 1, 0], [0, 1, 0], [0, 0, 2]]
    text = "\n".join(",".join(f"{x:.6f}" for x in row) for row in rows)
    file.write_text("a,b,c\n" + text + "\n")
    assert main(["theory", "--covariance", str(file), "--alpha", "5", "--json", "--seed", "0"]) == 0
    assert json.loads(capsys.readouterr().out)["input"]["n_features"] == 3
    for bad in (
        ["--covariance", "ar"],
        ["--covariance", "ar:2"],
        ["--covariance", "blocks:2.5,0.1"],
        ["--covariance", "nothing"],
        ["--covariance", str(file), "--scales", "constant"],
        ["--covariance", "ar:0.5", "--noise", "matrix:x"],
    ):
        assert main(["theory", *bad]) == 2
        assert capsys.readouterr().err.count("\n") <= 3
