"""Spectra and data drawn with them, against explicit matrices."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest

import privasso as pv
from privasso.model import (
    EmpiricalSpectrum,
    MarchenkoPastur,
    Orthogonal,
    PowerSpectrum,
    RotatedModel,
    TwoLevel,
    uniform_frame,
)

WRONG: Any = [1.0, 2.0]
SPECTRA = [
    MarchenkoPastur(),
    Orthogonal(),
    TwoLevel(30.0, 0.2),
    PowerSpectrum(0.7),
    EmpiricalSpectrum([3.0, 1.0, 0.5, 0.1]),
]


@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("shape", [(30, 70), (50, 50), (90, 40)])
def test_values_have_the_mean_of_independent_entries(spectrum, shape):
    M, N = shape
    d = spectrum.values(M, N)
    assert d.shape == (min(M, N),)
    assert np.all(np.diff(d) <= 0)
    assert d.sum() == pytest.approx(M)
    if not isinstance(spectrum, PowerSpectrum):
        nodes, w = spectrum.rule(M / N)
        assert w.sum() == pytest.approx(min(M / N, 1.0))
        assert w @ nodes == pytest.approx(M / N)


@pytest.mark.parametrize("alpha", [0.3, 0.98, 1.0, 1.0001, 4.0])
def test_marchenko_pastur_moments(alpha):
    # Moments of AᵀA/N-traces for independent entries: Narayana polynomials.
    d, w = MarchenkoPastur().rule(alpha)
    assert w @ d**2 == pytest.approx(alpha * (1 + alpha), rel=1e-11)
    assert w @ d**3 == pytest.approx(alpha * (1 + 3 * alpha + alpha**2), rel=1e-11)
    if alpha != 1.0:  # E[1/d] = 1/|1-α| for the nonzero eigenvalues
        expected = 1 / (alpha - 1) if alpha > 1 else alpha / (1 - alpha)
        assert w @ (1 / d) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("shape", [(300, 600), (600, 300)])
def test_marchenko_pastur_is_the_spectrum_of_independent_entries(shape):
    M, N = shape
    A = np.random.default_rng(0).standard_normal(shape) / np.sqrt(N)
    seen = np.linalg.svd(A, compute_uv=False) ** 2
    np.testing.assert_allclose(seen, MarchenkoPastur().values(M, N), rtol=0.1, atol=0.02)


@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("alpha", [0.5, 1.5])
def test_a_sample_has_the_spectrum(spectrum, alpha):
    model = RotatedModel(alpha, scales=pv.LogNormal(), spectrum=spectrum)
    s = model.sample(60, rng=0)
    A = s.F / np.sqrt(s.v)
    seen = np.linalg.svd(A, compute_uv=False) ** 2
    np.testing.assert_allclose(seen, spectrum.values(*A.shape), atol=1e-10)
    again = EmpiricalSpectrum.of(s.F)
    assert again.values(*A.shape).sum() == pytest.approx(A.shape[0])


def test_frames_are_uniform():
    rng = np.random.default_rng(0)
    Q = np.array([uniform_frame(3, 2, rng) for _ in range(2000)])
    # A coordinate of a uniform direction in three dimensions is uniform on (-1, 1).
    for i in range(3):
        for j in range(2):
            assert kstest(Q[:, i, j], "uniform", (-1, 2)).pvalue > 1e-4


def test_zero_eigenvalues_are_kept_as_zeros():
    rng = np.random.default_rng(0)
    F = rng.standard_normal((40, 5)) @ rng.standard_normal((5, 60))
    spectrum = EmpiricalSpectrum.of(np.column_stack([F, np.zeros(40)]))
    assert np.count_nonzero(spectrum.eigenvalues) == 5
    assert spectrum == EmpiricalSpectrum(spectrum.eigenvalues[::-1])
    assert hash(spectrum) == hash(EmpiricalSpectrum(spectrum.eigenvalues))
    assert spectrum != EmpiricalSpectrum([1.0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TwoLevel(0.0), "ratio must be positive"),
        (lambda: TwoLevel(2.0, 1.0), "fraction"),
        (lambda: PowerSpectrum(-1.0), "exponent"),
        (lambda: EmpiricalSpectrum([1.0, -1.0]), "eigenvalues must be zero or more"),
        (lambda: EmpiricalSpectrum([0.0, 0.0]), "not all zero"),
        (lambda: EmpiricalSpectrum.of(np.zeros((2, 3))), "column that is not zero"),
        (lambda: PowerSpectrum().rule(0.5), "pass n_features"),
        (lambda: RotatedModel(spectrum=WRONG), "spectrum must be a Spectrum"),
        (lambda: RotatedModel(alpha=-1.0), "alpha"),
        (lambda: RotatedModel(scales=WRONG), "scales must be a law"),
        (lambda: RotatedModel(alpha=0.01).sample(3, rng=0), "gives no rows"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(ValueError, match=message):
        make()
