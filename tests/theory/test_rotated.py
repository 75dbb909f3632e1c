"""State evolution for covariates with a given spectrum: closed forms, matrices and solves."""

from typing import Any

import numpy as np
import pytest

import privasso as pv
from privasso.model import (
    EmpiricalSpectrum,
    MarchenkoPastur,
    Orthogonal,
    PowerSpectrum,
    RotatedModel,
    TwoLevel,
)
from privasso.theory import FixedPointStatus
from privasso.theory._system import eigenvalue_averages

L = pv.LogNormal
LAWS = [pv.Constant(1.0), L(0.0, 0.5), pv.Uniform(0.1, 1.0)]


@pytest.mark.parametrize("alpha", [0.3, 0.5, 0.99, 1.0, 1.5, 10.0])
@pytest.mark.parametrize("law", LAWS)
def test_independent_entries_are_one_spectrum(alpha, law):
    for lam, noise in [
        (0.2, pv.Gram(0.05)),
        (0.05, pv.Isotropic(0.01)),
        (3.0, pv.PowerLaw(0.3, 1.0)),
        (0.2, pv.Gram(0.0)),
        (50.0, pv.Gram(0.05)),
    ]:
        closed = pv.state_evolution(pv.Model(alpha, scales=law), lam, noise)
        fp = pv.state_evolution(RotatedModel(alpha, scales=law), lam, noise)
        assert fp.status is closed.status is FixedPointStatus.STABLE
        assert pytest.approx(closed.E, rel=2e-6) == fp.E
        assert pytest.approx(closed.V, rel=2e-6, abs=1e-15) == fp.V
        assert fp.rho_hat == pytest.approx(closed.rho_hat, rel=2e-6, abs=1e-15)
        assert fp.stability == pytest.approx(closed.stability, rel=2e-6, abs=1e-15)
        # The first iterate of VAMP is that of AMP.
        np.testing.assert_allclose(fp.trajectory[:2], closed.trajectory[:2], rtol=1e-5, atol=1e-15)


