"""The bounds of objective perturbation against exact divergences of small problems."""

import math

import numpy as np
import pytest

import privasso as pv
from objective_pairs import (
    Data,
    joined,
    line_divergence,
    mutated,
    plane_divergence,
    random_data,
)
from privasso.accounting import gaussian_delta

CHANGE = {"records": 1.0, "labels": 2.0, "replace": 1.0}
#: (ε, c, t), with budgets as they are used and some far from that.
SETTINGS = [
    (1.0, 0.25, 0.3),
    (3.0, 0.6, 1.0),
    (0.5, 0.2, 0.3),
    (0.2, 0.5, 3.0),
    (0.05, 1.0, 0.5),
    (0.0, 0.3, 1.0),
    (2.0, 1.5, 10.0),
    (5.0, 2.0, 0.1),
]


def claimed(setting, kind):
    epsilon, c, t = setting
    return pv.objective_delta(epsilon, c, t, kind)


def neighbour(rng, data, c, t, kind):
    """A random neighbour of each data set of the batch."""
    if kind == "records":
        return data.emptied()
    size = data.lam.size
    jump = rng.choice([-1.0, 1.0], size) * rng.uniform(0.0, 6.0, size) * t / c
    other = data.relabelled(data.y[:, 0] + jump * CHANGE[kind])
    if kind == "replace":
        f = other.f.copy()
        f[:, 0] = rng.uniform(-1.0, 1.0, size)
        other = Data(f, other.y, other.lam, other.tilt)
    return other


def largest_ratio(rng, kind, batches, pairs):
    """The largest exact divergence over what is claimed, in both orders of random pairs."""
    worst = 0.0
    for _ in range(batches):
        c, t = np.exp(rng.uniform(np.log([0.05, 0.03]), np.log([3.0, 30.0])))
        epsilon = rng.uniform(0.0, 3.0, pairs) * min(1.0, 2.0 * c + 0.3)
        cs, ts = np.full(pairs, c), np.full(pairs, t)
        data = random_data(rng, cs, ts, change=CHANGE[kind])
        other = neighbour(rng, data, c, t, kind)
        claim = pv.objective_delta(epsilon, c, t, kind)
        for p, q in ((data, other), (other, data)):
            exact = line_divergence(p, q, epsilon, cs, ts, CHANGE[kind])
            worst = max(worst, float(np.max((exact - 1e-13) / claim)))
    return worst


@pytest.mark.parametrize(("kind", "batches"), [("records", 12), ("labels", 12), ("replace", 1)])
def test_no_random_pair_exceeds_the_claim(kind, batches):
    ratio = largest_ratio(np.random.default_rng(1), kind, batches, 50)
    assert 0.1 < ratio <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "batches"), [("records", 100), ("labels", 100), ("replace", 10)])
def test_no_random_pair_of_many_exceeds_the_claim(kind, batches):
    ratio = largest_ratio(np.random.default_rng(2), kind, batches, 200)
    assert 0.1 < ratio <= 1.0


def test_the_densities_add_up_to_one():
    """At ε = −30 the divergence is 1 − e^ε: both densities are integrated over everything."""
    rng = np.random.default_rng(3)
    c, t = np.full(50, 0.5), np.full(50, 2.0)
    data = random_data(rng, c, t)
    found = line_divergence(data, data.emptied(), np.full(50, -30.0), c, t)
    assert np.allclose(found, 1.0, rtol=1e-12)


def searched(rng, kind, setting, order, rounds, pairs=200, growth=None):
    """The largest exact divergence that a search over data sets finds.

    With `growth`, λ = 1 without the first record and 1 + growth with it.
    """
    _, c, t = setting
    e, cs, ts = (np.full(pairs, x) for x in setting)
    change, top = CHANGE[kind], pairs // 20
    data = random_data(rng, cs, ts, others=1, change=change)
    best = 0.0
    other = neighbour(rng, data, c, t, kind)
    for k in range(rounds):
        if growth is not None:
            data = Data(data.f, data.y, np.full(pairs, 1.0 + growth), data.tilt)
        if kind == "records":
            other = data.emptied()
            if growth is not None:
                other = Data(other.f, other.y, np.ones(pairs), other.tilt)
        else:
            other = data.relabelled(other.y[:, 0])
        p, q = (data, other) if order == 0 else (other, data)
        found = line_divergence(p, q, e, cs, ts, change)
        kept = np.argsort(-found)[:top]
        best = max(best, float(found[kept[0]]))
        again, size = np.repeat(kept, 20)[top:], 0.9**k
        jumps = rng.normal(0.0, size * t * change / c, again.size) * rng.integers(0, 2, again.size)
        labels = np.append(other.y[kept, 0], other.y[again, 0] + jumps)
        data = joined(data.take(kept), mutated(rng, data.take(again), c, t, size, change))
        other = data.relabelled(labels)
    return best


