"""Noise and ridge that follow the correlations of the columns."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from parts import mu_of_sums

import privasso as pv
from privasso.accounting import objective_sensitivity, sensitivity_for
from privasso.blocks import RowBlocks
from privasso.fit import FitOptions, plan_for
from privasso.planning import RecordTable, calibrate_objective
from privasso.privacy import Guarantee, Terms
from privasso.problem import Huber
from privasso.queries import (
    EMPTIED,
    Answering,
    NoisySum,
    UncertifiedError,
    _objective_noise,
    _shaped_minimiser,
    bit_source,
)
from privasso.queries._minimiser import perturbed_minimiser
from privasso.queries._shaped_minimiser import shape_factor, shaped_minimiser, shrunk_rows
from privasso.solvers import FixedPoint

Y = (-4.0, 4.0)
BOUNDS = np.tile([-4.0, 4.0], (6, 1))
TRUE = np.array([0.5, -0.4, 0.4, 0.0, 0.0, 0.0])
TERMS = Terms(fit_intercept=True, seeded=False, n_rows=5000)


def covariates(m, seed, rho=0.9):
    C = rho ** np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    return np.random.default_rng(seed).standard_normal((m, 6)) @ np.linalg.cholesky(C).T


def table(m=5000, seed=0):
    X = covariates(m, seed)
    return X, X @ TRUE + 0.3 * np.random.default_rng(seed + 1000).standard_normal(m)


def bits(seed=0):
    return bit_source(np.random.default_rng(seed))


def record_dp(**settings):
    return pv.RecordDP(1.0, 1e-6, **{"bounds": BOUNDS, "y_bounds": Y, "level": False, **settings})


def shaped(m=5000, **settings):
    found = RecordTable(record_dp(**settings), m, 6).shaped()
    assert found is not None
    return found


def test_no_row_is_longer_than_the_radius_in_the_norm_of_the_shape():
    X = covariates(60, 1)
    X[:20] *= 1e4
    L = shape_factor(X[20:].T @ X[20:] / 40)
    rows, labels = shrunk_rows(X, np.ones(60), L, 1.5)
    exact = [[Fraction(float(x)) for x in row] for row in L]
    longest = Fraction(0)
    for row in rows:
        white: list[Fraction] = []
        for i in range(6):  # forward substitution in rational numbers
            done = sum((exact[i][j] * white[j] for j in range(i)), Fraction(0))
            white.append((Fraction(float(row[i])) - done) / exact[i][i])
        length = sum(w * w for w in white)
        longest = max(longest, length)
        assert length <= Fraction(1.5) ** 2
    assert longest > Fraction(1.5) ** 2 * Fraction(0.999)
    np.testing.assert_allclose(rows, labels[:, None] * X)


@pytest.mark.parametrize("rho", [0.0, 0.9, 0.999])
def test_it_is_the_plain_mechanism_in_turned_coordinates(rho):
    """Without a penalty, x = L⁻ᵀu, with u from rows L⁻¹g and the same random numbers."""
    X = covariates(500, 2, rho)
    y = np.clip(X @ TRUE / 8, -0.5, 0.5)
    L = shape_factor(X.T @ X / 500)
    noise = calibrate_objective(1.0, 1e-6, EMPTIED, loss=Huber(0.1), radius=3.0, t=0.4, n_rows=500)
    rows, labels = shrunk_rows(X, y, L, noise.radius)
    none = np.zeros(6)
    x = shaped_minimiser(rows, labels, 0.0, noise, bits(), L=L, penalty_weights=none)
    white = np.linalg.solve(L, rows.T).T
    u = perturbed_minimiser(white, labels, 0.0, noise, bits(), penalty_weights=none)
    np.testing.assert_allclose(L.T @ x, u, atol=1e-4 * noise.sigma_out)


def test_with_a_penalty_it_meets_the_optimality_conditions(monkeypatch):
    drawn = []
    draw = _objective_noise.rounded_gaussian

    def recorded(deviation, size, source):
        drawn.append(draw(deviation, size, source))
        return drawn[-1]

    monkeypatch.setattr(_objective_noise, "rounded_gaussian", recorded)
    X = covariates(800, 3)
    y = np.clip(X @ TRUE / 8, -0.5, 0.5)
    L = shape_factor(X.T @ X / 800)
    noise = calibrate_objective(1.0, 1e-6, EMPTIED, loss=Huber(0.1), radius=3.0, t=0.4, n_rows=800)
    # So little noise on the output that the conditions can be checked on what comes out.
    noise = replace(noise, sigma_out=1e-3 * noise.sigma_out, shift=1.0)
    rows, labels = shrunk_rows(X, y, L, noise.radius)
    weights, lam = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 0.0]), 2.0
    x = shaped_minimiser(rows, labels, lam, noise, bits(), L=L, penalty_weights=weights)
    psi = np.clip(labels - rows @ x, -noise.kappa, noise.kappa)
    eta = noise.sigma * L @ (drawn[0] / 2.0**52)
    gradient = -rows.T @ psi + noise.ridge * L @ (L.T @ x) + eta
    tolerance = 1e-3 * lam
    assert (x == 0.0).any()
    assert (x != 0.0).any()
    on = x != 0.0
    assert np.all(np.abs(gradient + lam * weights * np.sign(x))[on] < tolerance)
    assert np.all(np.abs(gradient[~on]) <= lam * weights[~on] + tolerance)


def test_nothing_is_published_without_a_certificate(monkeypatch):
    solve = _shaped_minimiser.solve_clipped_problem

    def careless(*args, **kwargs):
        return replace(solve(*args, **kwargs), distance=1e-6)

    monkeypatch.setattr(_shaped_minimiser, "solve_clipped_problem", careless)
    far = FixedPoint((0,) * 7, 1), 1e-6, 1
    monkeypatch.setattr(_shaped_minimiser, "minimise_long", lambda *_: far)
    X, y = table(500)
    with pytest.raises(UncertifiedError, match="nothing was published"):
        pv.PrivateLasso(privacy=record_dp(shape="private"), random_state=0).fit(X, y)


@pytest.mark.parametrize("where", ["x", "L"])
def test_the_certificate_notices_rounding_that_is_too_large(where):
    """The same bound with a unit of rounding a hundred million times as large is not enough."""
    noise = calibrate_objective(1.0, 1e-6, EMPTIED, loss=Huber(0.1), radius=3.0, t=0.4, n_rows=800)
    x = np.full(6, 1e9 if where == "x" else 0.1)
    L = np.diag([1.0, 1.0, 1.0, 1.0, 1.0, 1e-9 if where == "L" else 1.0])
    off = _shaped_minimiser._distance(x, 0.0, np.ones(6), L, noise)
    assert off > noise.shift * noise.sigma_out
    fine = _shaped_minimiser._distance(np.full(6, 0.1), 0.0, np.ones(6), np.eye(6), noise)
    assert fine < 0.1 * noise.shift * noise.sigma_out


def test_a_shape_of_columns_that_noise_has_hidden():
    """Private bounds of which none was found leave rows of zeros: no answer may end in an error."""
    np.testing.assert_array_equal(shape_factor(np.zeros((3, 3))), np.eye(3))


@pytest.mark.parametrize(
    "settings",
    [
        {"shape": "private"},
        {"shape": covariates(200, 9)},
        {"shape": "private", "scales": "private"},
        {"shape": "private", "bounds": "private"},
        {"shape": covariates(200, 9), "bounds": "private", "scales": "private"},
    ],
)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_fits(settings, fit_intercept):
    X, y = table()
    privacy = record_dp(**settings)
    est = pv.PrivateLasso(privacy=privacy, random_state=0, fit_intercept=fit_intercept).fit(X, y)
    assert est.score(X, y) > 0.6
    # Standard errors only where the noisy sums are there.
    assert hasattr(est, "coef_se_") == (privacy.shape == "private")


@pytest.mark.filterwarnings("ignore:the same labels")
def test_public_rows_help_with_correlated_columns():
    gains = []
    for seed in range(6):
        X, y = table(600, seed)
        plain, public = (
            pv.PrivateLasso(privacy=record_dp(**settings), random_state=seed).fit(X, y).score(X, y)
            for settings in ({}, {"shape": covariates(300, 9)})
        )
        gains.append(public - plain)
    assert np.mean(gains) > 0.02


@pytest.mark.parametrize(
    ("settings", "parts"),
    [({}, 1), ({"scales": "private"}, 3), ({"bounds": "private"}, 2)],
)
def test_all_releases_are_counted(settings, parts, monkeypatch):
    """The sensitivities that the releases are called with add up to the one that is stated."""
    called, run = [], NoisySum.run

    def watched(query, *args):
        called.append(query.mu)
        return run(query, *args)

    monkeypatch.setattr(NoisySum, "run", watched)
    X, y = table(2000)
    privacy = record_dp(shape="private", **settings)
    objective = shaped(2000, shape="private", **settings)
    objective(Answering(RowBlocks.of_arrays(X, y), bits()), 1.0)
    guarantee = plan_for(X, FitOptions(privacy)).guarantee
    assert len(called) == parts == len(privacy.released_before)
    total = math.sqrt(sum(mu**2 for mu in called))
    assert mu_of_sums(guarantee) == pytest.approx(total, rel=1e-12)
    assert 0.0 < math.sqrt(0.2) * sensitivity_for(1.0, 1e-6) - total < 1e-9
    assert Guarantee.from_dict(guarantee.to_dict()) == guarantee


def test_public_rows_cost_nothing():
    objective = shaped(shape=covariates(50, 9))
    assert objective.noise.c > 0.99 * objective_sensitivity(1.0, 1e-6, objective.noise.t)
    privacy = record_dp(shape=covariates(50, 9))
    guarantee = plan_for(covariates(2000, 0), FitOptions(privacy)).guarantee
    assert mu_of_sums(guarantee) == 0.0
    assert "the rows that the shape comes from" in str(guarantee)
    assert privacy == record_dp(shape=covariates(50, 9))
    assert hash(privacy) == hash(record_dp(shape=covariates(50, 9)))
    assert len(repr(privacy)) < 300


@pytest.mark.parametrize("repeats", [10, pytest.param(120, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("m", "rho", "spread"), [(30_000, 0.5, (0.8, 1.25)), (8000, 0.9, (0, 1))])
def test_standard_errors(repeats, m, rho, spread):
    """Where noise hides small eigenvalues they are too large, and never too small."""
    found = []
    for seed in range(repeats):
        X = covariates(m, seed, rho)
        y = X @ TRUE + 0.3 * np.random.default_rng(seed + 1000).standard_normal(m)
        privacy = record_dp(shape="private")
        est = pv.PrivateLasso(lam=1e-3, privacy=privacy, random_state=seed).fit(X, y)
        found.append((est.coef_ - TRUE) / est.coef_se_)
    z = np.array(found)[np.isfinite(found)]
    error = math.sqrt(0.05 * 0.95 / z.size)
    assert 0.93 - 4 * error < np.mean(np.abs(z) < 1.96) <= 1.0
    assert spread[0] < np.std(z) < spread[1]


@pytest.mark.parametrize("shape", [(1, 1), (3, 10)])
@pytest.mark.parametrize("constant", [False, True])
def test_small_wide_and_constant_tables(shape, constant):
    rng = np.random.default_rng(0)
    X = np.full(shape, 0.5) if constant else rng.uniform(-1, 1, shape)
    bounds = np.tile([-1.0, 1.0], (shape[1], 1))
    for given in ("private", X):
        privacy = pv.RecordDP(1.0, 1e-3, bounds, Y, shape=given)
        est = pv.PrivateLasso(privacy=privacy, random_state=0).fit(X, rng.random(shape[0]))
        assert np.isfinite(est.coef_).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shape": "data"}, "shape must be 'private', public rows or None"),
        ({"shape": [[1.0, math.nan]]}, "shape"),
        ({"shape": [1.0, 2.0]}, "shape"),
        ({"shape": "private", "mechanism": "statistics"}, "belongs to mechanism='objective'"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        record_dp(**settings)


def test_public_rows_of_other_columns():
    X, y = table(50)
    with pytest.raises(ValueError, match="must have the 6 columns of X"):
        pv.PrivateLasso(privacy=record_dp(shape=X[:, :3])).fit(X, y)
