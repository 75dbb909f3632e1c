"""Budgets for releases that are chosen after looking at earlier ones, against exact adversaries."""

import math
from functools import cache

import mpmath
import numpy as np
import pytest

from privasso.accounting import (
    ApproximateLoss,
    ChoiceLoss,
    GaussianLoss,
    InexactLoss,
    Loss,
    ObjectiveLoss,
    gaussian_epsilon,
    objective_sensitivity,
    sensitivity_for,
    spent_epsilon,
    within_budget,
)
from privasso.accounting._beside import BesideChoices
from privasso.accounting._composed import compose_losses
from privasso.accounting._loss import ChainLoss

ORDERS = (1.5, 4.0, 23.0)


class Coin(Loss):
    """Two outcomes with the losses up·step and −down·step, exactly."""

    def __init__(self, down, up, step):
        self.down, self.up, self.step = down, up, step
        self.p = math.expm1(down * step) / (math.exp(down * step) - math.exp(-up * step))

    @property
    def reach(self):
        return max(self.down, self.up) * self.step

    def deltas(self, epsilons):
        first = self.p * np.maximum(-np.expm1(epsilons - self.up * self.step), 0.0)
        q = (1.0 - self.p) * math.exp(self.down * self.step)
        return first, q * np.maximum(-np.expm1(epsilons - self.down * self.step), 0.0)

    def group(self, k):
        raise NotImplementedError

    def scaled(self, factor):
        return Coin(self.down, self.up, factor * self.step)


def largest_delta(coins, epsilon, admitted, order):
    """δ of the best adversary, who chooses each coin after seeing the outcomes of those before.

    By dynamic programming: with the coins used so far, and what is left of ε on the lattice of
    losses, the best is to stop or to take one of the coins that are still admitted.
    """
    step = coins[0].step
    reach = 40 * max(max(coin.up, coin.down) for coin in coins)
    lattice = epsilon + step * np.arange(-reach, reach + 1)

    @cache
    def value(used):
        best = np.maximum(-np.expm1(np.minimum(lattice, 0.0)), 0.0)
        for j, coin in enumerate(coins):
            more = tuple(n + (i == j) for i, n in enumerate(used))
            if sum(more) > 30 or not admitted(more):
                continue
            after = value(more)
            p, up, down = coin.p, coin.up, coin.down
            if order == 1:  # the other law of the pair first: its losses have the other sign
                p, up, down = (1.0 - p) * math.exp(down * step), down, up
            left = np.concatenate([np.ones(up), after[:-up]])
            right = np.concatenate([after[down:], np.zeros(down)])
            best = np.maximum(best, p * left + (1.0 - p) * right)
        return best

    return float(value((0,) * len(coins))[reach])


FAMILIES = [
    [(1, 6), (3, 3)], [(6, 1), (2, 2)], [(1, 8), (8, 1)], [(1, 5), (2, 3), (5, 1)],
    [(1, 4), (4, 4)], [(2, 7), (7, 2)], [(1, 3), (3, 1), (2, 2)], [(1, 10), (4, 4)],
    [(1, 7), (2, 5)], [(5, 5), (1, 9)],
]  # fmt: skip


def adversaries(family, delta):
    """The largest δ over the budget: with the filter, and with what is tight for fixed settings."""
    epsilon, squares = 1.0, sum(up * down for down, up in family) / len(family)
    step = sensitivity_for(epsilon, delta) / math.sqrt(10 * squares)  # for about ten coins
    coins = [Coin(down, up, step) for down, up in family]

    def losses(used):
        return [coin for coin, n in zip(coins, used, strict=True) for _ in range(n)]

    @cache
    def filtered(used):
        given = losses(used)
        return within_budget(epsilon, delta, given[:1], given[1:])

    @cache
    def tight(used):
        """Composed as if the settings had been fixed beforehand, by a sum over all outcomes."""
        law = {0: 1.0}
        for coin in losses(used):
            new: dict[int, float] = {}
            for at, p in law.items():
                for move, q in ((coin.up, coin.p), (-coin.down, 1.0 - coin.p)):
                    new[at + move] = new.get(at + move, 0.0) + p * q
            law = new
        ahead = sum(p * max(-math.expm1(epsilon - step * x), 0.0) for x, p in law.items())
        back = [p * math.exp(-step * x) * max(-math.expm1(epsilon + step * x), 0.0)
                for x, p in law.items()]  # fmt: skip
        return max(ahead, sum(back)) <= delta

    found = [[largest_delta(coins, epsilon, rule, k) for k in (0, 1)] for rule in (filtered, tight)]
    return [max(orders) / delta for orders in found]


def test_no_adversary_exceeds_the_budget():
    """Twenty families of profiles that cross: the tight composition is exceeded, the filter not."""
    found = np.array([adversaries(family, d) for family in FAMILIES for d in (1e-3, 1e-5)])
    filtered, tight = found.T
    assert filtered.size == 20
    assert filtered.max() <= 1.0
    assert np.median(filtered) > 0.3  # it is not far from what is needed
    assert np.sum(tight > 1.0) >= 12
    assert tight.max() > 2.0


