"""What intervals of private rows suppose of what noise and shrinking hide."""

import numpy as np
import pytest
from matrices import symmetric
from scipy.stats import norm

import privasso as pv
from privasso.programs import _one_step
from privasso.programs._correlations import NoisyProducts
from privasso.programs._laws import POINTS
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
def test_what_is_expected_of_sums_is_as_far_from_the_exact_ones_as_it_says(spread, noise):
    """And closer to them than the noisy sums where noise is large."""
    rng = np.random.default_rng(0)
    held, off, raw = [], [], []
    for _ in range(40):
        exact = products(rng, spread)
        deviations = np.full(exact.shape, noise)
        noisy = NoisyProducts(exact + symmetric(rng, deviations), deviations)
        above = np.triu_indices(len(exact), 1)
        error = (noisy.mean() - exact)[above]
        held.append(np.abs(error) <= 1.96 * np.sqrt(noisy.variances()[above]))
        off.append(np.mean(error**2))
        raw.append(noise**2)
    assert np.mean(held) > 0.9  # of 95 %
    assert np.mean(off) < 1.05 * np.mean(raw)
    if noise > 1000.0:
        assert np.mean(off) < 0.6 * np.mean(raw)


def released(rng, H, V, step, noise, *, prior=1.0):
    """Sums of a step of this size, with noise that is a part of the mean curvature."""
    d, mean = len(H), float(np.mean(np.diag(H)))
    deviations = np.full((d, d), noise * mean)
    s_noise = np.full(d, 0.5 * np.sqrt(np.mean(np.diag(V))))
    scores = rng.multivariate_normal(H @ step, V) + s_noise * rng.standard_normal(d)
    V_noise = 0.05 * np.full((d, d), float(np.mean(np.diag(V))))
    noisy = H + symmetric(rng, deviations), scores, V + symmetric(rng, V_noise)
    ones = np.ones(d)
    return OneStep(*noisy, deviations, s_noise, V_noise, ones, prior, prior)


@pytest.mark.parametrize("noise", [0.01, 0.1])
@pytest.mark.parametrize("size", [0.0, 0.1, 0.3])
def test_laws_of_steps_hold_the_step_whatever_its_size_and_the_noise_of_the_curvature(size, noise):
    """2,000 rows of ten correlated columns whose residuals deviate by one."""
    rng = np.random.default_rng(3)
    mixed = np.eye(10) + 0.2 * rng.standard_normal((10, 10))
    H = 2000.0 * mixed @ mixed.T / np.mean(np.diag(mixed @ mixed.T))
    held, given = [], []
    for _ in range(100):
        step = size * rng.standard_normal(10) / np.sqrt(10.0)
        law = released(rng, H, H, step, noise).law(np.eye(10))
        low, high = (
            np.array([np.interp(z, POINTS, q) for q in law.quantiles]) for z in (-1.96, 1.96)
        )
        held.append(((low <= step) & (step <= high))[~law.unknown])
        given.append(~law.unknown)
    assert np.mean(given) > 0.5
    assert np.mean(np.concatenate(held)) > 0.935  # of 95 %


def test_noise_in_the_curvature_counts_in_proportion_to_the_step():
    """Little where there is none to make, and much where there is a large one."""
    H, spreads = 2000.0 * np.eye(8), {}
    for size in (0.0, 0.3):
        for noise in (1e-6, 0.1):
            rng = np.random.default_rng(4)
            laws = [released(rng, H, H, np.full(8, size), noise).law(np.eye(8)) for _ in range(20)]
            spreads[size, noise] = np.mean([np.ptp(one.quantiles, axis=1) for one in laws])
    assert spreads[0.0, 0.1] < 1.3 * spreads[0.0, 1e-6]
    assert spreads[0.3, 0.1] > 1.7 * spreads[0.3, 1e-6]


def test_a_column_whose_squares_noise_hides_has_no_interval():
    rng = np.random.default_rng(5)
    H = np.diag([2000.0, 2000.0, 2000.0, 50.0])
    law = released(rng, H, np.diag(np.full(4, 2000.0)), np.zeros(4), 0.05, prior=100.0).law(
        np.eye(4)
    )
    assert law.unknown.tolist() == [False, False, False, True]
    assert law.more[3] > 1.0


def test_a_step_that_noise_explains_is_not_made_and_another_one_is():
    rng = np.random.default_rng(6)
    H, zeros = 2000.0 * np.eye(40), np.zeros(40)
    none = [released(rng, H, H, zeros, 0.01).likely() for _ in range(50)]
    noise = [released(rng, H, H, zeros, 0.01).s / 2000.0 for _ in range(50)]
    assert np.mean(np.square(none)) < 0.15 * np.mean(np.square(noise))
    step = rng.standard_normal(40)
    found = released(rng, H, H, step, 0.001, prior=10.0).likely()
    np.testing.assert_allclose(found, step, atol=0.15)


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
        square = float(np.trace(V) / np.trace(H))
        one = OneStep(H, F.T @ r, V, zeros, zeros[0], zeros, unit, 1.0, 1.0, square=square)
        step = np.linalg.lstsq(F, y, rcond=None)[0] - start
        # The mean squared residual is weighted by the lengths of rows.
        ratio = np.mean(r**2) / one.mean_square(H)
        assert step @ one._most_gained() @ step <= ratio * (1.0 + 1e-9)


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
