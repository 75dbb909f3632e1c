"""Losses of several releases against the closed form and against an accountant by others."""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting import DpEvent, GaussianDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld.privacy_loss_distribution import (
    from_gaussian_mechanism,
    from_laplace_mechanism,
)
from hypothesis import given
from hypothesis import strategies as st
from ledgers import mu_of
from scipy import stats

import privasso as pv
from privasso.accounting import (
    ApproximateLoss,
    GaussianLoss,
    Loss,
    gaussian_delta,
    gaussian_epsilon,
    sensitivity_for,
)
from privasso.accounting._composed import compose_losses
from privasso.privacy import Terms, compose
from privasso.queries import LABEL_REPLACED

DELTA = 1e-6


def statement(epsilon=1.0, delta=DELTA, bounds=(0.0, 1.0), n_rows=1000, seeded=False):
    terms = Terms(fit_intercept=True, seeded=seeded, n_rows=n_rows)
    return pv.LabelDP(epsilon, delta, bounds).guarantee(terms)


class LaplaceLoss(Loss):
    """A loss that the library does not have, with a closed form: noise of scale 1/ε."""

    def __init__(self, epsilon):
        self.eps = epsilon

    @property
    def reach(self):
        return self.eps

    def deltas(self, epsilons):
        found = np.maximum(-np.expm1(0.5 * (epsilons - self.eps)), 0.0)
        return found, found

    def group(self, k):
        return LaplaceLoss(k * self.eps)

    def scaled(self, factor):
        return LaplaceLoss(factor * self.eps)


class OneSided(Loss):
    """P has probability p on a point that Q never reaches: δ = p in one order for every ε."""

    def __init__(self, p, swapped=False):
        self.p, self.swapped = p, swapped

    @property
    def reach(self):
        return -math.log1p(-self.p)

    def deltas(self, epsilons):
        seen = np.full_like(epsilons, self.p)
        other = np.maximum(1 - np.exp(epsilons) * (1 - self.p), 0.0)
        return (other, seen) if self.swapped else (seen, other)

    def group(self, k):
        raise NotImplementedError

    def scaled(self, factor):
        return self


def accountant_epsilon(event: DpEvent, count: int, delta: float) -> float:
    accountant = PLDAccountant()
    return accountant.compose(SelfComposedDpEvent(event, count)).get_epsilon(delta)


@pytest.mark.parametrize("count", [1, 2, 21, pytest.param(300, marks=pytest.mark.slow)])
def test_gaussians_compose_by_the_formula_and_as_the_accountant_says(count):
    one = statement()
    total = compose([one] * count)
    assert mu_of(total) == pytest.approx(math.sqrt(count) * mu_of(one), rel=1e-12)
    assert total["epsilon"] == pytest.approx(gaussian_epsilon(DELTA, mu_of(total)), rel=1e-9)
    assert total.kind == "label-dp"
    theirs = accountant_epsilon(GaussianDpEvent(1.0 / mu_of(one)), count, DELTA)
    assert total["epsilon"] == pytest.approx(theirs, rel=1e-2)
    assert total["epsilon"] <= theirs * (1 + 1e-6)  # theirs is an upper bound, ours is exact


def test_the_cost_of_a_grid_search():
    """Five folds, four values, one refit: 21 fits, of which each label enters 4·4 + 1."""
    one = statement()
    assert compose([one] * 21)["epsilon"] == pytest.approx(5.36, abs=0.005)
    assert compose([one] * 17)["epsilon"] == pytest.approx(4.75, abs=0.005)


@given(st.lists(st.floats(0.01, 3.0), min_size=1, max_size=6), st.floats(-30.0, -1.0))
def test_different_gaussians(mus, log_delta):
    total = compose_losses([GaussianLoss(mu) for mu in mus])
    assert isinstance(total, GaussianLoss)
    assert total.mu == pytest.approx(math.sqrt(sum(mu**2 for mu in mus)), rel=1e-12)
    delta = math.exp(log_delta)
    assert total.delta(total.epsilon(delta)) <= delta