@pytest.mark.parametrize("rank", [20, 40])
def test_averages_over_eigenvalues_are_traces(rank):
    """Against dense matrices, and derivatives against differences."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, rank)) @ rng.standard_normal((rank, 40)) / 7
    G = A.T @ A
    d = np.maximum(np.linalg.eigvalsh(G), 0.0)
    w = np.full(40, 1 / 40)
    for ell in (-3.0, 0.2, 4.0):
        P = np.exp(ell) * np.linalg.inv(G + np.exp(ell) * np.eye(40))
        Q = np.eye(40) - P
        r = np.trace(Q) / 40
        found = eigenvalue_averages(ell, d, w)
        expected = [
            r,
            np.trace(G @ P @ P) / 40,
            np.trace(Q @ Q) / 40 / r**2 - 1,
            np.trace(P @ P) / 40,
        ]
        np.testing.assert_allclose(found[:4], expected, rtol=1e-9)
        # Eigenvalues that are zero may be left out: their mass is what the weights lack.
        live = d > 1e-9
        np.testing.assert_allclose(eigenvalue_averages(ell, d[live], w[live]), found, rtol=1e-9)
        up, down = (np.array(eigenvalue_averages(ell + h, d, w)[:4]) for h in (1e-5, -1e-5))
        np.testing.assert_allclose(found[4:], (up - down) / 2e-5, rtol=1e-6)


@pytest.mark.parametrize("law", LAWS)
def test_orthogonal_rows_in_closed_form(law):
    # γ₂ = α/ρ̂ − 1 for eigenvalues 0 and 1, hence γ₁ = (α − ρ̂)/(1 − ρ̂).
    fp = pv.state_evolution(
        RotatedModel(0.6, scales=law, spectrum=Orthogonal()), 0.1, pv.Gram(0.05)
    )
    assert pytest.approx(fp.rho_hat * (1 - fp.rho_hat) / (0.6 - fp.rho_hat), rel=1e-9) == fp.V


def test_orthogonal_columns_against_simulation():
    # AᵀA = αI: each coefficient is thresholded by itself, in one iteration.
    model = RotatedModel(2.0, scales=L(0.0, 0.5), spectrum=Orthogonal())
    fp = pv.state_evolution(model, 0.3, pv.Gram(0.1))
    rng = np.random.default_rng(0)
    s = rng.lognormal(0.0, 0.5, 10**6)
    x0 = np.where(rng.random(s.size) < 0.1, rng.standard_normal(s.size), 0.0)
    eta = pv.Gram(0.1).draw(s**2, rng)
    c = 2 * s**2 * x0 + s * np.sqrt(2) * 0.1 * rng.standard_normal(s.size) - eta
    x = np.sign(c) * np.maximum(np.abs(c) - 0.3, 0) / (2 * s**2)
    loss = s**2 * (x - x0) ** 2
    assert abs(loss.mean() + 0.01 - fp.E) < 4 * loss.std() / 1e3
    assert abs(np.mean(x != 0) - fp.rho_hat) < 4 * 0.5 / 1e3
    assert pytest.approx(fp.rho_hat / 2) == fp.V
    np.testing.assert_allclose(fp.trajectory[1], [fp.E, fp.V, fp.rho_hat], rtol=1e-6)


def measured(model, lam, noise, N, reps, seed=0):
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(reps):
        s = model.sample(N, rng)
        sol = pv.solve(s.F, s.y, lam, noise.draw(s.v, rng))
        assert sol.kkt_beyond_rounding <= 1e-8
        A = s.F / np.sqrt(s.v)
        S = A[:, sol.x != 0]
        rows.append(
            (
                np.mean(s.v * (sol.x - s.x0) ** 2) + model.sigma_xi**2,
                np.trace(np.linalg.inv(S.T @ S)) / N,
                np.count_nonzero(sol.x) / N,
            )
        )
    rows = np.array(rows)
    return rows.mean(axis=0), rows.std(axis=0, ddof=1) / np.sqrt(reps)


SPECTRA = [MarchenkoPastur(), Orthogonal(), TwoLevel(100.0), PowerSpectrum(1.0)]


def check_solves(alpha, spectrum, law, noise, N, reps):
    model = RotatedModel(alpha, scales=law, spectrum=spectrum)
    fp = pv.state_evolution(model, 0.2, noise, n_features=N)
    mean, error = measured(model, 0.2, noise, N, reps)
    assert fp.status is FixedPointStatus.STABLE
    off = np.abs(mean - [fp.E, fp.V, fp.rho_hat])
    assert np.all(off < 4 * error), (mean, fp, error)


@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("alpha", [0.5, 1.5])
def test_predictions_against_certified_solves(alpha, spectrum):
    check_solves(alpha, spectrum, L(0.0, 0.5), pv.Gram(0.05), N=240, reps=8)


@pytest.mark.slow
@pytest.mark.parametrize("spectrum", [*SPECTRA, TwoLevel(1e4, 0.1), PowerSpectrum(2.0)])
@pytest.mark.parametrize("alpha", [0.5, 1.5])
@pytest.mark.parametrize("law", [pv.Constant(1.0), L(0.0, 0.5), pv.Uniform()])
@pytest.mark.parametrize("noise", [pv.Isotropic(0.03), pv.Gram(0.1)])
def test_predictions_against_certified_solves_of_a_thousand_columns(alpha, spectrum, law, noise):
    check_solves(alpha, spectrum, law, noise, N=1000, reps=12)


def test_the_spectrum_of_one_matrix_predicts_its_solve():
    model = RotatedModel(0.5, scales=L(0.0, 0.5), spectrum=TwoLevel(20.0, 0.3))
    s = model.sample(200, rng=0)
    seen = RotatedModel(0.5, scales=pv.Empirical(np.sqrt(s.v)), spectrum=EmpiricalSpectrum.of(s.F))
    a = pv.state_evolution(seen, 0.2, pv.Gram(0.05))
    own = RotatedModel(0.5, scales=pv.Empirical(np.sqrt(s.v)), spectrum=model.spectrum)
    b = pv.state_evolution(own, 0.2, pv.Gram(0.05))
    assert pytest.approx(b.E, rel=0.02) == a.E


@pytest.mark.parametrize("spectrum", [Orthogonal(), TwoLevel(50.0)])
def test_the_critical_line_does_not_depend_on_the_spectrum(spectrum):
    law, noise = L(0.0, 0.5), pv.Gram(0.2)
    edge = pv.theory.critical_lambda_ratio(pv.Model(0.5, scales=law), noise) * 0.2
    model = RotatedModel(0.5, scales=law, spectrum=spectrum)
    above = pv.state_evolution(model, 1.0001 * edge, noise)
    below = pv.state_evolution(model, 0.9999 * edge, noise)
    assert above.status is FixedPointStatus.STABLE
    assert 0.95 < above.stability < 1
    assert above.V > 20
    assert below.status is FixedPointStatus.UNSTABLE
    assert below.stability >= 1
    assert below.E == below.V == np.inf
    # The recursion itself runs away at the predicted rate, where the start leads to it.
    far = pv.state_evolution(model, 0.7 * edge, noise)
    assert far.trajectory[-1, 1] > 1e6
    assert far.trajectory[-1, 2] == pytest.approx(far.rho_hat, rel=1e-3)
    # And so do matrices: the linear programme knows only the row space.
    rng = np.random.default_rng(0)
    critical = []
    for _ in range(8):
        s = model.sample(200, rng)
        critical.append(pv.critical_lambda(s.F, noise.draw(s.v, rng)))
    error = np.std(critical, ddof=1) / np.sqrt(8)
    assert abs(np.mean(critical) - edge) < 4 * error + 0.02 * edge


def test_missing_rank_moves_the_critical_line():
    # Half the eigenvalues are zero: the line is that of α = 0.4, not of 0.8.
    model = RotatedModel(0.8, scales=L(), spectrum=EmpiricalSpectrum([1.0, 0.0]))
    noise = pv.Gram(0.2)
    edge = pv.theory.critical_lambda_ratio(pv.Model(0.4, scales=L()), noise) * 0.2
    fp = pv.state_evolution(model, 1.01 * edge, noise)
    assert fp.status is FixedPointStatus.STABLE
    assert fp.stability == pytest.approx(fp.rho_hat / 0.4)
    assert pv.state_evolution(model, 0.99 * edge, noise).stability >= 1


def test_infinite_error():
    model = RotatedModel(3.0, spectrum=Orthogonal())
    fp = pv.state_evolution(model, 1.0, pv.Isotropic(0.25))
    assert fp.status is FixedPointStatus.INFINITE_ERROR
    assert (fp.E, fp.rho_hat, fp.trajectory.shape) == (np.inf, 1.0, (2, 3))
    assert pytest.approx(1 / 3) == fp.V
    assert fp.trajectory[1, 0] == np.inf
    finite = pv.state_evolution(model, 1.0, pv.Isotropic(0.25), n_features=500)
    assert np.isfinite(finite.E)


def test_what_is_not_predicted_is_refused():
    model: Any = RotatedModel(0.5, spectrum=Orthogonal())
    fp = pv.state_evolution(model, 0.2, pv.Gram(0.1))
    assert isinstance(fp, pv.theory.FixedPoint)
    assert fp.model is model
    assert np.isnan(fp.advantage())
    for call in (
        fp.onavekl,
        lambda: fp.onavekl("paper"),
        fp.attack,
        lambda: pv.state_evolution(model, 0.2, pv.Gram(0.1), kappa=0.1),
        lambda: pv.state_evolution(model, 0.2, pv.Gram(0.1), ridge=0.1),
        lambda: pv.tradeoff(model, 0.2, pv.Gram(0.1), sigmas=[0.1]),
        lambda: pv.critical_noise(model, 0.2, pv.Gram(0.1)),
        lambda: pv.optimal_design(model, pv.MaxError(0.1)),
    ):
        with pytest.raises((TypeError, ValueError), match=r"Model|rows"):
            call()
    with pytest.raises(ValueError, match="pass n_features"):
        pv.state_evolution(RotatedModel(spectrum=PowerSpectrum()), 0.2, pv.Gram(0.1))
    with pytest.raises(ValueError, match="noise must be a noise design"):
        pv.state_evolution(pv.Model(), 0.2, model)
