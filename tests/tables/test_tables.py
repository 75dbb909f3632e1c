"""Tables: the same numbers from every format, only the columns asked for, and clear refusals."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from privasso.tables import check_ending, check_labels, open_table, table_bytes
from privasso.tables._numbers import read_labels

FRAME = pl.DataFrame(
    {
        "age": [61, 48, 55],
        "smoker": [True, False, True],
        "weight": [80.5, -1e-9, 3e8],
        "y": [1, 2, 3],
    }
)
VALUES = np.array([[61, 1, 80.5, 1], [48, 0, -1e-9, 2], [55, 1, 3e8, 3]])


def write(frame, path):
    if path.suffix == ".csv":
        frame.write_csv(path)
    elif path.suffix == ".tsv":
        frame.write_csv(path, separator="\t")
    elif path.suffix == ".parquet":
        frame.write_parquet(path)
    elif path.suffix == ".npz":
        X = frame.drop("y").cast(pl.Float64).to_numpy()
        np.savez(path, X=X, y=frame["y"].to_numpy(), feature_names=frame.columns[:-1])
    else:
        frame.write_ipc(path)
    return path


def everything(path):
    table = open_table(path)
    return table.matrix(table.names)


FORMATS = [".csv", ".tsv", ".parquet", ".arrow", ".feather", ".ipc", ".npz"]


@pytest.mark.parametrize("ending", FORMATS)
def test_every_format_gives_the_same_numbers(tmp_path, ending):
    table = open_table(write(FRAME, tmp_path / f"data{ending}"))
    assert table.names == tuple(FRAME.columns)
    matrix = table.matrix(["y", "weight", "age", "smoker"])
    assert matrix.flags.f_contiguous
    assert matrix.dtype == np.float64
    assert np.array_equal(matrix, VALUES[:, [3, 2, 0, 1]])


def test_more_columns_than_are_read_at_a_time(tmp_path):
    values = np.random.default_rng(0).standard_normal((7, 40))
    frame = pl.DataFrame({f"c{k}": values[:, k] for k in range(40)})
    for ending in (".csv", ".parquet", ".arrow"):
        table = open_table(write(frame, tmp_path / f"data{ending}"))
        assert np.array_equal(table.matrix(table.names), values)


def test_columns_not_asked_for_are_not_looked_at(tmp_path):
    frame = FRAME.with_columns(pl.Series("y", ["a", None, "b"]), pl.lit(None).alias("weight"))
    for ending in (".csv", ".parquet", ".arrow"):
        table = open_table(write(frame, tmp_path / f"data{ending}"))
        assert np.array_equal(table.matrix(["age"])[:, 0], [61, 48, 55])


def test_labels_of_an_npz_file_are_not_loaded_unless_asked_for(tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, X=np.eye(3), y=np.array([1, "x", None], dtype=object))
    assert np.array_equal(open_table(path).matrix(["x0", "x1", "x2"]), np.eye(3))
    with pytest.raises(ValueError, match="array y cannot be read"):
        open_table(path).matrix(["x0", "y"])


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([1.0, None, 2.0], "column 'bad' has a missing value in row 2"),
        ([1.0, 2.0, float("nan")], "column 'bad' has a missing value in row 3"),
        ([float("-inf"), 2.0, 1.0], "column 'bad' is infinite in row 1"),
        (["1", "two", "3"], "column 'bad' holds text, first in row 2"),
        ([None, None, None], "column 'bad' has a missing value in row 1"),
    ],
)
@pytest.mark.parametrize("ending", [".csv", ".parquet", ".arrow"])
def test_bad_entries_are_named(tmp_path, ending, column, message):
    frame = FRAME.with_columns(pl.Series("bad", column, strict=False))
    table = open_table(write(frame, tmp_path / f"data{ending}"))
    with pytest.raises(ValueError, match=message):
        table.matrix(["age", "bad"])


def test_text_deep_in_a_csv_file(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,b\n" + "1,2\n" * 12_000 + "x,2\n")
    with pytest.raises(ValueError, match="column 'a' holds text, first in row 12001"):
        open_table(path).matrix(["a", "b"])


def test_dates_are_no_numbers(tmp_path):
    frame = FRAME.with_columns(pl.Series("day", ["2020-01-01"] * 3).str.to_date())
    with pytest.raises(ValueError, match="column 'day' holds dates or times"):
        open_table(write(frame, tmp_path / "data.parquet")).matrix(["day"])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("data.txt", b"a\n1\n", "none of the endings"),
        ("data.csv", b"", "has no columns"),
        ("data.csv", b"a,b\n", "has no rows"),
        ("data.csv", b"a,a\n1,2\n", "has the column 'a' twice"),
        ("data.csv", b"\xff\xfe\x00", "cannot be read as csv"),
        ("data.parquet", b"not parquet", "cannot be read as parquet"),
        ("data.arrow", b"not arrow", "cannot be read as arrow"),
        ("data.npz", b"not a zip", "cannot be read as npz"),
    ],
)
def test_files_that_are_not_what_they_say(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        everything(path)


def test_npz_of_the_wrong_kind(tmp_path):
    path = tmp_path / "data.npz"
    for arrays, message in [
        ({"F": np.eye(2)}, "has no array X"),
        ({"X": np.ones(3)}, "X must have 2 dimensions"),
        ({"X": np.array([["a"]])}, "does not hold numbers by its type"),
        ({"X": np.eye(2), "y": np.ones(3)}, "y has 3 entries for 2 rows"),
        ({"X": np.eye(2), "feature_names": np.array(["a"])}, "1 names for 2 columns"),
        ({"X": np.eye(2), "feature_names": np.array([1, 2])}, "must be a vector of text"),
    ]:
        np.savez(path, **arrays)
        with pytest.raises(ValueError, match=message):
            everything(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(OSError, match=r"nowhere\.csv"):
        open_table(tmp_path / "nowhere.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValueError, match="is a folder"):
        open_table(tmp_path / "folder.csv")


def test_choice_of_features(tmp_path):
    table = open_table(write(FRAME, tmp_path / "data.csv"))
    assert table.feature_names("y") == ["age", "smoker", "weight"]
    assert table.feature_names("y", features=["weight", "age"]) == ["weight", "age"]
    assert table.feature_names("y", exclude=["age"]) == ["smoker", "weight"]
    assert table.feature_names("gone", exclude=["y"]) == ["age", "smoker", "weight"]
    for options, message in [
        ({"features": ["weigth"]}, "no column 'weigth'; did you mean 'weight'"),
        ({"exclude": ["nothing"]}, "no column 'nothing'"),
        ({"features": ["age", "age"]}, "'age' is named twice"),
        ({"features": ["age", "y"]}, "target 'y' cannot be one of the features"),
        ({"features": ["age"], "exclude": ["y"]}, "not both"),
        ({"exclude": ["age", "smoker", "weight"]}, "is left as a feature"),
    ]:
        with pytest.raises(ValueError, match=message):
            table.feature_names("y", **options)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_written_tables_come_back(tmp_path, ending):
    values = np.random.default_rng(0).standard_normal(5)
    path = tmp_path / f"table{ending}"
    path.write_bytes(table_bytes({"a": values}, path))
    assert np.array_equal(open_table(path).matrix(["a"])[:, 0], values)
    with pytest.raises(ValueError, match=r"must end in \.csv or \.parquet"):
        table_bytes({"a": values}, tmp_path / "table.txt")


def test_the_ending_says_how_to_write():
    with pytest.raises(ValueError, match=r"predictions\.txt must end in \.csv or \.parquet"):
        check_ending(Path("predictions.txt"))


def test_labels_of_genotypes(tmp_path):
    path = tmp_path / "labels.txt"
    path.write_text("#FID IID bmi\nb 1 27.5\na 1 -9\n")
    found = read_labels(path, [("a", "1"), ("a", "2"), ("b", "1")])
    assert list(found) == ["bmi"]
    np.testing.assert_array_equal(found["bmi"], [np.nan, np.nan, 27.5])


def test_labels_that_are_not_finite_are_not_shown():
    with pytest.raises(ValueError, match="which is not shown because labels are private"):
        check_labels(np.array([1.0, np.inf]))
