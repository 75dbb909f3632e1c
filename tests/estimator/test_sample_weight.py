"""Weights of rows: integer weights are repeated rows, and only public ratios matter."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Lasso

import privasso as pv

pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
WEAK = pv.LabelDP(epsilon=1e6, delta=0.5, y_bounds=(-4.0, 4.0))  # next to no noise
STRONG = pv.LabelDP(epsilon=1.0, delta=1e-6, y_bounds=(-4.0, 4.0))


def data(seed=0, m=150, n=5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n)) * np.logspace(-1, 1, n) + 1.0
    y = X[:, 0] / 0.1 * 0.8 - 0.5 * X[:, 2] + 0.3 * rng.standard_normal(m)
    return X, y - y.mean() + 0.5, rng.integers(0, 4, m)


@pytest.mark.parametrize("storage", [np.asarray, np.float32, sp.csr_array])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_integer_weights_are_repeated_rows_without_noise(storage, fit_intercept):
    X, y, w = data()
    X = np.float32(X).astype(float)
    lam = 6.0
    options = {"privacy": pv.OnAverage(0.0), "fit_intercept": fit_intercept}
    weighted = pv.PrivateLasso(lam, **options).fit(storage(X), y, sample_weight=w)
    # λ is relative to the number of rows, and weights are brought to the mean 1.
    many = pv.PrivateLasso(lam * w.mean(), **options)
    many.fit(storage(np.repeat(X, w, axis=0)), np.repeat(y, w))
    np.testing.assert_allclose(weighted.coef_, many.coef_, rtol=1e-6, atol=1e-8)
    assert weighted.intercept_ == pytest.approx(many.intercept_, abs=1e-6)
    oracle = Lasso(lam / len(y), fit_intercept=fit_intercept, tol=1e-12, max_iter=100_000)
    oracle.fit(X, y, sample_weight=w)
    np.testing.assert_allclose(weighted.coef_, oracle.coef_, rtol=1e-5, atol=1e-6)
    again = pv.PrivateLasso(lam, **options).fit(storage(X), y, sample_weight=17.0 * w)
    np.testing.assert_allclose(again.coef_, weighted.coef_, rtol=1e-9)


@pytest.mark.parametrize("noise", ["power:0.5", pv.Shaped(shrink=0.0), pv.Shaped()], ids=str)
@pytest.mark.parametrize("denoise", [False, True])
def test_with_next_to_no_noise_they_are_repeated_rows_too(noise, denoise):
    # The guess takes repeated rows for new labels, a weighted row for one label: with few rows it
    # is more careful with weights.
    X, y, w = data(m=4000)
    if isinstance(noise, pv.Shaped) and noise.shrink > 0.0 and not denoise:
        # A row that is shrunk counts for less, on purpose: on rows of a model without errors it
        # makes no difference.
        y = 0.8 * (X[:, 0] - X[:, 0].mean()) / 0.1 + 0.5
    lam = 3.0 if denoise else 0.3
    options = {"privacy": WEAK, "noise": noise, "denoise": denoise, "random_state": 0}
    weighted = pv.PrivateLasso(lam, **options).fit(X, y, sample_weight=w)
    many = pv.PrivateLasso(lam * w.mean(), **options)
    many.fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    used = X[w > 0]
    np.testing.assert_allclose(weighted.predict(used), many.predict(used), atol=0.06)
    assert weighted.score(used, y[w > 0], w[w > 0]) > 0.9


@pytest.mark.parametrize("noise", ["power:0.5", "shaped"])
def test_refit_and_path_ask_for_the_weights_of_the_fit(noise):
    X, y, w = data()
    est = pv.PrivateLasso(2.0, STRONG, noise).fit(X, y, sample_weight=w)
    coef = est.coef_.copy()
    np.testing.assert_array_equal(est.refit(X, 2.0, sample_weight=w).coef_, coef)
    np.testing.assert_allclose(est.path(X, [2.0], 3 * w).coef[:, 0], coef, rtol=1e-4, atol=1e-5)
    for other in (None, w[::-1], w + 1):
        with pytest.raises(ValueError, match=r"not the covariates|release has been changed"):
            est.refit(X, 2.0, sample_weight=other)
        with pytest.raises(ValueError, match=r"not the covariates|release has been changed"):
            est.path(X, [2.0], sample_weight=other)
    plain = pv.PrivateLasso(2.0, STRONG, noise).fit(X, y)
    with pytest.raises(ValueError, match=r"not the covariates|release has been changed"):
        plain.refit(X, 2.0, sample_weight=w)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.r_[np.ones(149), -1.0], "sample_weight must be zero or more"),
        (np.r_[np.ones(149), np.nan], "sample_weight contains NaN"),
        (np.r_[np.ones(149), np.inf], "sample_weight contains NaN or infinity"),
        (np.ones(149), "weights must have shape"),
        (np.ones((150, 1)), "sample_weight must have 1 dimension"),
        (np.zeros(150), "not all zero"),
        (["a"] * 150, "sample_weight"),
    ],
)
def test_bad_weights_are_refused_before_noise_is_drawn(weights, message, monkeypatch):
    X, y, _ = data()
    monkeypatch.setattr("privasso.fit._plan.Answering", lambda *a: pytest.fail("noise drawn"))
    for privacy in (STRONG, pv.OnAverage(0.1)):
        with pytest.raises(ValueError, match=message):
            pv.PrivateLasso(1.0, privacy).fit(X, y, sample_weight=weights)


def test_rows_without_weight_leave_no_trace():
    X, y, w = data()
    changed = y.copy()
    changed[w == 0] = -4.0
    fits = []
    for labels in (y, changed):
        fits.append(pv.PrivateLasso(2.0, STRONG, random_state=0).fit(X, labels, w))
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    np.testing.assert_array_equal(fits[0].release_.b, fits[1].release_.b)
