"""Calibration of the Gaussian mechanism against the closed form in high precision."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privasso.accounting import (
    gaussian_delta,
    gaussian_epsilon,
    log_gaussian_delta,
    sensitivity_for,
)

EPSILONS = (1e-6, 1e-2, 0.5, 3.0, 40.0, 1e3)
DELTAS = (1e-300, 1e-40, 1e-6, 1e-2, 0.9)
PAIRS = [(epsilon, delta) for epsilon in EPSILONS for delta in DELTAS]


def exact_delta(epsilon: float, mu: float):
    """Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) with 800 digits: the two terms may agree in hundreds."""
    with mpmath.workdps(800):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        root = mpmath.sqrt(2)
        upper = mpmath.erfc((e / m - m / 2) / root) / 2
        lower = mpmath.erfc((e / m + m / 2) / root) / 2
        return upper - mpmath.exp(e) * lower


def test_the_sensitivity_of_the_thirty_pairs_grows_with_epsilon_and_with_delta():
    mu = np.array([sensitivity_for(*pair) for pair in PAIRS]).reshape(6, 5)
    assert np.all(mu > 0.0)
    assert np.all(np.diff(mu, axis=0) > 0.0)
    assert np.all(np.diff(mu, axis=1) > 0.0)


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_the_calibrated_noise_spends_the_budget_and_no_more(epsilon, delta):
    achieved = exact_delta(epsilon, sensitivity_for(epsilon, delta))
    assert 0.999 <= float(achieved / mpmath.mpf(delta)) <= 1.0


POINTS = [
    (epsilon, mu)
    for mu in (1e-7, 1e-3, 0.3, 0.5, 0.51, 2.0, 9.0, 60.0)
    for epsilon in (0.0, 1e-6, 1e-3, 0.04, 1.0, 7.0, 100.0, 1e3)
    if epsilon / mu - mu / 2 < 50.0  # beyond, the oracle loses all its digits
]


@pytest.mark.parametrize(("epsilon", "mu"), POINTS)
def test_log_delta(epsilon, mu):
    error = log_gaussian_delta(epsilon, mu) - float(mpmath.log(exact_delta(epsilon, mu)))
    assert abs(error) < 1e-11


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_epsilon_is_the_inverse_and_never_too_small(epsilon, delta):
    mu = sensitivity_for(epsilon, delta)
    found = gaussian_epsilon(delta, mu)
    assert exact_delta(found, mu) <= mpmath.mpf(delta)
    # At δ = 0.9, a tiny ε moves δ by less than the margin of the calibration.
    assert found == pytest.approx(epsilon, rel=1e-3, abs=3e-5)


def test_edges():
    assert gaussian_delta(1.0, 0.0) == 0.0
    assert gaussian_epsilon(1e-6, 0.0) == 0.0
    assert gaussian_epsilon(0.5, 0.1) == 0.0
    # ε = 0 is the total variation distance 2Φ(μ/2) − 1.
    assert gaussian_delta(0.0, 1.0) == pytest.approx(math.erf(0.5 / math.sqrt(2)), rel=1e-14)


@given(st.floats(1e-6, 1e3), st.floats(-690, -1e-3), st.floats(1.0001, 3.0))
def test_more_budget_allows_more_sensitivity(epsilon, log_delta, factor):
    delta = math.exp(log_delta)
    mu = sensitivity_for(epsilon, delta)
    assert np.isfinite(mu)
    assert sensitivity_for(epsilon * factor, delta) > mu * (1.0 - 1e-9)
    assert log_gaussian_delta(epsilon, mu) <= log_delta
    assert log_gaussian_delta(epsilon, mu * factor) > log_delta


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sensitivity_for(0.0, 0.1), "epsilon must be positive"),
        (lambda: sensitivity_for(1.0, 0.0), "delta must be positive"),
        (lambda: sensitivity_for(1.0, 1.0), "delta is a probability"),
        (lambda: gaussian_delta(-1.0, 1.0), "epsilon must be zero or positive"),
        (lambda: gaussian_epsilon(0.1, math.nan), "mu must be finite"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()
