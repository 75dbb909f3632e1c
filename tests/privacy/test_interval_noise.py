"""What intervals of private rows suppose of what noise and shrinking hide."""

import numpy as np
import pytest
from scipy.stats import norm

import privasso as pv
from privasso.programs import _one_step
from privasso.programs._correlations import NoisyProducts, symmetric
from privasso.programs._one_step import OneStep
from privasso.programs._scores import long_rows


def products(rng, spread, rows=5000, columns=12):
    """Sums of products of columns whose correlations have about this deviation."""
    mixed = np.eye(columns) + spread * rng.standard_normal((columns, columns))
    G = mixed @ mixed.T
    size = rng.uniform(0.5, 2.0, columns) / np.sqrt(np.diag(G))
    return rows * G * np.outer(size, size)


@pytest.mark.parametrize("spread", [0.0, 0.2])
@pytest.mark.parametrize("noise", [20.0, 1500.0])
def test_sums_that_are_drawn_hold_the_exact_ones(spread, noise):
    """Each exact sum is anywhere among its draws, and closer to the mean than to the noisy sum."""
    rng = np.random.default_rng(0)
    ranks, off, raw = [], [], []
    for _ in range(40):
        exact = products(rng, spread)
        deviations = np.full(exact.shape, noise)
        noisy = NoisyProducts(exact + symmetric(rng, deviations), deviations)
        drawn = np.array([noisy.drawn(rng) for _ in range(60)])
        above = np.triu_indices(len(exact), 1)
        ranks.append(np.mean(drawn < exact, axis=0)[above])
        off.append(np.mean((noisy.mean() - exact)[above] ** 2))
        raw.append(noise**2)
    held = np.mean(np.abs(np.array(ranks) - 0.5) <= 0.475)
    assert held > 0.9  # of 95 %
    assert np.mean(off) < 1.05 * np.mean(raw)
    if noise > 1000.0:
        assert np.mean(off) < 0.5 * np.mean(raw)


def test_one_pair_that_sticks_out_of_noise_is_kept():
    sums = np.diag(np.full(10, 1000.0))
    sums[0, 1] = sums[1, 0] = 950.0
    found = NoisyProducts(sums, np.full((10, 10), 30.0)).mean()
    assert found[0, 1] > 0.95 * 950.0


def test_no_step_gains_more_than_the_squared_residuals():
    """Of least squares, from whatever coefficients."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        F = rng.standard_normal((300, 4)) @ rng.standard_normal((4, 4))
        y, start = rng.standard_normal(300), rng.standard_normal(4)
        r = y - F @ start
        H, V, zeros = F.T @ F, (F * r[:, None] ** 2).T @ F, np.zeros((4, 4))
        unit = np.mean(F**2, axis=0)
        one = OneStep(H, F.T @ r, V, zeros, zeros[0], zeros, unit, 1.0, 1.0)
        step = np.linalg.lstsq(F, y, rcond=None)[0] - start
        # The mean squared residual is weighted by the lengths of rows.
        ratio = np.mean(r**2) / one.mean_square(H)
        assert step @ one._most_gained(H) @ step <= ratio * (1.0 + 1e-9)


def test_half_of_the_square_of_a_bias_as_variance_is_nearly_enough_wherever_it_is():
    bias = np.linspace(0.0, 20.0, 4001)
    end = norm.ppf(0.975) * np.sqrt(1.0 + _one_step._BIAS * bias**2)
    assert np.min(norm.cdf(end - bias) - norm.cdf(-end - bias)) > 0.91


def test_what_noise_may_hide_of_lost_squares_holds_what_labels_could_make_of_it():
    rng = np.random.default_rng(2)
    F = np.c_[np.ones(2000), rng.standard_t(2.5, (2000, 2))]
    w = long_rows(F, 4.0)
    H, zeros, ones = (F * w[:, None]).T @ F, np.zeros((3, 3)), np.ones(3)
    exact, count = np.sum(F**2, axis=0), float(np.sum(w < 1.0))
    worst = np.sum((1.0 - w) * np.abs(F[:, 1])) ** 2
    deviation, held = 0.7 * (exact - np.diag(H))[1], []
    for _ in range(300):
        noisy = exact + deviation * rng.standard_normal(3) * [0.0, 1.0, 0.0]
        whole = np.stack([noisy, [0.0, deviation, 0.0], np.full(3, np.inf)])
        one = OneStep(
            H, ones, H, zeros, ones, zeros, ones, 1.0, 1.0, whole=whole, shrunk=(count, 16.0)
        )
        assert np.all(one.hidden(unseen=True) >= one.hidden())
        held.append(one.hidden(unseen=True)[1] >= worst)
    assert np.mean(held) > 0.8  # a deviation above what is seen


def test_a_private_column_of_enormous_values_has_no_interval_where_noise_may_hide_a_loss():
    rng = np.random.default_rng(3)
    heavy = np.clip(np.exp(1.5 * rng.standard_normal(10_000)), 0.0, 1000.0)
    X = np.c_[heavy, rng.uniform(size=(10_000, 3))]
    y = np.clip(0.3 * X[:, 1] + 0.05 * np.log(heavy) + 0.1 * rng.standard_normal(10_000), -1, 1)
    privacy = pv.RecordDP(10.0, 1e-6, [(0, 1000), *[(0, 1)] * 3], y_bounds=(-1, 1))
    est = pv.PrivateLasso(privacy=privacy, intervals="least-squares", random_state=0).fit(X, y)
    assert est.intervals_.reasons()[0] == "no interval: it rests on a few rows"
    assert np.isfinite(est.confint()[1:]).all()
