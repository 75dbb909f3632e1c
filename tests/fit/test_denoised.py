"""The LASSO on the best guess, against scikit-learn on standardised columns."""

import time

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Lasso

import privasso as pv
from privasso._clock import Clock
from privasso.fit import Denoised, TimeLimitWarning
from privasso.fit._release_law import Posterior
from privasso.operators import Covariates
from privasso.solvers import Status

pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
PRIVACY = pv.LabelDP(3.0, 1e-6, (-4.0, 4.0))


def case(seed=0, m=60, n=9, centre=True, storage=np.asarray, weights=None):
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((m, n)) @ (np.eye(n) + 0.4 * rng.standard_normal((n, n)))
    F = F * np.logspace(-3, 3, n) + np.linspace(-1, 1, n)
    F[:, 4] = 0.5  # constant
    rows = Covariates(storage(F), centre=centre, weights=weights)
    coef = rng.standard_normal(int(rows.live.sum())) / np.sqrt(rows.squares[rows.live] / rows.total)
    return F, rows, Posterior(coef, np.ones_like(coef), 1.5 if centre else 0.0)


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(60, 9), (8, 20)])
def test_against_scikit_learn_on_standardised_columns(centre, storage, weighted, shape):
    w = np.random.default_rng(8).random(shape[0]) + 0.2 if weighted else None
    w = None if w is None else w / w.mean()
    F, rows, guess = case(0, *shape, centre=centre, storage=storage, weights=w)
    lasso, live = Denoised(guess, rows, tol=1e-10), rows.live
    C = (F - rows.mean)[:, live]
    scale = np.sqrt(rows.squares[live] / rows.total)
    Z, labels = C / scale, C @ guess.coef
    for part in (0.5, 0.1, 0.01):
        lam = part * lasso.largest_lam
        oracle = Lasso(lam / shape[0], fit_intercept=False, tol=1e-13, max_iter=1_000_000)
        oracle.fit(Z, labels, sample_weight=w)
        coef, intercept = lasso.solve(lam)
        fitted = Z @ oracle.coef_
        size = np.max(np.abs(fitted))
        np.testing.assert_allclose(C @ coef[live], fitted, atol=1e-5 * size)
        if shape[0] > shape[1]:
            np.testing.assert_allclose(scale * coef[live], oracle.coef_, atol=1e-6 * size)
        assert not coef[~live].any()
        expected = 1.5 - rows.mean @ coef if centre else 0.0
        assert intercept == pytest.approx(expected, abs=1e-9)
    assert not lasso.solve(1.0001 * lasso.largest_lam)[0].any()
    assert lasso.solve(0.999 * lasso.largest_lam)[0].any()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(8, 20), (60, 9)])
def test_columns_too_many_for_a_gram_matrix_have_the_same_coefficients(
    monkeypatch, weighted, shape
):
    w = np.random.default_rng(8).random(shape[0]) + 0.2 if weighted else None
    _, rows, guess = case(0, *shape, weights=None if w is None else w / w.mean())
    by_gram = Denoised(guess, rows, tol=1e-10)
    monkeypatch.setattr("privasso.fit._denoised.MOST_COLUMNS", 5)
    by_rows = Denoised(guess, rows, tol=1e-10)
    lams = by_gram.largest_lam * np.array([0.5, 0.1])
    assert by_rows.largest_lam == pytest.approx(by_gram.largest_lam, rel=1e-10)
    one, other = by_gram.path(lams), by_rows.path(lams)
    fitted = rows.normal_products(one.coef[rows.live])
    again = rows.normal_products(other.coef[rows.live])
    units = np.abs(fitted).max(axis=1)[:, None]
    np.testing.assert_allclose(again / units, fitted / units, atol=1e-6)
    assert by_rows.choose() == pytest.approx(by_gram.choose(), rel=1e-10)


@pytest.mark.parametrize("ended", [Status.TIME_LIMIT, Status.MAX_ITER, Status.DIVERGED])
def test_what_was_not_found_is_an_error_with_its_status(monkeypatch, ended):
    _, rows, guess = case()
    lasso = Denoised(guess, rows)
    x = np.zeros((int(rows.live.sum()), 1))
    monkeypatch.setattr(lasso, "_solutions", lambda lams, clock: (x, [ended]))
    with pytest.raises(pv.NotConvergedError, match="use a larger lam") as caught:
        lasso.solve(0.5 * lasso.largest_lam)
    assert caught.value.solution.status is ended
    assert caught.value.solution.kkt == pytest.approx(1.0)  # at zero the largest slope is 2 λ


def test_the_path_is_the_solutions():
    _, rows, guess = case()
    lasso = Denoised(guess, rows)
    lams = lasso.largest_lam * np.array([0.3, 0.9, 0.02])
    path = lasso.path(lams)
    for k, lam in enumerate(lams):
        coef, intercept = lasso.solve(lam)
        np.testing.assert_allclose(path.coef[:, k], coef, rtol=1e-5, atol=1e-9)
        assert path.intercept[k] == pytest.approx(intercept, abs=1e-6)
    for bad in ([0.0], [-1.0, 2.0]):
        with pytest.raises(ValueError, match="lams must be positive"):
            lasso.path(np.array(bad))


