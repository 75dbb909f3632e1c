"""Text that files hold is shown, never obeyed: by a terminal, a spreadsheet or a database."""

import csv
import json

import numpy as np
import polars as pl
import pytest

import privasso as pv
from privasso.cli import main
from privasso.encoding import read_dictionary

#: Colours, a window title, a forged line, other directions of writing, 8-bit controls.
HOSTILE = "x\x1b[31m\x1b]0;t\x07\nSpent: nothing.\r\u202ey\x9b2J\x85\u2028z\x00"


def printed(capsys, *words):
    assert main([str(word) for word in words]) == 0
    shown = capsys.readouterr()
    return shown.out, shown.err


def check_printable(text):
    """Nothing but text and its own line breaks, and no line that begins with the forged one."""
    assert all(char.isprintable() or char == "\n" for char in text)
    assert not any(line.startswith("Spent: nothing") for line in text.splitlines())


@pytest.fixture
def statement():
    X = np.random.default_rng(0).random((200, 2))
    privacy = pv.LabelDP(1.0, 1e-6, (0, 1))
    return pv.PrivateLasso(10.0, privacy).fit(X, np.linspace(0, 0.7, 200)).guarantee_


def test_a_ledger_shows_its_texts(tmp_path, capsys, statement):
    path = tmp_path / "budget.json"
    ledger = pv.Ledger.create(path, 3.0, 1e-5, data=HOSTILE)
    ledger.charge(statement, HOSTILE)
    out, _ = printed(capsys, "ledger", "show", path)
    check_printable(out)
    assert len(out.splitlines()) == 3
    assert r"x\x1b[31m\x1b]0;t\x07\nSpent: nothing.\r\u202ey\x9b2J\x85\u2028z\x00" in out
    out, _ = printed(capsys, "ledger", "show", path, "--json")
    check_printable(out)
    assert json.loads(out)["data"] == json.loads(out)["entries"][0]["what"] == HOSTILE


@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
def test_a_kept_release_shows_its_texts(tmp_path, capsys):
    """All texts of the file that are free: names, the target, what is assumed and released."""
    rng = np.random.default_rng(1)
    table = pl.DataFrame({"a": rng.random(300), "b": rng.random(300), "y": rng.random(300)})
    table.write_csv(tmp_path / "t.csv")
    fit = "fit", tmp_path / "t.csv", "--target", "y", "--epsilon", "1", "--delta", "1e-6"
    fit = *fit, "--y-bounds", "0", "1", "--out", tmp_path / "m.json"
    (tmp_path / "bounds.csv").write_text("name,low,high\na,0,1\nb,0,1\n")
    records = "--record-dp", "--bounds", tmp_path / "bounds.csv", "--mechanism", "statistics"
    kept = tmp_path / "kept.json"
    printed(capsys, *fit, *records, "--keep-release", kept)
    document = json.loads(kept.read_text())
    statement = document["guarantee"]
    statement["assumptions"] = [HOSTILE, *statement["assumptions"]]
    statement["released"] = [HOSTILE]
    document["target"] = document["software"] = HOSTILE
    names = [f"{HOSTILE}{k}" for k in range(2)]
    assert document["feature_names"] == ["a", "b"]
    text = json.dumps(document).replace('["a", "b"]', json.dumps(names))
    for name, other in zip("ab", names, strict=True):
        text = text.replace(f'"name": "{name}"', f'"name": {json.dumps(other)}')
    kept.write_text(text)
    again = "fit", "--from-release", kept, "--lam", "0.001", "--out", tmp_path / "n.json"
    out, err = printed(capsys, *again)
    check_printable(out + err)
    assert out.count(r"\x1b[31m") >= 5
    out, err = printed(capsys, *again[:-1], tmp_path / "o.json", "--json")
    check_printable(out + err)
    assert json.loads(out)["target"] == HOSTILE
    query = printed(capsys, "export", tmp_path / "n.json", "--out", tmp_path / "n.R")
    check_printable("".join(query))
    code = (tmp_path / "n.R").read_text()
    assert all(char.isprintable() or char == "\n" for char in code)


