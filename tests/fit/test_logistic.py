"""The logistic LASSO from a release: guess, solve, errors, choice of λ."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from privasso.fit import Classes, LogisticLasso, TimeLimitWarning
from privasso.fit._logistic import LogisticLaw, LogisticRows
from privasso.noise import Diagonal
from privasso.operators import Covariates
from privasso.programs import Release
from privasso.solvers import Clock, Status

TRUE = np.array([1.5, 0.0, -0.7, 0.0])


def table(m=600, seed=0, coef=TRUE, intercept=0.4):
    rng = np.random.default_rng(seed)
    X = (
        rng.standard_normal((m, coef.size))
        @ np.linalg.cholesky(0.5 * np.eye(coef.size) + 0.5).T
        * np.logspace(-2, 2, coef.size)
    )
    odds = X / np.logspace(-2, 2, coef.size) @ coef + intercept
    return X, (rng.random(m) < expit(odds)).astype(float)


def exact_release(rows, y, sigma):
    """A release with noise of so little effect that it can be left out."""
    n = rows.shape[1]
    b = rows.rmatvec(y - 0.5)
    noise = Diagonal(sigma**2 * rows.squares)
    total = float(np.sum(y - 0.5)) if rows.centred else None
    return Release(b, noise, rows.shape[0], 0.5, total, None if total is None else sigma), n


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_it_is_the_logistic_lasso_on_the_probabilities_of_the_guess(centred, storage):
    X, y = table(intercept=0.4 if centred else 0.0)
    rows = Covariates(storage(X), centre=centred)
    release, _ = exact_release(rows, y, 0.1)
    lasso = LogisticLasso(release, rows, None)
    coef, intercept = lasso.solve(12.0)
    p = expit(lasso.rows.log_odds(lasso.guess))
    # A label with probability p is a row with label 1 and weight p, and one with 0 and 1 − p.
    Z = (X - rows.mean) / np.sqrt(rows.squares / len(y))
    oracle = LogisticRegression(
        l1_ratio=1.0, C=1 / 12.0, solver="saga", tol=1e-10, max_iter=20_000, fit_intercept=centred
    )
    labels = np.repeat([1.0, 0.0], len(y))
    oracle.fit(np.vstack([Z, Z]), labels, sample_weight=np.concatenate([p, 1 - p]))
    np.testing.assert_allclose(X @ coef + intercept, oracle.decision_function(Z), atol=1e-5)
    np.testing.assert_array_equal(coef == 0.0, oracle.coef_[0] == 0.0)


def test_without_noise_the_guess_is_the_maximum_likelihood():
    X, y = table(m=20_000)
    rows = Covariates(X, centre=True)
    release, _ = exact_release(rows, y, 1e-4)
    lasso = LogisticLasso(release, rows, None)
    found = expit(lasso.rows.log_odds(lasso.guess))
    oracle = LogisticRegression(C=np.inf, tol=1e-10).fit(X / X.std(axis=0), y)
    assert np.max(np.abs(found - oracle.predict_proba(X / X.std(axis=0))[:, 1])) < 0.01


def test_a_release_that_no_labels_could_give_has_a_model():
    # The sum of products is beyond what any labels reach: a plain minimiser would not exist.
    X, _ = table(m=50)
    rows = Covariates(X, centre=True)
    scale = np.sqrt(rows.squares)
    b = 3.0 * np.sum(np.abs(X - rows.mean), axis=0)
    release = Release(b, Diagonal((scale * 20.0) ** 2), 50, 0.5, 0.0, 20.0)
    lasso = LogisticLasso(release, rows, None)
    coef, intercept = lasso.solve(0.01)
    assert np.isfinite([*coef, intercept]).all()
    assert np.max(np.abs(X @ coef + intercept)) < 20.0


def newton(rows, weights, b):
    """Coefficients at which the expected release is b."""
    x = np.zeros(rows.units.size)
    for _ in range(8):
        p = expit(rows.log_odds(x))
        x = x + np.linalg.solve(
            rows.moments(weights * p * (1 - p)), b - rows.products(weights * (p - 0.5))
        )
    return x


def test_standard_errors_are_the_spread_of_fits():
    X, _ = table(m=400)
    rows = LogisticRows(Covariates(X, centre=True))
    rng = np.random.default_rng(5)
    weights = rng.uniform(0.3, 1.0, 400)
    x = np.array([0.8, 0.5, -0.6, 0.3, 0.2])
    sigma = np.array([4.0, 3.0, 5.0, 4.0, 6.0])
    p, found = expit(rows.log_odds(x)), []
    for _ in range(300):
        y = rng.random(400) < p
        b = rows.products(weights * (y - 0.5)) + sigma * rng.standard_normal(5)
        found.append(newton(rows, weights, b)[:4])
    law = LogisticLaw(rows, weights, np.zeros(5), np.diag(sigma**2))
    # 300 fits: one standard error of a deviation is 4 %; the law is linear to first order only.
    np.testing.assert_allclose(law.errors(x), np.std(found, axis=0), rtol=0.14)
    support = x * [1, 0, 1, 1, 1]
    errors = law.errors(support)
    assert np.isnan(errors[1])
    assert np.isfinite(errors[[0, 2, 3]]).all()


def test_lambda_is_the_largest_that_loses_a_quarter_of_a_percent():
    X, y = table()
    rows = Covariates(X, centre=True)
    lasso = LogisticLasso(exact_release(rows, y, 0.1)[0], rows, None)
    p = expit(lasso.rows.log_odds(lasso.guess))

    def deviance(odds):
        return np.sum(np.logaddexp(0.0, odds) - p * odds)

    def lost(lam):
        coef, intercept = lasso.solve(lam)
        null = np.full(p.size, np.log(p.mean() / (1 - p.mean())))
        best = deviance(np.log(p / (1 - p)))
        return (deviance(X @ coef + intercept) - best) / (deviance(null) - best)

    chosen = lasso.choose()
    assert lost(chosen) <= 0.001 < lost(1.25 * chosen)
    assert lost(lasso.largest_lam * (1 + 1e-9)) == pytest.approx(1.0)
    assert not lasso.solve(lasso.largest_lam * (1 + 1e-9))[0].any()
    assert lasso.solve(lasso.largest_lam * (1 - 1e-3))[0].any()


def test_path_is_the_solutions():
    X, y = table()
    rows = Covariates(X, centre=True)
    lasso = LogisticLasso(exact_release(rows, y, 0.1)[0], rows, None)
    path = lasso.path(np.array([1.0, 50.0, 5.0]))
    assert (path.status == Status.CONVERGED).all()
    for k, lam in enumerate(path.lams.tolist()):
        coef, intercept = lasso.solve(lam)
        np.testing.assert_allclose(path.coef[:, k], coef, rtol=1e-4, atol=1e-8)
        assert path.intercept[k] == pytest.approx(intercept, abs=1e-5)
    with pytest.raises(ValueError, match="positive"):
        lasso.path(np.array([-1.0]))


def test_an_expired_clock_ends_the_choice():
    X, y = table()
    rows = Covariates(X, centre=True)
    lasso = LogisticLasso(exact_release(rows, y, 0.1)[0], rows, None)
    clock = Clock(1.0)
    clock.stop()
    with pytest.warns(TimeLimitWarning, match="may predict as well"):
        assert 0.0 < lasso.choose(clock) < lasso.largest_lam


@pytest.mark.parametrize("centred", [True, False])
def test_no_column_carries_data(centred):
    rows = Covariates(np.full((30, 2), 3.0 if centred else 0.0), centre=centred)
    label_sum, sigma = (12.0, 0.1) if centred else (None, None)
    release = Release(np.zeros(2), Diagonal(np.zeros(2)), 30, 0.5, label_sum, sigma)
    lasso = LogisticLasso(release, rows, None)
    coef, intercept = lasso.solve(lasso.choose())
    assert not coef.any()
    assert expit(intercept) == pytest.approx(0.87 if centred else 0.5, abs=0.05)
    assert lasso.path(np.array([1.0])).intercept[0] == intercept


@pytest.mark.parametrize(
    "classes", [(0, 0), "ab", (1, 2, 3), (None, 1), 5, ("a", float("nan")), ("\ud800", "b")]
)
def test_classes_are_two_names(classes):
    with pytest.raises(ValueError, match="two different names or numbers"):
        Classes.given(classes)


@pytest.mark.parametrize("labels", [[0, 1], [["no"], ["yes"]], np.zeros(2, dtype=complex)])
def test_labels_of_another_type_are_refused(labels):
    with pytest.raises(ValueError, match="the labels"):
        Classes("no", "yes").coded(labels)


def test_labels_of_neither_class_are_missing():
    labels = np.array(["no", "secret", None, "yes", 1.0, float("nan"), [3]], dtype=object)
    found = Classes("no", "yes").coded(labels)
    np.testing.assert_array_equal(found, [0.0, np.nan, np.nan, 1.0, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(Classes("no", 2).coded([2.0, 1.0]), [1.0, np.nan])
