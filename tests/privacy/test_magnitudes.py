"""Noisy counts of magnitudes and sums of columns: sensitivities, noise, and what is chosen."""

import math
from fractions import Fraction

import numpy as np
import pytest

from privasso.blocks import RowBlocks
from privasso.programs._estimate import (
    MagnitudeCounts,
    Magnitudes,
    ScaleSums,
    magnitude_bins,
    noisy_moments,
    widest_bounds,
)
from privasso.queries import Answering, NoisySum, _rounded_gaussian, bit_source


def bits(seed=0):
    return bit_source(np.random.default_rng(seed))


def rows(X):
    return RowBlocks.of_arrays(X, np.zeros(len(X)))


def magnitudes(X, mu, source):
    return Magnitudes.asked(Answering(rows(X), source), widest_bounds(X.shape[1]), mu)


def counts(X):
    n = X.shape[1]
    found = MagnitudeCounts(widest_bounds(n)).sums(X, np.zeros(len(X)))
    return (found >> 34).reshape(n, -1)


def unit_sums(n):
    """For columns that are within −1 and 1 already."""
    return ScaleSums(np.tile([-1.0, 1.0], (n, 1)), np.zeros(n), np.ones(n))


def sums(Z):
    return unit_sums(Z.shape[1]).sums(Z, np.zeros(len(Z))).tolist()


def scales(Z, mu, source, *, centred):
    return noisy_moments(
        Answering(rows(Z), source), NoisySum(unit_sums(Z.shape[1]), mu), centred=centred
    )[:2]


def wild(rng, shape):
    return rng.choice([-1.0, 0.0, 1.0], shape) * 10.0 ** rng.uniform(-30, 30, shape)


def test_each_number_is_in_the_bin_that_holds_it():
    rng = np.random.default_rng(0)
    X = np.concatenate([wild(rng, 500), 2.0 ** np.arange(-70, 70), [5e-324, np.inf, -np.inf]])
    for x, place in zip(X.tolist(), magnitude_bins(X).tolist(), strict=True):
        sign = (x > 0) - (x < 0)
        if math.isinf(x) or abs(x) > 2.0**64:
            assert place == (256 if sign > 0 else 127)
        elif Fraction(abs(x)) <= Fraction(2) ** -64:
            assert place == 128
        else:
            exponent = (place - 129 if sign > 0 else place) - 63
            assert Fraction(2) ** (exponent - 1) < Fraction(abs(x)) <= Fraction(2) ** exponent


def test_one_record_changes_one_count_of_each_column():
    rng = np.random.default_rng(1)
    X = wild(rng, (50, 7))
    without = np.delete(X, 3, axis=0)
    difference = counts(X) - counts(without)
    assert np.array_equal(np.sort(difference, axis=1)[:, -2:], np.tile([0, 1], (7, 1)))
    assert np.sum(difference**2) == 7


def test_one_record_moves_the_sums_by_no_more_than_is_claimed():
    rng = np.random.default_rng(2)
    n = 5
    worst = np.vstack([np.ones(n), -np.ones(n), np.zeros(n), rng.uniform(-1, 1, (200, n))])
    limit = Fraction(5, 4) * n * 2**64
    others = rng.uniform(-1, 1, (10, n))
    base = sums(others)
    for record in worst:
        moved = sums(np.vstack([others, record]))
        assert sum((a - b) ** 2 for a, b in zip(moved, base, strict=True)) <= limit
    assert sums(np.ones((1, n))) == [2**32] * n + [2**31] * n


