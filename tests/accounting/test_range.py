"""Every search ends, also where double precision does: with a bound that holds, or a refusal."""

import math

import mpmath as mp
import numpy as np
import pytest

from privasso.accounting import (
    ApproximateLoss,
    BesideGaussian,
    ChoiceLoss,
    GaussianLoss,
    ObjectiveLoss,
    gaussian_delta,
    gaussian_epsilon,
    log_gaussian_delta,
    objective_delta,
    objective_epsilon,
    objective_sensitivity,
    sensitivity_beside,
    sensitivity_for,
)
from privasso.accounting._beside import BesideChoices, raised
from privasso.accounting._composed import ComposedLoss
from privasso.accounting._gaussian import _end_of_ramp
from privasso.accounting._loss import lower_envelope
from privasso.accounting._objective_loss import largest_c, last_below


def exact_log_delta(epsilon, mu):
    with mp.workdps(60 + round(2 * max(math.log10(epsilon / mu + mu), 0.0))):
        e, m = mp.mpf(epsilon), mp.mpf(mu)
        return mp.log(mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m))


@pytest.mark.parametrize("epsilon", [1.0, 800.0, 1e6])
@pytest.mark.parametrize("near", [0.9, 0.999, 1.0, 1.001, 1.2])
def test_the_gaussian_mechanism_at_a_large_epsilon(epsilon, near):
    mu = near * math.sqrt(2.0 * epsilon)
    exact = exact_log_delta(epsilon, mu)
    assert math.isclose(log_gaussian_delta(epsilon, mu), exact, rel_tol=1e-8, abs_tol=1e-9)


@pytest.mark.parametrize("delta", [1e-300, 1e-6, 0.5, 0.999999])
@pytest.mark.parametrize("size", [1e-300, 1e-30, 1.0, 1e9, 1e30, 1e300])
def test_inverses_of_the_gaussian_mechanism_end(size, delta):
    mu = sensitivity_for(size, delta)
    assert 0.0 < mu < math.inf
    assert gaussian_epsilon(delta, size) >= 0.0
    if size < 1e12:  # beyond, the last digit of ε decides
        assert 0.99 * delta < gaussian_delta(size, mu) <= delta


def test_no_double_is_as_large_as_the_loss():
    assert gaussian_epsilon(1e-6, 1e200) == math.inf
    assert gaussian_delta(1e4, 1e-300) == 0.0


@pytest.mark.parametrize("neighbours", ["labels", "records"])
def test_a_sensitivity_that_protects_nothing(neighbours):
    """The bound is one at every ε, so that doubling ε never ends by itself."""
    assert objective_epsilon(1e-6, 1e8, 0.3, neighbours) == math.inf


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # c² overflows
@pytest.mark.parametrize("neighbours", ["labels", "records", "replace"])
@pytest.mark.parametrize("loss", ["huber", "logistic"])
@pytest.mark.parametrize("c", [1e100, 1e200])
def test_delta_is_at_most_one_where_nothing_else_is_known(c, neighbours, loss):
    assert objective_delta(1.0, c, 0.3, neighbours, loss=loss) == 1.0


def test_the_end_of_the_ramp_is_not_searched_for_ever():
    with np.errstate(all="ignore"):
        for c in (math.nan, math.inf, 1.3e154):
            found = _end_of_ramp(np.array([[1.0]]), np.array([[0.0]]), c)
            assert not np.isfinite(found) or 2.0 * found >= c * c


@pytest.mark.parametrize("value", [math.nan, math.inf, 1.0])
def test_a_calibration_never_settles_where_the_bound_is_not_met(value):
    assert largest_c(lambda _: value, 0.5, 0.1) is None
    # Only below 0.1 is the excess a number.
    found = largest_c(lambda x: x - math.log(0.1) if x < math.log(0.1) else value, 0.5, 0.1)
    assert found is not None
    assert 0.0999 < found <= 0.1


def test_a_search_along_a_jump_ends():
    assert 0.3 - 1e-15 <= last_below(lambda x: -math.inf if x < 0.3 else 1.0, 0.0, 1.0, 1e-9) < 0.3


