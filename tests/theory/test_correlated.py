"""Predictions for correlated columns against certified solves, VAMP, closed forms and densities."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import privasso as pv
from privasso.model import (
    AutoRegressive,
    Blocks,
    EmpiricalSpectrum,
    Factors,
    GivenCovariance,
    PowerSpectrum,
    RandomEigenvectors,
    RotatedModel,
    TwoLevel,
)
from privasso.noise import Diagonal, Factored, MatrixPower
from privasso.theory import FixedPointStatus
from privasso.theory._draws import Draws, find_root

L = pv.LogNormal


def draw_noise(noise, model, rng):
    C = model.covariance
    if isinstance(noise, MatrixPower):
        root = noise.root(C.covariance)
        return root @ rng.standard_normal(root.shape[1])
    return noise.draw(C.diagonal, rng)


def measured(model, lam, noise, reps, seed=0, eta=None):
    """E and ρ̂ of certified solves with their standard errors; the covariance is known."""
    rng = np.random.default_rng(seed)
    C = model.covariance.covariance
    rows = []
    for _ in range(reps):
        s = model.sample(rng=rng)
        sol = pv.solve(s.F, s.y, lam, draw_noise(noise, model, rng) if eta is None else eta)
        assert sol.kkt_beyond_rounding <= 1e-8
        d = sol.x - s.x0
        rows.append((model.sigma_xi**2 + d @ C @ d / d.size, np.mean(sol.x != 0)))
    rows = np.array(rows)
    return rows.mean(axis=0), rows.std(axis=0, ddof=1) / np.sqrt(reps)


def deviations(fp, mean, error):
    """Differences in combined standard errors."""
    return (np.array([fp.E, fp.rho_hat]) - mean) / np.hypot(
        error, [fp.standard_errors.E, fp.standard_errors.rho_hat]
    )


@pytest.mark.parametrize(
    ("alpha", "kind", "noise"),
    [
        (0.5, AutoRegressive(0.8), pv.Isotropic(0.05)),
        (1.5, Blocks(10, 0.7), pv.Gram(0.1)),
        (0.3, Factors(3, 0.4), MatrixPower(0.05, 2.0)),
        (0.5, RandomEigenvectors(TwoLevel(10.0)), MatrixPower(0.05, 1.0)),
    ],
    ids=repr,
)
def test_predictions_against_certified_solves(alpha, kind, noise):
    model = pv.Model(alpha, 0.1, 0.1, L(0.0, 0.3), covariance=kind).realised(300, rng=0)
    fp = pv.state_evolution(model, 0.2, noise, draws=12, rng=1)
    assert fp.status is FixedPointStatus.STABLE
    off = deviations(fp, *measured(model, 0.2, noise, 12))
    assert np.all(np.abs(off) < 4), off


def test_random_eigenvectors_against_vector_amp():
    """Such rows are right-rotationally invariant: the scalar recursion predicts them too."""
    model = pv.Model(
        0.6, 0.1, 0.1, pv.Constant(1.0), covariance=RandomEigenvectors(TwoLevel(20.0, 0.3))
    ).realised(500, rng=0)
    fp: Any = pv.state_evolution(model, 0.2, pv.Isotropic(0.05), draws=16, rng=1)
    F = model.sample(rng=2).F
    spectrum = EmpiricalSpectrum(np.linalg.svd(F, compute_uv=False) ** 2)
    vamp = pv.state_evolution(
        RotatedModel(0.6, scales=pv.Constant(1.0), spectrum=spectrum), 0.2, pv.Isotropic(0.05)
    )
    # VAMP's E weighs all directions equally, so that only ρ̂ is the same number. Its error in the
    # plain norm is the mean over the columns.
    assert abs(vamp.rho_hat - fp.rho_hat) < 4 * fp.standard_errors.rho_hat + 0.003
    error = float(np.mean(fp.columns.error / model.covariance.diagonal))
    assert error == pytest.approx(vamp.E - 0.01, rel=0.1)


@pytest.mark.parametrize(("lam", "sigma"), [(0.2, 0.05), (0.3, 0.2), (0.2, 0.25)])
def test_a_diagonal_covariance_is_the_closed_form(lam, sigma):
    law, noise = L(0.0, 0.5), pv.Gram(sigma)
    closed = pv.state_evolution(pv.Model(scales=law), lam, noise, n_features=400)
    model = pv.Model(scales=law).realised(400, rng=0)
    fp = pv.state_evolution(model, lam, noise)
    for name in ("E", "V", "rho_hat", "stability"):
        assert getattr(fp, name) == pytest.approx(getattr(closed, name), rel=1e-8)
    assert fp.onavekl() == pytest.approx(closed.onavekl(), rel=1e-6)
    assert fp.onavekl("paper") == pytest.approx(closed.onavekl("paper"), rel=1e-6)
    assert fp.attack().auc == pytest.approx(closed.attack().auc, rel=1e-6)
    assert fp.attack().overlap == pytest.approx(closed.attack().overlap, rel=1e-6)
    assert fp.standard_errors.E == 0.0
    same = pv.state_evolution(
        model,
        lam,
        Diagonal(noise.variances(model.covariance.diagonal)),
    )
    assert pytest.approx(fp.E, rel=1e-12) == same.E


def test_simulation_agrees_with_the_closed_form():
    """The search over draws on independent columns, and the errors it states."""
    law, noise = L(0.0, 0.5), pv.Gram(0.1)
    closed = pv.state_evolution(pv.Model(scales=law), 0.2, noise, n_features=400)
    model = pv.Model(scales=law).realised(400, rng=0)
    off = []
    for seed in range(12):
        draws = Draws(model, 0.2, noise, 8, np.random.default_rng(seed))
        root = find_root(draws, 0.05, 0.7)
        assert root is not None
        wanted = np.array([np.log(closed.E / (1 + closed.V) ** 2), 1 / (1 + closed.V)])
        off.append(
            (np.array([np.log(root.b), root.q]) - wanted) / np.sqrt(np.diag(root.covariance))
        )
    off = np.array(off)
    assert np.all(np.abs(off.mean(axis=0)) < 4 / np.sqrt(12) * 1.2)
    assert np.all((off.std(axis=0) > 0.4) & (off.std(axis=0) < 2.0))


def test_any_form_of_the_same_noise_gives_the_same_prediction():
    model = pv.Model(scales=pv.Constant(1.0), covariance=AutoRegressive(0.7)).realised(200, rng=0)
    C = model.covariance.covariance
    found: list[Any] = [
        pv.state_evolution(model, 0.2, noise, draws=24, rng=0)
        for noise in (
            MatrixPower(0.1, 1.0),
            Factored.from_matrix(0.01 * C),
            MatrixPower(0.1, 1.0).covariance(C),
        )
    ]
    a, b, c = found
    error = np.hypot(a.standard_errors.E, b.standard_errors.E)
    assert abs(a.E - b.E) < 4 * error
    assert abs(a.E - c.E) < 4 * error
    assert a.onavekl("bound") == pytest.approx(b.onavekl("bound"), rel=0.2)
    for fp in (b, c):
        error = np.hypot(a.onavekl_error, fp.onavekl_error)
        assert abs(a.onavekl() - fp.onavekl()) < 4 * error
        assert fp.attack().advantage == pytest.approx(fp.advantage(), rel=1e-9)
    # Noise in a subspace does not hide the rows.
    flat = pv.state_evolution(
        model, 0.2, Factored(np.linalg.cholesky(C)[:, :50]).scaled(0.01), rng=0
    )
    assert flat.onavekl("bound") == np.inf
    for call in (flat.onavekl, flat.attack):
        with pytest.raises(ValueError, match="cover"):
            call()
    none: Any = pv.state_evolution(model, 0.2, MatrixPower(0.0, 1.0), rng=0)
    assert none.onavekl() == none.onavekl("bound") == np.inf


def test_bound_is_above_the_exact_divergence():
    model = pv.Model(scales=L(0.0, 0.3), covariance=AutoRegressive(0.7)).realised(200, rng=0)
    fp = pv.state_evolution(model, 0.2, pv.PowerLaw(0.1, 1.0), rng=0)
    assert 0 < fp.onavekl("paper") < fp.onavekl() < fp.onavekl("bound") < np.inf
    assert fp.standard_errors.onavekl > 0
    with pytest.raises(ValueError, match="kind"):
        fp.onavekl("other")


def exact_density(model, lam, noise, reps, records, seed=0):
    """OnAveKL by Monte Carlo of the exact density: mean and standard error.

    KL(D ‖ D∪a) over new records and KL(D∪a ‖ D) over members: a replaced record is both.
    """
    rng = np.random.default_rng(seed)
    m = round(model.alpha * model.covariance.n_columns)
    larger = replace(model, alpha=(m + records) / model.covariance.n_columns)
    means = []
    for _ in range(reps):
        s = larger.sample(rng=rng)
        F, y = s.F[:m], s.y[:m]
        x = pv.solve(F, y, lam, noise.draw(s.v, rng)).x[:, None]
        inside, out = (
            pv.theory.membership_losses(
                F, y, lam, noise.variances(s.v), x, rows=rows, labels=labels, member=member
            )
            for rows, labels, member in ((F, y, True), (s.F[m:], s.y[m:], False))
        )
        means.append(np.mean(inside) - np.mean(out))
    return np.mean(means), np.std(means, ddof=1) / np.sqrt(reps)


def check_density(kind, law, alpha, lam, noise, N, reps, records=60):
    model = pv.Model(alpha, 0.1, 0.1, law, covariance=kind).realised(N, rng=0)
    fp = pv.state_evolution(model, lam, noise, draws=24, rng=1)
    mean, error = exact_density(model, lam, noise, reps, records)
    assert abs(fp.onavekl() - mean) < 4 * np.hypot(error, fp.standard_errors.onavekl), (
        fp.onavekl(),
        mean,
        error,
    )


def test_onavekl_against_the_exact_density():
    check_density(
        AutoRegressive(0.7), pv.Constant(1.0), 0.5, 0.3, pv.Isotropic(0.15), N=200, reps=100
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "law", "alpha", "lam", "noise"),
    [
        (AutoRegressive(0.7), pv.Constant(1.0), 0.5, 0.2, pv.Isotropic(0.1)),
        (AutoRegressive(0.9), pv.Constant(1.0), 0.5, 0.2, pv.Isotropic(0.1)),
        (AutoRegressive(0.7), L(0.0, 0.5), 0.5, 0.2, pv.Gram(0.1)),
        (Blocks(10, 0.6), pv.Constant(1.0), 1.5, 0.3, pv.Isotropic(0.2)),
        (Factors(3, 0.5), L(0.0, 0.3), 0.5, 0.3, pv.PowerLaw(0.2, 1.0)),
        (RandomEigenvectors(TwoLevel(10.0)), pv.Constant(1.0), 0.8, 0.2, pv.Isotropic(0.1)),
    ],
    ids=repr,
)
def test_onavekl_against_the_exact_density_of_400_columns(kind, law, alpha, lam, noise):
    check_density(kind, law, alpha, lam, noise, N=400, reps=200)


def test_attack_against_exact_losses():
    model = pv.Model(
        0.5, 0.1, 0.1, pv.Constant(1.0), covariance=AutoRegressive(0.7)
    ).realised(200, rng=0)  # fmt: skip
    lam, noise = 0.3, pv.Isotropic(0.15)
    attack = pv.state_evolution(model, lam, noise, draws=16, rng=1).attack()
    assert 0.0 < attack.overlap < 1.0
    rng = np.random.default_rng(2)
    areas = []
    for _ in range(50):
        s = replace(model, alpha=1.0).sample(rng=rng)
        F, y = s.F[:100], s.y[:100]
        x = pv.solve(F, y, lam, noise.draw(s.v, rng)).x[:, None]
        inside, out = (
            pv.theory.membership_losses(
                F, y, lam, noise.variances(s.v), x, rows=rows, labels=labels, member=member
            )
            for rows, labels, member in ((F, y, True), (s.F[100:], s.y[100:], False))
        )
        areas.append(np.mean(np.ravel(inside)[:, None] > np.ravel(out)))
    assert abs(np.mean(areas) - attack.auc) < 4 * np.std(areas, ddof=1) / np.sqrt(50) + 0.005


def test_noise_at_hand():
    """For given scales and noise, independent columns against solves with that very noise."""
    rng = np.random.default_rng(0)
    v = rng.random(400) ** 2
    model = pv.Model(0.5, 0.1, 0.1, covariance=np.diag(v))
    noise = pv.Isotropic(0.05)
    eta = noise.draw(v, rng)
    fp = pv.state_evolution(model, 0.2, noise, eta=eta)
    assert fp.standard_errors.E == 0.0
    off = deviations(fp, *measured(model, 0.2, noise, 16, eta=eta))
    assert np.all(np.abs(off) < 4), off
    # The mean over the noise is the mean of the predictions, where no small column carries it.
    noise = pv.PowerLaw(0.1, 1.0)
    mean = pv.state_evolution(model, 0.2, noise)
    each = [pv.state_evolution(model, 0.2, noise, eta=noise.draw(v, rng)).E for _ in range(100)]
    assert abs(np.mean(each) - mean.E) < 4 * np.std(each) / 10 + 0.02 * mean.E
    with pytest.raises(ValueError, match="whoever knows"):
        fp.onavekl()
    with pytest.raises(ValueError, match="eta belongs"):
        pv.state_evolution(pv.Model(), 0.2, noise, eta=eta)


def test_noise_at_hand_on_correlated_columns():
    model = pv.Model(scales=L(0.0, 0.3), covariance=AutoRegressive(0.7)).realised(300, rng=0)
    eta = pv.Isotropic(0.08).draw(np.ones(300), rng=5)
    fp = pv.state_evolution(model, 0.2, pv.Isotropic(0.08), eta=eta, draws=12, rng=0)
    off = deviations(fp, *measured(model, 0.2, pv.Isotropic(0.08), 12, eta=eta))
    assert np.all(np.abs(off) < 4), off


@pytest.mark.parametrize(
    ("alpha", "kind", "kappa", "ridge"),
    [
        (2.0, AutoRegressive(0.8), 0.15, MatrixPower(0.3, 1.0)),
        (0.7, Blocks(10, 0.6), 0.3, pv.PowerLaw(0.4, 1.0)),
        (2.0, AutoRegressive(0.8), np.inf, MatrixPower(0.3, 1.0)),
    ],
    ids=repr,
)
def test_clipped_residuals_and_a_ridge(alpha, kind, kappa, ridge):
    model = pv.Model(alpha, 0.1, 0.1, L(0.0, 0.3), covariance=kind).realised(200, rng=0)
    C = model.covariance.covariance
    noise = MatrixPower(0.1, 1.0)
    fp = pv.state_evolution(model, 0.1, noise, kappa=kappa, ridge=ridge, draws=16, rng=1)
    rng = np.random.default_rng(2)
    if isinstance(ridge, MatrixPower):
        Q = ridge.root(C) @ ridge.root(C).T
    else:
        Q = ridge.variances(np.diag(C))
    rows = []
    for _ in range(12):
        s = model.sample(rng=rng)
        eta = draw_noise(noise, model, rng)
        sol = pv.solve_clipped(s.F, s.y, 0.1, eta, kappa=min(kappa, 1e3), ridge=Q)
        d = sol.x - s.x0
        rows.append((0.01 + d @ C @ d / d.size, np.mean(sol.x != 0)))
    off = deviations(fp, np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) / np.sqrt(12))
    assert np.all(np.abs(off) < 4), off
    with pytest.raises(ValueError, match="objective_delta"):
        fp.onavekl()


def test_clipped_residuals_on_independent_columns():
    law, noise, ridge = L(0.0, 0.5), pv.PowerLaw(0.1, 1.0), pv.PowerLaw(0.3, 1.0)
    closed = pv.state_evolution(
        pv.Model(2.0, scales=law), 0.1, noise, kappa=0.15, ridge=ridge, n_features=300
    )
    fp = pv.state_evolution(
        pv.Model(2.0, scales=law).realised(300, rng=0), 0.1, noise, kappa=0.15, ridge=ridge,
        draws=24, rng=1,
    )  # fmt: skip
    for name in ("E", "V", "rho_hat", "stability"):
        error = getattr(fp.standard_errors, name)
        assert abs(getattr(fp, name) - getattr(closed, name)) < 4 * error


def test_too_much_noise():
    model = pv.Model(scales=pv.Constant(1.0), covariance=AutoRegressive(0.5)).realised(200, rng=0)
    fp: Any = pv.state_evolution(model, 0.2, pv.Isotropic(1.0), rng=0)
    assert fp.status is FixedPointStatus.UNSTABLE
    assert fp.E == fp.V == np.inf
    assert fp.stability >= 1.0
    assert np.isnan(fp.onavekl())
    with pytest.raises(ValueError, match="no attack"):
        fp.attack()
    with pytest.raises(ValueError, match="no estimator"):
        _ = fp.columns
    rng = np.random.default_rng(0)
    s = model.sample(rng=rng)
    sol = pv.solve(s.F, s.y, 0.2, pv.Isotropic(1.0).draw(s.v, rng), throw=False)
    assert sol.status is pv.Status.UNBOUNDED


def test_a_singular_covariance_and_noise_outside_its_range():
    R = np.random.default_rng(0).standard_normal((60, 20)) / 4
    model = pv.Model(2.0, 0.1, 0.1, covariance=R @ R.T)
    assert pv.state_evolution(model, 0.01, pv.Isotropic(0.5), rng=0).status.name == "UNSTABLE"
    inside = pv.state_evolution(model, 0.1, MatrixPower(0.1, 1.0), rng=0)
    assert inside.status.name == "STABLE"


def test_arguments():
    model: Any = pv.Model(covariance=GivenCovariance(np.eye(3) + 0.1))
    wrong: Any = "gram"
    for call, words in [
        (lambda: pv.state_evolution(model, 0.2, wrong), "noise must be"),
        (lambda: pv.state_evolution(model, 0.2, Diagonal([1.0])), "1 columns"),
        (lambda: pv.state_evolution(model, 0.2, pv.Gram(0.1), n_features=5), "cannot be 5"),
        (lambda: pv.state_evolution(model, 0.2, pv.Gram(0.1), draws=1), "draws"),
        (lambda: pv.state_evolution(model, 0.2, pv.Gram(0.1), kappa=0.1), "positive ridge"),
        (lambda: pv.state_evolution(model, 0.2, pv.Gram(0.1), eta=np.ones(2)), "eta"),
        (lambda: pv.state_evolution(pv.Model(), 0.2, MatrixPower(0.1)), "noise must be"),
        (lambda: pv.theory.label_sensitivity(model, pv.Gram(0.1)), "independent columns"),
    ]:
        with pytest.raises(ValueError, match=words):
            call()


def test_a_correlation_takes_a_thousand_columns_unless_told():
    model = pv.Model(scales=pv.Constant(1.0), covariance=RandomEigenvectors(PowerSpectrum(0.5)))
    fp: Any = pv.state_evolution(model, 0.5, pv.Isotropic(0.1), n_features=150, rng=0)
    assert fp.columns.error.shape == (150,)
    assert fp.trajectory.shape[1] == 3
