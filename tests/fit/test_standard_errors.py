"""Standard errors of coefficients that include the privacy noise."""

import numpy as np
import pytest

import privasso as pv
from privasso.fit import ReleaseLaw, RowMoments


def test_they_are_those_of_least_squares_from_simulated_releases():
    rng = np.random.default_rng(0)
    m, n, draws = 300, 4, 4000
    Z = rng.standard_normal((m, n))
    Z[:, 1] += Z[:, 0]
    weights = rng.uniform(0.2, 1.0, m)
    G, G2 = Z.T @ (weights[:, None] * Z), Z.T @ (weights[:, None] ** 2 * Z)
    root = rng.standard_normal((n, n)) * 20.0
    law = ReleaseLaw(
        RowMoments(G, G2, np.sqrt(np.diag(Z.T @ Z) / m), intercept=False), root @ root.T, 1.0
    )
    x = np.array([0.5, 0.0, -0.4, 0.0])
    support = x != 0.0
    b = G @ x
    tau = np.sqrt(law._unexplained(b / law.moments.units))
    labels = (Z @ x)[:, None] + tau * rng.standard_normal((m, draws))
    released = Z.T @ (weights[:, None] * labels) + root @ rng.standard_normal((n, draws))
    found = np.linalg.solve(G[np.ix_(support, support)], released[support])
    errors = law.errors(b, support)
    np.testing.assert_allclose(errors[support], found.std(axis=1), rtol=0.06)
    assert np.isnan(errors[~support]).all()


@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
@pytest.mark.parametrize("mechanism", ["objective", "release"])
def test_intervals_of_two_errors_cover_the_truth_in_all_units(mechanism):
    rng = np.random.default_rng(1)
    privacy = pv.LabelDP(2.0, 1e-6, (-3.0, 9.0), mechanism)
    scores = []
    for seed in range(24):
        X = rng.standard_normal((600, 5))
        X[:, 1] += 0.7 * X[:, 0]
        X *= 10.0 ** np.arange(-2, 3)
        beta = rng.normal(0.0, 0.5, 5) / X.std(axis=0) * (rng.random(5) < 0.7)
        y = 3.0 + X @ beta + 0.8 * rng.standard_normal(600)
        est = pv.PrivateLasso(privacy=privacy, random_state=seed).fit(X, y)
        assert np.array_equal(np.isnan(est.coef_se_), est.coef_ == 0.0)
        scores += list(((est.coef_ - beta) / est.coef_se_)[est.coef_ != 0.0])
    # About 90 scores: a standard error of 0.022 at 95 per cent.
    assert np.mean(np.abs(scores) < 1.96) > 0.88
    assert 0.6 < np.std(scores) < 1.15  # neither too small nor far too large
