"""λ chosen from the release: against the best λ in hindsight, and never where nothing exists."""

import numpy as np
import pytest
import scipy.sparse as sp

import privasso as pv
from privasso.fit import Postprocess, choose_lambda
from privasso.fit._choose_lambda import _cautious_risk
from privasso.noise import Diagonal
from privasso.operators import Covariates
from privasso.planning import release_labels
from privasso.programs import Release

# rows per column, law of the scales, columns, ε, label noise, sparsity
CASES = {
    "tall": (10.0, pv.LogNormal(0.0, 0.5), 120, 8.0, 0.1, 0.1),
    "many rows": (100.0, pv.LogNormal(0.0, 1.0), 30, 2.0, 0.3, 0.2),
    "wide": (0.5, pv.LogNormal(0.0, 0.5), 200, 20.0, 0.1, 0.1),
    "weak noise": (10.0, pv.Uniform(), 120, 1000.0, 0.3, 0.1),
}


def released(case, seed):
    alpha, law, n, epsilon, sigma_xi, rho = CASES[case]
    s = pv.Model(alpha, rho, sigma_xi, law).sample(n, rng=seed)
    bound = 3.0 * float(np.std(s.y))
    privacy = pv.LabelDP(epsilon, 1e-6, (-bound, bound))
    release = release_labels(
        s.F, s.y, privacy, pv.PowerLaw(1.0, 0.5), fit_intercept=False, rng=seed + 100
    )
    return s, privacy, release


@pytest.mark.parametrize("case", CASES)
def test_close_to_the_best_in_hindsight(case):
    ratios = []
    for seed in range(20, 26):
        s, privacy, release = released(case, seed)
        post = Postprocess(release, Covariates(s.F, centre=False))

        def error(x, s=s):
            return float(np.mean(s.v * (x - s.x0) ** 2)) + CASES[case][4] ** 2

        lams = np.max(np.abs(post.b)) * np.geomspace(1.0, 1e-3, 30)
        errors = [error(x) for x in post.path(lams).coef.T]
        chosen = post.solve(choose_lambda(post, None, (privacy.label_width / 6.0) ** 2))[0]
        ratios.append(error(chosen) / np.nanmin(errors))
    assert np.mean(ratios) < 1.3
    assert np.max(ratios) < 3.0


@pytest.mark.parametrize(
    "storage", [np.asarray, pytest.param(sp.csr_array, marks=pytest.mark.slow)]
)
def test_the_estimate_and_its_error_are_what_stein_says(storage):
    # Mean of SURE over many draws of b against the true loss, and of its squared deviation
    # against the stated one. Without the standard error and label variance it is plain SURE.
    rng = np.random.default_rng(0)
    F = rng.standard_normal((30, 8)) * np.logspace(-1, 1, 8)
    y, sigma = rng.standard_normal(30) + F[:, 0] * 5, 2.0 * np.logspace(-1, 1, 8)
    rows, lam = Covariates(storage(F), centre=False), 4.0
    deviations, stated = [], []
    for _ in range(400):
        b = F.T @ y - sigma * rng.standard_normal(8)
        post = Postprocess(Release(b, Diagonal(sigma**2), n_rows=30, centre=0.0), rows)
        x, _ = post.solve(lam)
        S = np.flatnonzero(x)
        J, D = np.linalg.inv(F[:, S].T @ F[:, S]), sigma[S] ** 2
        error = 2 * np.sqrt(D @ x[S] ** 2 + np.trace(D[:, None] * J @ (D[:, None] * J)))
        found, larger = _cautious_risk(post, x, 0.0), _cautious_risk(post, x, 0.5)
        assert found is not None
        assert larger is not None
        risk = found[0]
        assert found[1] == pytest.approx(error)
        assert larger[0] == pytest.approx(risk + S.size)
        loss = np.sum((y - F @ x) ** 2) - y @ y
        deviations.append(risk - 2 * error - loss)
        stated.append(error**2)
    spread = np.std(deviations) / 20
    assert abs(np.mean(deviations)) < 4 * spread
    assert np.mean(np.square(deviations)) == pytest.approx(np.mean(stated), rel=0.3)


def test_never_below_the_critical_value():
    for seed in range(4):
        s, _, release = released("wide", seed)
        post = Postprocess(release, Covariates(s.F, centre=False))
        assert choose_lambda(post) > pv.critical_lambda(s.F, release.b)


def test_through_the_estimator():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 8)) * np.logspace(-2, 2, 8)
    y = np.clip(X[:, 4] / X[:, 4].std(), -2, 2)
    est = pv.PrivateLasso("auto", pv.LabelDP(3.0, 1e-6, (-2.0, 2.0)), random_state=0).fit(X, y)
    assert est.score(X, y) > 0.8
    chosen = est.lam_
    assert est.refit(X, 1e9).coef_.any() == np.False_
    assert est.refit(X, "auto").lam_ == chosen


def test_nothing_to_choose():
    privacy = pv.LabelDP(1.0, 1e-6, (0.0, 1.0))
    est = pv.PrivateLasso("auto", privacy).fit(np.ones((5, 2)), np.ones(5))
    assert est.coef_.tolist() == [0.0, 0.0]
