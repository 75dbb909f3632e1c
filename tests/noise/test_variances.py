"""Variances against high-precision arithmetic, and the properties that define them."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from privasso import Gram, Isotropic, LogNormal, NoiseDesign, PowerLaw, Uniform

scales = arrays(np.float64, st.integers(1, 20), elements=st.floats(1e-18, 1e18))
gammas = st.floats(-20, 20)
sigmas = st.floats(1e-6, 1e6)


def brute_force(sigma, gamma, v, weights=None):
    weights = np.ones_like(v) if weights is None else weights
    with mpmath.workdps(60):
        powers = [mpmath.mpf(x) ** mpmath.mpf(gamma) for x in v]
        w = [mpmath.mpf(x) for x in weights]
        mean = mpmath.fsum(a * b for a, b in zip(w, powers, strict=True)) / mpmath.fsum(w)
        return np.array([float(mpmath.mpf(sigma) ** 2 * p / mean) for p in powers])


@pytest.mark.parametrize("gamma", [-3.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 50.0])
@pytest.mark.parametrize(
    "v",
    [
        np.array([1.0]),
        np.array([1e-18, 1.0, 1e18]),
        np.array([3.0, 3.0, 3.0]),
        np.geomspace(1e-18, 1e18, 37),
        np.random.default_rng(0).random(50) ** 2,
        np.array([1e-300, 2e-300]),
        np.array([1e300, 2e300]),
    ],
    ids=["one", "extreme", "equal", "geometric", "uniform", "tiny", "huge"],
)
def test_agrees_with_high_precision(gamma, v):
    got = PowerLaw(0.7, gamma).variances(v)
    np.testing.assert_allclose(got, brute_force(0.7, gamma, v), rtol=2e-11 if gamma > 9 else 1e-12)


@given(v=scales, gamma=gammas, sigma=sigmas, data=st.data())
def test_weighted_agrees_with_high_precision(v, gamma, sigma, data):
    weights = data.draw(arrays(np.float64, v.shape, elements=st.floats(1e-9, 1.0)))
    got = PowerLaw(sigma, gamma).variances(v, weights)
    np.testing.assert_allclose(got, brute_force(sigma, gamma, v, weights), rtol=1e-11, atol=1e-300)


def test_gram_is_the_formula_of_the_paper():
    v = np.random.default_rng(1).random(100)
    np.testing.assert_allclose(Gram(0.3).variances(v), v**2 / np.mean(v**2) * 0.3**2, rtol=1e-13)


def test_isotropic_is_exact():
    v = np.array([0.0, 1e-18, 1.0, 1e18])
    assert Isotropic(0.3).variances(v).tolist() == [0.3 * 0.3] * 4
    assert Isotropic(0.3).variances(v, [0.1, 0.2, 0.3, 0.7]).tolist() == [0.3 * 0.3] * 4


@given(v=scales, gamma=gammas, sigma=sigmas)
def test_mean_is_sigma_squared(v, gamma, sigma):
    assert np.mean(PowerLaw(sigma, gamma).variances(v)) == pytest.approx(sigma**2, rel=1e-13)


@given(v=scales, gamma=gammas, factor=st.floats(1e-6, 1e6))
def test_units_of_v_do_not_matter(v, gamma, factor):
    design = PowerLaw(1.0, gamma)
    np.testing.assert_allclose(
        design.variances(factor * v), design.variances(v), rtol=1e-11, atol=1e-300
    )


@given(v=scales, gamma=gammas, seed=st.integers(0, 100))
def test_order_of_the_columns_does_not_matter(v, gamma, seed):
    order = np.random.default_rng(seed).permutation(v.size)
    design = PowerLaw(1.0, gamma)
    np.testing.assert_allclose(
        design.variances(v[order]), design.variances(v)[order], rtol=1e-11, atol=1e-300
    )


@pytest.mark.parametrize("design", [Isotropic(0.5), Gram(0.5), PowerLaw(0.5, 1.0)], ids=repr)
def test_a_weight_counts_like_repetition(design: NoiseDesign):
    v = np.array([0.2, 1.0, 3.0])
    repeated = design.variances(np.repeat(v, [3, 1, 2]))
    weighted = design.variances(v, [3, 1, 2])
    np.testing.assert_allclose(repeated[[0, 3, 4]], weighted, rtol=1e-14)
    np.testing.assert_allclose(design.variances(v, [30, 10, 20]), weighted, rtol=1e-14)
    ignored = design.variances([0.2, 9.0, 1.0, 3.0], [3, 0, 1, 2])
    np.testing.assert_allclose(ignored[[0, 2, 3]], weighted, rtol=1e-14)


@pytest.mark.parametrize("law", [Uniform(), LogNormal(0.2, 0.5)], ids=repr)
@pytest.mark.parametrize("gamma", [1.0, 2.0, 3.0])
def test_on_quadrature_nodes_the_mean_is_that_of_the_law(law, gamma):
    v, weights = law.quadrature(200)
    expected = v**gamma / law.moment(gamma)
    np.testing.assert_allclose(PowerLaw(1.0, gamma).variances(v, weights), expected, rtol=1e-10)


def test_weights_that_span_all_floats():
    # The heavy node carries next to no weight and yet decides the mean.
    v, weights = np.array([1e-18, 1e18]), np.array([1.0, 1e-300])
    got = PowerLaw(1.0, 10.0).variances(v, weights)
    np.testing.assert_allclose(got, brute_force(1.0, 10.0, v, weights), rtol=1e-12)
    assert got[1] == pytest.approx(1e300, rel=1e-12)


def test_zero_columns():
    v = [0.0, 1.0, 3.0, 0.0]
    np.testing.assert_allclose(PowerLaw(1.0, 1.0).variances(v), [0.0, 1.0, 3.0, 0.0], rtol=1e-14)
    assert Isotropic(2.0).variances(v).tolist() == [4.0] * 4
    with pytest.raises(ValueError, match=r"v has a zero.*drop the zero columns"):
        PowerLaw(1.0, -0.1).variances(v)
    with pytest.raises(ValueError, match="is every v zero"):
        Gram(1.0).variances([0.0, 0.0])
    with pytest.raises(ValueError, match="is every v zero"):
        Gram(1.0).variances([0.0, 1.0], [1.0, 0.0])


def test_no_noise():
    for design in (Isotropic(0.0), Gram(0.0), PowerLaw(0.0, -1.0)):
        assert design.variances([1.0, 2.0]).tolist() == [0.0, 0.0]
    assert Gram(0.0).variances([0.0, 0.0]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("v", "weights", "message"),
    [
        ([1.0, -1.0], None, "v must hold squared scales"),
        ([1.0, np.nan], None, "v contains NaN"),
        ([], None, "v is empty"),
        (2.0, None, "v must have 1 dimension"),
        ([[1.0]], None, "v must have 1 dimension"),
        ([1j], None, "v is complex"),
        (["1"], None, "v holds text"),
        ([1.0, 2.0], [1.0], r"weights must have shape \(2,\)"),
        ([1.0, 2.0], [1.0, -1.0], "weights must be zero or more"),
        ([1.0, 2.0], [0.0, 0.0], "not all zero"),
        ([1.0, 2.0], [1.0, np.inf], "weights contains NaN or infinity"),
    ],
)
def test_bad_arguments(v, weights, message):
    with pytest.raises(ValueError, match=message):
        Gram(1.0).variances(v, weights)
