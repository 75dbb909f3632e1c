"""Designs for correlated columns: the target is met, and the choice beats the common ones."""

from typing import Any

import numpy as np
import pytest

import privasso as pv
from privasso.design._correlated import best_shape, row_size, shape_gap
from privasso.model import AutoRegressive, GivenCovariance
from privasso.noise import Factored, MatrixPower
from privasso.planning import objective_noise

BUDGET = pv.LabelDP(3.0, 1e-5, (-1, 1))


@pytest.fixture(scope="module")
def model():
    law = pv.LogNormal(0.0, 0.4)
    return pv.Model(8.0, 0.1, 0.1, law, covariance=AutoRegressive(0.8)).realised(60, rng=0)


def test_label_dp(model):
    best: Any = pv.optimal_design(model, pv.Budget(BUDGET), family="full", rng=0)
    table = best.comparison()
    errors = dict(zip(table["noise"], table["E"], strict=True))
    assert min(errors.values()) == pytest.approx(errors["full shape"])
    assert errors["best power"] <= min(errors[f"C^{g}"] for g in ("0", "0.5", "1", "2"))
    assert pytest.approx(errors["full shape"]) == best.E
    # The mean squared sensitivity of a row, from rows.
    noise = best.noise
    if isinstance(noise, MatrixPower):
        noise = noise.covariance(model.covariance.covariance)
    F = model.sample(rng=1).F
    sensitivity = 2.0 * np.sqrt(np.mean(noise.row_norms(F) ** 2))
    assert sensitivity == pytest.approx(BUDGET.mu, rel=0.06)
    # And the predicted error against solves.
    rng = np.random.default_rng(2)
    found = []
    for _ in range(40):
        s = model.sample(rng=rng)
        d = pv.solve(s.F, s.y, best.lam, noise.draw(rng)).x - s.x0
        found.append(0.01 + d @ model.covariance.covariance @ d / d.size)
    error = np.hypot(np.std(found, ddof=1) / np.sqrt(40), best.point.standard_errors.E)
    assert abs(np.mean(found) - best.E) < 4 * error


@pytest.mark.parametrize("weight", ["identity", "1/diag(C)", "random"])
def test_the_full_shape_against_another_solver(model, weight):
    """Least tr(WΣ) with tr(CΣ⁻¹) ≤ 1 as a semidefinite programme."""
    import cvxpy as cp

    C = GivenCovariance(model.covariance.covariance[:6, :6])
    W = np.eye(6) if weight == "identity" else np.diag(1.0 / C.diagonal)
    if weight == "random":
        root = np.random.default_rng(0).standard_normal((6, 6))
        W = root @ root.T + 0.1 * np.eye(6)
    shape = best_shape(W, C.covariance)
    assert abs(shape_gap(shape, W, C)) < 1e-12
    mine = shape.matrix() * np.trace(np.linalg.solve(shape.matrix(), C.covariance))
    Sigma: Any = cp.Variable((6, 6), PSD=True)
    frac: Any = cp.matrix_frac(np.linalg.cholesky(C.covariance), Sigma)
    programme = cp.Problem(cp.Minimize(cp.trace(W @ Sigma)), [frac <= 1.0])
    programme.solve()
    assert np.trace(W @ mine) == pytest.approx(programme.value, rel=1e-4)
    np.testing.assert_allclose(mine, Sigma.value, atol=2e-3 * np.max(mine))
    # Any other shape has a larger product, by what the gap says.
    other = Factored.from_matrix(mine + 0.3 * np.diag(np.diag(mine)))
    assert shape_gap(other, W, C) > 1e-3


def test_a_full_shape_says_what_is_proved(model):
    best: Any = pv.optimal_design(model, pv.Budget(BUDGET), lam=2.0, family="full", rng=0)
    assert (best.certificate is None) == (best.weight is None)
    if best.certificate is not None:
        assert abs(best.certificate) < 1e-9


