"""Losses of several fits by objective perturbation, of groups, and of inexact solves."""

import dataclasses
import json
import math

import numpy as np
import pytest

import privasso as pv
from privasso.accounting import (
    GaussianLoss,
    InexactLoss,
    ObjectiveLoss,
    check_coverable,
    delta_together,
    objective_delta,
    objective_sensitivity,
    shift_epsilon,
)
from privasso.accounting._composed import compose_losses
from privasso.accounting._loss import ChainLoss, lower_envelope
from privasso.ledger import Book, Entry
from privasso.privacy import Guarantee, compose
from privasso.queries import EMPTIED

SETTING = (0.25, 0.3)


def log_phi(x):
    return -0.5 * x * x


def ramp_losses(rng, order, size, c, t, place):
    """Exact losses of one record and no other: its residual is clipped but for a ramp.

    With against without, z is normal and s(z) rises from −c to c at the slope t/(1+t); without
    against with, at the slope t.
    """
    slope = t / (1.0 + t) if order == 0 else t
    z = rng.standard_normal(size)
    s = np.clip(slope * (z - place), -c, c)
    inside = np.abs(s) < c
    if order == 0:
        return log_phi(z) - log_phi(z - s) - np.where(inside, np.log1p(-slope), 0.0)
    return log_phi(z) - log_phi(z + s) - np.where(inside, np.log1p(slope), 0.0)


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("count", [2, 4, 8])
def test_composed_fits_against_simulated_losses(order, count):
    """The worst place of the ramp is unknown for a composition, so several are tried."""
    c, t = 0.25, 1.0  # so that the two orders differ much
    rng = np.random.default_rng(count)
    total = compose_losses([ObjectiveLoss(c, t, "records")] * count)
    epsilons = np.array([0.3, 0.8, 1.2]) * math.sqrt(count / 2)
    claims = total.deltas(epsilons)[order]
    closest = 0.0
    for place in (0.0, 1.0, 2.0):
        losses = ramp_losses(rng, order, (100_000, count), c, t, place).sum(axis=1)
        for epsilon, claim in zip(epsilons, claims, strict=True):
            gains = np.maximum(-np.expm1(epsilon - losses), 0.0)
            error = gains.std() / math.sqrt(gains.size)
            assert gains.mean() <= claim + 4.0 * error
            closest = max(closest, float(gains.mean()) / claim)
    assert closest > 0.1


def label_losses(rng, order, size, c, t, place):
    """Exact losses of one label: one residual is clipped but for a ramp, the other always."""
    z = rng.standard_normal(size)
    clipped = 0.5 * c
    if order == 0:  # the ramp first; w is the number that both releases are a function of
        s = np.clip(t / (1.0 + t) * (z - place), -clipped, clipped)
        inside = np.abs(s) < clipped
        return log_phi(z) + np.where(inside, np.log1p(t), 0.0) - log_phi(z - s + clipped)
    w = z - clipped
    s = np.clip(t * (w - place), -clipped, clipped)
    inside = np.abs(s) < clipped
    return log_phi(z) - log_phi(w + s) - np.where(inside, np.log1p(t), 0.0)


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("count", [2, 4, 8])
def test_composed_fits_of_labels_against_simulated_losses(order, count):
    c, t = 0.25, 1.0
    rng = np.random.default_rng(10 + count)
    total = compose_losses([ObjectiveLoss(c, t, "labels")] * count)
    epsilons = np.array([0.3, 0.8, 1.2]) * math.sqrt(count / 2)
    closest = 0.0
    for place in (-1.5, 0.0, 1.5):
        losses = label_losses(rng, order, (100_000, count), c, t, place)
        # Densities: E e^(−loss) = 1 under the first.
        weights = np.exp(-losses.ravel())
        assert abs(weights.mean() - 1.0) < 4.0 * weights.std() / math.sqrt(weights.size)
        for epsilon, claim in zip(epsilons, total.deltas(epsilons)[order], strict=True):
            gains = np.maximum(-np.expm1(epsilon - losses.sum(axis=1)), 0.0)
            assert gains.mean() <= claim + 4.0 * gains.std() / math.sqrt(gains.size)
            closest = max(closest, float(gains.mean()) / claim)
    assert closest > 0.1


