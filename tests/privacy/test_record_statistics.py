"""Noisy statistics of records: exact sums, sensitivity, noise, any λ from one release, errors."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from ledgers import mu_of
from sklearn.linear_model import Lasso

import privasso as pv
from privasso.accounting import gaussian_delta
from privasso.blocks import RowBlocks
from privasso.fit import FitOptions, plan_for
from privasso.planning import RecordTable
from privasso.privacy import Guarantee, Terms
from privasso.programs._record_statistics import Products
from privasso.queries import Answering, NoisySum, _rounded_gaussian, bit_source

Y = (-4.0, 4.0)
SCALE = np.array([1e-3, 1.0, 10.0, 1e4])
BOUNDS = np.stack([-4 * SCALE, 4 * SCALE], axis=1)
TRUE = np.array([0.5, -0.4, 0.3, 0.0])
TERMS = Terms(fit_intercept=True, seeded=False, n_rows=20_000)


def table(m=20_000, seed=0):
    """Columns with correlation ½ and scales over seven orders of magnitude."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((m, 4)) @ np.linalg.cholesky(0.5 + 0.5 * np.eye(4)).T
    return Z * SCALE, Z @ TRUE + 0.3 + 0.4 * rng.standard_normal(m)


def record_dp(**settings):
    given = {"bounds": BOUNDS, "y_bounds": Y, "mechanism": "statistics", **settings}
    return pv.RecordDP(1.0, 1e-6, **given)


def fitted(X, y, lam: float | str = "auto", seed=0, **settings):
    return pv.PrivateLasso(lam=lam, privacy=record_dp(**settings), random_state=seed).fit(X, y)


def products(m=50):
    """How records become products, and the integers that their rows become."""
    mechanism = RecordTable(record_dp(), m, 4).statistics()
    assert mechanism is not None
    X, y = table(m)
    one = Products(mechanism.table.view, mechanism.weight, mechanism.radius)
    G, labels = mechanism.table.rows(X, y)
    H = np.column_stack([G, mechanism.weight * labels])
    return one, X, y, np.rint(np.ldexp(H, one.half_unit)).astype(int)


