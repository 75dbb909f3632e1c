"""A record of a text file has no effect on how any other is read, whatever it holds.

The rule for a line is written here a second time, with Python's csv on this line alone.
"""

import csv
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostile import SPACES, hostile, number, same
from privasso.encoding import MISSING, Dictionary, LevelEntry, Levels, NumberEntry, Numbers
from privasso.tables import _text, open_table

WARDS = ("a", "b", 'he"art')
KNOWN = Dictionary(
    (NumberEntry("age", 0, 99), LevelEntry("ward", WARDS), NumberEntry("dose", 0, 9))
)
NAMES = ["age", "skipped", "ward", "dose", "y"]
ROWS = [["61", "x", "a", "0.5", "1"], ["48.25", "", "b", "", "-2"], ["1e1", "z", "", "NA", "3"],
        ["7", "q", 'he"art', "true", "nan"], ["8", "", "c", "1.5", "1"]] * 3  # fmt: skip


def fields(line, separator, count):
    """The fields of a line by the rule, or none if it does not fit."""
    line = line.removesuffix("\r")
    # A return inside of a line is no end of it, but for Python's csv; a sign that is not used
    # otherwise stands for it.
    line = line.replace("\r", "\ue000")
    try:
        found = next(csv.reader([line], delimiter=separator, strict=True), [])
    except csv.Error:
        return [""] * count
    if any(found[count:]):
        return [""] * count
    found = [cell.replace("\ue000", "\r") for cell in found[:count]]
    return found + [""] * (count - len(found))


def expected(line, separator):
    """What becomes of a line: numbers, and the code of the level."""
    text = line.decode("utf-8", "replace")
    age, _, ward, dose, y = fields(text, separator, len(NAMES))
    ward = ward.strip(SPACES)
    code = WARDS.index(ward) if ward in WARDS and ward not in MISSING else -1
    return [number(cell, separator) for cell in (age, dose, y)], code


def written(separator, quoted):
    """The lines of a table, in quotes or not."""

    def cell(text):
        needed = quoted or '"' in text or separator in text
        return '"' + text.replace('"', '""') + '"' if needed else text

    decimals = {".": ","} if separator == ";" else {}
    rows = [[cell(text.translate(str.maketrans(decimals))) for text in row] for row in ROWS]
    return [separator.join(row).encode() for row in [NAMES, *rows]]


def read(path):
    """Numbers and codes, as they were read for private records."""
    columns, labels = open_table(path).declared(KNOWN, "y")
    age, ward, dose = columns.columns
    assert isinstance(age, Numbers)
    assert isinstance(ward, Levels)
    assert isinstance(dose, Numbers)
    return np.column_stack([age.values, dose.values, labels]), ward.codes


@pytest.fixture(scope="module", autouse=True)
def unlimited():
    before = csv.field_size_limit(1 << 30)
    yield
    csv.field_size_limit(before)


