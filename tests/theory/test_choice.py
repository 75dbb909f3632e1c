"""Choices with Gumbel noise, and scales with an error, against simulation and closed forms."""

from itertools import combinations

import numpy as np
import pytest

from privasso.theory import log_set_probability, selection_chances, with_scale_error


def test_chances_against_simulation():
    rng = np.random.default_rng(0)
    strengths = np.repeat([0.0, 60.0, 150.0], [1000, 10, 10])
    draws = 4000
    noisy = np.abs(strengths[:, None] + 25.0 * rng.standard_normal((strengths.size, draws)))
    noisy += 8.0 * rng.gumbel(size=noisy.shape)
    chosen = noisy >= np.partition(noisy, -12, axis=0)[-12]
    measured = [chosen[strengths == m].mean() for m in (0.0, 60.0, 150.0)]
    found = selection_chances([0.0, 60.0, 150.0], [1000, 10, 10], 12, 25.0, 8.0)
    assert found @ [1000, 10, 10] == pytest.approx(12.0, rel=1e-5)
    assert found == pytest.approx(measured, abs=0.02)


def test_one_chosen_column_is_a_softmax():
    scores = np.array([0.0, 1.0, -2.0, 0.3])
    weights = np.exp(scores / 0.7)
    found = [np.exp(log_set_probability(scores, 0.7, [i])) for i in range(4)]
    assert found == pytest.approx(weights / weights.sum(), rel=1e-9)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_probabilities_of_all_sets_add_up(k):
    scores = np.array([0.0, 3.0, -20.0, 0.3, 1.0])
    sets = combinations(range(5), k)
    total = sum(np.exp(log_set_probability(scores, 1.0, s)) for s in sets)
    assert total == pytest.approx(1.0, rel=1e-9)


def test_scales_with_an_error_have_its_moments():
    v, w, seen = with_scale_error(np.array([1.0, 4.0]), np.array([0.3, 0.7]), 0.3, 31)
    assert (v.size, w.sum()) == (62, pytest.approx(1.0))
    assert w @ np.log(seen / v) ** 2 == pytest.approx(0.09, rel=1e-12)
    assert w @ (seen / v) == pytest.approx(np.exp(0.045), rel=1e-12)