def test_the_simulation_would_notice_too_small_a_claim():
    """A claim for a Gaussian mechanism of the same c, which is what ignoring curvature gives."""
    rng = np.random.default_rng(0)
    losses = ramp_losses(rng, 0, (200_000, 4), *SETTING, place=2.0).sum(axis=1)
    gains = np.maximum(-np.expm1(1.2 - losses), 0.0)
    claim = compose_losses([GaussianLoss(SETTING[0])] * 4).delta(1.2)
    assert gains.mean() - 4.0 * gains.std() / math.sqrt(gains.size) > claim


@pytest.mark.parametrize("kind", ["records", "labels"])
def test_a_fit_and_nothing_else(kind):
    """Through the grid of losses the bound stays where it was."""
    from privasso.accounting._composed import ComposedLoss

    one = ObjectiveLoss(*SETTING, kind)
    alone = ComposedLoss((one,))
    for epsilon in (0.1, 0.5, 1.0):
        # The envelope may lie below the bounds it is made of, where they are not convex.
        assert 0.5 * one.delta(epsilon) < alone.delta(epsilon) <= one.delta(epsilon) * 1.01 + 1e-11


@pytest.mark.parametrize("kind", ["records", "labels"])
def test_fits_and_gaussian_releases(kind):
    one, gaussian = ObjectiveLoss(*SETTING, kind), GaussianLoss(0.2)
    total = compose_losses([one, gaussian, one])
    assert total.epsilon(1e-6) > compose_losses([one, one]).epsilon(1e-6)
    assert total.epsilon(1e-6) < 2 * one.epsilon(3e-7) + gaussian.epsilon(1e-7)
    # Without curvature the fits would be Gaussian mechanisms themselves.
    assert total.epsilon(1e-6) > compose_losses([GaussianLoss(0.25)] * 2 + [gaussian]).epsilon(1e-6)
    flat = compose_losses([ObjectiveLoss(0.25, 0.0, "labels"), gaussian])
    both = GaussianLoss(math.hypot(0.25, 0.2))
    assert flat.epsilon(1e-6) == pytest.approx(both.epsilon(1e-6), rel=1e-3)


def test_the_lower_envelope():
    rng = np.random.default_rng(0)
    epsilons = np.linspace(-2.0, 2.0, 81)
    exact = np.array([GaussianLoss(0.7).deltas(np.abs(epsilons))[0]])[0]
    exact = np.where(epsilons < 0.0, 1.0 - np.exp(epsilons) * (1.0 - exact), exact)
    found = lower_envelope(epsilons, np.minimum(exact * (1.0 + rng.exponential(0.3, 81)), 1.0))
    assert np.all(found >= exact)
    assert np.allclose(lower_envelope(epsilons, exact), exact, rtol=1e-12)
    slopes = np.diff(np.append(1.0, found)) / np.diff(np.append(0.0, np.exp(epsilons)))
    assert np.all(np.diff(slopes) >= -1e-12)


def test_groups():
    one = ObjectiveLoss(0.1, 0.3, "labels")
    assert one.group(1) is one
    pair = one.group(2)
    assert isinstance(pair, ChainLoss)
    for epsilon in (0.5, 1.0, 2.0):
        even = one.delta(epsilon / 2) * (1.0 + math.exp(epsilon / 2))
        assert pair.delta(epsilon) <= even * (1.0 + 1e-9)
        # Never below two clipped residuals that move in the same direction.
        assert pair.delta(epsilon) >= GaussianLoss(0.2).delta(epsilon)
    assert pair.group(2).epsilon(1e-6) == one.group(4).epsilon(1e-6)
    assert pair.delta(pair.epsilon(1e-6)) <= 1e-6
    # An exact chain: a Gaussian mechanism in steps is at least the Gaussian mechanism at once.
    chain = ChainLoss(GaussianLoss(0.1), 3)
    assert chain.delta(1.0) >= GaussianLoss(0.3).delta(1.0)