@pytest.mark.parametrize("seed", range(5))
def test_the_chosen_lambda_is_the_largest_on_its_grid_that_loses_little(seed):
    _, rows, guess = case(seed)
    lasso = Denoised(guess, rows)
    chosen = lasso.choose()
    grid = lasso.largest_lam * np.geomspace(1.0, 1e-3, 36)
    G, m = rows.gram, guess.coef
    live = rows.live

    def lost(lam):
        d = lasso.solve(lam)[0][live] - m
        return (d @ G @ d) / (m @ G @ m)

    allowed = [lam for lam in grid if lost(lam) <= 0.001]
    assert chosen == pytest.approx(max(allowed, default=grid[-1]), rel=1e-12)


def test_nothing_to_choose():
    rows = Covariates(np.random.default_rng(0).standard_normal((9, 3)), centre=True)
    lasso = Denoised(Posterior(np.zeros(3), np.ones(3), 0.5), rows)
    assert lasso.choose() == 1.0
    coef, intercept = lasso.solve(1.0)
    assert not coef.any()
    assert intercept == 0.5


def test_without_a_live_column():
    rows = Covariates(np.ones((5, 2)), centre=True)
    lasso = Denoised(Posterior(np.zeros(0), np.zeros(0), 0.7), rows)
    coef, intercept = lasso.solve(2.0)
    assert coef.tolist() == [0.0, 0.0]
    assert intercept == 0.7
    path = lasso.path(np.array([1.0, 2.0]))
    assert path.coef.shape == (2, 2)
    assert [s.name for s in path.status] == ["CONVERGED"] * 2
    est = pv.PrivateLasso(1.0, PRIVACY, random_state=0).fit(np.ones((50, 2)), np.zeros(50))
    assert not est.denoised_
    assert not est.coef_.any()


def data(m=400, n=6):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, n))
    return X, np.clip(X[:, 0] - 0.5 * X[:, 1] + 0.3 * rng.standard_normal(m), -4, 4)


@pytest.mark.parametrize("lam", ["auto", 20.0])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_columns_in_other_units_change_no_digit_of_a_prediction(lam, fit_intercept):
    X, y = data()
    s = 2.0 ** np.array([0, -20, 7, 31, -3, 12])
    options = {"privacy": PRIVACY, "fit_intercept": fit_intercept, "random_state": 0}
    plain = pv.PrivateLasso(lam, **options).fit(X, y)
    other = pv.PrivateLasso(lam, **options).fit(X * s, y)
    assert plain.denoised_
    assert plain.coef_.any()
    assert other.lam_ == plain.lam_
    np.testing.assert_array_equal(other.coef_ * s, plain.coef_)
    np.testing.assert_array_equal(other.predict(X * s), plain.predict(X))


def test_more_columns_than_rows_at_a_large_budget():
    """A κ that suits few rows for each column clips nearly all residuals of such tables."""
    scores = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((580, 120))
        y = np.clip(X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(580), -3, 3)
        privacy = pv.LabelDP(10.0, 1e-6, (-3.0, 3.0))
        est = pv.PrivateLasso(privacy=privacy, screen="all", random_state=seed)
        scores.append(est.fit(X[:80], y[:80]).score(X[80:], y[80:]))
    assert np.mean(scores) > 0.25


def test_storages_agree_to_the_error_of_the_chain():
    X, y = data()
    fits = [
        pv.PrivateLasso(5.0, PRIVACY, random_state=0).fit(how(X), y)
        for how in (np.asarray, np.asfortranarray, sp.csr_array)
    ]
    for other in fits[1:]:
        np.testing.assert_allclose(other.predict(X), fits[0].predict(X), atol=0.05)


def test_the_same_input_gives_the_same_output():
    X, y = data()
    est = pv.PrivateLasso("auto", PRIVACY).fit(X, y)
    coef, lam = est.coef_.copy(), est.lam_
    for _ in range(2):
        est.refit(X, "auto")
        assert est.lam_ == lam
        np.testing.assert_array_equal(est.coef_, coef)
    np.testing.assert_array_equal(est.release_.open(X).solve("auto").coef, coef)


def test_a_time_limit():
    _, rows, guess = case()
    lasso = Denoised(guess, rows)
    over = Clock(1e-9)
    time.sleep(0.001)
    with pytest.warns(TimeLimitWarning, match="ended the choice of lam"):
        assert lasso.choose(over) == lasso.largest_lam
    path = lasso.path(np.array([1.0, 2.0]) * 0.1 * lasso.largest_lam, clock=over)
    assert [s.name for s in path.status] == ["TIME_LIMIT"] * 2
    assert np.isnan(path.coef).all()
    assert np.isnan(path.intercept).all()
    assert lasso.choose(Clock(600.0)) == lasso.choose()


def test_a_guess_needs_bounded_labels_and_not_too_many_columns(monkeypatch):
    X, y = data()
    assert not pv.PrivateLasso(1.0, pv.OnAverage(0.1)).fit(X, y).denoised_
    monkeypatch.setattr("privasso.fit._released.MOST_COLUMNS", 5)
    assert not pv.PrivateLasso(1.0, PRIVACY).fit(X, y).denoised_
    est = pv.PrivateLasso("auto", PRIVACY).fit(X, y)  # Stein's estimate
    assert np.isfinite(est.coef_).all()
    monkeypatch.undo()
    assert not pv.PrivateLasso(1.0, PRIVACY, denoise=False).fit(X, y).denoised_
    raw = pv.PrivateLasso("auto", PRIVACY, denoise=False).fit(X, y)
    assert raw.score(X, y) > 0.5
