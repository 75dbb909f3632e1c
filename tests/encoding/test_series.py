"""A column is numbers, levels or a trouble: the same for every way to write it."""

import math

import numpy as np
import polars as pl
import pytest

from privasso.encoding import MISSING, Levels, Numbers, Trouble, read_series

NAN = math.nan


def typed(values, **options):
    return read_series(pl.Series("c", values, strict=False), **options)


def texts(column):
    """What a column of levels holds, row by row."""
    assert isinstance(column, Levels)
    return [None if code < 0 else column.levels[code] for code in column.codes]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, None, 3], [1, NAN, 3]),
        ([0.5, NAN, None], [0.5, NAN, NAN]),
        ([True, False, None], [1, 0, NAN]),
        (["TRUE", "False", "true", "NA"], [1, 0, 1, NAN]),
        ([None, None], [NAN, NAN]),
        (["", "NA"], [NAN, NAN]),
    ],
)
def test_numbers(values, expected):
    found = typed(values)
    assert isinstance(found, Numbers)
    np.testing.assert_array_equal(found.values, expected)


def test_decimals_and_large_integers_are_numbers():
    for series in (
        pl.Series("c", ["1.25", "-3"]).cast(pl.Decimal(10, 2)),
        pl.Series("c", [1.25, -3.0], dtype=pl.Float32),
    ):
        found = read_series(series)
        assert isinstance(found, Numbers)
        assert found.values.tolist() == [1.25, -3.0]


@pytest.mark.parametrize("word", MISSING)
def test_words_for_missing(word):
    assert texts(typed(["a", word, f" {word} ", "b"])) == ["a", None, None, "b"]
    numbers = typed(["1.5", word, "2"], typed=False)
    assert isinstance(numbers, Numbers)
    np.testing.assert_array_equal(numbers.values, [1.5, NAN, 2.0])


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Enum(["z", "ä=1", " b", "a;,'\""])])
def test_levels_are_sorted_whatever_their_type(kind):
    values = ["z", "ä=1", None, " b", "a;,'\"", "z"]
    found = read_series(pl.Series("c", values).cast(kind))
    assert isinstance(found, Levels)
    assert list(found.levels) == sorted(["z", "ä=1", "b", "a;,'\""])
    assert texts(found) == ["z", "ä=1", None, "b", "a;,'\"", "z"]
    assert found.codes.dtype == np.int32


def test_numbers_dates_and_truths_as_levels():
    assert texts(typed([3, 1, None], as_levels=True)) == ["3", "1", None]
    assert texts(typed([True, None], as_levels=True)) == ["true", None]
    assert texts(typed(["01", "1"], as_levels=True)) == ["01", "1"]
    assert texts(typed([None, None], as_levels=True)) == [None, None]
    day = pl.Series("c", ["2020-01-17"]).str.to_date()
    assert texts(read_series(day, as_levels=True)) == ["2020-01-17"]


@pytest.mark.parametrize(
    "text",
    [
        "2020-01-17", "17.1.2020", "1/17/20", "2020/01/17", "2020-01", "2020-01-17 10:30",
        "2020-01-17T10:30:05.123Z", "2020-01-17 10:30:05+01:00", "10:30", "10:30:05", "3:05 PM",
        "17-Jan-2020", "January 17, 2020", "17 January 2020",
    ],
)  # fmt: skip
def test_dates_and_times_are_recognised(text):
    assert typed([text, None, text]) == Trouble("c", "dates")
    assert texts(typed([text, "unknown"])) == [text, "unknown"]


@pytest.mark.parametrize("text", ["north", "2020-", "A-12-2020", "12:5", "v1.2.3.4", "1-2"])
def test_what_is_no_date(text):
    assert texts(typed([text, "x", None])) == [text, "x", None]


def test_numbers_in_text():
    assert typed(["1", "2", "3"]) == Trouble("c", "digits")
    found = typed([" 1", "2e3 ", "+3"], typed=False)
    assert isinstance(found, Numbers)
    assert found.values.tolist() == [1.0, 2000.0, 3.0]
    assert typed(["1", "2", "?"]) == Trouble("c", "mixed", 2)
    assert typed(["x", "1", "2", "3"], typed=False) == Trouble("c", "mixed", 0)
    assert texts(typed(["1", "S", "M"])) == ["1", "S", "M"]  # most are no numbers


def test_decimal_commas():
    values = ["1,5", "-2", ",25", "3,", "1,5e-3", "NA"]
    found = typed(values, typed=False, decimal_comma=True)
    assert isinstance(found, Numbers)
    np.testing.assert_array_equal(found.values, [1.5, -2.0, 0.25, 3.0, 0.0015, NAN])
    # Thousands and decimals at once are not guessed at.
    assert texts(typed(["1.234,5", "2.000,1"], typed=False, decimal_comma=True))
    assert texts(typed(["1,5", "2,5"], typed=False))


def test_values_of_other_types():
    assert typed([[1], [2]]) == Trouble("c", "values")
    assert typed([[1], [2]], as_levels=True) == Trouble("c", "values")
    assert read_series(pl.Series("c", ["a"]).str.to_datetime("a", strict=False)) in (
        Trouble("c", "dates"),
    )


def test_levels_are_bounded(monkeypatch):
    monkeypatch.setattr("privasso.encoding._columns.MOST_LEVELS", 3)
    assert typed(list("abcd")) == Trouble("c", "many", count=4)
    assert texts(typed(list("abca"))) == list("abca")