@pytest.mark.parametrize("shift", [1e-3, 8e-3])
def test_shifted_output_noise_by_an_exact_example(shift):
    """Gaussian laws, computed off by the shift in the worst direction on both sides."""
    for mu in (0.3, 1.0):
        loss = InexactLoss(GaussianLoss(mu), shift=shift)
        worst = GaussianLoss(mu + 2 * shift)
        for epsilon in (0.5, 1.0, 3.0, 10.0):
            assert worst.delta(epsilon) <= loss.delta(epsilon)
        assert loss.delta(1.0) < 1.0
    assert InexactLoss(GaussianLoss(0.3), shift=shift).delta(0.001) == 1.0  # below 2ε₀


def test_shifts():
    ideal = ObjectiveLoss(*SETTING, "records")
    loss = InexactLoss(ideal, shift=1e-6)
    # ε₀ = 2e-5 on either side, a factor e^ε₀, and nothing that grows like e^ε.
    assert loss.delta(1.0) == pytest.approx(ideal.delta(1.0 - 4e-5) * math.exp(2e-5), rel=1e-3)
    assert loss.epsilon(1e-6) == pytest.approx(ideal.epsilon(1e-6) + 4e-5, abs=2e-5)
    assert loss.delta(loss.epsilon(1e-6)) <= 1e-6
    assert InexactLoss(GaussianLoss(2.0), shift=1e-6).delta(12.0) < 1.01 * GaussianLoss(2.0).delta(
        11.999
    )
    assert loss.delta(200.0) < 1e-9  # what holds at a smaller ε holds at a larger one
    assert loss.group(2) == InexactLoss(ideal.group(2), 1e-6)
    several = compose_losses([loss, GaussianLoss(0.1), loss])
    assert isinstance(several, InexactLoss)
    assert several.shift == pytest.approx(2e-6)
    exact = compose_losses([ideal, ideal, GaussianLoss(0.1)])
    assert several.epsilon(1e-6) == pytest.approx(exact.epsilon(1e-6) + 8e-5, abs=1e-4)


def stated(budget=1.0, *, c=None, t=0.3, shift=1e-6, size=1, **changes):
    c = objective_sensitivity(budget - 1e-4, 0.999e-6, 0.3, "records") if c is None else c
    numbers = {
        "epsilon": budget,
        "delta": 1e-6,
        "n_rows": 1000.0,
        "y_low": 0.0,
        "y_high": 1.0,
        **changes,
    }
    loss = InexactLoss(ObjectiveLoss(c, t, "records"), shift=shift)
    return Guarantee(
        EMPTIED, tuple(numbers.items()), (loss,), released=("coefficients",), size=size
    )


@pytest.mark.parametrize("budget", [0.2, 1.0, 6.0])
def test_guarantees_are_written_and_read(budget):
    one = stated(budget)  # the first is below log(1 + t)
    document = json.loads(json.dumps(one.to_dict()))
    assert pv.Guarantee.from_dict(document) == one
    assert (one.loss,) == one.losses
    assert one.for_release


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"c": 0.5}, "small enough for its ε and δ"),
        ({"c": -1.0}, "c must be zero or positive"),
        ({"t": 0.5}, "small enough"),
        ({"shift": 1e-3}, "small enough"),
        ({"shift": 0.1}, "at most 0.01"),
        ({"size": 0}, "size must be at least 1"),
        ({"size": 2}, "small enough"),
        ({"n_rows": 1.5}, "whole number of rows"),
        ({"mu": 1.0}, "has no parameter 'mu'"),
        ({"t": -1.0}, "t must be zero or positive"),
    ],
)
def test_guarantees_that_do_not_follow_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        stated(**changes)