# Rényi divergences


NODES, WEIGHTS = np.polynomial.legendre.leggauss(20)


def divergence(log_p, log_q, points, order):
    """log ∫ p^a q^(1−a) / (a − 1), by quadrature between points at which densities jump."""
    edges = np.unique([*np.linspace(-40.0, 40.0, 401), *points])
    middle, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
    z = middle[:, None] + half[:, None] * NODES
    values = np.exp(order * log_p(z) + (1.0 - order) * log_q(z))
    return math.log(half @ values @ WEIGHTS) / (order - 1.0)


def log_phi(z):
    return -0.5 * z * z - 0.5 * math.log(2.0 * math.pi)


@pytest.mark.parametrize("order", ORDERS)
def test_a_gaussian_mechanism(order):
    mu = 0.25
    found = GaussianLoss(mu).renyi(order)
    exact = divergence(lambda z: log_phi(z - mu), log_phi, (), order)
    assert found.forward == found.backward == pytest.approx(exact, rel=1e-9)
    # The same from its profile, which is how other losses are done.
    general = Loss.renyi(GaussianLoss(mu), order)
    assert exact < general.forward < exact * 1.003
    assert general.beyond < 1e-24


def ramps(c, t, first):
    """Exact log densities of one record and no other; with it first, or without it first."""
    slope = t / (1.0 + t) if first == "with" else t
    sign, inside = (-1.0, 1.0 - slope) if first == "with" else (1.0, 1.0 + slope)
    for place in (0.0, 1.0, 2.0, 3.0, 5.0):
        ends = place - c / slope, place + c / slope

        def other(z, place=place, ends=ends):
            shift = np.clip(slope * (z - place), -c, c)
            steep = (ends[0] < z) & (z < ends[1])
            return log_phi(z + sign * shift) + np.where(steep, math.log(inside), 0.0)

        yield other, ends


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("c", "t"), [(0.2, 0.3), (0.05, 0.02), (0.6, 1.5)])
def test_a_perturbed_objective(c, t, order):
    """Above every record whose densities are known, and close to what its profile says."""
    loss = ObjectiveLoss(c, t, "records")
    order = min(order, 5.0 / c)  # beyond 10 deviations losses count as infinite, not as large
    bounds = loss.renyi(order)
    assert bounds.beyond < 1e-20
    # D = log(1 + a(a−1) ∫ e^((a−1)ε) δ_PQ + e^(−aε) δ_QP dε)/(a−1), from the profile.
    coarse = np.linspace(0.0, loss.reach + order * c * c, 1001)
    grid = np.linspace(0.0, coarse[-1], 40_001)
    profiles = [np.exp(np.interp(grid, coarse, np.log(d))) for d in loss.deltas(coarse)]
    for first, k in (("with", 0), ("without", 1)):
        inside = np.exp((order - 1.0) * grid) * profiles[k]
        inside += np.exp(-order * grid) * profiles[1 - k]
        above = math.log1p(order * (order - 1.0) * np.trapezoid(inside, grid)) / (order - 1.0)
        below = max(divergence(log_phi, *other, order) for other in ramps(c, t, first))
        assert below < bounds[k] < 1.01 * above
        assert below > 0.4 * bounds[k]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", ["labels", "records"])
@pytest.mark.parametrize("slope", ["huber", "logistic"])
def test_the_law_on_the_grid_dominates(kind, slope, order):
    """The divergences are those of a law whose δ is nowhere below that of the loss."""
    from privasso.accounting._loss import _laws

    loss = ObjectiveLoss(0.2, 0.3, kind, slope)
    at, laws = _laws(loss)
    epsilons = np.linspace(0.0, loss.reach, 37)
    for (weights, infinite), claimed in zip(laws, loss.deltas(epsilons), strict=True):
        gains = np.maximum(-np.expm1(epsilons[:, None] - at), 0.0)
        found = gains @ weights + infinite
        envelope = compose_losses([loss, GaussianLoss(1e-12)]).deltas(epsilons)
        assert np.all(found >= 0.999 * np.minimum(*envelope))
        assert np.all(found <= 1.3 * claimed + 1e-24)
    assert loss.renyi(order).forward > 0.0


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("each", "count"), [(0.5, 1), (0.08, 10), (1e-6, 3), (3.0, 2)])
def test_choices(each, count, order):
    """The worst place of an interval of losses, by trying them in high precision."""
    found = ChoiceLoss(each, count).renyi(order)
    assert found.forward == found.backward
    with mpmath.workdps(40):
        best, range_ = mpmath.mpf(0), mpmath.mpf(each)
        for k in range(1, 400):
            t = range_ * k / 400
            p = mpmath.expm1(t - range_) / mpmath.expm1(-range_)
            total = p * mpmath.exp((order - 1) * t)
            total += (1 - p) * mpmath.exp((order - 1) * (t - range_))
            best = max(best, mpmath.log(total) / (order - 1))
    assert count * best <= found.forward <= float(count * best) * 1.001 + 1e-12