@pytest.mark.parametrize("quoted", [True, False], ids=["quoted", "plain"])
@pytest.mark.parametrize("separator", [",", ";", "\t"], ids=["comma", "semicolon", "tab"])
@pytest.mark.parametrize(
    "count", [40, pytest.param(500, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_other_records_stay_as_they_are(tmp_path, monkeypatch, separator, quoted, count):
    monkeypatch.setattr(_text, "_CELLS", 32)  # several chunks
    path, lines = tmp_path / "data.csv", written(separator, quoted)
    path.write_bytes(b"\n".join(lines) + b"\n")
    numbers, codes = read(path)
    for k, line in enumerate(lines[1:]):  # the rule itself, on lines that fit
        values, code = expected(line, separator)
        assert same(numbers[k], np.array(values))
        assert codes[k] == code
    records, few = len(ROWS), count == 40
    large = not few or (quoted and separator == ",")
    for k, record in enumerate(hostile(count, seed=ord(separator) + quoted, large=large)):
        values, code = expected(record, separator)
        places = (0, records // 2, records - 1)
        for at in places[k % 3 : k % 3 + 1] if few else places:
            path.write_bytes(b"\n".join([*lines[: at + 1], record, *lines[at + 2 :]]) + b"\n")
            found, levels = read(path)
            others = np.arange(records) != at
            assert same(found[others], numbers[others])
            assert np.array_equal(levels[others], codes[others])
            assert same(found[at], np.array(values)), record[:100]
            assert levels[at] == code, record[:100]


CLASSES = ("No", 'Y"es')
LABELLED = [["1", "No"], ["2", 'Y"es'], ["3", " No"], ["4", "yes"], ["5", "NA"], ["6", "1"]] * 2


def coded(line, separator):
    """The class of the label by the rule, as 0 or 1."""
    label = fields(line.decode("utf-8", "replace"), separator, 2)[1].strip(SPACES)
    return float(CLASSES.index(label)) if label in CLASSES else np.nan


@pytest.mark.parametrize("separator", [",", ";", "\t"], ids=["comma", "semicolon", "tab"])
def test_other_labels_with_names_stay_as_they_are(tmp_path, monkeypatch, separator):
    monkeypatch.setattr(_text, "_CELLS", 8)  # several chunks
    path, known = tmp_path / "data.csv", Dictionary((NumberEntry("age", 0, 99),))
    lines = [separator.join(row).replace('Y"es', '"Y""es"').encode() for row in LABELLED]
    head = separator.join(["age", "y"]).encode()

    def labels(lines):
        path.write_bytes(b"\n".join([head, *lines]) + b"\n")
        return open_table(path).declared(known, "y", CLASSES)[1]

    plain = labels(lines)
    np.testing.assert_array_equal(plain, [0, 1, 0, np.nan, np.nan, np.nan] * 2)
    records = hostile(60, seed=ord(separator))
    records += [f"7{separator}{cell}".encode() for cell in ("\u2028No", '"Y""es"', '"No', "No\x1c")]
    for k, record in enumerate(records):
        at = k % len(lines)
        found = labels([*lines[:at], record, *lines[at + 1 :]])
        others = np.arange(len(lines)) != at
        assert same(found[others], plain[others])
        assert same(found[at : at + 1], np.array([coded(record, separator)])), record[:100]


def test_a_last_line_without_a_line_feed(tmp_path):
    path = tmp_path / "data.csv"
    for text, ages in {
        "age,y\n1,2": [1.0],
        "age,y\n1,2\n": [1.0],
        "age,y\n1,2\n\n": [1.0, np.nan],
        "age,y\n1,2\n\r": [1.0, np.nan],
        "age,y\r\n1,2\r\n3": [1.0, 3.0],
        "age,y\n\n\n": [np.nan, np.nan],
    }.items():
        path.write_bytes(text.encode())
        table = open_table(path)
        found = table.declared(Dictionary((NumberEntry("age", 0, 9),)), "y")[0].columns[0]
        np.testing.assert_array_equal(found.values, ages)  # pyright: ignore
        assert table.n_rows == len(ages)
    for text in ("age,y", "age,y\n"):
        path.write_text(text)
        with pytest.raises(ValueError, match="has no rows"):
            _ = open_table(path).n_rows


def test_row_names_are_no_column(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text('age,y\n"Bob ""x""",61,1\nEve,48,2\n"Al,61,3\n48,5\nAnn,1,2,3\n')
    table = open_table(path, row_names=True)
    assert table.names == ("age", "y")
    age, y = table.declared(Dictionary((NumberEntry("age", 0, 99),)), "y")
    np.testing.assert_array_equal(age.columns[0].values, [61, 48, np.nan, 5, np.nan])  # pyright: ignore
    np.testing.assert_array_equal(y, [1, 2, np.nan, np.nan, np.nan])


CELLS = st.one_of(
    st.floats().map(repr),
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(lambda x: f"{x:.12g}"),
    st.integers(-(10**25), 10**25).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=17).map(str),
    st.sampled_from([*MISSING, " 5 ", "+.5", "5.", "1E+07", "0" * 30 + "1", "1" + "0" * 400]),
    st.text(st.characters(exclude_characters="\n\ue000", codec="utf-8"), max_size=8),
)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=6),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_valid_files_are_read_as_python_reads_them(rows, separator, end):
    known = Dictionary((NumberEntry("a", 0, 1), NumberEntry("b", 0, 1)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "data.csv")
        with path.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file, delimiter=separator, lineterminator=end, quoting=csv.QUOTE_ALL)
            table.writerows([["a", "b", "y"], *rows])
        columns, labels = open_table(path).declared(known, "y")
    found = np.column_stack([*(one.values for one in columns.columns), labels])  # pyright: ignore
    assert same(found, np.array([[number(cell, separator) for cell in row] for row in rows]))
