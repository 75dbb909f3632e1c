"""The numbers of objective perturbation against high precision, and their inverses."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privasso as pv
from privasso.accounting import (
    gaussian_delta,
    objective_epsilon,
    objective_sensitivity,
)
from privasso.accounting._gaussian import log_far_side, log_ramp, log_shift, log_two_sided

KINDS = ("labels", "records", "replace")


def at(function, epsilon, c):
    return float(function(np.array([float(epsilon)]), c)[0])


def exact_shift(epsilon, c):
    """∫ (φ(z) − e^ε min(φ(z), φ(z + c)))₊ dz: the closed form, with 1,200 digits."""
    with mp.workdps(1200):
        e, c = mp.mpf(epsilon), mp.mpf(c)
        if e < 0:
            return 1 - mp.exp(e) * mp.erfc(c / 2 / mp.sqrt(2))
        upper = mp.erfc((e / c - c / 2) / mp.sqrt(2))
        return (upper - mp.exp(e) * mp.erfc((e / c + c / 2) / mp.sqrt(2))) / 2


def exact_peak(epsilon, u):
    """max_z φ(z) − e^ε φ(z + u), by bisection for the root of the derivative."""

    def rises(z):
        return mp.log(z / (z + u)) + z * u + u * u / 2 < epsilon

    low, high = mp.mpf(10) ** -40 * u, mp.mpf(1)
    while rises(high):
        high *= 2
    while not rises(low):
        low /= 2
    for _ in range(200):
        middle = mp.sqrt(low * high)
        low, high = (middle, high) if rises(middle) else (low, middle)
    return mp.npdf(low) - mp.exp(epsilon) * mp.npdf(low + u), low


def exact_ramp(epsilon, c):
    """∫₀^c of it, by Gauss's rule on parts that follow its decay."""
    with mp.workdps(60):
        e, c = mp.mpf(epsilon), mp.mpf(c)
        _, y = exact_peak(e, c)
        decay = 1 + y * (y + c)
        ends = [0, *(c * mp.exp(-mp.mpf(j) / decay) for j in (60, 30, 15, 8, 4, 2, 1)), c]
        nodes, weights = np.polynomial.legendre.leggauss(16)
        total = mp.mpf(0)
        for a, b in itertools.pairwise(ends):
            half = (b - a) / 2
            for x, w in zip(nodes, weights, strict=True):
                total += half * mp.mpf(w) * exact_peak(e, a + half * (1 + mp.mpf(x)))[0]
        return total


@pytest.mark.parametrize(
    ("epsilon", "c"),
    [
        *((1e-6, 1e-6), (1.0, 0.027), (0.02, 1e-3), (50.0, 1.4), (50.0, 9.0), (50.0, 20.0)),
        *((0.0, 1e-6), (0.0, 20.0), (1.0, 0.25), (3.0, 0.6), (4.0, 4.0), (0.2, 0.51)),
        *((-0.3, 1e-6), (-0.3, 2.0), (-8.0, 0.5), (3e-5, 1e-6)),
    ],
)
def test_the_divergence_of_a_shift(epsilon, c):
    error = at(log_shift, epsilon, c) - float(mp.log(exact_shift(epsilon, c)))
    assert 0.0 < error < 1e-9 or at(log_shift, epsilon, c) == 0.0
    if epsilon >= 0.0:
        with mp.workdps(1200):
            if epsilon >= c * c / 2:
                exact = 2 * exact_shift(epsilon, c)
            else:
                exact = 1 - mp.exp(epsilon) * mp.erfc(mp.mpf(c) / mp.sqrt(2))
            error = at(log_two_sided, epsilon, c) - float(mp.log(exact))
        assert 0.0 < error < 1e-9 or at(log_two_sided, epsilon, c) == 0.0


RAMPS = [
    *((1.0, 0.25), (1.0, 0.027), (50.0, 1.4), (50.0, 9.0), (3e-5, 1e-6), (0.0, 0.3)),
    *((0.1, 1.0), (5.0, 4.0), (20.0, 20.0), (-0.2, 0.1), (-0.5, 3.0), (-6.9, 1e-6), (-6.9, 20.0)),
]


@pytest.mark.parametrize(("epsilon", "c"), RAMPS[:1] + RAMPS[9:10])
def test_the_ramp(epsilon, c):
    error = at(log_ramp, epsilon, c) - float(mp.log(exact_ramp(epsilon, c)))
    assert 0.0 < error < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "c"), RAMPS)
