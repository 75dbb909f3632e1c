"""The registry of real tables; those whose package is missing are not loaded."""

import numpy as np
import pytest

from bench.real.tables import REGISTRY, available, chosen, load
from bench.real.tables.table import build

HERE = [*available("regression"), *available("binary")]


def test_there_are_enough_tables():
    kinds = [entry.kind for entry in REGISTRY.values()]
    assert kinds.count("regression") >= 14
    assert kinds.count("binary") >= 4
    assert {"diabetes", "diabetes-64", "tumours"} <= set(HERE)  # scikit-learn is always there


@pytest.mark.parametrize("name", HERE)
def test_a_table_keeps_to_its_description(name):
    table = load(name)
    m, n = table.X.shape
    assert table.y.shape == (m,)
    assert len(table.columns) == len(set(table.columns)) == n
    assert table.column_bounds.shape == (n, 2)
    assert np.isfinite(table.X).all()
    assert (table.X.std(axis=0) > 0.0).all()
    assert table.source
    assert table.outcome
    low, high = table.column_bounds.T
    outside = ((low > table.X) | (high < table.X)).mean(axis=0)
    assert outside.max() < 0.1
    assert np.mean((table.y < table.y_bounds[0]) | (table.y > table.y_bounds[1])) < 0.05
    if REGISTRY[name].kind == "binary":
        assert set(np.unique(table.y)) == {0.0, 1.0}
        assert table.y_bounds == (0.0, 1.0)


@pytest.mark.parametrize("name", HERE)
def test_bounds_are_round_and_not_read_off_the_labels(name):
    if REGISTRY[name].kind == "binary":
        return
    for bound in load(name).y_bounds:
        assert float(f"{bound:.2g}") == bound


def test_squares_and_products_of_the_diabetes_table():
    table = load("diabetes-64")
    assert table.X.shape == (442, 64)
    at = dict(zip(table.columns, table.X.T, strict=True))
    assert at["bmi·s5"] == pytest.approx(at["bmi"] * at["s5"])
    assert at["age·age"] == pytest.approx(at["age"] ** 2)
    low, high = table.column_bounds.T
    assert ((low <= table.X) & (high >= table.X)).all()


def test_a_column_without_bounds_must_be_of_zeros_and_ones():
    frame = {"a": np.array([0.0, 1.0]), "b": np.array([0.0, 7.0]), "y": np.array([1.0, 2.0])}

    class Frame(dict):
        columns = tuple(frame)

    with pytest.raises(ValueError, match="'b' is not of zeros and ones"):
        build(Frame(frame), outcome="y", y_bounds=(0.0, 3.0), bounds={}, meaning="y", source="here")


def test_an_unknown_table_is_refused():
    with pytest.raises(ValueError, match="no regression table of the name nothing"):
        chosen("regression", ["nothing"])
    with pytest.raises(ValueError, match="no regression table of the name tumours"):
        chosen("regression", ["tumours"])
