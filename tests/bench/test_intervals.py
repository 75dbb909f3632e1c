"""The truth that intervals are compared with, against definitions."""

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize

from bench.intervals import beside, huber, independent, simulated, without_privacy
from bench.page import DATA


def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(500, 3)) * [1.0, 100.0, 0.01]
    y = X @ [1.0, 0.02, 50.0] + 0.3 * rng.exponential(size=500)
    return X, y


@pytest.mark.parametrize("kappa", [0.05, 0.3, np.inf])
def test_huber_minimises_huber_s_loss(kappa):
    X, y = rows()
    F = np.c_[X / X.std(axis=0), np.ones(500)]
    found = huber(F, y, kappa)

    def loss(x):
        size = np.abs(y - F @ x)
        bend = min(kappa, 1e3)
        return np.sum(np.where(size <= bend, 0.5 * size**2, bend * size - 0.5 * bend**2))

    best = minimize(loss, found, options={"gtol": 1e-6})
    np.testing.assert_allclose(found, best.x, atol=1e-4)


def test_ordinary_intervals_hold_the_coefficients_of_the_simulated_table():
    everyone, held = simulated(), []
    for seed in range(10):
        X, y = everyone.draw(np.random.default_rng(seed), 4000)
        middle, length = without_privacy(X, y)
        held.append(np.abs(middle - everyone.least_squares) <= 0.5 * length)
        assert np.abs(y).max() < 0.5
    assert 0.92 < np.mean(held) < 0.98


def test_columns_that_follow_from_others_are_left_out():
    X, _ = rows()
    assert independent(np.c_[X, X[:, 0] + X[:, 1], X[:, 2]]) == [0, 1, 2]


def test_lines_of_cells_that_were_not_measured_again_stay():
    keys = ["population", "rows", "private", "epsilon", "target"]
    before = pl.read_csv(DATA / "intervals-simulated.csv", schema_overrides={"epsilon": pl.String})
    found = before.filter(pl.col("private") == "records").with_columns(samples=pl.lit(3))
    found = found.cast(before.schema)
    after = beside("simulated", found)
    assert after.select(keys).equals(before.select(keys))
    again = pl.col("private") == "records"
    assert after.filter(again).equals(found)
    assert after.filter(~again).equals(before.filter(~again))