def test_the_ramp_at_extreme_arguments(epsilon, c):
    error = at(log_ramp, epsilon, c) - float(mp.log(exact_ramp(epsilon, c)))
    assert 0.0 < error < 1e-3


@pytest.mark.parametrize("epsilon", [-7.0, -0.1, -1e-9, 0.0, 1e-9, 0.1, 2.0])
@pytest.mark.parametrize("c", [1e-6, 0.1, 0.45, 2.1, 20.0])
def test_the_far_side(epsilon, c):
    """∫₀^c (φ(0) − e^ε φ(u))₊ du."""
    with mp.workdps(50):
        e, c_ = mp.mpf(epsilon), mp.mpf(c)
        start = mp.sqrt(2 * e) if e > 0 else mp.mpf(0)
        if start >= c_:
            assert at(log_far_side, epsilon, c) == -math.inf
            return
        exact = (c_ - start) * mp.npdf(0) - mp.exp(e) * (mp.ncdf(c_) - mp.ncdf(start))
        assert 0.0 < at(log_far_side, epsilon, c) - float(mp.log(exact)) < 0.02


@pytest.mark.parametrize(
    ("epsilon", "c", "t"),
    [
        (1.0, 0.25, 0.3),
        (0.1, 0.5, 0.3),
        pytest.param(3.0, 0.6, 1.0, marks=pytest.mark.slow),
        pytest.param(50.0, 1.5, 1e3, marks=pytest.mark.slow),
        pytest.param(1.0, 0.03, 1e-6, marks=pytest.mark.slow),
    ],
)
def test_the_bound_for_labels_in_high_precision(epsilon, c, t):
    with mp.workdps(60):
        lower = mp.mpf(epsilon) - mp.log1p(mp.mpf(t))
        ramp = (1 + mp.mpf(t)) / mp.mpf(t) * exact_ramp(lower, c)
        exact = min(exact_shift(lower, c), exact_shift(epsilon, c) + ramp)
        found = mp.mpf(pv.objective_delta(epsilon, c, t, "labels"))
        assert 0 < found / exact - 1 < mp.mpf("1e-3")


def test_published_numbers():
    """Those of the derivation: the plain bound and the sharp one."""
    plain = gaussian_delta(1.0 - math.log1p(0.3), 0.25)
    assert plain == pytest.approx(1.63e-4, rel=5e-3)
    assert pv.objective_delta(1.0, 0.25, 0.3, "labels") == pytest.approx(2.11e-5, rel=5e-3)
    assert pv.objective_delta(3.0, 0.6, 1.0, "records") == pytest.approx(2.73e-6, rel=5e-3)
    # Half of ε for each of two steps would allow 0.0587.
    assert objective_sensitivity(1.0, 1e-6, 0.3, "replace") == pytest.approx(0.0958, rel=5e-3)


arguments = st.tuples(st.floats(0.0, 50.0), st.floats(-14.0, 3.0), st.floats(-14.0, 7.0))


@given(arguments, st.floats(1.001, 5.0), st.sampled_from(["labels", "records"]))
def test_the_bound_is_a_probability_and_monotone(point, factor, kind):
    epsilon, c, t = point[0], math.exp(point[1]), math.exp(point[2])
    delta = pv.objective_delta(epsilon, c, t, kind)
    assert 0.0 < delta <= 1.0
    slack = 1.0 + 1e-4
    assert pv.objective_delta(epsilon * factor, c, t, kind) <= delta * slack
    assert pv.objective_delta(epsilon, c * factor, t, kind) * slack >= delta
    assert pv.objective_delta(epsilon, c, t * factor, kind) * slack >= delta
    # Never below the Gaussian mechanism that one clipped record is.
    assert delta >= gaussian_delta(epsilon, c)


def test_a_record_that_is_replaced():
    """Never easier to hide than one that is emptied; and not worse than halving ε."""
    for epsilon, c, t in [(1.0, 0.1, 0.3), (3.0, 0.4, 1.0), (0.0, 0.2, 0.5)]:
        emptied = pv.objective_delta(epsilon, c, t, "records")
        replaced = pv.objective_delta(epsilon, c, t, "replace")
        half = pv.objective_delta(epsilon / 2, c, t, "records")
        assert emptied <= replaced <= half * (1.0 + math.exp(epsilon / 2)) * (1.0 + 1e-9)
    values = pv.objective_delta(np.linspace(0.0, 4.0, 30), 0.3, 0.5, "replace")
    assert np.all(np.diff(values) < 1e-6 * values[1:])