NAMES = ["=HYPERLINK(1)", "+a", "-1+1|cmd", "@SUM(b)", "'=c", "'90s", "age"]


def test_no_name_in_a_file_for_spreadsheets_is_a_formula(tmp_path, capsys):
    with (tmp_path / "t.csv").open("w", newline="") as file:
        csv.writer(file).writerows([NAMES, range(len(NAMES))])
    path = tmp_path / "bounds.csv"
    printed(capsys, "bounds", tmp_path / "t.csv", "--out", path)
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    for row in rows[1:]:
        assert not row[0].startswith(("=", "+", "-", "@", "\t", "\r"))
        row[1:3] = ["0", "9"]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    assert read_dictionary(path).names == tuple(NAMES)


def test_the_header_of_a_path_is_no_formula(tmp_path):
    from privasso.tables import table_bytes

    header = table_bytes({name: [1.0] for name in NAMES}, tmp_path / "p.csv").decode()
    cells = next(csv.reader([header.splitlines()[0]]))
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)
    assert len(set(cells)) == len(NAMES)
    kept = pl.read_parquet(table_bytes({name: [1.0] for name in NAMES}, tmp_path / "p.parquet"))
    assert kept.columns == NAMES


RECORDS = "heart,61.125,no,987654321\nskin,48,yes,120\n"


@pytest.mark.parametrize("ending", [".csv", ".tsv"])
def test_a_file_without_a_header_gives_no_dictionary(tmp_path, capsys, ending):
    data = tmp_path / f"t{ending}"
    data.write_text(RECORDS.replace(",", "\t") if ending == ".tsv" else RECORDS)
    assert main(["bounds", str(data), "--out", str(tmp_path / "bounds.csv")]) == 2
    shown = capsys.readouterr()
    assert "has a number among the names of its columns" in shown.err
    for cell in ("heart", "61.125", "987654321"):
        assert cell not in shown.out + shown.err
    assert not (tmp_path / "bounds.csv").exists()
    private = "--target no --record-dp --epsilon 1 --delta 1e-6 --y-bounds 0 1 --bounds private"
    words = ["fit", str(data), *private.split(), "--out", str(tmp_path / "m.json")]
    assert main(words) == 2
    assert "987654321" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "header",
    ["ward,age,smoker,pressure", "pressure,age,smoker,ward", "pressure"],
)
def test_a_lost_line_break_shows_no_cell(tmp_path, capsys, header):
    records = RECORDS if "," in header else "987654321\n120\n"
    (tmp_path / "t.csv").write_text(header + records.replace("heart", "987654321"))
    options = "--target pressure --epsilon 1 --delta 1e-6 --y-bounds 0 1 --out"
    (tmp_path / "bounds.csv").write_text("name,low,high,levels\nage,0,99,\nward,,,heart\n")
    for kind in (["--label-dp"], ["--record-dp", "--bounds", str(tmp_path / "bounds.csv")]):
        words = ["fit", str(tmp_path / "t.csv"), *options.split(), str(tmp_path / "m.json"), *kind]
        assert main(words) == 2
        shown = capsys.readouterr().err
        assert "987654321" not in shown
        assert "61.125" not in shown
    words = ["bounds", str(tmp_path / "t.csv"), "--target", "pressure"]
    assert main([*words, "--out", str(tmp_path / "b.csv")]) == 2
    assert "987654321" not in capsys.readouterr().err


def test_columns_with_numbers_as_names_are_told_apart_by_their_file(tmp_path, capsys):
    """A Parquet file states its names, so that a number among them is one."""
    pl.DataFrame({"2019": [1.0], "2020": [2.0]}).write_parquet(tmp_path / "t.parquet")
    printed(capsys, "bounds", tmp_path / "t.parquet", "--out", tmp_path / "bounds.csv")
    assert "2019" in (tmp_path / "bounds.csv").read_text()


def test_names_that_are_twice_in_a_record_are_not_shown(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("987654321,987654321,1\n1,2,3\n")
    assert main(["bounds", str(tmp_path / "t.csv"), "--out", str(tmp_path / "b.csv")]) == 2
    assert "987654321" not in capsys.readouterr().err
