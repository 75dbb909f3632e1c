"""TukeyEM: depths, the test and the draw, each against a count by hand."""

import math

import numpy as np
import pytest

from bench.real.peers import tukey


def volumes(found):
    """Log volumes of the boxes of depth at least 1, 2, …"""
    m = len(found)
    ordered = np.sort(found, axis=0)
    return np.array(
        [np.log(ordered[m - 1 - i] - ordered[i]).sum() for i in range(m // 2)], dtype=float
    )


def depth(point, found):
    """The least, over coordinates, of the number of models at or beyond the point on a side."""
    sides = [(found <= point).sum(axis=0), (found >= point).sum(axis=0)]
    return int(np.min(sides))


def slow_distance(log_volume, epsilon, delta, t):
    """The definition, written out with the volumes themselves."""
    V = {i + 1: v for i, v in enumerate(log_volume)}
    for k in range(t - 2, -1, -1):
        for g in range(1, len(V)):
            if t + k + g + 1 in V:
                ratio = V[t - k - 1] - V[t + k + g + 1] - 0.5 * epsilon * g
                if ratio <= math.log(delta / (8.0 * math.exp(epsilon))):
                    return k
    return -1


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 10.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_distance_is_that_of_the_definition(epsilon, seed):
    found = np.random.default_rng(seed).standard_normal((60, 2))
    log_volume = volumes(found)
    expected = slow_distance(log_volume, epsilon, 1e-3, 15)
    assert tukey.distance(log_volume, epsilon, 1e-3, 15) == expected


def test_the_distance_changes_by_at_most_one_with_a_model():
    rng = np.random.default_rng(0)
    found = rng.standard_normal((80, 2))
    before = tukey.distance(volumes(found), 5.0, 1e-3, 20)
    assert before > 0
    for k in range(20):
        other = found.copy()
        other[k] = 100.0 * rng.standard_normal(2)
        assert abs(tukey.distance(volumes(other), 5.0, 1e-3, 20) - before) <= 1


def test_a_point_has_the_depth_that_was_asked_for():
    rng = np.random.default_rng(0)
    found = rng.standard_normal((21, 3))
    ordered = np.sort(found, axis=0)
    low, high = ordered[:10], ordered[::-1][:10]
    for wanted in (3, 9, 10):
        points = [tukey._point(low, high, wanted, rng) for _ in range(200)]
        assert {depth(point, found) for point in points} == {wanted}


def test_points_of_a_shell_are_uniform():
    # The box [0, 4]² without [1, 2] × [1, 3] has area 14; a part of it must be met as often.
    low = np.array([[0.0, 0.0], [1.0, 1.0]])
    high = np.array([[4.0, 4.0], [2.0, 3.0]])
    rng = np.random.default_rng(1)
    points = np.array([tukey._point(low, high, 1, rng) for _ in range(6000)])
    inside = (points > low[1]).all(axis=1) & (points < high[1]).all(axis=1)
    assert not inside.any()
    for left, right, area in ((0.0, 1.0, 4.0), (1.0, 2.0, 2.0), (2.0, 4.0, 8.0)):
        share = np.mean((points[:, 0] >= left) & (points[:, 0] < right))
        assert share == pytest.approx(area / 14.0, abs=0.025)


def test_depths_follow_the_exponential_mechanism():
    V = np.array([10.0, 6.0, 3.0, 1.0])  # of depth at least 1, 2, 3, 4
    rng = np.random.default_rng(2)
    drawn = np.array([tukey._depth(np.log(V), 1.2, 2, rng) for _ in range(6000)])
    weights = np.array([3.0, 2.0, 1.0]) * np.exp(1.2 * np.array([2, 3, 4]))
    for k, weight in zip((2, 3, 4), weights, strict=True):
        assert np.mean(drawn == k) == pytest.approx(weight / weights.sum(), abs=0.025)


def test_nothing_is_released_from_a_few_models():
    rng = np.random.default_rng(0)
    assert tukey.draw(rng.standard_normal((20, 3)), 1.0, 1e-6, rng) is None


def test_every_record_enters_one_model():
    F = np.random.default_rng(0).standard_normal((103, 4))
    found = tukey.models(F, F @ np.array([1.0, 2.0, 3.0, 4.0]), 1000, np.random.default_rng(1))
    assert found.shape == (25, 4)
    assert found == pytest.approx(np.tile([1.0, 2.0, 3.0, 4.0], (25, 1)))
