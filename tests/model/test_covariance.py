"""Correlated columns: matrices, samples and bad input."""

import pickle

import numpy as np
import pytest
from sklearn.covariance import ledoit_wolf

import privasso as pv
from privasso.model import (
    AutoRegressive,
    Blocks,
    ColumnCovariance,
    Factors,
    GivenCovariance,
    PowerSpectrum,
    RandomEigenvectors,
    TwoLevel,
    covariance_from_name,
)

KINDS: list[ColumnCovariance] = [
    AutoRegressive(0.8),
    AutoRegressive(-0.5),
    Blocks(7, 0.6),
    Factors(2, 0.7),
    RandomEigenvectors(PowerSpectrum(1.0)),
    RandomEigenvectors(TwoLevel(10.0, 0.2)),
]


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_rows_have_the_covariance(kind):
    model = pv.Model(400.0, 0.1, 0.1, pv.LogNormal(0.0, 0.3), covariance=kind).realised(40, rng=0)
    assert isinstance(model.covariance, GivenCovariance)
    C = model.covariance.covariance
    s = model.sample(rng=1)
    assert s.F.shape == (16000, 40)
    np.testing.assert_allclose(s.v, np.diag(C), rtol=1e-14)
    size = np.sqrt(np.outer(s.v, s.v))
    # The entries of a sample covariance have deviations of at most √(2/M).
    assert np.max(np.abs(s.F.T @ s.F * 40 / 16000 - C) / size) < 5 * np.sqrt(2 / 16000)
    assert np.mean(np.diag(kind.matrix(40, np.random.default_rng(2)))) == pytest.approx(1.0)
    again = pv.Model(0.5, covariance=kind).sample(40, rng=3)
    assert again.F.shape == (20, 40)


def test_a_matrix_brings_its_scales_and_its_size():
    C = np.array([[1.0, 0.5], [0.5, 4.0]])
    model = pv.Model(2.0, covariance=C)
    assert model.scales == pv.Empirical([1.0, 2.0])
    assert model.sample(rng=0).F.shape == (4, 2)
    assert model.realised() is model
    assert pickle.loads(pickle.dumps(model)).sample(rng=0).y == pytest.approx(model.sample(rng=0).y)
    with pytest.raises(ValueError, match="cannot be 3"):
        model.sample(3)
    with pytest.raises(ValueError, match="leave scales out"):
        pv.Model(scales=pv.Uniform(), covariance=C)
    with pytest.raises(ValueError, match="n_features must be"):
        pv.Model(covariance=AutoRegressive()).sample()


def test_a_singular_covariance():
    L = np.random.default_rng(0).standard_normal((6, 2))
    C = GivenCovariance(L @ L.T)
    assert C.rank == 2
    np.testing.assert_allclose(C.root @ C.root.T, L @ L.T, atol=1e-8)
    assert np.linalg.matrix_rank(pv.Model(2.0, covariance=C).sample(rng=0).F) == 2


@pytest.mark.parametrize("shape", [(50, 8), (6, 20)])
def test_estimates_from_public_covariates(shape):
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape) @ rng.standard_normal((shape[1], shape[1])) + 3.0
    scale = X.std(axis=0)
    found = GivenCovariance.of(X).covariance / shape[1]
    wanted, _ = ledoit_wolf((X - X.mean(axis=0)) / scale, assume_centered=True)
    np.testing.assert_allclose(found, wanted * np.outer(scale, scale), rtol=1e-9)
    plain = GivenCovariance.of(X, shrink=0.0).covariance / shape[1]
    np.testing.assert_allclose(plain, np.cov(X.T, bias=True), rtol=1e-9)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: AutoRegressive(1.0), "between"),
        (lambda: Blocks(0, 0.5), "size"),
        (lambda: Blocks(2, -0.1), "at least 0"),
        (lambda: Factors(2, 1.0), "share"),
        (lambda: RandomEigenvectors(3), "Spectrum"),  # pyright: ignore[reportArgumentType]
        (lambda: GivenCovariance(np.ones((2, 3))), "square"),
        (lambda: GivenCovariance([[1.0, 0.5], [0.4, 1.0]]), "symmetric"),
        (lambda: GivenCovariance([[0.0, 0.0], [0.0, 1.0]]), "positive diagonal"),
        (lambda: GivenCovariance([[1.0, 2.0], [2.0, 1.0]]), "semidefinite"),
        (lambda: GivenCovariance.of(np.ones((5, 2))), "constant"),
        (lambda: GivenCovariance.of(np.eye(3), shrink=2.0), "shrink"),
        (lambda: GivenCovariance.of(np.ones((1, 2))), "two rows"),
    ],
)
def test_bad_input(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_what_is_for_independent_columns_refuses_a_covariance():
    model = pv.Model(covariance=AutoRegressive(0.5))
    for call in (
        lambda: pv.theory.label_sensitivity(model, pv.Gram(0.1)),
        lambda: pv.fit.FitOptions(pv.OnAverage(0.1), lam=0.1, model=model),
    ):
        with pytest.raises(ValueError, match="independent columns"):
            call()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("blocks:inf,0.5", "whole number"),
        ("blocks:nan,0.5", "whole number"),
        ("factors:2.5,0.5", "whole number"),
        ("ar:inf", "must be finite"),
        ("ar:2", "between -1 and 1"),
        ("blocks:5", "needs 2 numbers"),
        ("stripes:1", "none of"),
    ],
)
def test_texts_that_name_no_covariance_are_refused(text, why):
    with pytest.raises(ValueError, match=why):
        covariance_from_name("covariance", text)
