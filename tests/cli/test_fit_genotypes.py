"""`privasso fit study.bed`: labels of .fam and other files, and models that the library gives."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from bed_reader import to_bed

import privasso as pv
from privasso.blocks import Variants, read_bed
from privasso.cli import main

pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
M, N = 803, 60
DP = "--epsilon 3 --delta 1e-6 --y-bounds -1 2"


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    raw = rng.binomial(2, rng.uniform(0.1, 0.9, N), (M, N)).astype(float)
    y = 0.5 + 0.3 * (raw[:, 3] - raw[:, 40]) + 0.1 * rng.standard_normal(M)
    y = np.round(np.clip(y, -1, 2), 6)
    raw[rng.random((M, N)) < 0.02] = np.nan
    names = [f"rs{k}" for k in range(N)]
    people = {"fid": ["f"] * M, "iid": [f"p{k}" for k in range(M)], "sid": names}
    to_bed("study.bed", raw, properties={**people, "pheno": y.tolist()})
    return raw, y


def run(line, capsys, code=0):
    assert main(["fit", "study.bed", *line.split()]) == code
    return capsys.readouterr()


def expected(raw, y, screen, table=None):
    X = np.where(np.isnan(raw), 1.0, raw) if table is None else table
    privacy = pv.RecordDP(3.0, 1e-6, bounds=(0, 2), y_bounds=(-1, 2))
    return pv.PrivateLasso(privacy=privacy, screen=screen, random_state=1).fit(X, y)


def test_chosen_variants_are_those_of_the_library(study, capsys):
    raw, y = study
    out = run(f"--record-dp {DP} --screen 2 --seed 1 --out m.json --report r.html", capsys).out
    assert "Columns that were chosen: rs3, rs40." in out
    model, est = pv.load("m.json"), expected(raw, y, 2)
    assert est.screened_.tolist() == [3, 40]
    assert model.feature_names == ("rs3", "rs40")
    np.testing.assert_array_equal(model.coef, est.coef_[[3, 40]])
    assert model.intercept == est.intercept_
    assert "which allele is counted" in str(model.guarantee)
    assert "rs40" in Path("r.html").read_text(encoding="utf-8")
    assert main(["predict", "m.json", "study.bed", "--out", "p.csv"]) == 0
    found = pl.read_csv("p.csv")["prediction"].to_numpy()
    np.testing.assert_allclose(found, est.predict(np.where(np.isnan(raw), 1.0, raw)), atol=1e-12)


def test_no_more_than_the_chosen_variants_become_numbers(study, capsys, monkeypatch):
    """All are decoded some at a time, in one byte each."""
    decoded = []
    read = Variants.__getitem__
    monkeypatch.setattr("privasso.blocks._bed._NARROW", 1)
    monkeypatch.setattr(
        Variants, "__getitem__", lambda F, at: decoded.append(len(at[1])) or read(F, at)
    )
    monkeypatch.setattr("privasso.tables.BedTable._read", None)
    run(f"--record-dp {DP} --screen 2 --seed 1 --out m.json", capsys)
    assert decoded
    assert max(decoded) <= 2


def test_all_variants_are_fitted_without_a_choice(study, capsys):
    raw, y = study
    run(f"--record-dp {DP} --seed 1 --out m.json", capsys)
    np.testing.assert_array_equal(pv.load("m.json").coef, expected(raw, y, None).coef_)
    run(f"--label-dp {DP} --missing mean --screen 2 --seed 1 --out l.json", capsys)
    model = pv.load("l.json")
    assert model.feature_names is not None
    assert {model.feature_names[k] for k in np.flatnonzero(model.coef)} == {"rs3", "rs40"}


def test_labels_of_another_file_are_matched_by_person(study, capsys):
    """In another order, with a person too many and one too few, who counts as an empty record."""
    _, y = study
    order = np.random.default_rng(2).permutation(M - 1) + 1  # without the first
    lines = [f"f p{k} 7 {y[k]}" for k in order]
    Path("labels.txt").write_text("\n".join(["#FID IID other score", "x p1 7 0.5", *lines]))
    line = f"--record-dp {DP} --screen 2 --labels labels.txt --target score --seed 1 --out m.json"
    run(line, capsys)
    labels = y.copy()
    labels[0] = np.nan
    est = expected(None, None, 2, table=read_bed("study.bed", labels))
    np.testing.assert_array_equal(pv.load("m.json").coef, est.coef_[est.screened_])


def test_bounds_and_fills_of_variants(study, capsys):
    raw, y = study
    lines = [f"rs{k},0,2,{k % 3}" for k in range(N)]
    Path("b.csv").write_text("\n".join(["name,low,high,fill", *lines]))
    run(f"--record-dp {DP} --bounds b.csv --screen 2 --seed 1 --out m.json", capsys)
    X = np.where(np.isnan(raw), np.arange(N) % 3, raw)
    privacy = pv.RecordDP(3.0, 1e-6, bounds=(0, 2), y_bounds=(-1, 2))
    est = pv.PrivateLasso(privacy=privacy, screen=2, random_state=1).fit(X, y)
    np.testing.assert_array_equal(pv.load("m.json").coef, est.coef_[est.screened_])


def test_cases_and_controls(study, capsys):
    raw, y = study
    lines = [f"p{k},{2 if y[k] > 0.5 else 1}" for k in range(M)]
    Path("cases.csv").write_text("\n".join(["IID,case", *lines]))
    line = "--record-dp --epsilon 3 --delta 1e-6 --binary --seed 1 --features rs3,rs40"
    run(f"{line} --labels cases.csv --target case --out m.json", capsys)
    model = pv.load("m.json")
    odds = model.linear(np.where(np.isnan(raw), 1.0, raw)[:, [3, 40]])
    assert np.mean((odds > 0) == (y > 0.5)) > 0.8


def test_a_dry_run_reads_no_genotype(study, capsys, monkeypatch):
    monkeypatch.setattr("privasso.tables.BedTable._read", None)
    out = run(f"--record-dp {DP} --screen 2 --dry-run --json", capsys).out
    record = json.loads(out)
    assert (record["n_rows"], record["n_features"]) == (M, N)


def test_where_all_variants_are_better_all_are_fitted(study, capsys):
    raw, y = study
    line = f"--record-dp {DP} --features rs3,rs40,rs5 --screen auto --seed 1 --out m.json"
    run(line, capsys)
    model = pv.load("m.json")
    assert model.feature_names == ("rs3", "rs40", "rs5")
    np.testing.assert_array_equal(model.coef, expected(raw[:, [3, 40, 5]], y, None).coef_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--screen 2 --labels none.txt --target a", "none.txt"),
        ("--screen 2 --labels bad.txt --target a", "must begin with a line of names"),
        ("--screen 2 --labels twice.txt --target a", "names a person twice"),
        ("--screen 2 --target rs3", "is a variant, not a phenotype"),
        ("--screen 2 --target weight", "has no column 'weight'"),
        ("--screen 2 --memory 1GB", "one file; leave out"),
        ("--screen 99", "cannot be chosen from 60"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(study, capsys, options, message):
    Path("bad.txt").write_text("f p1 3\n")
    Path("twice.txt").write_text("FID IID a\nf p1 3\nf p1 4\n")
    error = run(f"--record-dp {DP} {options} --out m.json", capsys, code=2).err
    assert message in error
    assert not Path("m.json").exists()


def test_labels_belong_to_genotypes(study, capsys):
    Path("t.csv").write_text("a,y\n1,2\n")
    assert main(
        ["fit", "t.csv", *f"--target y --label-dp {DP} --labels l.txt --out m.json".split()]
    )
    assert "--labels is for genotypes" in capsys.readouterr().err


@pytest.mark.parametrize("damage", ["short", "magic", "fam", "bim"])
def test_damaged_files_are_refused(study, capsys, damage):
    path = Path("study.bed")
    content = path.read_bytes()
    if damage == "short":
        path.write_bytes(content[:-1])
    elif damage == "magic":
        path.write_bytes(b"PK" + content[2:])
    else:
        beside = path.with_suffix(f".{damage}")
        *lines, last = beside.read_text().splitlines()
        kept = lines[:-5] if damage == "fam" else [*lines, last.rsplit(None, 1)[0]]
        beside.write_text("\n".join(kept))
    error = run(f"--record-dp {DP} --screen 2 --out m.json", capsys, code=2).err
    assert "study" in error
    assert not Path("m.json").exists()
