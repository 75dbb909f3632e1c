"""The noise of columns and coefficients, and stability, by hand."""

import numpy as np
import pytest
from scipy.optimize import linprog

import privasso as pv
from privasso.fit import Postprocess
from privasso.noise import Diagonal
from privasso.operators import Covariates
from privasso.planning import calibrate
from privasso.programs import Release
from privasso.report import coefficient_noise, column_noise, stability_of
from privasso.report._facts import row_influence


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


def test_the_influence_of_rows_by_hand():
    rows = Covariates(np.array([[3.0, 0.0], [0.0, 1.0]]), centre=False)
    found = row_influence(rows, Diagonal([4.0, 0.25]), None)
    assert found == pytest.approx([0.75, 1.0])  # 3/2 against 1/(1/2)
