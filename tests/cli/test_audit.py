"""`privasso audit`: reads as a fit does, attacks, writes one file, and says what is wrong."""

import json
import sys

import numpy as np
import pytest

from privasso.cli import main

LABELS = ["--label-dp", "--epsilon", "2", "--delta", "0.02", "--y-bounds", "0", "1"]
RECORDS = ["--record-dp", *LABELS[1:], "--bounds", "bounds.csv"]
QUICK = ["--releases", "40", "--seed", "1", "--row", "2"]


@pytest.fixture(autouse=True)
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X, y = rng.random((30, 2)), rng.random(30)
    rows = [f"{a},{b},{c}" for (a, b), c in zip(X.tolist(), y.tolist(), strict=True)]
    (tmp_path / "data.csv").write_text("\n".join(["one,two,label", *rows]) + "\n")
    (tmp_path / "bounds.csv").write_text("name,low,high\none,0,1\ntwo,0,1\n")


def run(*words):
    return main(["audit", "data.csv", "--target", "label", *words])


@pytest.mark.parametrize(
    "privacy",
    [
        [*LABELS, "--mechanism", "release"],
        RECORDS,
        ["--on-average", "--sigma", "0.5", "--lam", "1"],
    ],
    ids=["labels", "records", "average"],
)
def test_an_audit_for_people(privacy, capsys, tmp_path):
    assert run(*privacy, *QUICK, "--out", "audit.html") == 0
    printed = capsys.readouterr().out
    assert "AUC" in printed
    assert "row 2" in printed
    assert "privasso" in (tmp_path / "audit.html").read_text()
    assert json.loads((tmp_path / "audit.json").read_text())["findings"]


def test_an_audit_for_machines(capsys, tmp_path):
    words = [*LABELS, "--mechanism", "release", *QUICK, "--json", "--out", "audit.json"]
    assert run(*words) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["passed"] is True
    assert printed == json.loads((tmp_path / "audit.json").read_text())


def test_a_refuted_claim_has_an_exit_code_of_its_own(monkeypatch, capsys):
    from privasso.queries import _rounded_gaussian

    true = _rounded_gaussian.rounded_gaussian
    monkeypatch.setattr(
        _rounded_gaussian, "rounded_gaussian", lambda deviation, *rest: true(0.1 * deviation, *rest)
    )
    assert run(*LABELS, "--mechanism", "release", "--releases", "60", "--seed", "1") == 1
    assert "refuted" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "say what to protect"),
        ([*LABELS, "--out", "audit.txt"], "ends in .html or .json"),
        (["--on-average", "--sigma", "1"], "needs a number for --lam"),
        ([*LABELS, "--releases", "3"], "releases"),
        ([*LABELS, "--row", "99"], "from 0 to 29"),
        ([*LABELS, "--out", "data.csv"], "html or .json"),
    ],
)
def test_bad_input(words, message, capsys, tmp_path):
    assert run(*words) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bounds.csv", "data.csv"]


def test_a_mistake_in_the_program_refutes_nothing(capsys, monkeypatch):
    monkeypatch.setattr("privasso.attacks.audit", lambda *_, **__: 1 / 0)
    words = ["audit", "data.csv", "--target", "label", *LABELS]
    monkeypatch.setattr(sys, "argv", ["privasso", *words])
    assert main() == 70  # with the arguments of the process, as from a shell
    assert "ZeroDivisionError" in capsys.readouterr().err
