"""The posterior mean against conditioning by hand; λ from it against the best in hindsight."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

import privasso as pv
from privasso.fit import _posterior, posterior_mean


def problem(seed, m=40, n=5):
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((m, n)) @ (np.eye(n) + 0.5 * rng.standard_normal((n, n)))
    F *= np.exp(rng.normal(0, 1, n))
    A = rng.standard_normal((n, n))
    return F, A @ A.T * np.trace(F.T @ F) / n + np.diag(np.diag(F.T @ F)), rng


@pytest.mark.parametrize("exponent", [0.0, 1.0])
def test_one_prior_is_plain_conditioning(monkeypatch, exponent):
    F, noise, rng = problem(0)
    m, n = F.shape
    G, b, variance = F.T @ F, rng.standard_normal(n) * 30, 0.7
    monkeypatch.setattr(_posterior, "_SIZES", np.array([0.3]))
    monkeypatch.setattr(_posterior, "_EXPONENTS", (exponent,))
    norms = np.sqrt(np.diag(G))
    # Prior variances ∝ ‖F_i‖^(−2κ) with signal 0.3·9·τ² per label if columns were orthogonal.
    D = norms ** (-2.0 * exponent)
    D *= 0.3 * 9.0 * variance * m / np.sum(D * norms**2)
    # The joint covariance of (x, labels, b), and x given b from its blocks.
    Cxy = D[:, None] * F.T
    Cyy = F @ Cxy + variance * np.eye(m)
    Cxb, Cbb = Cxy @ F, F.T @ Cyy @ F + noise
    np.testing.assert_allclose(
        posterior_mean(G, b, noise, m, variance), Cxb @ np.linalg.solve(Cbb, b), rtol=1e-8
    )


def test_the_size_of_the_signal_follows_from_the_release():
    F, noise, rng = problem(1, m=200, n=20)
    G, m = F.T @ F, F.shape[0]
    errors = {"posterior": [], "nothing": [], "least squares": []}
    for size in (0.05, 1.0, 5.0):
        for _ in range(40):
            x0 = size * rng.standard_normal(20) / np.sqrt(np.diag(G) / m)
            y = F @ x0 + rng.standard_normal(m)
            b = F.T @ y + np.linalg.cholesky(noise) @ rng.standard_normal(20)
            guesses = {
                "posterior": posterior_mean(G, b, noise, m, 1.0),
                "nothing": np.zeros(20),
                "least squares": np.linalg.solve(G, b),
            }
            for name, x in guesses.items():
                errors[name].append(np.sum((F @ (x - x0)) ** 2))
    totals = np.array([np.reshape(errors[name], (3, 40)).mean(axis=1) for name in errors])
    assert np.all(totals[0] <= 1.05 * totals.min(axis=0))


def test_units_do_not_matter():
    F, noise, rng = problem(2)
    G, b, m = F.T @ F, 30 * rng.standard_normal(5), F.shape[0]
    plain = posterior_mean(G, b, noise, m, 2.0)
    # Labels in other units: b, its noise and the coefficients follow.
    scaled = posterior_mean(G, 1e3 * b, 1e6 * noise, m, 2e6)
    np.testing.assert_allclose(scaled, 1e3 * plain, rtol=1e-8)
    # All columns in other units: coefficients shrink.
    other = posterior_mean(1e4 * G, 1e2 * b, 1e4 * noise, m, 2.0)
    np.testing.assert_allclose(other, plain / 1e2, rtol=1e-8)


@pytest.mark.parametrize("epsilon", [3.0, 10.0])
def test_close_to_the_best_lambda_on_real_columns(epsilon):
    X, y = load_diabetes(return_X_y=True, scaled=False)
    X, y = np.asarray(X) / np.std(X, axis=0), np.asarray(y)
    lost = []
    for seed in range(12):
        test = np.random.default_rng(seed).permutation(442) < 110
        privacy = pv.LabelDP(epsilon, 1e-6, (0.0, 350.0))
        est = pv.PrivateLasso("auto", privacy, random_state=seed).fit(X[~test], y[~test])
        lams = np.max(np.abs(est.release_.b)) * np.geomspace(1.0, 1e-3, 30)
        path = est.path(X[~test], lams)
        spread = np.mean((y[test] - y[test].mean()) ** 2)
        predicted = X[test] @ path.coef + path.intercept
        best = np.max(1.0 - np.mean((y[test][:, None] - predicted) ** 2, axis=0) / spread)
        lost.append(best - est.score(X[test], y[test]))
    assert np.median(lost) < 0.06
