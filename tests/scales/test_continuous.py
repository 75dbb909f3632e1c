"""Continuous laws against scipy's distributions and adaptive integration."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from privasso import LogNormal, Uniform

FUNCTIONS = {
    "exp(-1/v)": lambda v: np.exp(-1.0 / v),
    "Q(1/v)": lambda v: ndtr(-1.0 / v),
    "v³": lambda v: v**3,
    "log(1+v)": lambda v: np.log1p(v),
    "1/(1+v)": lambda v: 1.0 / (1.0 + v),
    "v Q((v+0.1)^-½)": lambda v: v * ndtr(-((v + 0.1) ** -0.5)),
    "cos(v)exp(-v)": lambda v: np.cos(v) * np.exp(-v),
}


def test_draws_follow_the_law(case):
    s = case.law.draw(20_000, rng=11)
    assert stats.kstest(s, case.peer.cdf).pvalue > 1e-3


def test_draws_have_the_moments(case):
    s = case.law.draw(200_000, rng=12)
    for k in (0.5, 1.0):
        sample = s ** (2 * k)
        error = np.std(sample) / np.sqrt(s.size)
        assert abs(np.mean(sample) - case.law.moment(k)) < 4 * error


def test_draws_are_independent_of_position(case):
    s = case.peer.cdf(case.law.draw((2, 50_000), rng=13))
    assert abs(np.corrcoef(s)[0, 1]) < 4 / np.sqrt(50_000)
    assert abs(np.corrcoef(s[0, 1:], s[0, :-1])[0, 1]) < 4 / np.sqrt(50_000)


def test_quantile_agrees_with_scipy(case):
    p = np.concatenate([[0.0, 1.0], np.geomspace(1e-15, 0.5, 40), 1 - np.geomspace(1e-9, 0.5, 40)])
    np.testing.assert_allclose(case.law.quantile(p), case.peer.ppf(p), rtol=1e-12)
    np.testing.assert_allclose(
        case.peer.cdf(case.law.quantiles(101)), (np.arange(101) + 0.5) / 101, rtol=1e-12
    )


def test_quantile_keeps_the_shape(case):
    assert case.law.quantile(np.full((2, 3), 0.4)).shape == (2, 3)
    assert np.ndim(case.law.quantile(0.4)) == 0


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_quadrature_agrees_with_adaptive_integration(case, f):
    v, weights = case.law.quadrature(400)
    assert weights @ f(v) == pytest.approx(case.mean(f), rel=1e-10)


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_quadrature_converges_faster_than_a_high_power(case, f):
    exact = case.mean(f)

    def error(n):
        v, weights = case.law.quadrature(n)
        return abs(weights @ f(v) / exact - 1.0)

    # Eight times the nodes: an order of at least five would be 8**-5 = 3e-5.
    assert error(240) < max(3e-5 * error(30), 1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 371, 2000])
def test_weights_are_positive_and_sum_to_one(case, n):
    v, weights = case.law.quadrature(n)
    assert v.shape == weights.shape == (n,)
    assert np.all(weights > 0)
    assert np.all((v > 0) & np.isfinite(v))
    assert np.all(np.diff(v) > 0)
    assert np.sum(weights) == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_tail_quadrature_agrees_with_adaptive_integration(case, f):
    v, weights = case.law.tail_quadrature(512)
    assert v.shape == weights.shape == (512,)
    assert np.sum(weights) == pytest.approx(1.0, abs=1e-14)
    if np.isfinite(case.law.quantile([1.0])[0]):  # it does not resolve an infinite upper tail
        assert weights @ f(v) == pytest.approx(case.mean(f), rel=1e-10)


@pytest.mark.parametrize("k", [-0.3, -0.45])
def test_tail_quadrature_resolves_the_smallest_scales(k):
    law = Uniform()
    (v, w), (other_v, other_w) = law.tail_quadrature(512), law.quadrature(512)
    exact = 1.0 / (2.0 * k + 1.0)  # of s^2k
    assert w @ v**k == pytest.approx(exact, rel=1e-9)
    assert abs(other_w @ other_v**k / exact - 1.0) > 1e-3


@pytest.mark.parametrize("n", [200, 2000])
@pytest.mark.parametrize("k", [-3, -2, -1, -0.5, 0.5, 1, 2, 3])
@pytest.mark.parametrize("sigma", [0.0, 0.1, 0.5, 1.0, 2.0])
def test_lognormal_quadrature_keeps_high_moments(sigma, k, n):
    law = LogNormal(0.3, sigma)
    v, weights = law.quadrature(n)
    assert weights @ v**k == pytest.approx(law.moment(k), rel=1e-10)


def test_lognormal_quadrature_is_sound_at_the_widest_spread_allowed():
    v, weights = LogNormal(0.0, 9.3).quadrature(2000)
    assert np.all((v > 0) & np.isfinite(v))
    assert np.all(weights > 0)


def test_uniform_quadrature_is_exact_for_polynomials():
    v, weights = Uniform(0.0, 2.0).quadrature(4)
    assert weights @ v**3 == pytest.approx(2**6 / 7, rel=1e-14)  # degree 6 in s, 7 is allowed
    assert weights @ v**4 != pytest.approx(2**8 / 9, rel=1e-6)


def test_quadrature_results_belong_to_the_caller(case):
    v, weights = case.law.quadrature(8)
    v *= 0.0
    weights *= 0.0
    again_v, again_weights = case.law.quadrature(8)
    assert np.all(again_v > 0)
    assert np.all(again_weights > 0)


@pytest.mark.parametrize("k", [-0.2, 0.0, 0.25, 1.0, 2.0, 2.5])
def test_moment_agrees_with_adaptive_integration(case, k):
    assert case.law.moment(k) == pytest.approx(case.mean(lambda v: v**k), rel=1e-10)
