"""What all laws share: arguments, randomness, identity."""

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privasso import Constant, Empirical, LogNormal, ScaleLaw, Uniform
from privasso.scales import law_from_name

ALL = [Uniform(), Uniform(0.5, 2.0), LogNormal(), Constant(2.0), Empirical([1.0, 2.0, 5.0])]
every_law = pytest.mark.parametrize("law", ALL, ids=repr)


@every_law
def test_draw_takes_a_seed_a_generator_or_nothing(law: ScaleLaw):
    assert law.draw(5, rng=3).tolist() == law.draw(5, rng=np.random.default_rng(3)).tolist()
    assert law.draw(np.int64(3)).shape == (3,)
    assert law.draw((2, 0, 3)).shape == (2, 0, 3)


@pytest.mark.parametrize("law", [Uniform(), LogNormal(), Empirical(np.arange(1, 1000))], ids=repr)
def test_draws_differ_unless_the_seed_is_fixed(law: ScaleLaw):
    assert law.draw(50).tolist() != law.draw(50).tolist()
    rng = np.random.default_rng(0)
    assert law.draw(50, rng).tolist() != law.draw(50, rng).tolist()


@every_law
def test_draws_and_quantiles_stay_in_the_support(law: ScaleLaw):
    s = law.draw(10_000, rng=0)
    low, high = law.quantile([0.0, 1.0])
    assert np.all((s > 0) & (s >= low) & (s <= high))
    q = law.quantiles(57)
    assert np.all(np.diff(q) >= 0)
    assert np.all((q > 0) & np.isfinite(q))


@every_law
@given(n=st.integers(1, 300))
def test_weights(law: ScaleLaw, n: int):
    v, weights = law.quadrature(n)
    assert np.all(weights > 0)
    assert np.all(v > 0)
    assert np.sum(weights) == pytest.approx(1.0, abs=1e-14)


@every_law
def test_bad_arguments(law: ScaleLaw):
    bad: list[Any] = [-1, 2.5, "3", None]
    for size in bad:
        with pytest.raises(ValueError, match="size must be"):
            law.draw(size)
    for n in [0, *bad]:
        with pytest.raises(ValueError, match="n must be"):
            law.quadrature(n)
        with pytest.raises(ValueError, match="n must be"):
            law.quantiles(n)
    for p in (-0.1, [0.5, 1.1], np.nan, "half"):
        with pytest.raises(ValueError, match=r"^p "):
            law.quantile(p)
    with pytest.raises(ValueError, match="rng must be"):
        law.draw(3, rng="seed")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("law", "arguments", "message"),
    [
        (Uniform, (-0.1, 1.0), "low must be zero or positive"),
        (Uniform, (1.0, 1.0), "high must exceed low.*Constant"),
        (Uniform, (2.0, 1.0), "high must exceed low"),
        (Uniform, (0.0, 0.0), "high must be positive"),
        (Uniform, (np.nan, 1.0), "low must be finite"),
        (Uniform, (0.0, np.inf), "high must be finite"),
        (Uniform, (0.0, 1j), "high must be a real number"),
        (Uniform, (0.0, 1e200), "high = 1e.200 is outside"),
        (LogNormal, (0.0, -0.5), "sigma must be zero or positive"),
        (LogNormal, (np.inf, 0.5), "mu must be finite"),
        (LogNormal, ("0", 0.5), "mu must be a real number"),
        (LogNormal, (0.0, 10.0), "outside the range of a float"),
        (LogNormal, (400.0, 0.0), "outside the range of a float"),
        (Constant, (0.0,), "value must be positive"),
        (Constant, (-1.0,), "value must be positive"),
        (Constant, (None,), "value must be a real number"),
        (Constant, (1e-200,), "value = 1e-200 is outside"),
        (Empirical, ([],), "values is empty"),
        (Empirical, ([1.0, 0.0],), "values must be positive.*drop the columns"),
        (Empirical, ([1.0, -2.0],), "values must be positive"),
        (Empirical, ([1.0, np.nan],), "values contains NaN"),
        (Empirical, ([1.0, 1e-160],), "values must lie in"),
        (Empirical, (["a"],), "values holds text"),
        (Empirical, ([1j],), "values is complex"),
        (Empirical, (np.array([1.0, None]),), "values has dtype object"),
        (Empirical, (2.0,), "values must have 1 dimension"),
        (Empirical, ([[1.0, 2.0]],), "values must have 1 dimension"),
    ],
)
def test_bad_laws(law, arguments, message):
    with pytest.raises(ValueError, match=message):
        law(*arguments)


@every_law
def test_laws_are_values(law: ScaleLaw):
    again = pickle.loads(pickle.dumps(law))
    assert again == law
    assert hash(again) == hash(law)
    assert sum(law == other for other in ALL) == 1
    name = dataclasses.fields(law)[0].name  # pyright: ignore[reportArgumentType]
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(law, name, 1.0)


def test_parameters_are_stored_as_floats():
    assert repr(Uniform(0, 1)) == "Uniform(low=0.0, high=1.0)"
    assert repr(LogNormal(-0.0, np.float64(0.5))) == "LogNormal(mu=0.0, sigma=0.5)"
    assert Uniform(0, 1) == Uniform()


def test_lognormal_without_spread_is_a_constant():
    law = LogNormal(1.0, 0.0)
    assert law.quantile([0.0, 0.5, 1.0]).tolist() == [np.e] * 3
    assert np.allclose(law.quadrature(7)[0], np.e**2, rtol=1e-15)


def test_names_of_laws():
    assert law_from_name("scales", "uniform") == Uniform(0.0, 1.0)
    assert law_from_name("scales", "lognormal:0,1") == LogNormal(0.0, 1.0)
