"""Every method has the guarantee it claims, and explains what can be explained."""

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LassoCV

import privasso as pv
from privasso.examples import (
    DIABETES_RANGES,
    METHODS,
    Split,
    compare_methods,
    diabetes_splits,
    label_noise,
    simulated_splits,
    summarise,
)

PRIVACY = pv.LabelDP(3.0, 1e-6, (-4.0, 4.0))


def test_noise_on_each_label_has_the_delta_that_is_claimed():
    y = np.linspace(-9.0, 9.0, 5)
    draws = np.array([label_noise(PRIVACY, y, np.random.default_rng(k)) for k in range(20_000)])
    np.testing.assert_allclose(draws.mean(0), np.clip(y, -4.0, 4.0), atol=0.4)
    # δ of a Gaussian mechanism whose mean moves by the whole width, Balle and Wang (2018).
    deviation = draws.std(0).mean()
    assert pv.accounting.gaussian_delta(3.0, 8.0 / deviation) == pytest.approx(1e-6, rel=0.2)


def test_data_of_the_examples():
    split = next(diabetes_splits(1, rng=0))
    assert split.X.shape == (331, 10)
    assert split.X_test.shape == (111, 10)
    data: Any = load_diabetes(scaled=False)
    assert list(DIABETES_RANGES) == data.feature_names
    inside = (data.data >= split.column_bounds[:, 0]) & (data.data <= split.column_bounds[:, 1])
    assert inside.mean() > 0.98
    large = next(simulated_splits(1, 4000, 20, rng=0))
    assert (large.X.std(0).max() / large.X.std(0).min()) > 10
    score = LassoCV(cv=5).fit(large.X, large.y).score(large.X_test, large.y_test)
    assert score == pytest.approx(0.7, abs=0.05)


def test_table_and_summary():
    def small():
        for split in simulated_splits(3, 2000, 8, rng=0):
            yield Split(
                split.X[:1500],
                split.y[:1500],
                split.X[1500:],
                split.y[1500:],
                split.y_bounds,
                split.column_bounds,
            )

    done = []
    table = compare_methods(small(), [1.0, 10.0], delta=1e-6, rng=0, progress=done.append)
    assert sum(done) == table.height == 3 * (3 * 2 + 1)
    assert set(table["method"]) == set(METHODS)
    found = summarise(table)
    best = found.filter(method="no privacy")["r2"].item()
    for method in METHODS[:3]:
        one, ten = found.filter(method=method).sort("epsilon")["r2"]
        assert one < ten + 0.01 < best + 0.03
    assert found["r2"][0] == table.filter(method=METHODS[0], epsilon=1.0)["r2"].median()
