"""A perturbed fit beside Gaussian releases: exact mixtures, simulated losses and one dimension."""

import math

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr
from test_objective_loss import ramp_losses

from objective_pairs import Data, line_divergence, random_data
from privasso.accounting import (
    ApproximateLoss,
    BesideGaussian,
    GaussianLoss,
    ObjectiveLoss,
    gaussian_delta,
    objective_sensitivity,
    sensitivity_beside,
    sensitivity_for,
)
from privasso.accounting._composed import compose_losses

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(80)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def shifted(epsilon, mu):
    """The divergence of a Gaussian shift for ε of any sign."""
    return ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))


@pytest.mark.parametrize(
    ("epsilon", "mu", "other"), [(1.0, 0.1, 0.2), (0.1, 0.3, 0.4), (5.0, 1.5, 0.8), (0.0, 0.1, 0.1)]
)
def test_two_gaussian_mechanisms_are_one(epsilon, mu, other):
    exact = gaussian_delta(epsilon, math.hypot(mu, other))
    found = BesideGaussian.of(GaussianLoss(other), mu).delta(epsilon)
    assert exact <= found <= 1.005 * exact


@pytest.mark.parametrize(("epsilon", "at", "delta"), [(1.0, 0.5, 1e-7), (0.3, 1.0, 0.0)])
def test_with_the_largest_loss_of_a_budget(epsilon, at, delta):
    """That mechanism tells the data set with probability δ, and otherwise one noisy bit."""
    mu, right = 0.3, 1.0 / (1.0 + math.exp(-at))
    mixture = right * shifted(epsilon - at, mu) + (1.0 - right) * shifted(epsilon + at, mu)
    exact = delta + (1.0 - delta) * mixture
    found = BesideGaussian.of(ApproximateLoss(at, delta), mu).delta(epsilon)
    assert exact <= found <= 1.02 * exact


@pytest.mark.parametrize(("epsilon", "share"), [(0.1, 0.1), (1.0, 0.02), (1.0, 0.2), (10.0, 0.5)])
def test_against_the_convolution_of_losses(epsilon, share):
    t = 0.25 * math.expm1(min(epsilon, 1.0)) * max(epsilon, 1.0)
    mu = math.sqrt(share) * sensitivity_for(epsilon, 1e-6)
    c = sensitivity_beside(epsilon, 1e-6, t, mu)
    one = ObjectiveLoss(c, t, "records")
    beside, convolved = BesideGaussian.of(one, mu), compose_losses([one, GaussianLoss(mu)])
    assert beside.delta(epsilon) == pytest.approx(convolved.delta(epsilon), rel=0.01)
    # The calibration uses what it may, and no more.
    assert 0.999e-6 <= beside.delta(epsilon) <= 1e-6
    assert 0.99 * epsilon <= convolved.epsilon(1e-6) <= 1.0001 * epsilon
    assert c < objective_sensitivity(epsilon, 1e-6, t)


def exact_in_one_dimension(p, q, epsilon, c, t, mu):
    """δ of one released coefficient and a Gaussian number that moves by μ, by quadrature."""
    size = p.f.shape[0]
    cs, ts = np.full(size, c), np.full(size, t)
    total = np.zeros(size)
    for z, weight in zip(NODES, WEIGHTS, strict=True):
        loss = mu * z + 0.5 * mu * mu
        total += weight * line_divergence(p, q, np.full(size, epsilon - loss), cs, ts)
    return total


@pytest.mark.parametrize(
    ("epsilon", "c", "t", "mu"), [(1.0, 0.25, 0.3, 0.1), (0.3, 0.3, 1.0, 0.3), (0.0, 0.2, 0.5, 0.2)]
)
def test_no_pair_in_one_dimension_exceeds_the_bound(epsilon, c, t, mu):
    rng = np.random.default_rng(0)
    bounds = BesideGaussian.of(ObjectiveLoss(c, t, "records"), mu).orders(epsilon)
    data = random_data(rng, np.full(60, c), np.full(60, t))
    middle = Data(np.ones((1, 1)), np.zeros((1, 1)), np.zeros(1), np.zeros(1))
    closest = 0.0
    for pair in (data, middle):
        for (p, q), bound in zip(
            ((pair, pair.emptied()), (pair.emptied(), pair)), bounds, strict=True
        ):
            exact = exact_in_one_dimension(p, q, epsilon, c, t, mu)
            closest = max(closest, float(np.max(exact)) / bound)
    assert 0.5 < closest <= 1.0 + 1e-6


def test_a_forgotten_share_exceeds_the_claim():
    """A fit calibrated to the whole budget beside counts that took a share of it."""
    epsilon, delta, t = 1.0, 1e-6, 0.3
    mu = math.sqrt(0.2) * sensitivity_for(epsilon, delta)
    middle = Data(np.ones((1, 1)), np.zeros((1, 1)), np.zeros(1), np.zeros(1))

    def exact(c):
        return float(exact_in_one_dimension(middle.emptied(), middle, epsilon, c, t, mu)[0])

    assert exact(objective_sensitivity(epsilon, delta, t)) > 1.2 * delta
    assert exact(sensitivity_beside(epsilon, delta, t, mu)) < delta


@pytest.mark.parametrize("order", [0, 1])
def test_simulated_losses(order):
    """One record whose residual is clipped but for a ramp; see the tests of composed fits."""
    c, t, mu, epsilon, size = 0.25, 1.0, 0.2, 0.5, 400_000
    rng = np.random.default_rng(order)
    bound = BesideGaussian.of(ObjectiveLoss(c, t, "records"), mu).orders(epsilon)[order]
    closest = 0.0
    for place in (0.0, 1.0, 2.0):
        loss = ramp_losses(rng, order, size, c, t, place)
        loss += mu * rng.standard_normal(size) + 0.5 * mu * mu
        values = np.maximum(-np.expm1(epsilon - loss), 0.0)
        mean, error = float(values.mean()), float(values.std() / math.sqrt(size))
        assert mean - 4 * error < bound
        closest = max(closest, mean / bound)
    assert closest > 0.7


def test_groups():
    loss = BesideGaussian.of(ObjectiveLoss(0.1, 0.3, "records"), 0.05)
    pair = loss.group(2)
    assert loss.group(1) is loss
    assert loss.delta(1.0) < pair.delta(1.0)
    # A chain of two neighbours, for any split of ε.
    assert pair.delta(1.0) <= loss.delta(0.5) * (1.0 + math.exp(0.5))


def test_a_share_that_leaves_nothing():
    with pytest.raises(ValueError, match="need the whole budget"):
        sensitivity_beside(1.0, 1e-6, 0.3, sensitivity_for(1.0, 1e-6))
