"""The most exposed row: against χ² quantiles, against simulation, and in the limit."""

import math

import numpy as np
import pytest
from scipy.stats import chi2

import privasso as pv
from privasso.theory import label_sensitivity, largest_row_norm


@pytest.mark.parametrize(("N", "alpha"), [(1000, 0.5), (50, 2.0), (10, 100.0)])
def test_equal_columns_are_chi_square(N, alpha):
    M = round(alpha * N)
    found, _ = largest_row_norm(np.ones(1), np.ones(1), N, alpha)
    assert found == pytest.approx(chi2.ppf(0.5 ** (1 / M), N) / N, rel=5e-4)


@pytest.mark.parametrize(
    ("N", "alpha", "spread", "rel"),
    [(400, 1.0, 1.0, 0.02), (60, 5.0, 1.0, 0.04), (200, 2.0, 2.0, 0.05)],
)
def test_median_of_the_maximum_by_simulation(N, alpha, spread, rel):
    rng = np.random.default_rng(0)
    ratios = np.exp(spread * rng.standard_normal(N))
    found, _ = largest_row_norm(ratios, np.full(N, 1 / N), N, alpha)
    M = round(alpha * N)
    largest = [np.max(rng.standard_normal((M, N)) ** 2 @ ratios) / N for _ in range(200)]
    assert found == pytest.approx(np.median(largest), rel=rel)
    assert found > 1.1 * np.mean(ratios)  # the mean alone would understate it


def test_derivatives():
    rng = np.random.default_rng(1)
    ratios, w = np.exp(rng.standard_normal(30)), rng.dirichlet(np.ones(30))
    for n in (None, 500):
        value, by = largest_row_norm(ratios, w, n, 0.7)
        assert np.sum(by) == pytest.approx(value, rel=1e-9)  # it is homogeneous of degree 1
        h = 1e-5
        for i in (0, 11, 29):
            step = np.ones(30)
            step[i] = np.exp(h)
            up, down = (largest_row_norm(r, w, n, 0.7)[0] for r in (ratios * step, ratios / step))
            assert (up - down) / (2 * h) == pytest.approx(by[i], rel=1e-5)


def test_sensitivity_of_sampled_rows():
    model, noise = pv.Model(alpha=2.0, scales=pv.LogNormal(0.0, 0.5)), pv.PowerLaw(0.7, 0.5)
    expected = label_sensitivity(model, noise, n_features=300)
    rng = np.random.default_rng(2)
    found = []
    for _ in range(40):
        s = model.sample(300, rng)
        found.append(np.sqrt(np.max(np.sum(s.F**2 / noise.variances(s.v), axis=1))))
    assert np.median(found) == pytest.approx(expected, rel=0.02)
    assert label_sensitivity(model, noise) < expected
    assert label_sensitivity(model, noise, n_features=10**5) == pytest.approx(
        label_sensitivity(model, noise), rel=0.02
    )


def test_limit_by_moments_and_where_it_is_infinite():
    law = pv.Uniform()
    model = pv.Model(scales=law)
    for gamma in (0.0, 0.5, 1.0, 1.4):
        expected = math.sqrt(law.moment(gamma) * law.moment(1 - gamma)) / 0.3
        assert label_sensitivity(model, pv.PowerLaw(0.3, gamma)) == pytest.approx(expected)
        nodes = np.log([1e-3, 0.02, 1.0])
        table = pv.Tabulated(0.3, tuple(nodes), tuple(gamma * nodes))
        assert label_sensitivity(model, table) == pytest.approx(expected, rel=1e-5)
    for gamma in (1.5, 2.0):  # E[v^(1−γ)] diverges from 3/2 on
        assert label_sensitivity(model, pv.PowerLaw(0.3, gamma)) == math.inf
        assert label_sensitivity(model, pv.PowerLaw(0.3, gamma), n_features=100) < math.inf
    assert label_sensitivity(model, pv.Gram(0.0)) == math.inf
