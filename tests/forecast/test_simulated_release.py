"""Simulated releases against fits of simulated labels, from the labels to R² on new rows."""

import numpy as np
import pytest

import privasso as pv
from privasso.fit import FitOptions, plan_fit
from privasso.forecast import Assumptions, Estimate, Population, Scheme, Truth
from privasso.operators import Covariates

BOUNDS = (10.0, 34.0)


def columns(rng, m, n, strength):
    """Correlated columns of very different scales, with heavy tails."""
    mix = np.eye(n) + strength * rng.standard_normal((n, n))
    return rng.standard_t(6, (m, n)) @ mix * np.geomspace(0.1, 100, n)


def end_to_end(X, options, truth, rng, weights=None):
    """R² on the rows X of a real fit of labels that follow the truth."""
    plan = plan_fit(X, options, sample_weight=weights, seeded=True)
    rows, centre = plan.rows, float(np.mean(options.privacy.y_bounds))
    F = X - rows.mean
    coef = truth.coef / np.sqrt(rows.squares / rows.total)
    predicted = centre + truth.level + F @ coef
    y = predicted + truth.residual_sd * rng.standard_normal(X.shape[0])
    model = plan.release(y, rng=rng).solve()
    found = model.intercept + X @ model.coef
    own = np.ones(X.shape[0]) if weights is None else np.asarray(weights)
    error = np.average((found - predicted) ** 2, weights=own) + truth.residual_sd**2
    mean = np.average(predicted, weights=own)
    spread = np.average((predicted - mean) ** 2, weights=own) + truth.residual_sd**2
    return 1.0 - error / spread


SETTINGS = {
    "default": ({}, 1.0, 0.5),
    "weak": ({}, 0.5, 0.5),
    "given lam": ({"lam": 40.0}, 3.0, 0.5),
    "release itself": ({"lam": 3e3, "denoise": False}, 1.5, 0.2),
    "diagonal": ({"noise": "power:0.5"}, 2.0, 0.5),
}


def compare(options, epsilon, strength, fits, m=400, n=6, weighted=False):
    rng = np.random.default_rng(1)
    X = columns(rng, m, n, strength)
    X += 5.0 if options.get("fit_intercept", True) else 0.0
    weights = rng.uniform(0.2, 2.0, m) if weighted else None
    bounds = BOUNDS if options.get("fit_intercept", True) else (-12.0, 12.0)
    options = FitOptions(pv.LabelDP(epsilon, 1e-6, bounds), **options)
    plan = plan_fit(X, options, sample_weight=weights)
    scheme = Scheme.of_plan(plan, options.fixed_lam)
    population, table = Population(plan.rows), scheme.table(1.0)
    simulated, real = [], []
    for _ in range(fits):
        # Labels far from their bounds: clipping is a matter of its own.
        truth = population.draw(Assumptions(0.3, 0.6, 2.0), 6.0, rng)
        found = table.outcome(truth, rng)
        assert found is not None
        simulated.append(population.r2(truth, found))
        real.append(end_to_end(X, options, truth, rng, weights))
    return np.array(simulated), np.array(real)


def agree(simulated, real, systematic):
    """Means of pairs within four standard errors, and the deviations within a quarter."""
    difference = simulated - real
    error = np.std(difference) / np.sqrt(difference.size)
    assert abs(np.mean(difference)) < 4.0 * error + systematic
    assert np.std(simulated) == pytest.approx(np.std(real), rel=0.35)


@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
@pytest.mark.parametrize("name", [pytest.param("weak", marks=pytest.mark.slow), "release itself"])
def test_simulated_fits_are_like_real_ones(name):
    agree(*compare(*SETTINGS[name], fits=40), systematic=0.01)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
@pytest.mark.parametrize("name", list(SETTINGS))
@pytest.mark.parametrize("shape", [(400, 6), (300, 40), (2000, 12)])
def test_many_simulated_fits_are_like_real_ones(name, shape):
    m, n = shape
    agree(*compare(*SETTINGS[name], fits=200, m=m, n=n), systematic=0.005)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
@pytest.mark.parametrize("options", [{"fit_intercept": False}, {}])
def test_weights_and_no_intercept(options):
    agree(*compare(options, 10.0, 0.5, fits=150, weighted=True), systematic=0.005)


def test_r2_is_that_of_predictions_on_rows():
    rng = np.random.default_rng(0)
    X = columns(rng, 300, 4, 0.5)
    for centre in (True, False):
        rows = Covariates(X, centre=centre)
        scale = np.sqrt(rows.squares / 300)
        truth = Truth(rng.standard_normal(4), 0.7 if centre else 0.0, 0.8)
        found = Estimate(truth.coef + 0.2 * rng.standard_normal(4), 0.9 if centre else 0.0)
        F = (X - rows.mean) / scale
        labels, predicted = truth.level + F @ truth.coef, found.level + F @ found.coef
        error = np.mean((labels - predicted) ** 2) + 0.8**2
        expected = 1.0 - error / (np.var(labels) + 0.8**2)
        assert Population(rows).r2(truth, found) == pytest.approx(expected)


def test_truths_are_those_that_the_sentence_describes():
    rng = np.random.default_rng(0)
    rows = Covariates(columns(rng, 500, 30, 0.5), centre=True)
    population, suppose = Population(rows), Assumptions(0.2, 0.3, 2.0)
    truths = [population.draw(suppose, 10.0, rng) for _ in range(2000)]
    counts = np.array([np.count_nonzero(one.coef) for one in truths])
    signal = np.array([one.coef @ population.covariance @ one.coef for one in truths])
    residual = np.array([one.residual_sd**2 for one in truths])
    share, deviation = signal / (signal + residual), np.sqrt(signal + residual)
    for found, (low, high) in (
        (counts / 30, (2 / 30, 0.6)),
        (share, suppose.r2_range),
        (deviation, suppose.label_sd_range),
    ):
        np.testing.assert_allclose([found.min(), found.max()], [low, high], rtol=0.02)
    assert np.median(share) == pytest.approx(0.3, abs=0.02)
    level = np.array([one.level for one in truths])
    assert np.all(np.abs(level) + 2.0 * deviation <= 10.0 + 1e-9)
    assert np.max(np.abs(level)) > 6.5
