"""Text files as R, pandas, spreadsheets and people write them."""

import numpy as np
import pandas as pd
import pytest

from privasso.encoding import Levels, Numbers
from privasso.tables import _frames, open_table
from privasso.tables._text_file import Header, read_header

AGE, TOWN, NUMBER = [61.5, 48.0, 55.25], ["a,b", "ü;x", 'q"z'], [1.0, np.nan, 3.0]
FRAME = pd.DataFrame({"age": AGE, "town": TOWN, "number, of": NUMBER})
NAMES = ("age", "town", "number, of")

R_CSV = """"","age","town","number, of"
"1",61.5,"a,b",1
"2",48,"ü;x",NA
"3",55.25,"q""z",3
"""
R_CSV2 = """"";"age";"town";"number, of"
"1";61,5;"a,b";1
"2";48;"ü;x";NA
"3";55,25;"q""z";3
"""
R_TABLE = """"age"\t"town"\t"number, of"
"1"\t61.5\t"a,b"\t1
"2"\t48\t"ü;x"\tNA
"3"\t55.25\t"q""z"\t3
"""


@pytest.fixture(scope="module", autouse=True)
def one_process():
    """Read all tables in one process, where each would start its own, which takes a second."""
    with pytest.MonkeyPatch.context() as patch:
        reader = _frames.Reader()
        patch.setattr(_frames, "Reader", lambda: reader)
        yield
        reader.close()


def check(path):
    table = open_table(path)
    age, town, number = table.columns(NAMES).columns
    assert isinstance(age, Numbers)
    assert isinstance(town, Levels)
    assert isinstance(number, Numbers)
    assert age.values.tolist() == AGE
    assert [town.levels[code] for code in town.codes] == TOWN
    np.testing.assert_array_equal(number.values, NUMBER)
    return table.names


@pytest.mark.parametrize("ending", ["csv", "tsv"])
@pytest.mark.parametrize(
    ("text", "nameless"), [(R_CSV, True), (R_CSV2, True), (R_TABLE, True)], ids=["csv", "csv2", "t"]
)
def test_what_r_writes(tmp_path, ending, text, nameless):
    path = tmp_path / f"data.{ending}"
    path.write_text(text, encoding="utf-8")
    assert check(path) == ("Unnamed: 0",) * nameless + NAMES


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("index", [True, False])
def test_what_pandas_writes(tmp_path, separator, index):
    for k, options in enumerate(
        ({}, {"na_rep": "NaN"}, {"encoding": "utf-8-sig"}, {"lineterminator": "\r\n"})
    ):
        path = tmp_path / f"data{k}.csv"
        FRAME.to_csv(path, sep=separator, index=index, **options)  # pyright: ignore
        assert check(path) == ("Unnamed: 0",) * index + NAMES


def test_decimal_commas_of_pandas(tmp_path):
    path = tmp_path / "data.csv"
    FRAME.to_csv(path, sep=";", decimal=",", index=False)
    assert check(path) == NAMES


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\n1\n", Header(("a",), ",", False)),
        ("a;b\n1\n", Header(("a;b",), ",", False)),  # rows have one field
        ("a;b,c\n1;2,3\n", Header(("a;b", "c"), ",", False)),
        ("a;b\n1,5;2,5\n", Header(("a", "b"), ";", False)),
        ("a,b\n", Header(("a", "b"), ",", False)),
        ("a,b\n1,2,\n", Header(("a", "b"), ",", False)),  # a comma at the end is no row name
        ('"a\nb",c\n1,2\n', Header(("a\nb", "c"), ",", False)),
        ("a\tb\n\n1\t2\n", Header(("a", "b"), "\t", False)),
        ("a,,\n1,2,3\n", Header(("a", "Unnamed: 1", "Unnamed: 2"), ",", False)),
    ],
)
def test_headers(tmp_path, text, expected):
    path = tmp_path / "data.csv"
    path.write_text(text)
    assert read_header(path) == expected


def test_codes_keep_their_zeros(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(",zip,n\nx,01,5\ny,02,6\nz,01,7\n")
    zip_code, n = open_table(path).columns(["zip", "n"], categorical=["zip"]).columns
    assert isinstance(zip_code, Levels)
    assert zip_code.levels == ("01", "02")
    assert isinstance(n, Numbers)
    assert n.values.tolist() == [5.0, 6.0, 7.0]


def test_what_is_wrong_is_found_in_every_column(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("day,a,dose,b\n2020-01-17,1,1,x\n2020-01-18,2,?,y\n2020-01-19,3,2,x\n")
    table = open_table(path).columns(["day", "a", "dose", "b"])
    assert [(one.column, one.kind, one.row) for one in table.troubles] == [
        ("day", "dates", None),
        ("dose", "mixed", 1),
    ]
    assert [column.name for column in table.columns] == ["a", "b"]
