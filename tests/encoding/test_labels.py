"""Labels as two classes: each cell for itself, in every type that a file can state."""

import numpy as np
import polars as pl
import pytest

from privasso.encoding import Numbers, Trouble, class_names, read_labels

TEXT = ["No", "Yes", " Yes\t", "yes", "", "NA", None, "1", "No,Yes", "\u00a0No"]
CODES = [0, 1, 1, np.nan, np.nan, np.nan, np.nan, np.nan, np.nan, 0]


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical])
def test_texts(dtype):
    found = read_labels(pl.Series("y", TEXT, dtype=dtype), ("No", "Yes"))
    assert isinstance(found, Numbers)
    assert found.values.dtype == np.float64
    np.testing.assert_array_equal(found.values, CODES)
    for k, cell in enumerate(TEXT):  # alone as among others
        alone = read_labels(pl.Series("y", [cell], dtype=dtype), ("No", "Yes"))
        np.testing.assert_array_equal(alone.values, CODES[k : k + 1])  # pyright: ignore


def test_types_of_other_kinds():
    missing = read_labels(pl.Series("y", [None, None]), ("No", "Yes"))
    assert isinstance(missing, Numbers)
    assert np.isnan(missing.values).all()
    assert isinstance(read_labels(pl.Series("y", [[1]]), ("No", "Yes")), Trouble)


def test_names():
    """Numbers if both read as such, as the cells do; texts otherwise."""
    for names, found in {
        ("No", "Yes"): ["No", "Yes"],
        (" No ", "Yes, often"): ["No", "Yes, often"],
        ("1", "2"): [1, 2],
        ("-1", " 1e0 "): [-1, 1],
        ("0.5", "7"): [0.5, 7],
        ("false", "True"): [0, 1],
        ("0", "yes"): ["0", "yes"],
        ("1", "inf"): ["1", "inf"],
        ("1_0", "2"): ["1_0", "2"],
    }.items():
        assert class_names(names) == found
    for name in ("", " ", "NA", "nan"):
        with pytest.raises(ValueError, match="missing value"):
            class_names(["yes", name])
