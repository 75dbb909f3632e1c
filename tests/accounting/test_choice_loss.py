"""The loss of k choices against closed forms, searches over mechanisms and exact enumeration."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import comb

from objective_pairs import Data, line_divergence
from privasso.accounting import (
    ChoiceLoss,
    GaussianLoss,
    ObjectiveLoss,
    objective_sensitivity,
    sensitivity_beside,
)
from privasso.accounting._beside import BesideChoices
from privasso.accounting._composed import compose_losses


def two_points(epsilon, t):
    """Probability of the loss t where the other loss is t − ε."""
    return (1.0 - np.exp(t - epsilon)) / (1.0 - np.exp(-epsilon))


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 2.0, 8.0])
def test_one_choice_has_a_closed_form(epsilon):
    """The maximum over t of p_t (1 − e^(x−t)) is at t = (x + ε)/2."""
    x = np.linspace(0.0, 0.95 * epsilon, 30)
    exact = np.expm1((x - epsilon) / 2.0) ** 2 / -np.expm1(-epsilon)
    found = ChoiceLoss(epsilon, 1).deltas(x)[0]
    assert (found >= exact * (1.0 - 1e-12)).all()
    # Bounds are those of a range that is longer by 1/256.
    wider = epsilon * (1.0 + 1.0 / 256.0)
    assert (found <= np.expm1((x - wider) / 2.0) ** 2 / -np.expm1(-wider) * 1.0001).all()


def non_adaptive(at, epsilon, k):
    """Largest δ of k choices with the same t (Dong, Durfee & Rogers 2020), by a fine search."""
    t = np.linspace(0.0, epsilon, 2001)[1:-1, None]
    i = np.arange(k + 1)
    p = two_points(epsilon, t)
    gains = np.maximum(-np.expm1(at - (k * t - i * epsilon)), 0.0)
    return float(np.max((comb(k, i) * p ** (k - i) * (1.0 - p) ** i * gains).sum(axis=1)))


@pytest.mark.parametrize(("epsilon", "k"), [(0.1, 3), (0.1, 10), (1.0, 5), (0.03, 40)])
def test_choices_that_do_not_adapt_lose_a_little_less(epsilon, k):
    loss = ChoiceLoss(epsilon, k)
    for part in (0.0, 0.2, 0.5):
        at = part * loss.reach
        simple = non_adaptive(at, epsilon, k)
        assert simple <= loss.delta(at) <= 1.4 * simple


def adaptive(at, epsilon, k, points=81):
    """The largest δ of k choices by a recursive search over t, with no grid of ε."""
    t = np.linspace(0.0, epsilon, points)[1:-1]
    if k == 1:
        p = two_points(epsilon, t)
        up = p * np.maximum(-np.expm1(at - t), 0.0)
        down = (1.0 - p) * np.maximum(-np.expm1(at - t + epsilon), 0.0)
        return float(np.max(up + down))
    return max(
        two_points(epsilon, x) * adaptive(at - x, epsilon, k - 1, points)
        + (1.0 - two_points(epsilon, x)) * adaptive(at - x + epsilon, epsilon, k - 1, points)
        for x in t
    )


@pytest.mark.parametrize(("epsilon", "k"), [(0.2, 2), (1.5, 2), (0.5, 3)])
def test_against_a_recursive_search(epsilon, k):
    loss = ChoiceLoss(epsilon, k)
    for part in (0.0, 0.3, 0.6):
        found = adaptive(part * k * epsilon, epsilon, k, 81 if k == 2 else 31)
        assert found <= loss.delta(part * k * epsilon) <= 1.04 * found


@pytest.mark.parametrize(("epsilon", "k"), [(0.1, 10), (0.02, 100), (0.005, 1000), (1.0, 20)])
def test_never_worse_than_concentrated_privacy(epsilon, k):
    """k choices are kε²/8-concentrated: δ ≤ exp((a − 1)(aρ − x))·(1 − 1/a)^a/(a − 1)."""
    loss, rho = ChoiceLoss(epsilon, k), k * epsilon**2 / 8.0
    a = 1.0 + np.geomspace(1e-2, 1e5, 4000)
    for x in np.linspace(0.3, 0.9, 4) * loss.reach:
        logs = (a - 1.0) * (a * rho - x) + (a - 1.0) * np.log1p(-1.0 / a) - np.log(a)
        assert loss.delta(x) < 1.05 * math.exp(np.min(logs))


def ordered_law(scores):
    """Probabilities of all ordered choices of k, each ∝ e^score among those that are left."""
    weights = np.exp(scores - scores.max())

    def law(k):
        found = {}
        for order in itertools.permutations(range(scores.size), k):
            p, left = 1.0, float(weights.sum())
            for i in order:
                p *= weights[i] / left
                left -= weights[i]
            found[order] = p
        return np.array(list(found.values()))

    return law


def divergence(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def closest(size, k, epsilon, rng, *, factor=1.0):
    """The largest ratio of an exact divergence to the claim, over all signs and many scores.

    Scores are in units of the sensitivity; noise of the scale 2/ε₀ is divided by `factor`.
    """
    loss, worst = ChoiceLoss(epsilon, k), 0.0
    at = np.array([0.0, 0.3, 0.6, 0.85]) * k * epsilon
    claims = loss.deltas(at)[0]
    for trial in range(12):
        spread = rng.choice([0.0, 1.0, 6.0, 30.0])
        scores = spread * rng.standard_normal(size)
        signs = itertools.product((-1.0, 1.0), repeat=size)
        for sign in signs if trial < 4 else [rng.uniform(-1.0, 1.0, size)]:
            unit = factor * epsilon / 2.0
            p, q = (ordered_law(unit * s)(k) for s in (scores, scores + np.array(sign)))
            for x, claim in zip(at, claims, strict=True):
                for one, two in ((p, q), (q, p)):
                    worst = max(worst, divergence(one, two, x) / claim)
    return worst


@pytest.mark.parametrize(("size", "k"), [(2, 1), (5, 1), (4, 2), (5, 3), (6, 2)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_no_enumerated_choice_exceeds_the_claim(size, k, epsilon):
    found = closest(size, k, epsilon, np.random.default_rng(size))
    assert 0.6 < found <= 1.0


def test_halved_sensitivity_is_caught():
    assert closest(4, 2, 0.5, np.random.default_rng(0), factor=2.0) > 1.5


def test_choices_and_gaussian_releases_compose():
    """As many choices as make a Gaussian mechanism of nearly the same loss."""
    loss = compose_losses([ChoiceLoss(0.02, 100), GaussianLoss(0.1)])
    exact = GaussianLoss(math.hypot(0.1, ChoiceLoss(0.02, 100).mu))
    assert exact.epsilon(1e-6) < loss.epsilon(1e-6) < 1.02 * exact.epsilon(1e-6)
    assert BesideChoices.of(GaussianLoss(0.1), (ChoiceLoss(0.02, 100),), 0.0).delta(
        0.6
    ) == pytest.approx(loss.delta(0.6), rel=0.01)


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_a_choice_and_the_fit_of_the_chosen_column_stay_below_the_claim(epsilon):
    """The likelihood ratio of both together, exactly, for one of three columns.

    δ = Σ_i P(i)·δ_i(ε − log P(i)/Q(i)), with δ_i that of the fit of column i.
    """
    rng, c, t, each = np.random.default_rng(0), 0.15, 0.3, 0.3
    claim = BesideChoices.of(ObjectiveLoss(c, t, "records"), (ChoiceLoss(each, 1),), 0.0).delta(
        epsilon
    )
    worst = 0.0
    cs, ts = np.full(1, c), np.full(1, t)
    for trial in range(300):
        # The records besides the first are clipped in the fit. They pull it by a constant, such
        # that the residual of the first is near zero where the ratio of the densities matters.
        f = rng.choice([-1.0, 1.0], 3) if trial % 2 else rng.uniform(-1.0, 1.0, 3)
        y = rng.choice([-1.0, 0.5, 1.0])
        others = rng.choice([0.0, -1.0, 1.0], 3) * rng.choice([1.0, 3.0, 10.0])
        tilt = -y / f / t + rng.choice([0.0, 8.0]) * rng.uniform(-1.0, 1.0) / c * np.sign(f)
        p, q = (np.exp(0.5 * each * np.abs(s)) for s in (others + f * y, others))
        p, q = p / p.sum(), q / q.sum()
        for first, (one, two) in enumerate(((p, q), (q, p))):
            total = 0.0
            for i in range(3):
                data = Data(f[None, i : i + 1], np.full((1, 1), y), np.zeros(1), tilt[i : i + 1])
                pair = (data, data.emptied()) if first == 0 else (data.emptied(), data)
                at = np.array([epsilon - math.log(one[i] / two[i])])
                total += one[i] * float(line_divergence(*pair, at, cs, ts)[0])
            worst = max(worst, total / claim)
    # Both together exceed by far what is claimed for the fit alone: the choice is not free.
    alone = ObjectiveLoss(c, t, "records").delta(epsilon)
    assert 3.0 * alone < worst * claim <= claim
    assert worst > 0.005


def test_the_calibration_uses_the_budget_and_no_more():
    choices = (ChoiceLoss(0.1, 10),)
    c = sensitivity_beside(1.0, 1e-6, 0.3, 0.04, others=choices)
    one = ObjectiveLoss(c, 0.3, "records")
    convolved = compose_losses([one, *choices, GaussianLoss(0.04)])
    assert c < objective_sensitivity(1.0, 1e-6, 0.3)
    assert 0.99 < convolved.epsilon(1e-6) <= 1.001


def test_a_choice_that_needs_the_whole_budget():
    with pytest.raises(ValueError, match="need the whole budget"):
        sensitivity_beside(1.0, 1e-6, 0.3, 0.0, others=(ChoiceLoss(0.4, 10),))


def test_groups():
    assert ChoiceLoss(0.1, 5).group(3) == ChoiceLoss(0.1 * 3, 5)
    assert ChoiceLoss(0.0, 5).delta(0.0) == 0.0