@pytest.mark.parametrize("what", ["counts", "sums"])
def test_the_noise_is_as_large_as_the_sensitivity_asks(what, monkeypatch):
    seen = []
    draw = _rounded_gaussian.rounded_gaussian

    def recorded(deviation, size, source):
        seen.append((deviation, size))
        return draw(deviation, size, source)

    monkeypatch.setattr(_rounded_gaussian, "rounded_gaussian", recorded)
    X, mu = np.random.default_rng(3).uniform(-1, 1, (40, 6)), 0.05
    if what == "counts":
        found = magnitudes(X, mu, bits())
        sensitivity, size = math.sqrt(6) * 2.0**34, 6 * 257
        assert found.sigma == pytest.approx(math.sqrt(6) / mu, rel=1e-9)
        assert np.std(found.counts - counts(X)) == pytest.approx(found.sigma, rel=0.1)
    else:
        scales(X, mu, bits(), centred=True)
        sensitivity, size = math.sqrt(1.25 * 6) * 2.0**32, 12
    ((deviation, drawn),) = seen
    assert drawn == size
    assert sensitivity / mu <= deviation <= 1.0001 * sensitivity / mu


@pytest.mark.parametrize("scale", [2.0**-40, 1.0, 2.0**40])
@pytest.mark.parametrize(
    ("low", "high", "factor"),
    [(-1.0, 1.0, 2.01), (0.0, 1.0, 2.01), (-1.0, 0.0, 2.01), (0.7, 0.99, 4.0), (-0.99, -0.7, 4.0)],
)
def test_ranges_hold_the_values_and_little_else(scale, low, high, factor):
    X = scale * np.random.default_rng(4).uniform(low, high, (4000, 3))
    ranges, found = magnitudes(X, 0.1, bits()).ranges()
    assert found.all()
    inside = (ranges[:, 0] <= X) & (ranges[:, 1] >= X)
    assert inside.mean() > 0.99
    assert np.all(ranges[:, 1] - ranges[:, 0] <= factor * scale * (high - low) * 2.0)


def test_columns_of_zeros_and_ones_keep_their_range():
    X = (np.random.default_rng(5).random((4000, 2)) < [0.5, 0.2]).astype(float)
    ranges, found = magnitudes(X, 0.1, bits()).ranges()
    assert found.all()
    assert ranges.tolist() == [[0.0, 1.0], [0.0, 1.0]]


def test_heavy_tails_are_cut_where_few_rows_are_left():
    X = np.random.default_rng(6).standard_cauchy((50_000, 1))
    ((low, high),), _ = magnitudes(X, 0.1, bits()).ranges()
    assert -low == high
    assert 0.002 < np.mean(np.abs(X) > high) < 0.05


def test_empty_columns_are_not_found():
    """Many columns of zeros: noise in hundreds of thousands of bins is not taken for values."""
    found = [magnitudes(np.zeros((100, 400)), 0.1, bits(k)).ranges()[1] for k in range(3)]
    assert not np.any(found)


def test_few_rows_are_not_found():
    X = np.random.default_rng(7).standard_normal((50, 10))
    ranges, found = magnitudes(X, 0.05, bits()).ranges()
    assert not found.any()
    assert not ranges.any()


def test_centres_and_scales():
    rng = np.random.default_rng(8)
    Z = np.clip(rng.normal([0.0, 0.6, -0.3], [0.3, 0.1, 0.2], (20_000, 3)), -1, 1)
    centre, scale = scales(Z, 0.1, bits(), centred=True)
    np.testing.assert_allclose(centre, Z.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(scale, Z.std(axis=0), rtol=0.05)
    nothing, root = scales(Z, 0.1, bits(), centred=False)
    assert not nothing.any()
    np.testing.assert_allclose(root, np.sqrt(np.mean(Z**2, axis=0)), rtol=0.05)


def test_where_noise_hides_the_sums_a_column_keeps_its_range():
    Z = np.full((3, 200), 0.9)
    centre, scale = scales(Z, 0.01, bits(), centred=True)
    assert np.abs(centre).max() < 0.01
    np.testing.assert_allclose(scale, math.sqrt(1 / 3), rtol=0.05)


def test_constant_columns_have_a_scale_that_is_not_zero():
    centre, scale = scales(np.zeros((100_000, 1)), 1.0, bits(), centred=True)
    assert abs(centre[0]) < 0.01
    assert scale[0] == 1 / 16
