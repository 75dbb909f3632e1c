"""Laws with finitely many values."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privasso import Constant, Empirical

VALUES = np.array([3.0, 0.5, 1.0, 1.0, 20.0, 0.25, 7.0])


def test_empirical_draws_each_value_equally_often():
    s = Empirical(VALUES).draw(70_000, rng=3)
    values, counts = np.unique(s, return_counts=True)
    assert values.tolist() == np.unique(VALUES).tolist()
    expected = 10_000 * np.unique(VALUES, return_counts=True)[1]
    assert np.all(np.abs(counts - expected) < 4 * np.sqrt(expected))


def test_empirical_quantiles_of_its_own_size_are_its_values():
    assert Empirical(VALUES).quantiles(VALUES.size).tolist() == sorted(VALUES)


@given(st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=30), st.floats(0, 1))
def test_empirical_quantile_inverts_the_distribution_function(values, p):
    s = Empirical(values).quantile(p)
    assert np.mean(np.array(values) <= s) >= p
    assert np.mean(np.array(values) < s) < p or s == min(values)


@pytest.mark.parametrize("n", [3, 10, 49, 1000])
def test_empirical_quantile_does_not_skip_at_the_steps(n):
    values = np.arange(1.0, n + 1.0)
    steps = np.arange(1, n + 1) / n
    assert Empirical(values).quantile(steps).tolist() == values.tolist()


@pytest.mark.parametrize("n", [1, 7, 500])
def test_empirical_quadrature_is_its_values(n):
    v, weights = Empirical(VALUES).quadrature(n)
    assert v.tolist() == sorted(VALUES**2)
    assert weights @ np.log(v) == pytest.approx(np.mean(np.log(VALUES**2)), rel=1e-14)


def test_constant():
    law = Constant(3.0)
    assert law.draw((2, 2), rng=0).tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert law.quantile([0.0, 0.3, 1.0]).tolist() == [3.0, 3.0, 3.0]
    assert [part.tolist() for part in law.quadrature(50)] == [[9.0], [1.0]]


def test_empirical_is_compared_by_content():
    a, b, c = Empirical(VALUES), Empirical(VALUES[::-1]), Empirical(VALUES[1:])
    assert a == b
    assert hash(a) == hash(b)
    assert a != c
    assert a != Constant(1.0)
    assert len({a, b, c}) == 2


def test_empirical_keeps_its_own_read_only_copy():
    given_values = VALUES.copy()
    law = Empirical(given_values)
    given_values[:] = 1.0
    assert law == Empirical(VALUES)
    assert given_values.tolist() == [1.0] * 7, "the argument itself is left alone"
    for other in (law, pickle.loads(pickle.dumps(law)), copy.deepcopy(law)):
        assert other == law
        with pytest.raises(ValueError, match="read-only"):
            other.values[0] = 5.0


def test_empirical_does_not_print_its_values():
    assert repr(Empirical([0.5, 1.23456, 9.0])) == "Empirical(<3 values from 0.5 to 9>)"