@pytest.mark.parametrize("kind", ["records", "labels"])
@pytest.mark.parametrize("setting", SETTINGS[:2])
def test_a_search_for_a_violation_finds_none(kind, setting):
    rng = np.random.default_rng(4)
    for order in (0, 1):
        assert searched(rng, kind, setting, order, rounds=10) <= claimed(setting, kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["records", "labels"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_long_search_for_a_violation_finds_none(kind, setting):
    rng = np.random.default_rng(5)
    for order in (0, 1):
        found = searched(rng, kind, setting, order, rounds=40, pairs=1000)
        assert found <= claimed(setting, kind)


@pytest.mark.parametrize("setting", [(1.0, 0.25, 0.3), (3.0, 0.6, 1.0), (0.7, 0.1, 0.02)])
def test_without_against_with_is_attained(setting):
    """By a single record in the middle of the noise, for ε ≥ c²(½ + 1/t)."""
    epsilon, c, t = setting
    assert epsilon >= c**2 * (0.5 + 1.0 / t)
    one, zero = np.ones((1, 1)), np.zeros(1)
    data = Data(one, 0.0 * one, zero, zero)
    e, cs, ts = (np.full(1, x) for x in setting)
    exact = line_divergence(data.emptied(), data, e, cs, ts)[0]
    assert exact == pytest.approx(2.0 * gaussian_delta(epsilon, c), rel=0.01)
    assert exact <= claimed(setting, "records")


@pytest.mark.parametrize(
    ("setting", "share"),
    [((1.0, 0.25, 0.3), 0.81), ((1.0, 0.206, 0.3), 0.88), ((3.0, 0.6, 1.0), 0.86)],
)
@pytest.mark.parametrize(("kind", "label"), [("records", 0.9), ("labels", 0.8)])
def test_the_sharp_bound_is_nearly_attained(setting, share, kind, label):
    """One record, whose clipped residual falls on both sides of the atom at zero.

    Under "labels" the other label is so low that its residual is always clipped.
    """
    change, (_, c, _) = CHANGE[kind], setting
    tilts = np.linspace(2.0, 7.0, 401) * change / c
    one = np.ones((tilts.size, 1))
    data = Data(one, label * one, np.full(tilts.size, 0.15 * change / c), tilts)
    other = data.emptied() if kind == "records" else data.relabelled(-100.0)
    e, cs, ts = (np.full(tilts.size, x) for x in setting)
    found = line_divergence(data, other, e, cs, ts, change).max()
    claim = claimed(setting, kind)
    assert share * claim < found <= claim


def phi(x):
    return np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)


def worst_map(epsilon, c, t, step=0.01):
    """The largest ∫(φ(z) − e^ε(1−s′)φ(z−s))₊ over nondecreasing s with slope ≤ t/(1+t), |s| ≤ c.

    Dynamic programming from left to right: at each step s stays or rises by the most.
    """
    slope = t / (1.0 + t)
    s = -c + slope * step * np.arange(int(2.0 * c / (slope * step)) + 1)
    gained = np.zeros(s.size)
    factor = math.exp(epsilon)
    for z in np.arange(-13.0, 13.0, step) + 0.5 * step:
        stay = gained + step * np.maximum(phi(z) - factor * phi(z - s), 0.0)
        middle = 0.5 * (s[:-1] + s[1:])
        rise = step * np.maximum(phi(z) - factor * (1.0 - slope) * phi(z - middle), 0.0)
        stay[1:] = np.maximum(stay[1:], gained[:-1] + rise)
        gained = stay
    return float(gained.max())


@pytest.mark.parametrize(
    ("setting", "share"),
    [
        ((1.0, 0.25, 0.3), 0.85),
        ((3.0, 0.6, 1.0), 0.94),
        ((0.5, 0.08, 0.3), 0.99),
        ((0.2, 0.5, 3.0), 0.85),
        ((0.05, 1.0, 0.5), 0.5),
        ((0.0, 0.3, 1.0), 0.5),
    ],
)
def test_the_worst_admissible_map(setting, share):
    worst, claim = worst_map(*setting), claimed(setting, "records")
    assert share * claim < worst <= claim * (1.0 + 1e-3)  # the integral is a midpoint rule


@pytest.mark.parametrize(("growth", "factor"), [(0.0, 0.9), (0.01, 1.15), (0.1, 4.0)])
def test_a_penalty_that_grows_with_the_number_of_records_is_caught(growth, factor):
    """The bounds do not hold then, and the searches above would notice."""
    setting, rng = (1.0, 0.25, 0.3), np.random.default_rng(6)
    found = searched(rng, "records", setting, 1, rounds=40, pairs=400, growth=growth)
    ratio = found / (2.0 * gaussian_delta(*setting[:2]))
    assert ratio > factor
    assert (ratio <= 1.0 + 1e-9) == (growth == 0.0)


def logistic_divergence(f, labels, others, setting, lam=0.0, points=60_001):
    """One coefficient of a logistic regression, by a midpoint rule over the released values.

    f and labels hold the covariate and the label of the first record in the two data sets.
    """
    epsilon, c, t = setting
    ridge, sigma = 0.25 / t, 1.0 / c
    reach = (9.0 * sigma + 3.0) / ridge
    x = (np.arange(points) + 0.5) / points * 2.0 * reach - reach

    def density(first, label):
        g, slope = ridge * x, np.full_like(x, ridge)
        for a, y in ((first, label), *others):
            p = 1.0 / (1.0 + np.exp(-a * x))
            g, slope = g - a * (y - p), slope + a * a * p * (1.0 - p)
        return slope * phi((g + lam * np.sign(x)) / sigma) / sigma

    p, q = (density(*pair) for pair in zip(f, labels, strict=True))
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum() * 2.0 * reach / points)


