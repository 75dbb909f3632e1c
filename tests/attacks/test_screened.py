"""The exact law of a choice of columns and of the fits after it."""

import math
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.stats import beta

import privasso as pv
from privasso.accounting import GaussianLoss, compose_losses
from privasso.attacks._screened import screened_pairs
from privasso.fit import FitOptions, PerturbedPlan, plan_for
from privasso.privacy import ScreenedObjective, _screening, bit_source
from privasso.theory import log_set_probability


@pytest.mark.parametrize("count", [1, 2, 3])
def test_probabilities_of_sets_against_all_orders(count):
    """Choosing one after the other, with rational weights, summed over the orders of a set."""
    weights = [Fraction(1), Fraction(7), Fraction(1, 50), Fraction(3), Fraction(400)]
    scores = np.log([float(w) for w in weights])
    total = 0.0
    for chosen in combinations(range(5), count):
        exact = Fraction(0)
        for order in permutations(chosen):
            left, one = sum(weights), Fraction(1)
            for i in order:
                one, left = one * weights[i] / left, left - weights[i]
            exact += one
        found = math.exp(log_set_probability(2.5 * scores, 2.5, chosen))
        assert found == pytest.approx(float(exact), rel=1e-11)
        total += found
    assert total == pytest.approx(1.0, abs=1e-12)


def test_extreme_scores():
    """Sets that are nearly certain, and nearly impossible."""
    scores = np.array([0.0, 500.0, 0.0])
    assert log_set_probability(scores, 1.0, [1]) == pytest.approx(0.0, abs=1e-12)
    assert log_set_probability(scores, 1.0, [0]) == pytest.approx(-500.0, rel=1e-9)
    assert log_set_probability(scores, 1.0, [0, 1, 2]) == 0.0


def table(m=60, n=6):
    """Columns of which two are tied, and a record that decides between them."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (m, n))
    y = X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(m)
    X[0], y[0] = 1.0, 3.0
    X[0, 1::2] = -1.0
    return X, np.clip(y, -3.0, 3.0)


def planned(X, epsilon, delta, screen, **options):
    privacy = pv.RecordDP(epsilon, delta, bounds=[(-1, 1)] * X.shape[1], y_bounds=(-3, 3))
    plan = plan_for(X, FitOptions(privacy, screen=screen, **options), seeded=True)
    assert isinstance(plan, PerturbedPlan)
    assert isinstance(plan.objective, ScreenedObjective)
    return plan, plan.objective


@pytest.mark.parametrize(
    ("screen", "n", "intercept"),
    [
        (2, 6, True),
        pytest.param(2, 6, False, marks=pytest.mark.slow),
        pytest.param(6, 9, True, marks=pytest.mark.slow),
        pytest.param(12, 15, True, marks=pytest.mark.slow),
    ],
)
def test_the_score_is_a_log_likelihood_ratio(screen, n, intercept):
    """E e^score is one under the neighbour, with one round, two and four."""
    X, y = table(n=n)
    plan, objective = planned(X, 4.0, 0.01, screen, fit_intercept=intercept)
    assert len(objective.rounds) == {2: 0, 6: 1, 12: 3}[screen]
    (pair,) = screened_pairs(objective, plan.lam, X, y, {0: "row"})
    assert pair.score is not None
    for world, sign in ((pair.out, 1.0), (pair.into, -1.0)):
        scores = sign * pair.score(world.releases(150, np.random.default_rng(1)))
        weights = np.exp(scores)
        assert abs(weights.mean() - 1.0) < 4.0 * weights.std() / math.sqrt(weights.size)
        assert scores.std() > 0.2  # it tells something


def tied():
    """Two columns that are tied without the first record, which decides between them."""
    X = np.tile([[0.9, 0.9], [-0.9, -0.9]], (15, 1))
    X[0] = 1.0, -1.0
    return X, np.where(np.arange(30) % 2 == 0, 3.0, -3.0)


@pytest.mark.parametrize(("part", "caught"), [(1.0, False), (0.5, True)])
def test_noise_for_half_of_the_sensitivity_is_caught(part, caught, monkeypatch):
    """Lower limits of what the choice alone tells, at 99.9 %, against the claim for the choice."""
    X, y = tied()
    _, objective = planned(X, 8.0, 0.001, 1)
    screening, true = objective.screening, _screening.noise_scale
    monkeypatch.setattr(_screening, "noise_scale", lambda choices: part * true(choices))
    fewer, draws, bits = y.copy(), 1500, bit_source(np.random.default_rng(0))
    fewer[0] = np.nan
    into, out = (
        sum(int(screening.choose(X, labels, bits)[0] == 1) for _ in range(draws))
        for labels in (y, fewer)
    )
    most = beta.ppf(0.9995, into + 1, draws - into)
    least = beta.ppf(0.0005, out, draws - out + 1)
    loss = compose_losses([screening.choices, GaussianLoss(screening.mu)])
    epsilons = np.linspace(0.0, 6.0, 25)
    beyond = [least - math.exp(e) * most > loss.delta(e) for e in epsilons]
    assert any(beyond) is caught