def test_targets_on_leakage_and_error(model):
    leak: Any = pv.optimal_design(model, pv.MaxLeakage(1.0), lam=0.3, gamma=0.0, rng=0)
    assert 0.7 < leak.onavekl() <= 1.0
    assert isinstance(leak.noise, MatrixPower)
    error: Any = pv.optimal_design(model, pv.MaxError(1.5 * leak.E), lam=0.3, gamma=0.0, rng=0)
    assert leak.E < error.E <= 1.5 * leak.E
    assert error.onavekl() < leak.onavekl()


def test_refusals(model):
    with pytest.raises(pv.InfeasibleError, match="ask for less"):
        pv.optimal_design(model, pv.MaxError(1e-3), lam=0.3, gamma=0.0, rng=0)
    with pytest.raises(ValueError, match="targets"):
        pv.optimal_design(model, pv.MaxAdvantage(0.1))
    with pytest.raises(ValueError, match="family"):
        pv.optimal_design(model, pv.MaxError(0.1), family="cubic")


def test_objective_perturbation_of_records_keeps_to_the_budget(model):
    """The noise is what the budget asks for, and the radius is the size of rows."""
    budget = pv.privacy.RecordBudget(3.0, 1e-5)
    best: Any = pv.optimal_design(model, pv.Budget(budget), gamma=0.5, rng=0)
    C = model.covariance.covariance
    assert best.covers == "records"
    assert best.sigma == pytest.approx(best.kappa * best.radius * objective_noise(budget, best.t))
    shape = MatrixPower(1.0, 0.5).covariance(C)
    norms = shape.row_norms(model.sample(rng=1).F)
    assert np.sqrt(np.mean(norms**2)) == pytest.approx(best.radius, rel=0.03)
    Q = best.ridge.covariance(C).matrix()
    np.testing.assert_allclose(Q, shape.matrix() * best.radius**2 / best.t, rtol=1e-6)
    assert best.null_error > best.E


@pytest.mark.slow
def test_objective_perturbation_of_records(model):
    """The predicted error of the whole mechanism against fits with its settings."""
    budget = pv.privacy.RecordBudget(3.0, 1e-5)
    best: Any = pv.optimal_design(model, pv.Budget(budget), gamma=0.5, rng=0)
    C = model.covariance.covariance
    Q, law = best.ridge.covariance(C).matrix(), best.noise.covariance(C)
    rng = np.random.default_rng(2)
    found = []
    for _ in range(30):
        s = model.sample(rng=rng)
        eta = law.draw(rng)
        x = pv.solve_clipped(s.F, s.y, best.lam, eta, kappa=best.kappa, ridge=Q).x
        d = x - s.x0
        found.append(0.01 + d @ C @ d / d.size)
    error = np.hypot(np.std(found, ddof=1) / np.sqrt(30), best.point.standard_errors.E)
    assert abs(np.mean(found) - best.E) < 4 * error
    table = best.comparison()
    rows = {row["noise"]: row for row in table.iter_rows(named=True)}
    assert set(rows) == {"C^0", "C^0.5", "C^1", "C^2", "diagonal v^0.5", "diagonal v^1"}
    assert rows["C^0.5"]["E"] == best.E
    for name, gamma in (("C^0", 0.0), ("C^2", 2.0)):
        row = rows[name]
        F = model.sample(rng=1).F
        radius = np.sqrt(np.mean(MatrixPower(1.0, gamma).covariance(C).row_norms(F) ** 2))
        sigma = row["kappa"] * radius * objective_noise(budget, row["t"])
        assert row["sigma"] == pytest.approx(sigma, rel=0.1)


def test_the_size_of_a_row_by_hand():
    C = GivenCovariance(np.diag([1.0, 4.0]))
    assert row_size(MatrixPower(1.0, 1.0), C) ** 2 == pytest.approx(2.5)  # Σ = C/2.5
