"""Columns that a public dictionary describes: each cell for itself, whatever the others hold."""

import dataclasses
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privasso as pv
from privasso.artefact import DocumentError
from privasso.encoding import (
    Columns,
    Dictionary,
    Encoding,
    LevelEntry,
    Levels,
    NumberEntry,
    Numbers,
    Trouble,
    read_declared,
    read_dictionary,
    template,
)

CELLS = st.one_of(
    st.none(),
    st.text(max_size=6),
    st.sampled_from(["1", " 2.5 ", "true", "FALSE", "1,5", "1e400", "nan", "NA", "2024-01-01"]),
    st.floats().map(repr),
)


@given(st.lists(CELLS, min_size=1, max_size=8), st.booleans())
def test_a_cell_is_read_the_same_whatever_the_others_hold(cells, comma):
    together = read_declared(pl.Series("x", cells, dtype=pl.String), None, decimal_comma=comma)
    assert isinstance(together, Numbers)
    levels = read_declared(pl.Series("x", cells, dtype=pl.String), ["1", "true"])
    assert isinstance(levels, Levels)
    for k, cell in enumerate(cells):
        alone = pl.Series("x", [cell], dtype=pl.String)
        one = read_declared(alone, None, decimal_comma=comma)
        assert isinstance(one, Numbers)
        np.testing.assert_array_equal(one.values[0], together.values[k])
        level = read_declared(alone, ["1", "true"])
        assert isinstance(level, Levels)
        assert level.codes[0] == levels.codes[k]


def test_numbers_and_truths_are_read_as_python_reads_them():
    for text, value in (("1", 1.0), (" 2.5 ", 2.5), ("-1e3", -1e3), ("TRUE", 1.0), ("false", 0.0)):
        assert read_declared(pl.Series("x", [text]), None).values[0] == value  # pyright: ignore
    for text in ("", "one", "NA", "1,5", "0x10", "2024-01-01"):
        assert math.isnan(read_declared(pl.Series("x", [text]), None).values[0])  # pyright: ignore
    assert read_declared(pl.Series("x", ["1,5"]), None, decimal_comma=True).values[0] == 1.5  # pyright: ignore


def test_types_of_the_file_decide_what_is_refused():
    for series, kind in (
        (pl.Series("x", [None], dtype=pl.Date), "dates"),
        (pl.Series("x", [[1]]), "values"),
        (pl.Series("x", [b"1"]), "values"),
    ):
        for levels in (None, ["1"]):
            assert read_declared(series, levels) == Trouble("x", kind)  # pyright: ignore


def test_numbers_as_levels_by_their_shortest_text():
    found = read_declared(pl.Series("x", [1.0, 2.5, None, 3.0, math.inf, math.nan]), ["1", "2.5"])
    assert isinstance(found, Levels)
    assert found.codes.tolist() == [0, 1, -1, -1, -1, -1]


def test_the_matrix_is_dense_filled_and_in_place_where_it_can_be():
    block = np.array([[1.0, np.nan], [np.nan, 5.0]], order="F")
    numbers = tuple(Numbers(name, block[:, k]) for k, name in enumerate("ab"))
    plain = Dictionary((NumberEntry("a", 0, 4), NumberEntry("b", 0, 9, fill=1)))
    X = plain.matrix(Columns(numbers, 2, block=block))
    assert X is block
    assert X.tolist() == [[1.0, 1.0], [2.0, 5.0]]
    # However few entries are not zero: storage must not depend on the data.
    codes = Levels("t", np.full(200_000, -1, dtype=np.int32), ("u",))
    sparse = Dictionary((LevelEntry("t", ("u",)),)).matrix(Columns((codes,), 200_000))
    assert isinstance(sparse, np.ndarray)
    assert not sparse.any()


def test_the_encoding_predicts_as_the_dictionary_fits():
    dictionary = Dictionary((NumberEntry("a", 0, 4), LevelEntry("t", ("v", "u"))))
    codes = np.array([0, 1, -1], dtype=np.int32)
    table = Columns((Numbers("a", np.array([1.0, np.nan, 3.0])), Levels("t", codes, ("u", "v"))), 3)
    expected = [[1, 1, 0], [2, 0, 1], [3, 0, 0]]
    assert dictionary.matrix(table).tolist() == expected
    encoding = Encoding.from_dict(dictionary.encoding.to_dict())
    assert encoding == dictionary.encoding
    assert np.asarray(encoding.matrix(table)).tolist() == expected
    # A table to predict may have other levels: they are none of those of the model.
    other = Levels("t", np.array([0, 1, 2], dtype=np.int32), ("new", "u", "v"))
    found = encoding.matrix(Columns((table.columns[0], other), 3))
    assert np.asarray(found).tolist() == [[1, 0, 0], [2, 1, 0], [3, 0, 1]]


def test_bounds_by_name_survive_a_change_of_another_setting():
    dictionary = Dictionary((NumberEntry("a", 0, 4), LevelEntry("t", ("v",))))
    privacy = pv.RecordDP(1.0, 1e-6, bounds=dictionary.bounds, y_bounds=(0, 1))
    changed = dataclasses.replace(privacy, epsilon=2.0)
    assert changed.column_bounds(2, ("t=v", "a")).tolist() == [[0, 1], [0, 4]]


def test_zeros_and_ones_are_declared_in_files(tmp_path):
    (tmp_path / "b.csv").write_text("name,low,high,fill,levels\na,0,4,,\nb,,,0,0/1\nc,0,1,,\n")
    (tmp_path / "b.json").write_text('{"a": [0, 4], "b": "0/1", "c": [0, 1]}')
    for name, filled in (("b.csv", 0.0), ("b.json", 0.5)):
        found = read_dictionary(tmp_path / name)
        assert found.bounds == {"a": (0, 4), "b": "0/1", "c": (0, 1)}
        assert found.limits is not None
        assert found.limits.tolist() == [[0, 4], [0, 1], [0, 1]]
        assert found.entries[1] == NumberEntry("b", 0, 1, filled if filled == 0.0 else None, True)
        values = Numbers("b", np.array([1.0, np.nan]))
        assert found.of(["b"]).matrix(Columns((values,), 2)).tolist() == [[1.0], [filled]]
    for line in ("b,0,1,,0/1", "b,,,2,0/1", "b,,,x,0/1"):
        (tmp_path / "b.csv").write_text(f"name,low,high,fill,levels\n{line}\n")
        with pytest.raises(DocumentError, match="column 'b'"):
            read_dictionary(tmp_path / "b.csv")
    with pytest.raises(ValueError, match="zeros and ones"):
        NumberEntry("b", 0, 2, indicator=True)


def test_names_of_columns_that_would_meet_are_refused():
    both = Dictionary((NumberEntry("t=v", 0, 1), LevelEntry("t", ("v",))))
    with pytest.raises(ValueError, match="two columns of the matrix would have the name 't=v'"):
        _ = both.encoding


def test_levels_are_sorted_and_none_stands_for_a_missing_value():
    assert LevelEntry("ward", ("heart", "eye")).levels == ("eye", "heart")
    with pytest.raises(ValueError, match="stands for a missing value; write it differently"):
        LevelEntry("country", ("NA", "ZA"))


def test_a_dictionary_to_fill_in():
    text = "name,low,high,fill,levels,type\r\nage,,,,,number\r\nward,,,,,text\r\nx,,,,,\r\n"
    assert template([("age", "number"), ("ward", "text"), ("x", None)]) == text