def test_the_numerical_road_agrees_with_the_closed_form():
    """Gaussians that are not recognised as such are composed by convolution."""

    class Disguised(Loss):
        def __init__(self, mu):
            self.inner = GaussianLoss(mu)

        @property
        def reach(self):
            return self.inner.reach

        def deltas(self, epsilons):
            return self.inner.deltas(epsilons)

        def group(self, k):
            return Disguised(k * self.inner.mu)

        def scaled(self, factor):
            return Disguised(factor * self.inner.mu)

    for mus in ([0.3, 0.4], [0.1] * 9 + [1.0], [3.0, 0.2]):
        exact = compose_losses([GaussianLoss(mu) for mu in mus])
        found = compose_losses([Disguised(mu) for mu in mus])
        for delta in (1e-15, 1e-9, 1e-6, 1e-3):
            assert exact.epsilon(delta) <= found.epsilon(delta)
            assert found.epsilon(delta) == pytest.approx(exact.epsilon(delta), rel=1e-3)
        for epsilon in (0.0, 0.5, 2.0):
            assert exact.delta(epsilon) <= found.delta(epsilon)
            assert found.delta(epsilon) == pytest.approx(exact.delta(epsilon), rel=1e-2)
        assert found.group(2).epsilon(1e-6) == pytest.approx(exact.group(2).epsilon(1e-6), rel=1e-3)


def test_mixtures_agree_with_the_accountant():
    mixed = compose_losses([GaussianLoss(0.5), LaplaceLoss(0.7), LaplaceLoss(0.7)])
    laplace = from_laplace_mechanism(1 / 0.7)
    theirs = from_gaussian_mechanism(2.0).compose(laplace).compose(laplace)
    for delta in (1e-8, 1e-5, 1e-2):
        assert mixed.epsilon(delta) == pytest.approx(theirs.get_epsilon_for_delta(delta), rel=1e-2)
    assert mixed.epsilon(DELTA) < gaussian_epsilon(DELTA, 0.5) + 1.4
    assert mixed.epsilon(1e-11) < mixed.epsilon(1e-15) < gaussian_epsilon(1e-15, 0.5) + 1.4


def test_what_is_only_known_as_epsilon_and_delta():
    """The optimal composition of k such mechanisms, term by term (Kairouz, Oh, Viswanath 2015)."""
    k, e, d = 8, 0.3, 1e-7
    total = compose_losses([ApproximateLoss(e, d)] * k)
    p = math.exp(e) / (1 + math.exp(e))
    ahead, behind = (stats.binom.pmf(range(k + 1), k, q) for q in (p, 1 - p))
    for epsilon in (0.0, 0.6, 1.2, 1.8):
        sharp = np.maximum(ahead - math.exp(epsilon) * behind, 0.0).sum()
        exact = 1 - (1 - d) ** k * (1 - sharp)
        assert exact - 1e-15 <= total.delta(epsilon) <= exact * 1.01


@pytest.mark.parametrize("k", [8, 100])
def test_the_smallest_deltas_of_pure_mechanisms(k):
    """The same without any δ of their own, in 40 digits, where δ is far below rounding errors."""
    mp = mpmath.mp.clone()
    mp.dps = 40
    e = 3.0 / k
    total = compose_losses([ApproximateLoss(e, 0.0)] * k)
    p = mp.exp(mp.mpf(e)) / (1 + mp.exp(mp.mpf(e)))
    for x in (k, 0.7 * k, 0.95 * k):
        epsilon = mp.mpf(e * x) - mp.mpf("0.001")
        exact = mp.mpf(0)
        for j in range(k + 1):
            ahead, behind = p**j * (1 - p) ** (k - j), (1 - p) ** j * p ** (k - j)
            exact += math.comb(k, j) * max(ahead - mp.exp(epsilon) * behind, 0)
        found = total.delta(float(epsilon))
        assert exact <= found
        # What the grid rounds up is a part of a step of the losses, all of which are equal.
        if x == 0.7 * k:
            assert found <= 1.05 * exact
    assert total.epsilon(1e-15) < 3.0 or k == 8  # where all answers agree more often than that


def test_groups_of_what_is_only_known_as_epsilon_and_delta():
    for e, d, k in [(0.3, 1e-7, 3), (0.0, 1e-3, 5), (2.0, 0.0, 2), (50.0, 0.1, 40)]:
        group = ApproximateLoss(e, d).group(k)
        assert group.at_epsilon == k * e
        expected = min(1.0, sum(d * math.exp(min(j * e, 700.0)) for j in range(k)))
        assert group.at_delta == pytest.approx(expected, rel=1e-12)