def test_small_deltas_beside_gaussian_releases_are_refused():
    """What lies beyond eleven deviations counts as lost, so no c has a δ below 1e-28."""
    with pytest.raises(ValueError, match="choose a smaller share"):
        sensitivity_beside(1.0, 1e-30, 0.3, 0.01)
    with pytest.raises(ValueError, match="choose a smaller share"):
        sensitivity_beside(1.0, 1e-30, 0.3, 0.01, others=(ChoiceLoss(0.05, 3),))


class _Known(GaussianLoss):
    """A loss with any δ; ε of the base class."""

    def delta(self, epsilon):
        return {0.0: 0.5}.get(epsilon, self.mu)


def test_an_epsilon_of_zero_is_raised_too():
    assert 0.0 < raised(_Known(1e-7), 0.0, 1e-6) < 1e-6
    assert raised(_Known(1e-5), 0.0, 1e-6) == math.inf  # δ never falls far enough
    assert raised(_Known(1e-5), 1.0, 1e-6) == math.inf


@pytest.mark.parametrize("epsilon", [700.0, 1000.0, 5000.0])
@pytest.mark.parametrize("near", [0.6, 0.9, 0.99])
def test_losses_beside_each_other_at_a_large_epsilon(epsilon, near):
    """A mechanism that adds next to nothing leaves the δ of the Gaussian releases."""
    mu = near * math.sqrt(2.0 * epsilon)
    exact = math.exp(exact_log_delta(epsilon, mu))
    nothing = ObjectiveLoss(1e-9, 1e-9, "labels")
    assert exact <= BesideGaussian.of(nothing, mu).delta(epsilon) <= 1.1 * exact + 1e-25
    assert exact <= BesideChoices.of(nothing, (ChoiceLoss(1e-9, 1),), mu).delta(epsilon) <= 1.0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # μ² overflows
@pytest.mark.parametrize("mu", [1e-16, 1e-300, 100.0, 1e8, 1e200])
def test_losses_beside_releases_of_any_level(mu):
    one = ObjectiveLoss(0.2, 0.3, "labels")
    for loss in (BesideGaussian.of(one, mu), BesideChoices.of(one, (ChoiceLoss(0.1, 2),), mu)):
        assert max(one.delta(1.0), gaussian_delta(1.0, mu)) * (1.0 - 1e-9) <= loss.delta(1.0) <= 1.0


def test_a_composition_with_a_large_reach_is_no_smaller_than_its_parts():
    for size in (300.0, 650.0, 800.0, 5000.0):
        both = ComposedLoss((ApproximateLoss(size, 1e-8), GaussianLoss(0.3)))
        if both.reach < 700.0:
            assert size < both.epsilon(1e-6) < size + 2.0 + both.reach / 1000.0
        else:
            assert both.epsilon(1e-6) == math.inf


def test_an_envelope_of_bounds_that_are_not_all_numbers():
    """It is at most the bounds, and at least any convex function below them."""
    epsilons = np.linspace(-2000.0, 2000.0, 4001)
    bounds = np.where(epsilons < 0.0, 1.0, 0.3)
    holes = bounds.copy()
    holes[100::7] = math.nan
    for given in (bounds, holes):
        found = lower_envelope(epsilons, given)
        assert np.isfinite(found).all()
        assert (found <= 1.0).all()
        # δ(α) = (1 − α)₊ lies below these bounds.
        assert (found >= np.maximum(-np.expm1(np.minimum(epsilons, 0.0)), 0.0) * (1 - 1e-12)).all()


def test_budgets_of_any_size():
    for epsilon in (1e-12, 1e3, 1e12):
        for t in (1e-12, 0.3, 1e12):
            try:
                c = objective_sensitivity(epsilon, 1e-6, t, "labels")
            except ValueError as error:
                assert "too large for ε" in str(error)  # noqa: PT017
            else:
                assert 0.0 < c <= sensitivity_for(epsilon, 1e-6)
