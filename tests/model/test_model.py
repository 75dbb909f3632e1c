"""The generative model against the distributions it is made of."""

import dataclasses
import tracemalloc

import numpy as np
import pytest
from scipy import stats

from privasso import Constant, Empirical, LogNormal, Model, Uniform


@pytest.fixture(scope="module")
def sample():
    return Model(alpha=0.5, rho=0.2, sigma_xi=0.3, scales=LogNormal(0.1, 0.6)).sample(2000, rng=0)


def test_shapes_and_storage(sample):
    assert sample.F.shape == (1000, 2000)
    assert sample.F.flags.c_contiguous
    assert {a.dtype for a in (sample.F, sample.y, sample.x0, sample.v)} == {np.dtype(np.float64)}
    assert sample.y.shape == (1000,)
    assert sample.x0.shape == sample.v.shape == (2000,)


def test_scales_follow_their_law(sample):
    assert stats.kstest(0.5 * np.log(sample.v), stats.norm(0.1, 0.6).cdf).pvalue > 1e-3


def test_entries_are_gaussian_with_the_scale_of_their_column(sample):
    standard = sample.F * np.sqrt(2000 / sample.v)
    # Every column on its own: N |f_i|² / v_i is chi-square with M degrees of freedom.
    p = stats.chi2(1000).cdf(np.sum(standard**2, axis=0))
    assert stats.kstest(p, "uniform").pvalue > 1e-3
    assert stats.kstest(standard[::10].ravel(), "norm").pvalue > 1e-3
    neighbours = np.sum(standard[:, 1:] * standard[:, :-1]) / np.sqrt(standard[:, 1:].size)
    assert abs(neighbours) < 4


def test_coefficients_are_bernoulli_gaussian(sample):
    nonzero = sample.x0[sample.x0 != 0.0]
    assert stats.binomtest(nonzero.size, 2000, 0.2).pvalue > 1e-3
    assert stats.kstest(nonzero, "norm").pvalue > 1e-3
    # The support must not know about the scales.
    assert stats.kstest(sample.v[sample.x0 != 0.0], sample.v[sample.x0 == 0.0]).pvalue > 1e-3


def test_labels(sample):
    residual = sample.y - sample.F @ sample.x0
    assert stats.kstest(residual, stats.norm(0, 0.3).cdf).pvalue > 1e-3


def test_without_label_noise():
    s = Model(sigma_xi=0.0).sample(100, rng=1)
    assert np.array_equal(s.y, s.F @ s.x0)


def test_dense_signal():
    assert np.all(Model(rho=1.0).sample(100, rng=1).x0 != 0.0)


def test_v_is_the_square_of_the_law_not_of_the_columns():
    s = Model(scales=Constant(3.0)).sample(50, rng=0)
    assert s.v.tolist() == [9.0] * 50
    s = Model(scales=Empirical([1.0, 2.0])).sample(50, rng=0)
    assert set(s.v) == {1.0, 4.0}


@pytest.mark.parametrize(
    ("alpha", "n_features", "rows"),
    [(0.5, 1000, 500), (0.3, 7, 2), (2.0, 3, 6), (1.0, 1, 1), (0.001, 1000, 1), (0.29, 100, 29)],
)
def test_number_of_rows(alpha, n_features, rows):
    s = Model(alpha=alpha).sample(n_features, rng=0)
    assert s.F.shape == (rows, n_features)


def test_randomness():
    model = Model()
    a, b = model.sample(30, rng=4), model.sample(30, rng=np.random.default_rng(4))
    assert np.array_equal(a.F, b.F)
    assert np.array_equal(a.y, b.y)
    assert not np.array_equal(model.sample(30).F, model.sample(30).F)


def test_memory_is_one_matrix():
    model = Model(alpha=1.0)
    model.sample(10, rng=0)
    tracemalloc.start()
    try:
        s = model.sample(1000, rng=0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1.1 * s.F.nbytes


def test_repr_shows_no_data():
    s = Model(alpha=0.5).sample(10, rng=0)
    assert repr(s) == "Sample(<5 rows, 10 columns>)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        s.y = s.x0  # pyright: ignore[reportAttributeAccessIssue]


def test_models_are_values():
    assert Model(0.5, 0.1, 0.1) == Model(scales=Uniform(0, 1))
    assert hash(Model(1, 1, 0)) == hash(Model(1.0, 1.0, 0.0))
    assert Model() != Model(scales=LogNormal())
    assert repr(Model()) == (
        "Model(alpha=0.5, rho=0.1, sigma_xi=0.1, scales=Uniform(low=0.0, high=1.0))"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": 0.0}, "alpha must be positive"),
        ({"alpha": np.nan}, "alpha must be finite"),
        ({"alpha": "1"}, "alpha must be a real number"),
        ({"rho": 0.0}, "rho must be positive"),
        ({"rho": 1.1}, "rho is a fraction"),
        ({"rho": 1j}, "rho must be a real number"),
        ({"sigma_xi": -0.1}, "sigma_xi must be zero or positive"),
        ({"sigma_xi": np.inf}, "sigma_xi must be finite"),
        ({"scales": 1.0}, "scales must be a law"),
        ({"scales": Uniform}, "scales must be a law"),
    ],
)
def test_bad_models(arguments, message):
    with pytest.raises(ValueError, match=message):
        Model(**arguments)


@pytest.mark.parametrize("n_features", [0, -1, 10.0, "10", None, True])
def test_bad_sizes(n_features):
    with pytest.raises(ValueError, match="n_features must be"):
        Model().sample(n_features)


def test_no_rows():
    with pytest.raises(ValueError, match=r"gives no rows; use at least 51 features"):
        Model(alpha=0.01).sample(50)
    assert Model(alpha=0.01).sample(51).F.shape == (1, 51)
    with pytest.raises(ValueError, match="rng must be"):
        Model().sample(10, rng="seed")  # pyright: ignore[reportArgumentType]
