"""Columns that are no covariates are asked about, and genuine ones are not."""

import numpy as np
import pytest

from privasso.encoding import (
    Columns,
    Levels,
    NumberCode,
    Numbers,
    Trouble,
    learn_encoding,
    parameter_words,
    refusal,
)
from privasso.encoding._columns import infinite_row
from privasso.encoding._learn import _mean, looks_like_identifier

RNG = np.random.default_rng(0)
M = 40


def levels(name, codes):
    present = np.unique(codes[codes >= 0])
    at = np.searchsorted(present, codes).astype(np.int32)
    at[codes < 0] = -1
    return Levels(name, at, tuple(f"{k:06}" for k in present))


def asked_about(column, **options):
    try:
        learn_encoding(Columns((column,), M), **options)
    except ValueError as error:
        return "looks like an identifier" in str(error)
    return False


IDENTIFIERS = {
    "pandas index": Numbers("Unnamed: 0", np.arange(M) * 1.0),
    "shuffled run": Numbers("x", RNG.permutation(M) + 7.0),
    "negative run": Numbers("x", np.arange(M) - 20.0),
    "integers called id": Numbers("Patient_ID", RNG.integers(0, 10**6, M) * 1.0),
    "repeated id": Numbers("id", RNG.integers(0, 5, M) * 1.0),
    "nameless floats": Numbers("Unnamed: 0", RNG.random(M)),
    "distinct text": levels("x", np.arange(M)),
    "distinct text with holes": levels("x", np.where(np.arange(M) % 5 == 0, -1, np.arange(M))),
    "nearly distinct text": levels("x", np.minimum(np.arange(M), M - 6)),
}
GENUINE = {
    "floats": Numbers("x", RNG.random(M)),
    "floats called id": Numbers("index", RNG.random(M)),
    "rounded": Numbers("x", RNG.integers(0, 30, M) * 1.0),
    "distinct integers with gaps": Numbers("x", np.cumsum(RNG.integers(1, 4, M)) * 1.0),
    "even integers": Numbers("x", np.arange(M) * 2.0),
    "half a run": Numbers("x", np.arange(M) + 0.5),
    "a run with a repetition": Numbers("x", np.r_[0.0, 0.0, np.arange(2.0, M)]),
    "one that ends in id": Numbers("paid", RNG.integers(0, 9, M) * 1.0),
    "truths": Numbers("x", (RNG.random(M) < 0.5) * 1.0),
    "levels": levels("x", RNG.integers(0, 4, M)),
    "levels called id": levels("store_id", RNG.integers(0, 4, M)),
}


@pytest.mark.parametrize("name", IDENTIFIERS)
def test_identifiers_are_asked_about(name):
    column = IDENTIFIERS[name]
    rule = "indicator"
    assert asked_about(column, missing=rule)
    learn_encoding(Columns((column,), M), missing=rule, keep=[column.name])


@pytest.mark.parametrize("name", GENUINE)
def test_genuine_columns_are_used(name):
    learn_encoding(Columns((GENUINE[name],), M))


def test_more_levels_than_the_limit(monkeypatch):
    column = levels("x", np.arange(M) % 9)
    assert not asked_about(column)
    monkeypatch.setattr("privasso.encoding._learn.MANY_LEVELS", 8)
    assert asked_about(column)


def test_short_tables_are_not_all_identifiers():
    table = Columns((Numbers("x", np.arange(5.0)), levels("t", np.arange(2).repeat(2))), 5)
    assert len(learn_encoding(table).names) == 2


def test_the_reference_is_the_most_frequent_level():
    column = Levels("t", np.array([0, 2, 2, 1, -1, 1, -1, -1]), ("a", "b", "c"))
    table = Columns((column,), 8)
    assert learn_encoding(table, missing="indicator").names == ("t=a", "t=c", "t is missing")


def test_a_table_of_constants_has_nothing_to_fit():
    table = Columns((Levels("t", np.zeros(3, dtype=np.int32), ("a",)),), 3)
    with pytest.raises(ValueError, match="nothing to fit"):
        learn_encoding(table)


@pytest.mark.parametrize("rule", ["mean", "indicator"])
def test_complete_columns_are_filled_later_but_not_marked(rule):
    table = Columns((Numbers("x", np.arange(3.0)), Numbers("gap", np.array([1, np.nan, 2]))), 3)
    full, gap = learn_encoding(table, missing=rule).codes
    assert full == NumberCode("x", 1.0)
    assert gap == NumberCode("gap", 1.5, rule == "indicator")


def test_the_mean_does_not_overflow():
    table = Columns((Numbers("x", np.array([1.5e308, 1.7e308, np.nan])),), 3)
    assert learn_encoding(table, missing="mean").codes[0].fill == pytest.approx(1.6e308)  # pyright: ignore


def test_rules_by_name():
    with pytest.raises(ValueError, match="missing must be one of error, mean, indicator"):
        learn_encoding(Columns((), 0), missing="median")


def test_every_kind_of_trouble_is_in_one_sentence_each():
    troubles = [Trouble(f"c{k}", "missing", k) for k in range(9)]
    troubles += [Trouble("t", "blank", 3), Trouble("u", "unknown", 2, 7), Trouble("v", "many")]
    text = str(refusal(troubles))
    assert "'c4' (row 5), 'c5' (row 6) and 3 more have missing values; fill them with" in text
    assert "Column 'u' has levels that the model does not know in 7 rows, first in row 3" in text
    assert "\n" not in text
    python = str(refusal(troubles, parameter_words))
    assert "missing='mean'" in python
    assert "--" not in python


def test_row_numbers_in_any_order_look_like_an_identifier():
    rng = np.random.default_rng(0)
    assert looks_like_identifier(Numbers("x", rng.permutation(50) + 1.0))
    assert not looks_like_identifier(Numbers("x", rng.random(50)))


def test_means_and_infinities_of_a_column():
    assert _mean(np.array([1.0, np.nan, 3.0])) == 2.0
    assert _mean(np.array([1.7e308, 1.7e308])) == 1.7e308
    assert infinite_row(np.array([np.nan, 1.0, -np.inf])) == 2
