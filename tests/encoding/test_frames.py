"""Frames of polars and pandas with the same content give the same columns."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from privasso.encoding import (
    Dictionary,
    Levels,
    NumberEntry,
    Numbers,
    columns_of_frame,
    declared_columns,
    frame_labels,
)

POLARS = pl.DataFrame(
    {
        "number": [1.5, None, -3.0],
        "count": [1, 2, 3],
        "flag": [True, False, True],
        "text": ["b", None, "a"],
        "kind": pl.Series(["v", "u", "v"], dtype=pl.Categorical),
        "day": pl.Series(["2020-01-17"] * 3).str.to_date(),
    }
)
PANDAS = pd.DataFrame(
    {
        "number": [1.5, np.nan, -3.0],
        "count": pd.array([1, 2, 3], dtype="Int64"),
        "flag": [True, False, True],
        "text": ["b", None, "a"],
        "kind": pd.Categorical(["v", "u", "v"]),
        "day": pd.to_datetime(["2020-01-17"] * 3),
    }
)


@pytest.mark.parametrize("frame", [POLARS, PANDAS], ids=["polars", "pandas"])
def test_the_same_columns(frame):
    table = columns_of_frame(frame)
    assert [(one.column, one.kind) for one in table.troubles] == [("day", "dates")]
    assert table.n_rows == 3
    number, count, flag, text, kind = table.columns
    assert isinstance(number, Numbers)
    np.testing.assert_array_equal(number.values, [1.5, np.nan, -3.0])
    assert isinstance(count, Numbers)
    assert count.values.tolist() == [1.0, 2.0, 3.0]
    assert isinstance(flag, Numbers)
    assert flag.values.tolist() == [1.0, 0.0, 1.0]
    assert isinstance(text, Levels)
    assert (text.levels, text.codes.tolist()) == (("a", "b"), [1, -1, 0])
    assert isinstance(kind, Levels)
    assert (kind.levels, kind.codes.tolist()) == (("u", "v"), [1, 0, 1])


def test_types_that_are_neither():
    table = columns_of_frame(pd.DataFrame({"a": [1, "x", 2.5], "b": [{}, [], None]}))
    assert [(one.column, one.kind) for one in table.troubles] == [("a", "values"), ("b", "values")]


def test_what_is_no_frame():
    with pytest.raises(ValueError, match="a data frame of polars or pandas, not ndarray"):
        columns_of_frame(np.eye(3))
    with pytest.raises(ValueError, match="no column 'b'"):
        columns_of_frame(pl.DataFrame({"a": [1]}), ["a", "b"])
    with pytest.raises(ValueError, match="no column 'c'"):
        columns_of_frame(pl.DataFrame({"a": [1]}), categorical=["c"])
    with pytest.raises(ValueError, match="two columns of the same name"):
        columns_of_frame(pd.DataFrame([[1, 2]], columns=pd.Index(["a", "a"])))


def test_a_declared_frame_is_read_cell_by_cell():
    age = Dictionary((NumberEntry("age", 0, 100),))
    found = declared_columns(pl.DataFrame({"age": ["61", "n/a", "forty"]}), age).columns[0]
    assert isinstance(found, Numbers)
    np.testing.assert_array_equal(found.values, [61.0, np.nan, np.nan])
    assert frame_labels(pl.DataFrame({"age": [61]})) == {"age": "age"}
