"""`privasso fit --private-y-bounds`: the range of the labels is found in them."""

import json
from pathlib import Path

import pytest
from cli_records import SEED, fit, prepared, table

RECORDS = "--target y --record-dp --epsilon 2 --delta 1e-6 --bounds bounds.csv"
LABELS = "--target y --label-dp --epsilon 2 --delta 1e-6"


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    prepared(tmp_path, monkeypatch)


@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
@pytest.mark.parametrize("kind", [RECORDS, LABELS], ids=["records", "labels"])
def test_a_model_holds_the_range_that_was_found(kind, capsys):
    fit(f"{kind} --private-y-bounds {SEED} --report report.html")
    stated = dict(json.loads(Path("model.json").read_text())["guarantee"]["parameters"])
    y = table()["y"].to_numpy()
    assert stated["y_low"] < y.mean() < stated["y_high"]
    assert stated["y_high"] - stated["y_low"] < 20 * y.std()
    said = capsys.readouterr().out
    assert "the range of the labels, chosen with noise" in said
    assert "--private-y-bounds" in Path("report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", [RECORDS, LABELS], ids=["records", "labels"])
def test_a_dry_run_speaks_of_parts_of_the_range(kind, capsys):
    fit(f"{kind} --private-y-bounds --dry-run")
    said = capsys.readouterr().out
    assert "the range of the labels, chosen with noise" in said
    assert "Labels are clipped to" not in said
    assert "ε = 4 instead of 2" in said
    assert "half as wide" not in said  # nobody gives the bounds
    if kind == RECORDS:
        assert "λ, in units of the range of the labels" in said


@pytest.mark.parametrize(
    "other", ["--y-bounds 0 1", "--classes No,Yes", "--lam 3", "--assume-label-sd 2"]
)
def test_what_needs_the_range_is_refused(other, capsys):
    fit(f"{LABELS} --private-y-bounds {other} --out model.json", code=2)
    assert "does not go with --private-y-bounds" in capsys.readouterr().err