def test_guarantees_compose():
    one = stated()
    two = compose([one, one])
    assert two.losses == one.losses * 2
    assert one["epsilon"] < two["epsilon"] < 2 * one["epsilon"]
    convolved = compose_losses(two.losses).epsilon(1e-6)
    # Two upper bounds of the same; the closer one, an integral, is what is stated.
    assert two["epsilon"] == pytest.approx(convolved, rel=1e-3)
    assert delta_together(two.losses, 1, two["epsilon"]) <= 1e-6
    assert pv.Guarantee.from_dict(two.to_dict()) == two
    alone = compose([one], delta=1e-5)
    assert alone.losses == one.losses
    assert alone["epsilon"] < one["epsilon"]
    with pytest.raises(ValueError, match="different bounds"):
        compose([one, stated(y_high=2.0)])


def test_guarantees_for_groups():
    one = stated()
    pair = one.group(2)
    assert pair.adjacency == "up to 2 records"
    assert pair["epsilon"] > 2 * one["epsilon"]
    assert pv.Guarantee.from_dict(pair.to_dict()) == pair
    assert one.group(1) == one
    with pytest.raises(ValueError, match="for groups already"):
        pair.group(2)


def test_a_ledger_of_fits():
    book = Book(epsilon=2.0, delta=1e-6, data="a study", identity="0" * 32)
    entry = Entry("2026-01-01T00:00:00Z", "a fit", stated(0.8))
    book = book.charged(entry).charged(entry)
    assert 0.8 < book.spent() < 1.6
    assert Book.from_document(book.to_document()) == book


@pytest.mark.parametrize(("c", "t"), [(0.2, 0.3), (0.05, 0.1), (1.0, 2.0), (3.0, 5.0)])
@pytest.mark.parametrize("slope", ["huber", "logistic"])
def test_many_bounds_for_a_replaced_record_are_those_of_each(c, t, slope):
    """Many at a time use a grid of splits and chords, each alone a search for the best split."""
    epsilons = np.linspace(0.0, max(6.0 * c, 1.0), 40)
    many = objective_delta(epsilons, c, t, "replace", loss=slope)
    for epsilon, found in zip(epsilons[::4].tolist(), many[::4].tolist(), strict=True):
        one = objective_delta(epsilon, c, t, "replace", loss=slope)
        assert found == pytest.approx(one, rel=0.02, abs=1e-14)
        # Never below one of the two steps alone, and never above both with the budget halved.
        half = 0.5 * epsilon
        forward, backward = ObjectiveLoss(c, t, "records", slope).deltas(np.array([epsilon, half]))
        assert found >= 0.99 * max(forward[0], backward[0]) - 1e-14
        assert found <= min(1.0, forward[1] + math.exp(half) * backward[1]) * 1.01 + 1e-14


def test_frozen_and_checked():
    loss = ObjectiveLoss(0.1, 0.3, "labels")
    with pytest.raises(dataclasses.FrozenInstanceError):
        loss.c = 0.0  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ValueError, match="neighbours must be"):
        ObjectiveLoss(0.1, 0.3, "rows")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="c must be"):
        ObjectiveLoss(-0.1, 0.3, "labels")
    assert ObjectiveLoss(0.1, 0.3, "replace").reach > ObjectiveLoss(0.1, 0.3, "records").reach


def test_a_shift_is_covered_or_refused():
    assert shift_epsilon(0.001) == 0.02
    assert GaussianLoss(0.01).delta(shift_epsilon(0.01)) <= 1e-86
    with pytest.raises(ValueError, match="add more output noise"):
        shift_epsilon(0.02)
    check_coverable(1.0, 1e-6, 1e-4)
    with pytest.raises(ValueError, match="choose a larger delta, or a smaller epsilon"):
        check_coverable(150.0, 1e-30, 1e-4)
    with pytest.raises(ValueError, match=r"1000.0 is more .*; choose a smaller"):
        check_coverable(1000.0, 1e-6, 1e-4)
