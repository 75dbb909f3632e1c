"""Limits that hold as often as they say, and curves that are those of the scores."""

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score, roc_curve

from privasso.accounting import ApproximateLoss, GaussianLoss
from privasso.attacks._audit import THRESHOLDS
from privasso.attacks._evidence import Evidence, binomial_limits
from privasso.attacks._result import claimed_rates


def gaussian(mu, count, seed, level=0.01):
    """Scores that are the log likelihood ratio of two normal laws that are μ apart."""
    rng = np.random.default_rng(seed)
    into, out = (mu * (rng.normal(shift, 1.0, count)) for shift in (mu / 2, -mu / 2))
    return Evidence(into, out, THRESHOLDS, level)


def test_curve_and_area_against_scikit_learn():
    rng = np.random.default_rng(0)
    into, out = np.round(rng.normal(0.4, 1.0, 300), 1), np.round(rng.normal(0.0, 1.0, 200), 1)
    found = Evidence(into, out, THRESHOLDS, 0.01)
    truth = np.r_[np.ones(300), np.zeros(200)]
    assert found.auc == pytest.approx(roc_auc_score(truth, np.r_[into, out]))
    false, true, _ = roc_curve(truth, np.r_[into, out], drop_intermediate=False)
    mine = found.curve()
    np.testing.assert_allclose(mine[0][: false.size], false, atol=1e-12)
    np.testing.assert_allclose(mine[1][: true.size], true, atol=1e-12)
    rate, low, high = found.true_positives(0.1)
    assert low < rate < high
    assert rate <= true[false <= 0.1].max() + 1e-12


def test_the_error_of_the_area_is_that_of_repetitions():
    areas, errors = zip(
        *((one.auc, one.auc_error) for one in (gaussian(0.8, 150, seed) for seed in range(300))),
        strict=True,
    )
    assert np.mean(errors) == pytest.approx(np.std(areas), rel=0.12)


@pytest.mark.parametrize(("hits", "count"), [(0, 20), (3, 20), (20, 20), (500, 1000)])
def test_binomial_limits_against_scipy(hits, count):
    exact = stats.binomtest(hits, count).proportion_ci(0.95, method="exact")
    assert binomial_limits(hits, count, 0.025) == pytest.approx((exact.low, exact.high))


def test_a_true_claim_is_hardly_ever_refuted_and_nearly_reached():
    shares = [gaussian(1.0, 2000, seed, 0.2).closest(GaussianLoss(1.0)).share for seed in range(60)]
    assert np.mean(np.array(shares) > 1.0) < 0.2
    assert gaussian(1.0, 200_000, 0).closest(GaussianLoss(1.0)).share > 0.9


@pytest.mark.parametrize("claimed", [0.5, 0.8])
def test_a_false_claim_is_refuted(claimed):
    assert gaussian(1.0, 20_000, 1).closest(GaussianLoss(claimed)).share > 1.0


def test_both_orders_of_a_pair_are_looked_at():
    """A release that only the second data set can make refutes any small δ."""
    rng = np.random.default_rng(2)
    into = rng.normal(0.0, 0.1, 2000)
    out = np.where(rng.random(2000) < 0.1, -10.0, rng.normal(0.0, 0.1, 2000))
    claim = ApproximateLoss(1.0, 0.02)
    assert Evidence(into, out, THRESHOLDS, 0.01).closest(claim).share > 1.0
    assert Evidence(-out, -into, THRESHOLDS, 0.01).closest(claim).share > 1.0
    assert Evidence(into, into[::-1], THRESHOLDS, 0.01).closest(claim).share < 1.0


def test_the_line_of_a_gaussian_claim():
    fpr = np.array([0.001, 0.01, 0.1, 0.5, 0.9])
    exact = stats.norm.cdf(stats.norm.ppf(fpr) + 0.7)
    found = claimed_rates(GaussianLoss(0.7), fpr)
    assert np.all(found >= exact - 1e-12)
    np.testing.assert_allclose(found, exact, rtol=2e-3)
    assert math.isclose(float(claimed_rates(GaussianLoss(0.7), np.array([1.0]))[0]), 1.0)