@pytest.mark.parametrize("order", ORDERS)
def test_other_losses(order):
    e, d = 0.7, 1e-4
    p = math.exp(e) / (1.0 + math.exp(e))
    told = (1.0 - d) * (p * math.exp((order - 1) * e) + (1 - p) * math.exp((1 - order) * e))
    found = ApproximateLoss(e, d).renyi(order)
    assert found.forward == pytest.approx(max(math.log(told), 0.0) / (order - 1.0), abs=1e-9)
    assert found.beyond == pytest.approx(d)
    # Means that are off by μ₀ on both sides.
    for shift in (1e-6, 1e-3, 8e-3):
        one = InexactLoss(GaussianLoss(0.4), shift=shift).renyi(order)
        exact = 0.5 * order * (0.4 + 2 * shift) ** 2
        assert exact <= one.forward <= 1.02 * exact + 30.0 * order**2 / (order - 1) * shift
    # Coins are exact, and parts of a fit add up.
    for coin in (Coin(1, 4, 0.1), Coin(5, 2, 0.1)):
        laws = (coin.p, coin.up * 0.1, coin.down * 0.1), (
            (1 - coin.p) * math.exp(coin.down * 0.1), coin.down * 0.1, coin.up * 0.1
        )  # fmt: skip
        for (p, up, down), bound in zip(laws, coin.renyi(order)[:2], strict=True):
            total = p * math.exp((order - 1) * up) + (1 - p) * math.exp((1 - order) * down)
            exact = math.log(total) / (order - 1)
            assert exact <= bound <= exact * 1.01
    fit, choice = ObjectiveLoss(0.1, 0.2, "records"), ChoiceLoss(0.08, 10)
    both = BesideChoices.of(fit, (choice,), 0.1).renyi(order)
    assert both.backward == pytest.approx(
        fit.renyi(order).backward + choice.renyi(order).backward + 0.005 * order, rel=1e-12
    )
    pair = ChainLoss(ObjectiveLoss(0.1, 0.3, "labels"), 2).renyi(order)
    assert pair.forward > 0.5 * order * 0.2**2


def test_the_smallest_budget_is_one_and_nothing_less():
    loss = ObjectiveLoss(0.15, 0.5, "records")
    epsilon = spent_epsilon(1e-6, [loss], [loss])
    assert within_budget(epsilon, 1e-6, [loss], [loss])
    assert not within_budget(0.999 * epsilon, 1e-6, [loss], [loss])
    tight = compose_losses([loss, loss]).epsilon(1e-6)
    assert 1.03 * tight < epsilon < 1.1 * tight


# What it costs


@pytest.mark.parametrize("epsilon", [1.0, 3.0, 10.0])
@pytest.mark.parametrize("kind", ["labels", "records", "gaussian"])
def test_how_much_more_the_filter_takes_than_the_tight_total(kind, epsilon):
    """Between 2 and 9 percent in ε, for 2, 5 and 20 equal fits."""
    for count in (2, 5, 20):
        each = epsilon / count**0.6
        if kind == "gaussian":
            loss = GaussianLoss(sensitivity_for(each, 1e-6))
        else:
            loss = ObjectiveLoss(
                objective_sensitivity(each, 1e-6, 0.2 * each, kind), 0.2 * each, kind
            )
        tight = spent_epsilon(1e-6, [loss] * count)
        filtered = spent_epsilon(1e-6, [loss], [loss] * (count - 1))
        assert 1.02 < filtered / tight < 1.09


def test_gaussian_mechanisms_have_half_of_delta_for_themselves():
    loss = GaussianLoss(0.1)
    assert spent_epsilon(1e-6, [loss] * 4) == gaussian_epsilon(1e-6, 0.2)
    assert spent_epsilon(1e-6, [loss], [loss] * 3) == gaussian_epsilon(5e-7, 0.2)
    fit = ObjectiveLoss(0.1, 0.1, "records")
    # After Gaussian mechanisms the other filter has only the other half.
    first, last = spent_epsilon(1e-6, [fit], [loss]), spent_epsilon(1e-6, [loss], [fit])
    assert 1.01 < last / first < 1.06


def test_what_is_certain_to_be_lost_has_a_limit_of_its_own():
    leaky = ApproximateLoss(0.01, 6e-8)
    assert not within_budget(2.0, 1e-6, [GaussianLoss(0.1)], [leaky])  # of half of δ, a tenth
    assert within_budget(2.0, 1e-6, [leaky] * 5, [leaky])
    assert not within_budget(2.0, 1e-6, [leaky] * 20)
    assert not within_budget(2.0, 1e-6, [leaky] * 20, [leaky])
    assert spent_epsilon(1e-6, [leaky] * 20, [leaky]) == math.inf
    assert spent_epsilon(1e-6, []) == 0.0
    assert within_budget(1.0, 1e-6, [])


def test_a_hundred_different_fits_and_the_smallest_deltas():
    losses = [ObjectiveLoss(0.01 * (1 + k / 100), 0.02, "records") for k in range(100)]
    for delta in (1e-6, 1e-12, 1e-15):
        tight = spent_epsilon(delta, losses)
        assert tight < spent_epsilon(delta, losses[:1], losses[1:]) < 1.09 * tight
        assert math.isfinite(tight)