def test_the_orders_of_a_pair_are_composed_separately():
    p = 0.3
    same = compose_losses([OneSided(p), OneSided(p)])
    mixed = compose_losses([OneSided(p), OneSided(p, swapped=True)])
    # Twice the same order: a point that Q never reaches has the probability 1 − (1 − p)².
    assert same.delta(2.0) == pytest.approx(1 - (1 - p) ** 2, rel=1e-3)
    # One of each: seen with probability p, whichever order is taken.
    assert mixed.delta(2.0) == pytest.approx(p, rel=1e-3)
    assert OneSided(p).delta(0.1) == p
    assert OneSided(p).epsilon(0.2) == math.inf


def test_the_generic_inverse():
    loss = LaplaceLoss(0.8)
    for delta in (1e-9, 1e-3, 0.1):
        assert loss.epsilon(delta) == pytest.approx(0.8 + 2 * math.log1p(-delta), rel=1e-9)
        assert loss.delta(loss.epsilon(delta)) <= delta
    assert loss.epsilon(0.9) == 0.0


def test_guarantees_compose_into_one_statement():
    parts = [statement(1.0, n_rows=80), statement(0.5, 1e-7, n_rows=100)]
    total = compose(parts)
    assert total["n_rows"] == 100
    assert total["delta"] == 1e-6
    assert mu_of(total) == math.hypot(sensitivity_for(1.0, 1e-6), sensitivity_for(0.5, 1e-7))
    assert gaussian_delta(total["epsilon"], mu_of(total)) <= 1e-6
    assert compose(parts, delta=1e-3)["epsilon"] < total["epsilon"]
    assert "no other release than these 2" in str(total)
    assert "another release" not in str(total)
    assert total.for_release
    assert not compose([*parts, statement(seeded=True)]).for_release
    assert pv.Guarantee.from_dict(total.to_dict()) == total
    assert mu_of(compose([compose(parts), parts[0]])) == pytest.approx(
        mu_of(compose([*parts, parts[0]])), rel=1e-12
    )


def test_statements_of_different_losses_compose():
    numbers = {"delta": 1e-6, "epsilon": 0.5, "n_rows": 1000, "y_low": 0.0, "y_high": 1.0}
    loss = ApproximateLoss(0.5, 1e-6)
    other = pv.Guarantee(LABEL_REPLACED, tuple(numbers.items()), (loss,), released=("a count",))
    total = compose([statement(), other], delta=1e-5)
    assert total.losses == (*statement().losses, loss)
    assert 1.0 < total["epsilon"] < 1.5
    assert pv.Guarantee.from_dict(total.to_dict()) == total
    assert "a count" in total.released
    with pytest.raises(ValueError, match="no finite ε"):
        compose([statement(), other], delta=1e-7)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "no guarantee to compose"),
        ([statement(), statement(bounds=(0.0, 2.0))], "labels within different bounds"),
        (
            [statement(), statement().group(2)],
            "one entry, replaced, and in up to 2 entries",
        ),
        ([pv.OnAverage(1.0).guarantee(Terms(True, False, 10))], "bounds no loss"),
    ],
)
def test_what_does_not_compose(parts, message):
    with pytest.raises(ValueError, match=message):
        compose(parts)


def test_groups():
    one = statement()
    three = one.group(3)
    assert mu_of(three) == pytest.approx(3 * mu_of(one), rel=1e-15)
    assert three["epsilon"] == gaussian_epsilon(1e-6, mu_of(three))
    assert "differ in up to 3 entries" in str(three)
    assert "at most 3 labels" in str(three)
    assert one.group(1) == one
    assert pv.Guarantee.from_dict(three.to_dict()) == three
    with pytest.raises(ValueError, match="for groups already"):
        three.group(2)
    with pytest.raises(ValueError, match="k must be"):
        one.group(0)


def test_bad_losses():
    with pytest.raises(ValueError, match="mu must be zero or positive"):
        GaussianLoss(-1.0)
    with pytest.raises(ValueError, match="delta is a probability"):
        ApproximateLoss(1.0, 1.5)
    assert GaussianLoss(0.0).epsilon(1e-9) == 0.0
    assert np.all(GaussianLoss(0.0).deltas(np.ones(2))[0] == 0.0)
