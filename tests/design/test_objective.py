"""Designs of objective perturbation against grids, the accounting, and fits of simulated data."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

import privasso as pv
from privasso.accounting import objective_delta, objective_sensitivity
from privasso.design import InfeasibleError
from privasso.privacy import RecordBudget

U, L, C = pv.Uniform, pv.LogNormal, pv.Constant
LABELS, RECORDS = pv.LabelDP(1.0, 1e-6, (-1, 1)), RecordBudget(1.0, 1e-6)


def designed(model, budget, **options):
    if isinstance(budget, RecordBudget):
        return pv.optimal_design(model, pv.Budget(budget), **options)
    return pv.optimal_design(model, pv.Budget(budget, "objective"), **options)


def error_at(model, budget, kappa, t, lam, gamma):
    """E by state evolution, with noise and ridge written out for S = diag(v^γ), R² = E[v^(1−γ)]."""
    labels = isinstance(budget, pv.LabelDP)
    c = objective_sensitivity(budget.epsilon, budget.delta, t, "labels" if labels else "records")
    law = model.scales
    R2, size = law.moment(1.0 - gamma), law.moment(gamma)
    sigma = (2.0 if labels else 1.0) * kappa * np.sqrt(R2) / c
    noise = pv.PowerLaw(sigma * np.sqrt(size), gamma)
    ridge = pv.PowerLaw(np.sqrt(R2 / t * size), gamma)
    return pv.state_evolution(model, lam, noise, kappa=kappa, ridge=ridge).E


def least_on_a_grid(model, budget, sizes, gammas):
    """The least E over a grid of κ, t, λ and γ."""
    signal = np.sqrt(model.rho * model.scales.moment(1.0))
    end = np.expm1(budget.epsilon)
    kappas = np.geomspace(0.02, 3.0, sizes[0]) * np.hypot(signal, model.sigma_xi)
    ts = np.geomspace(0.03, 0.9, sizes[1]) * min(end, 100.0)
    # The largest useful λ sets all coefficients to zero.
    lams = np.geomspace(1e-3, 3.0, sizes[2]) * (1.0 + np.sqrt(model.alpha)) * signal
    return min(error_at(model, budget, *x) for x in itertools.product(kappas, ts, lams, gammas))


def case(rng):
    model = pv.Model(
        alpha=10 ** rng.uniform(-0.3, 2.0),
        rho=rng.uniform(0.02, 0.5),
        sigma_xi=10 ** rng.uniform(-1.5, 0.0),
        scales=[U(), L(0.0, 0.5), L(0.0, 1.0), C(), U(0.2, 1.0)][rng.integers(5)],
    )
    epsilon, delta = 10 ** rng.uniform(-0.5, 1.0), 10 ** rng.uniform(-9, -4)
    budgets = RecordBudget(epsilon, delta), pv.LabelDP(epsilon, delta, (-1, 1))
    return model, budgets[rng.integers(2)]


@pytest.mark.parametrize("seed", range(3))
def test_no_grid_point_is_better(seed):
    model, budget = case(np.random.default_rng(seed))
    found = designed(model, budget)
    assert 1.02 * least_on_a_grid(model, budget, (7, 5, 7), (0.4, 1.0)) >= found.E


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_no_point_of_a_fine_grid_is_better(seed):
    model, budget = case(np.random.default_rng(seed))
    found = designed(model, budget)
    assert 1.02 * least_on_a_grid(model, budget, (14, 9, 14), (0.0, 0.3, 0.7, 1.0)) >= found.E


@pytest.mark.parametrize("budget", [LABELS, RECORDS], ids=["labels", "records"])
def test_the_budget_is_met_and_used_up(budget):
    model = pv.Model(alpha=10.0, scales=L(0.0, 0.5))
    found = designed(model, budget)
    neighbours, change = (
        ("labels", 2.0 * found.kappa) if budget is LABELS else ("records", found.kappa)
    )
    # From what a fit would be given: variances σ²S and a ridge ΛS on columns v.
    v = model.scales.quantiles(2000) ** 2
    S = found.noise.variances(v) / found.sigma**2
    assert found.ridge.variances(v) == pytest.approx(found.radius**2 / found.t * S)
    c = change * found.radius / found.sigma
    delta = objective_delta(1.0, c, found.t, neighbours)
    assert 0.998e-6 < delta <= 1e-6
    assert found.radius**2 == pytest.approx(
        model.scales.moment(found.gamma) * model.scales.moment(1.0 - found.gamma), rel=1e-9
    )
    again = error_at(model, budget, found.kappa, found.t, found.lam, found.gamma)
    assert pytest.approx(again, rel=1e-9) == found.E
    assert found.explained == pytest.approx(1.0 - (found.E - 0.01) / (0.1 * model.scales.moment(1)))
    assert found.covers == neighbours
    assert f"for {neighbours})" in repr(found)
    assert "E=0.0" in repr(found)


def test_designed_fits_have_the_predicted_error():
    N, model = 200, pv.Model(alpha=8.0, scales=L(0.0, 0.5))
    found = designed(model, RECORDS, n_features=N)
    rng = np.random.default_rng(0)
    errors, sizes = [], []
    for _ in range(10):
        s = model.sample(N, rng)
        S = found.noise.variances(s.v) / found.sigma**2
        sizes.append(np.max(np.sum(s.F**2 / S, axis=1)))
        eta = found.sigma * np.sqrt(S) * rng.standard_normal(N)
        sol = pv.solve_clipped(
            s.F, s.y, found.lam, eta, kappa=found.kappa, ridge=found.ridge.variances(s.v)
        )
        errors.append(0.01 + np.mean(s.v * (sol.x - s.x0) ** 2))
    # Scales that are drawn scatter around the quantiles that the prediction is for.
    assert np.mean(errors) == pytest.approx(found.E, abs=4 * np.std(errors) / np.sqrt(9))
    assert np.median(np.sqrt(sizes)) == pytest.approx(found.radius, rel=0.03)


def test_more_privacy_costs_more():
    model = pv.Model(alpha=10.0)
    E = [designed(model, RecordBudget(epsilon, 1e-6)).E for epsilon in (10.0, 3.0, 1.0, 0.3)]
    assert 0.01 < E[0] < E[1] < E[2] < E[3] < 0.0434
    # A label that is replaced changes its slope by 2κ, a record that is emptied by κ.
    assert designed(model, RECORDS).E < designed(model, LABELS).E
    # At this budget noise on Fᵀy is far worse.
    assert designed(model, LABELS).E < 0.6 * pv.optimal_design(model, pv.Budget(LABELS)).E
    nothing = designed(pv.Model(alpha=0.5), LABELS)
    assert nothing.nearly_null
    assert nothing.null_error >= nothing.E


def test_what_is_given_is_kept():
    model = pv.Model(alpha=10.0, scales=L(0.0, 0.5))
    free = designed(model, RECORDS)
    fixed = designed(model, RECORDS, lam=2.0, gamma=1.0)
    assert (fixed.lam, fixed.gamma) == (2.0, 1.0)
    assert free.E < fixed.E
    # One search does not disturb the next.
    assert designed(model, RECORDS).E == free.E
    few = designed(model, RECORDS, n_features=50)
    assert few.radius > 1.1 * free.radius
    assert few.E > free.E


def test_bad_questions_are_refused():
    model = pv.Model(alpha=5.0)
    with pytest.raises(ValueError, match="privacy must be a budget such as LabelDP"):
        pv.optimal_design(model, pv.Budget(SimpleNamespace(epsilon=1.0)))  # pyright: ignore
    with pytest.raises(ValueError, match="whole records"):
        pv.optimal_design(model, pv.Budget(RECORDS, "release"))  # pyright: ignore
    with pytest.raises(ValueError, match="mechanism must be"):
        pv.optimal_design(model, pv.Budget(LABELS, "output"))  # pyright: ignore
    with pytest.raises(InfeasibleError, match=r"gamma = 1\.7"):
        pv.optimal_design(model, pv.Budget(RECORDS), gamma=1.7)
