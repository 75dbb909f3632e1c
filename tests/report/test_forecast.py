"""Forecasts against simulations of the model they suppose; columns and stability by hand."""

import numpy as np
import pytest
from scipy.optimize import linprog

import privasso as pv
from privasso.fit import Postprocess
from privasso.noise import Diagonal
from privasso.operators import Covariates
from privasso.privacy import Release, calibrate
from privasso.report import (
    Assumptions,
    coefficient_noise,
    column_noise,
    compare,
    forecast,
    stability_of,
)


def test_the_forecast_is_what_simulated_fits_do():
    rng = np.random.default_rng(0)
    m, n, rho, r2, sd = 600, 200, 0.1, 0.6, 7.0
    scales = np.exp(rng.normal(0.0, 0.7, n))
    level = 60.0
    design = pv.PowerLaw(level, 0.5)
    tau = np.sqrt(r2 * sd**2 / (rho * np.sum(scales**2)))
    predicted = forecast(
        Covariates(rng.standard_normal((m, n)) * scales, centre=False),
        design,
        Assumptions(rho, r2, sd),
        lam=150.0,
    )
    found, counts = [], []
    for _ in range(12):
        F = rng.standard_normal((m, n)) * scales
        x0 = np.where(rng.random(n) < rho, tau * rng.standard_normal(n), 0.0)
        y = F @ x0 + np.sqrt(1 - r2) * sd * rng.standard_normal(m)
        v = np.sum(F**2, axis=0)
        x = pv.solve(F, y, 150.0, design.draw(v, rng=rng)).x
        error = np.sum(scales**2 * (x - x0) ** 2) + (1 - r2) * sd**2
        found.append(1.0 - error / sd**2)
        counts.append(np.count_nonzero(x))
    for value, draws in ((predicted.r2, found), (predicted.nonzero, counts)):
        assert abs(value - np.mean(draws)) < 4 * np.std(draws) / np.sqrt(len(draws))
    assert predicted.critical_lam == 0.0


def test_the_best_lambda_is_best():
    rng = np.random.default_rng(1)
    rows = Covariates(rng.standard_normal((300, 50)) * np.geomspace(0.1, 10, 50), centre=True)
    suppose = Assumptions(0.2, 0.5, 2.0)
    best = forecast(rows, pv.PowerLaw(30.0, 0.5), suppose)
    for factor in (0.5, 2.0):
        other = forecast(rows, pv.PowerLaw(30.0, 0.5), suppose, factor * best.lam)
        assert other.r2 < best.r2


def test_units_do_not_matter():
    rng = np.random.default_rng(2)
    F = rng.standard_normal((300, 30)) * np.geomspace(0.1, 10, 30)
    one = forecast(Covariates(F, centre=True), pv.Gram(5.0), Assumptions(0.1, 0.5, 2.0), 40.0)
    # Columns in thousandths, labels in hundredths: b and λ grow by both factors.
    other = forecast(
        Covariates(1e3 * F, centre=True), pv.Gram(5e5), Assumptions(0.1, 0.5, 200.0), 4e6
    )
    assert other.r2 == pytest.approx(one.r2)
    assert other.nonzero == pytest.approx(one.nonzero)


def test_same_guarantee_for_both():
    rng = np.random.default_rng(3)
    rows = Covariates(rng.standard_normal((200, 10)) * np.geomspace(0.1, 10, 10), centre=True)
    privacy = pv.LabelDP(1.0, 1e-6, (0, 1))
    ours, even = compare(rows, privacy, pv.Gram(1.0), Assumptions(0.1, 0.5, 0.2))
    for one in (ours, even):
        sigma = calibrate(rows, privacy, one.noise).covariance.sigma
        assert one.noise.sigma == pytest.approx(np.sqrt(np.mean(sigma**2)))
    assert len(compare(rows, privacy, pv.Isotropic(1.0), Assumptions(0.1, 0.5, 0.2))) == 1


@pytest.mark.parametrize(
    "bad", [{"rho": 0.0}, {"rho": 1.5}, {"r2": 1.0}, {"r2": 0.0}, {"label_sd": 0.0}]
)
def test_bad_assumptions(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        Assumptions(**{"rho": 0.1, "r2": 0.5, "label_sd": 1.0, **bad})


def test_coefficient_noise_is_what_repeated_draws_show():
    rng = np.random.default_rng(4)
    F = rng.standard_normal((300, 6)) @ (np.eye(6) + 0.4) * np.geomspace(0.1, 10, 6)
    y = F @ (np.array([3.0, 0, -2, 1, 0, 1]) / np.geomspace(0.1, 10, 6))
    rows = Covariates(F, centre=False)
    sigma = 0.02 * rows.squares**0.5
    b, coefs, stated = rows.rmatvec(y), [], []
    for _ in range(300):
        noisy = b - sigma * rng.standard_normal(6)
        release = Release(noisy, Diagonal(sigma**2), n_rows=300, centre=0.0)
        post = Postprocess(release, rows)
        coef, _ = post.solve(1.0)
        coefs.append(coef)
        stated.append(coefficient_noise(post, coef))
    always = np.all(np.array(coefs) != 0.0, axis=0)
    assert always.sum() >= 4
    spread, claimed = np.std(coefs, axis=0)[always], np.mean(stated, axis=0)[always]
    np.testing.assert_allclose(claimed, spread, rtol=0.2)


def test_shares_add_up_and_constant_columns_have_none():
    F = np.column_stack([np.arange(6.0), np.ones(6), np.arange(6.0) ** 2])
    rows = Covariates(F, centre=True)
    noise = calibrate(rows, pv.LabelDP(1.0, 1e-6, (0, 1)), pv.PowerLaw(1.0, 0.5)).covariance
    columns, sigma = column_noise(rows, noise), noise.embedded(rows.live).sigma
    assert columns.share.sum() == pytest.approx(1.0)
    assert columns.share[1] == columns.sigma[1] == columns.in_label_units[1] == 0.0
    own = (np.std(F[:, 0]) * np.sqrt(6) / sigma[0]) ** 2
    other = (np.std(F[:, 2]) * np.sqrt(6) / sigma[2]) ** 2
    assert columns.share[0] == pytest.approx(own / (own + other))


def test_critical_lambda_of_a_release():
    rng = np.random.default_rng(5)
    F, b = rng.standard_normal((10, 15)), rng.standard_normal(15)
    post = Postprocess(
        Release(b, Diagonal(np.ones(15)), n_rows=10, centre=0.0), Covariates(F, centre=False)
    )
    found = stability_of(post)
    # max bᵀd with Fd = 0, ‖d‖₁ ≤ 1, written with positive and negative parts.
    programme = linprog(
        -np.concatenate([b, -b]),
        A_ub=np.ones((1, 30)),
        b_ub=[1.0],
        A_eq=np.hstack([F, -F]),
        b_eq=np.zeros(10),
    )
    assert found.kind == "exact"
    assert found.critical_lam == pytest.approx(-programme.fun, rel=1e-6)
    assert "2 times" in found.sentence(-2 * programme.fun)
    tall = Postprocess(
        Release(b, Diagonal(np.ones(15)), n_rows=20, centre=0.0),
        Covariates(rng.standard_normal((20, 15)), centre=False),
    )
    assert stability_of(tall).kind == "full rank"
    twins = np.hstack([F, F])
    double = Release(np.tile(b, 2), Diagonal(np.ones(30)), n_rows=10, centre=0.0)
    assert stability_of(Postprocess(double, Covariates(twins, centre=False))).kind == "exact"