def test_arrays_agree_with_numbers():
    epsilons = np.array([[0.0, 0.1, 0.3], [1.0, 3.0, 9.0]])
    for kind in KINDS:
        found = pv.objective_delta(epsilons, 0.3, 0.5, kind)
        assert found.shape == (2, 3)
        for e, d in zip(epsilons.ravel(), found.ravel(), strict=True):
            assert pv.objective_delta(float(e), 0.3, 0.5, kind) == pytest.approx(d, rel=1e-12)


def test_logistic_regression():
    """Labels are released as through Fᵀy; records without against with have one sign."""
    for epsilon, c, t in [(1.0, 0.25, 0.1), (0.1, 1.0, 0.3), (3.0, 0.6, 1.0)]:
        labels = pv.objective_delta(epsilon, c, t, "labels", loss="logistic")
        assert labels == pytest.approx(gaussian_delta(epsilon, c), rel=1e-9)
        assert labels >= gaussian_delta(epsilon, c)
        records = pv.objective_delta(epsilon, c, t, "records", loss="logistic")
        assert labels <= records <= pv.objective_delta(epsilon, c, t, "records")
    tiny = pv.objective_delta(2.0, 0.3, 1e-9, "records", loss="logistic")
    assert tiny == pytest.approx(gaussian_delta(2.0, 0.3), rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("epsilon", "delta", "t"), [(1.0, 1e-6, 0.3), (0.1, 1e-9, 0.05), (8.0, 1e-3, 2.0)]
)
def test_calibration_spends_the_budget_and_no_more(kind, epsilon, delta, t):
    c = objective_sensitivity(epsilon, delta, t, kind)
    assert 0.999 * delta <= pv.objective_delta(epsilon, c, t, kind) <= delta
    if kind != "replace":
        found = objective_epsilon(delta, c, t, kind)
        assert pv.objective_delta(found, c, t, kind) <= delta
        assert found == pytest.approx(epsilon, rel=1e-3)


@pytest.mark.parametrize("kind", KINDS[:2])
@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 5.0, 50.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-30, 1e-2, 0.9])
def test_calibration_at_extreme_budgets(kind, epsilon, delta):
    for t in (1e-6, 0.3, 1e3):
        if delta < 1e-20 and epsilon < math.log1p(t):
            with pytest.raises(ValueError, match="choose a larger ridge"):
                objective_sensitivity(epsilon, delta, t, kind)
            continue
        c = objective_sensitivity(epsilon, delta, t, kind)
        assert 0.999 * delta <= pv.objective_delta(epsilon, c, t, kind) <= delta


def test_edges():
    assert pv.objective_delta(1.0, 0.0, 0.3) == 0.0
    assert pv.objective_delta(1.0, 0.3, 0.0, "labels") == pytest.approx(gaussian_delta(1.0, 0.3))
    assert pv.objective_delta(1.0, 1e-3, 0.3) > 0.0  # far below the smallest float
    assert pv.objective_delta(0.0, 100.0, 0.3) == 1.0
    assert objective_epsilon(1e-6, 0.0, 0.3) == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pv.objective_delta(-1.0, 0.1, 0.1), "epsilon must be zero or positive"),
        (lambda: pv.objective_delta(1.0, math.nan, 0.1), "c must be finite"),
        (lambda: pv.objective_delta(1.0, 0.1, -0.1), "t must be zero or positive"),
        (lambda: pv.objective_delta(1.0, 0.1, 0.1, "rows"), "neighbours must be one of"),  # pyright: ignore[reportArgumentType, reportCallIssue]
        (lambda: pv.objective_delta(1.0, 0.1, 0.1, loss="hinge"), "loss must be one of"),  # pyright: ignore[reportArgumentType, reportCallIssue]
        (lambda: objective_sensitivity(1.0, 1.0, 0.1), "delta is a probability"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("epsilon", [500.0, 1000.0, 1e4])
def test_enormous_budgets_do_not_overflow(epsilon):
    """Where exp(ε) is no number any more; warnings are errors here."""
    for kind in KINDS[:2]:
        c = objective_sensitivity(epsilon, 1e-6, 100.0, kind)
        assert gaussian_delta(epsilon, c) <= pv.objective_delta(epsilon, c, 100.0, kind) <= 1e-6