def test_products_are_exact_sums_of_integers():
    one, X, y, K = products()
    rows, d = K.tolist(), one.size
    exact = [sum(row[i] * row[j] for row in rows) for i in range(d) for j in range(i, d)]
    assert one.sums(X, y).tolist() == exact
    assert NoisySum(one, 0.1).exact(RowBlocks.of_arrays(X, y, n_parts=7)) == exact


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("y_bounds", [Y, (10.0, 11.0)])
def test_no_record_moves_the_statistics_by_more_than_the_noise_allows(
    fit_intercept, y_bounds, monkeypatch
):
    seen = []
    draw = _rounded_gaussian.rounded_gaussian

    def recorded(deviation, size, source):
        seen.append((deviation, size))
        return draw(deviation, size, source)

    monkeypatch.setattr(_rounded_gaussian, "rounded_gaussian", recorded)
    X, y = table(200)
    X[:50] *= 1e3  # far outside of the bounds
    y[:20] = 1e9
    mechanism = RecordTable(
        record_dp(y_bounds=y_bounds), 200, 4, fit_intercept=fit_intercept
    ).statistics()
    assert mechanism is not None
    mechanism(Answering(RowBlocks.of_arrays(X, y), bit_source(np.random.default_rng(0))))
    (off, many), (diagonal, few) = seen
    G, labels = mechanism.table.rows(X, y)
    H = np.column_stack([G, mechanism.weight * labels])
    d = H.shape[1]
    assert (few, many) == (d, d * (d - 1) // 2)
    unit = 17 - math.ceil(math.log2(mechanism.radius))
    K = np.rint(np.ldexp(H, unit)).astype(int)
    mu = Fraction(mechanism.mu)
    for k in K.tolist():
        # What one record adds, in deviations of the noise on each entry, squared.
        squares = sum(Fraction(k[i] ** 2) ** 2 for i in range(d)) / Fraction(diagonal) ** 2
        squares += (
            sum(Fraction(k[i] * k[j]) ** 2 for i in range(d) for j in range(i)) / Fraction(off) ** 2
        )
        assert squares <= mu**2
    longest = max(sum(Fraction(x) ** 2 for x in k) for k in K.tolist())
    assert longest > Fraction(0.8) * Fraction(diagonal) * mu  # and the noise is not far too large


def test_any_lambda_from_one_release():
    X, y = table()
    est = fitted(X, y)
    assert est.score(X, y) > 0.6
    assert not hasattr(est, "release_")
    lams = [2.0, 200.0, 1e6]
    path = est.path(X, lams)
    assert path.coef.shape == (4, 3)
    assert not path.coef[:, 2].any()
    refit = est.refit(X, 200.0)
    np.testing.assert_array_equal(refit.coef_, path.coef[:, 1])
    assert refit.lam_ == 200.0
    assert est.refit(X).lam_ == pytest.approx(2e-5 * 20_000 * 8.0)
    assert repr(est.statistics_) == "KeptStatistics(n_rows=20000, n_features=4)"
    with pytest.raises(ValueError, match="4 columns"):
        est.refit(X[:, :3])
    with pytest.raises(ValueError, match="no sample_weight"):
        est.path(X, [1.0], sample_weight=np.ones(20_000))


def test_without_noise_it_is_the_lasso(monkeypatch):
    """Against scikit-learn on the scaled rows, which are not shrunk here."""
    monkeypatch.setattr(
        "privasso.queries._rounded_gaussian.rounded_gaussian",
        lambda deviation, size, bits: np.zeros(size, dtype=np.int64),
    )
    monkeypatch.setattr("privasso.programs._record_statistics.STATISTICS_RIDGE", 1e-9)
    X, y = table(2000)
    X, y = np.clip(X, 0.4 * BOUNDS[:, 0], 0.4 * BOUNDS[:, 1]), np.clip(y, -2.5, 2.5)
    lam = 0.05 * 2000
    est = fitted(X, y, lam=lam)
    F = X / (4 * SCALE)
    peer = Lasso(alpha=lam / 8.0 / 2000, tol=1e-12, max_iter=100_000).fit(F, y / 8.0)
    np.testing.assert_allclose(est.coef_ * 4 * SCALE / 8.0, peer.coef_, atol=2e-5)
    assert est.intercept_ / 8.0 == pytest.approx(peer.intercept_, abs=2e-5)


def test_the_statement():
    privacy = record_dp()
    guarantee = plan_for(np.zeros((20_000, 4)), FitOptions(privacy)).guarantee
    assert guarantee.kind == "record-dp"
    assert 0.99e-6 < gaussian_delta(1.0, mu_of(guarantee)) <= 1e-6
    assert "every λ" in str(guarantee)
    assert "certificate" not in str(guarantee)
    assert Guarantee.from_dict(guarantee.to_dict()) == guarantee
    assert mu_of(guarantee.group(2)) == 2 * mu_of(guarantee)
    assert mu_of(guarantee.compose(guarantee)) == pytest.approx(math.sqrt(2) * mu_of(guarantee))
    changed = guarantee.to_dict()
    changed["losses"][0]["mu"] *= 1.01
    with pytest.raises(ValueError, match="small enough"):
        Guarantee.from_dict(changed)


@pytest.mark.parametrize("bounds", ["private", 1000 * BOUNDS])
def test_after_private_scales_all_parts_are_counted(bounds):
    X, y = table()
    privacy = record_dp(bounds=bounds, scales="private")
    mechanism = RecordTable(privacy, 20_000, 4).statistics()
    assert mechanism is not None
    estimate = mechanism.table.estimate
    assert estimate is not None
    stated = mu_of(plan_for(np.zeros((20_000, 4)), FitOptions(privacy)).guarantee)
    assert math.sqrt(mechanism.mu**2 + 2 * estimate.mu**2) == pytest.approx(stated, rel=1e-9)
    assert gaussian_delta(1.0, stated) <= 1e-6
    assert fitted(X, y, bounds=bounds, scales="private").score(X, y) > 0.65


def test_the_ledger_and_no_warning_for_another_lambda():
    X, y = table(2000)
    ledger = pv.Ledger(1.2, 1e-6)
    est = pv.PrivateLasso(privacy=record_dp(), ledger=ledger, random_state=0).fit(X, y)
    est.path(X, [1.0, 2.0])
    assert ledger.spent() == pytest.approx(1.0, rel=1e-3)
    with pytest.raises(pv.BudgetError):
        est.fit(X, y)


def test_automatic_choice():
    """Statistics where little is predicted to be lost; the prediction is of the right size."""
    few, many = (
        RecordTable(record_dp(mechanism="auto"), m, 4).statistics() is not None
        for m in (1000, 100_000)
    )
    assert (few, many) == (False, True)
    X, y = table(5000)
    est = fitted(X, y, mechanism="auto")
    assert est.guarantee_.kind == "record-dp"
    mechanism = RecordTable(record_dp(), 5000, 4).statistics()
    assert mechanism is not None
    noise_free = 1 - 0.16 / np.var(y)
    found = np.mean([fitted(X, y + k * 1e-9, seed=k).score(X, y) for k in range(1, 9)])
    assert 0.1 < (noise_free - found) / mechanism.predicted_loss(5000) < 10.0


def coverage(m, repeats, **settings):
    """Deviations of the coefficients from the true ones in units of their standard errors."""
    found = []
    for seed in range(repeats):
        X, y = table(m, seed)
        est = fitted(X, y, lam=1e-6 * m, seed=seed, **settings)
        found.append((est.coef_ - TRUE / SCALE) / est.coef_se_)
    return np.array(found)


@pytest.mark.parametrize("repeats", [12, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("settings", [{}, {"bounds": "private", "scales": "private"}])
def test_standard_errors_cover_sampling_and_privacy_noise(repeats, settings):
    z = coverage(12_000, repeats, **settings)
    z = z[np.isfinite(z)]
    inside, error = np.mean(np.abs(z) < 1.96), math.sqrt(0.05 * 0.95 / z.size)
    assert 0.95 - 4 * error < inside < 0.95 + 4 * error
    assert 0.75 < np.std(z) < 1.25


def test_standard_errors_without_privacy_noise_are_too_small(monkeypatch):
    """The test above notices when the noise of the release is left out."""
    monkeypatch.setattr(
        "privasso.programs._record_statistics.RecordStatistics._errors",
        lambda self, u, A, H: np.append(0.4 / np.sqrt(12_000) * np.ones(4) / 8, 0.0),
    )
    assert np.mean(np.abs(coverage(12_000, 6)) < 1.96) < 0.6


def test_zero_coefficients_have_no_standard_error():
    X, y = table()
    est = fitted(X, y, lam=3000.0)
    zero = est.coef_ == 0.0
    assert zero.any()
    assert np.array_equal(np.isnan(est.coef_se_), zero)
    assert est.released_model().coef_se is est.coef_se_


@pytest.mark.parametrize("shape", [(1, 1), (3, 10), (2, 1)])
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("bounds", ["private", "given"])
def test_small_wide_and_constant_tables(shape, constant, bounds):
    rng = np.random.default_rng(0)
    X = np.full(shape, 7.0) if constant else rng.uniform(-1, 1, shape)
    given = "private" if bounds == "private" else np.tile([-1.0, 1.0], (shape[1], 1))
    est = fitted(X, rng.random(shape[0]), bounds=given)
    assert np.isfinite(est.coef_).all()


def test_nothing_of_the_data_is_kept():
    X, y = table(500)
    X[0], y[0] = 1.23456789, 0.987654321
    est = fitted(X, y)
    kept = pickle.dumps(est)
    for value in (1.23456789, 0.987654321):
        assert np.float64(value).tobytes() not in kept
    assert len(kept) < 20_000


def test_bad_settings():
    with pytest.raises(ValueError, match="mechanism must be one of"):
        record_dp(mechanism="sums")
