"""Losses against numerical derivatives and high precision."""

import mpmath
import numpy as np
import pytest

from privasso.operators import Enclosed
from privasso.problem import Huber, Logistic, Quantile

LOSSES = {
    "huber": (Huber(0.7), np.array([-2.0, -0.1, 0.0, 0.4, 3.0])),
    "quadratic": (Huber(np.inf), np.array([-2.0, -0.1, 0.0, 0.4, 3.0])),
    "quantile": (Quantile(0.8, 0.7), np.array([-2.0, -0.1, 0.0, 0.4, 3.0])),
    "logistic": (Logistic(), np.array([0.0, 1.0, 1.0, 0.0, 1.0])),
}
GRID = np.linspace(-6, 6, 25) + 0.0137  # no point at a kink


@pytest.fixture(params=LOSSES)
def case(request):
    loss, y = LOSSES[request.param]
    y, u = (a.ravel() for a in np.meshgrid(y, GRID))
    return loss, y, u


def test_pull_is_minus_the_derivative(case):
    loss, y, u = case
    h = 1e-6
    slope = (loss.value(y, u + h) - loss.value(y, u - h)) / (2 * h)
    np.testing.assert_allclose(loss.pull(y, u), -slope, atol=1e-8)
    assert np.abs(loss.pull(y, u)).max() <= loss.largest_pull
    pulls = loss.pull(y, u).reshape(GRID.size, -1)
    assert np.ptp(pulls, axis=1).max() <= loss.label_change


def test_curvature_is_the_second_derivative(case):
    loss, y, u = case
    h = 1e-5
    second = -(loss.pull(y, u + h) - loss.pull(y, u - h)) / (2 * h)
    np.testing.assert_allclose(loss.curvature(y, u), second, atol=1e-6)
    assert loss.curvature(y, u).max() <= loss.curvature_bound


def test_least_curvature_holds_within_the_margin(case):
    loss, y, u = case
    for margin in (0.0, 0.05, 1.0):
        least = loss.least_curvature(y, u, np.full_like(u, margin))
        for t in np.linspace(-1, 1, 21):
            assert np.all(least <= loss.curvature(y, u + t * margin))
    assert np.all(least >= 0)
    np.testing.assert_allclose(loss.least_curvature(y, u, 0 * u), loss.curvature(y, u), rtol=1e-12)


def test_majorant_is_a_parabola_above_the_loss_and_no_flatter_one_is(case):
    loss, y, u = case
    c, slope, value = loss.majorant(y, u), -loss.pull(y, u), loss.value(y, u)
    flatter = np.zeros(u.size, dtype=bool)
    for v in np.linspace(-12, 12, 961):
        step = v - u
        above = value + slope * step + 0.5 * c * step**2
        actual = loss.value(y, np.full_like(u, v))
        assert np.all(above >= actual - 1e-12)
        flatter |= value + slope * step + 0.5 * 0.98 * c * step**2 < actual - 1e-15
    assert flatter.mean() > 0.9  # the contact points on the other side lie on the grid's range


@pytest.mark.parametrize("y", [0.0, 1.0])
def test_enclosed_logistic_pull_contains_the_exact_one(y):
    u = np.concatenate([np.linspace(-50, 50, 301), [0.0, 1e-9, 710.0, -710.0]])
    error = np.full_like(u, 1e-12)
    found = Logistic().pull_enclosed(np.full_like(u, y), Enclosed(u, np.zeros_like(u), error))
    with mpmath.workdps(60):
        for k, value in enumerate(u.tolist()):
            for shift in (-error[k], 0.0, error[k]):
                exact = mpmath.mpf(y) - 1 / (1 + mpmath.exp(-(mpmath.mpf(value) + shift)))
                assert abs(exact - found.value[k]) <= found.error[k]


def test_enclosed_huber_pull_keeps_what_lies_below_the_last_digit():
    low = 2.0**-60
    u = Enclosed(np.array([0.0, 0.0, 1.0, -1.0]), np.array([low, -low, low, low]), np.zeros(4))
    found = Huber(1.0).pull_enclosed(np.array([1.0, 1.0, 0.0, 0.0]), u)
    np.testing.assert_array_equal(found.value, [1.0, 1.0, -1.0, 1.0])
    # 1 − low is inside, 1 + low is clipped, −1 − low is clipped, 1 − low is inside
    np.testing.assert_array_equal(found.low, [-low, 0.0, 0.0, -low])


def test_labels():
    np.testing.assert_array_equal(Logistic().labels(np.array([-1.0, 1.0])), [0.0, 1.0])
    with pytest.raises(ValueError, match="0 and 1"):
        Logistic().labels(np.array([0.0, 2.0]))
    with pytest.raises(ValueError, match="kappa"):
        Huber(0.0)
    with pytest.raises(ValueError, match="kappa"):
        Huber(float("nan"))
