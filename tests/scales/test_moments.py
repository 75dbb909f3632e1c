"""Moments in closed form against high-precision arithmetic."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from privasso import Constant, Empirical, LogNormal, Uniform


def uniform_moment(low, high, k):
    with mpmath.workdps(80):
        low, high, p = mpmath.mpf(low), mpmath.mpf(high), 2 * mpmath.mpf(k) + 1
        if p == 0:
            return float(mpmath.log(high / low) / (high - low))
        return float((high**p - low**p) / (p * (high - low)))


@pytest.mark.parametrize(
    ("low", "high"),
    [(1e-9, 1e9), (1.0, 1.0 + 1e-9), (0.5, 1.0), (1e-100, 1.0), (0.0, 1.0), (0.0, 1e9)],
)
@pytest.mark.parametrize(
    "k", [-3.0, -1.0, -0.5 - 1e-12, -0.5, -0.5 + 1e-12, -0.4, 0.0, 1e-9, 0.5, 1.0, 3.0]
)
def test_uniform(low, high, k):
    if low == 0.0 and k <= -0.5:
        assert Uniform(low, high).moment(k) == math.inf
    else:
        assert Uniform(low, high).moment(k) == pytest.approx(
            uniform_moment(low, high, k), rel=2e-13
        )


@given(
    low=st.floats(1e-9, 1e9),
    width=st.floats(1e-12, 1e6),
    k=st.floats(-6.0, 6.0),
)
def test_uniform_anywhere(low, width, k):
    high = low * (1.0 + width)
    assume(high > low)
    assert Uniform(low, high).moment(k) == pytest.approx(uniform_moment(low, high, k), rel=1e-12)


@settings(max_examples=15)  # mpmath integrates slowly
@given(mu=st.floats(-5, 5), sigma=st.floats(0, 2), k=st.floats(-4, 4))
def test_lognormal(mu, sigma, k):
    with mpmath.workdps(30):
        mu_, sigma_, k_ = mpmath.mpf(mu), mpmath.mpf(sigma), mpmath.mpf(k)
        # E exp(2k(mu + sigma Z)), by integration rather than by the formula under test
        shift = 2 * k_ * sigma_
        exact = mpmath.quad(
            lambda z: mpmath.npdf(z) * mpmath.exp(2 * k_ * (mu_ + sigma_ * z)),
            [shift - 16, shift - 4, shift, shift + 4, shift + 16],
        )
    assert LogNormal(mu, sigma).moment(k) == pytest.approx(float(mpmath.re(exact)), rel=1e-12)


def test_constant_and_empirical():
    assert Constant(3.0).moment(-0.5) == pytest.approx(1 / 3, rel=1e-15)
    assert Empirical([1.0, 2.0, 4.0]).moment(2) == pytest.approx((1 + 16 + 256) / 3, rel=1e-15)


@pytest.mark.parametrize(
    "law", [Uniform(), Uniform(1, 2), LogNormal(), Constant(2.0), Empirical([0.5, 7.0])]
)
def test_order_zero_is_one(law):
    assert law.moment(0) == pytest.approx(1.0, rel=1e-15)


@pytest.mark.parametrize(
    "law", [Uniform(1e-99, 1e99), LogNormal(0, 9), Constant(1e9), Empirical([1e99])]
)
def test_too_large_for_a_float_is_inf(law):
    assert law.moment(40) == math.inf
    assert law.inverse_mean_is_finite


def test_inverse_mean():
    assert not Uniform(0.0, 1.0).inverse_mean_is_finite
    assert Uniform(1e-12, 1.0).inverse_mean_is_finite
    for law in (LogNormal(0, 9), Constant(), Empirical([1e-9, 1e9])):
        assert law.inverse_mean_is_finite
        assert np.isfinite(law.moment(-1))


@pytest.mark.parametrize("k", [math.nan, math.inf, "1", None, 1j])
def test_order_must_be_a_finite_number(k):
    with pytest.raises(ValueError, match="k must be"):
        Uniform().moment(k)
