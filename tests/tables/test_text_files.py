"""Text files as R, pandas, spreadsheets and people write them."""

import numpy as np
import pandas as pd
import pytest

from privasso.encoding import Dictionary, Levels, NumberEntry, Numbers
from privasso.tables import open_table
from privasso.tables._text import Header, read_header

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


def check(path, **options):
    table = open_table(path, **options)
    age, town, number = table.columns(NAMES).columns
    assert isinstance(age, Numbers)
    assert isinstance(town, Levels)
    assert isinstance(number, Numbers)
    assert age.values.tolist() == AGE
    assert [town.levels[code] for code in town.codes] == TOWN
    np.testing.assert_array_equal(number.values, NUMBER)
    return table.names


@pytest.mark.parametrize("ending", ["csv", "tsv"])
@pytest.mark.parametrize("text", [R_CSV, R_CSV2, R_TABLE], ids=["csv", "csv2", "table"])
def test_what_r_writes(tmp_path, ending, text):
    path = tmp_path / f"data.{ending}"
    path.write_text(text, encoding="utf-8")
    if text is R_TABLE:
        with pytest.raises(ValueError, match=r"line 2 does not fit the header.*add --row-names"):
            check(path)
        assert check(path, row_names=True) == NAMES
    else:
        assert check(path) == ("Unnamed: 0", *NAMES)


def test_row_names_are_for_text(tmp_path):
    path = tmp_path / "data.parquet"
    FRAME.to_parquet(path)
    with pytest.raises(ValueError, match="is no text file"):
        open_table(path, row_names=True)


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
        ("a\n1\n", Header(("a",), ",")),
        ("a;b\n1\n", Header(("a", "b"), ";")),
        ("a;b,c\n1;2,3\n", Header(("a;b", "c"), ",")),  # in doubt, as the ending says
        ("a;b\n1,5;2,5\n", Header(("a", "b"), ";")),
        ("a,b\n", Header(("a", "b"), ",")),
        ("a,b\n1,2,3\n", Header(("a", "b"), ",")),
        ('"a;b;c","d,e",f"g\n', Header(("a;b;c", "d,e", 'f"g'), ",")),
        ('\ufeff"a"\tb\r\n\n1\t2\n', Header(("a", "b"), "\t")),
        ("a,,\n1,2,3\n", Header(("a", "Unnamed: 1", "Unnamed: 2"), ",")),
        ("#a|b", Header(("#a|b",), ",")),
    ],
)
def test_headers(tmp_path, text, expected):
    path = tmp_path / "data.csv"
    path.write_text(text, encoding="utf-8", newline="")
    assert read_header(path) == expected
    # No other line has a say.
    path.write_text(text.partition("\n")[0] + '\n";\t,"\n' * 9, encoding="utf-8", newline="")
    assert read_header(path) == expected


@pytest.mark.parametrize("header", [b'"a,b', b'"a"b', b'"a\nb",c', b"a\xff,b"])
def test_headers_that_cannot_be_read(tmp_path, header):
    path = tmp_path / "data.csv"
    path.write_bytes(header + b"\n1,2\n")
    with pytest.raises(ValueError, match="cannot be read as csv: its first line must hold"):
        open_table(path)


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


def test_lines_that_do_not_fit_are_refused_where_the_layout_is_public(tmp_path):
    path = tmp_path / "data.csv"
    for k, line in enumerate(("SECRET,1,2", '"SECRET,1', '"SECRET"x,1', "1,2,,SECRET")):
        path.write_text("a,b\n" + "1,2\n" * k + line + "\n3,4\n")
        with pytest.raises(ValueError, match=f"line {k + 2} does not fit the header") as caught:
            open_table(path).columns(["a"])
        assert "SECRET" not in str(caught.value)
        assert caught.value.__cause__ is caught.value.__context__ is None
    path.write_bytes(b"a,b\n1,2\n3,S\xff\n")
    assert open_table(path).matrix(["a"]).tolist() == [[1.0], [3.0]]
    with pytest.raises(ValueError, match="line 3 is not text in UTF-8"):
        open_table(path).columns(["b"])
    assert np.isnan(open_table(path).columns_and_labels(["a"], "b")[1][1])


def test_semicolons_with_points_and_commas(tmp_path):
    """A column of numbers has points or commas; with both of them it is text."""
    path = tmp_path / "data.csv"
    path.write_text("a;b;c;d\n1,5;1.5;1,5;1\n-,5e2;2;2.5;2\n3;3.;3,5;3\nNA;;x;NA\n")
    a, b, c, d = open_table(path).columns(["a", "b", "c", "d"]).columns
    assert isinstance(a, Numbers)
    assert isinstance(b, Numbers)
    assert isinstance(c, Levels)
    assert isinstance(d, Numbers)
    np.testing.assert_array_equal(a.values, [1.5, -50.0, 3.0, np.nan])
    np.testing.assert_array_equal(b.values, [1.5, 2.0, 3.0, np.nan])
    assert c.levels == ("1,5", "2.5", "3,5", "x")
    np.testing.assert_array_equal(d.values, [1.0, 2.0, 3.0, np.nan])
    labels = open_table(path).columns_and_labels(["a"], "c")[1]
    np.testing.assert_array_equal(labels, [1.5, 2.5, 3.5, np.nan])


def test_a_declared_file_is_read_line_by_line(tmp_path):
    file = tmp_path / "data.csv"
    file.write_text('age,dose\n61,"5"\n\n40,1,2\n50\n"30,1\n20,2,\n')
    both = Dictionary((NumberEntry("age", 0, 99), NumberEntry("dose", 0, 9)))
    age, dose = open_table(file).declared(both)[0].columns
    assert isinstance(age, Numbers)
    assert isinstance(dose, Numbers)
    nan = np.nan
    np.testing.assert_array_equal(age.values, [61.0, nan, nan, 50.0, nan, 20.0])
    np.testing.assert_array_equal(dose.values, [5.0, nan, nan, nan, nan, 2.0])