@pytest.mark.parametrize("setting", [(1.0, 0.4, 0.3), (0.3, 1.0, 2.0), (0.05, 0.5, 0.1)])
def test_logistic_regression(setting):
    epsilon, c, t = setting
    claim = pv.objective_delta(epsilon, c, t, "records", loss="logistic")
    rng = np.random.default_rng(9)
    closest = 0.0
    for _ in range(6):
        others = [(rng.uniform(-1.0, 1.0), float(rng.integers(0, 2))) for _ in range(2)]
        label = float(rng.integers(0, 2))
        for f in ((1.0, 0.0), (0.0, 1.0)):
            found = logistic_divergence(f, (label, label), others, setting)
            closest = max(closest, found / claim)
        # A label moves the noise by exactly f: the divergence of the Gaussian mechanism.
        exact = logistic_divergence((1.0, 1.0), (label, 1.0 - label), others, setting)
        assert exact == pytest.approx(gaussian_delta(epsilon, c), rel=1e-3)
    assert 0.05 < closest <= 1.0


def plane_pair(rng, kind):
    a = rng.normal(size=(2, 2))
    shape = a @ a.T + 0.5 * np.eye(2)
    shape /= 0.5 * np.trace(shape)
    F = rng.normal(size=(3, 2))
    F /= np.sqrt(np.einsum("mi,ij,mj->m", F, np.linalg.inv(shape), F))[:, None]
    y = rng.uniform(-3.0, 3.0, 3)
    G, z = F.copy(), y.copy()
    if kind == "records":
        G[0] = 0.0
    else:
        z[0] = rng.uniform(-8.0, 8.0)
    return (F, y), (G, z), shape


def planes(rng, kind, pairs, points):
    for _ in range(pairs):
        p, q, shape = plane_pair(rng, kind)
        epsilon, c, t = rng.uniform((0.1, 0.4, 0.1), (1.5, 2.0, 3.0))
        lam = rng.choice([0.0, 0.5]) / c
        claim = pv.objective_delta(epsilon, c, t, kind)
        for one, two in ((p, q), (q, p)):
            for finer in (1, 2, 4):
                found, mass = plane_divergence(
                    one, two, lam, shape, epsilon, c, t, CHANGE[kind], finer * points
                )
                if abs(mass - 1.0) < 0.02:
                    break
            assert mass == pytest.approx(1.0, abs=0.02)
            assert found <= claim * 1.03
            yield found / claim


@pytest.mark.parametrize("kind", ["records", "labels"])
def test_two_coefficients(kind):
    assert max(planes(np.random.default_rng(7), kind, 10, 161)) > 0.2


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["records", "labels"])
def test_many_pairs_with_two_coefficients(kind):
    assert max(planes(np.random.default_rng(8), kind, 500, 201)) > 0.4


def climbed(rng, kind, setting, steps):
    """The largest divergence of two coefficients that small changes of a random pair lead to."""
    epsilon, c, t = setting
    p, q, shape = plane_pair(rng, kind)
    inverse, size, best = np.linalg.inv(shape), 1.0, (0.0, p, q)
    for k in range(steps):
        F, y = best[1][0].copy(), best[1][1].copy()
        if k:
            F += 0.4 * size * rng.normal(size=F.shape)
            y += 2.0 * size * rng.normal(size=y.shape) * rng.integers(0, 2, y.shape)
            # Only the first row must be as long as allowed; the others may be shorter.
            lengths = np.sqrt(np.einsum("mi,ij,mj->m", F, inverse, F))
            F /= np.maximum(lengths, [1e-9, 1.0, 1.0])[:, None]
        G, z = F.copy(), y.copy()
        if kind == "records":
            G[0] = 0.0
        else:
            z[0] = best[2][1][0] + size * rng.normal()
        for one, two in (((F, y), (G, z)), ((G, z), (F, y))):
            found, mass = plane_divergence(
                one, two, 0.5 / c, shape, epsilon, c, t, CHANGE[kind], 161
            )
            if abs(mass - 1.0) < 0.02 and found > best[0]:
                best = (found, (F, y), (G, z))
        size *= 0.97
    return best[0] / pv.objective_delta(epsilon, c, t, kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["records", "labels"])
def test_a_search_with_two_coefficients_finds_no_violation(kind):
    rng = np.random.default_rng(11)
    found = [climbed(rng, kind, (0.8, 0.9, 1.0), 60) for _ in range(8)]
    assert 0.5 < max(found) <= 1.03
