"""Tall covariates: the square root gives the solutions of all rows, or steps aside."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from privasso.fit import Postprocess
from privasso.noise import Diagonal
from privasso.operators import Covariates, square_root
from privasso.programs import Release


def problem(m=400, n=20, centre=True, collinear=0.0):
    rng = np.random.default_rng(0)
    F = rng.standard_normal((m, n)) * np.geomspace(1e-3, 1e3, n)
    F += np.geomspace(1e3, 1e-3, n) if centre else 0.0
    if collinear:
        F[:, 1] = F[:, 0] * 2 + collinear * rng.standard_normal(m) * 1e-3
    F[:, 5] = 7.0
    y = rng.standard_normal(m)
    rows = Covariates(F, centre=centre)
    label_sum = {"label_sum": float(y.sum()), "sigma_sum": 1.0} if centre else {}
    release = Release(rows.rmatvec(y), Diagonal(np.zeros(n)), n_rows=m, centre=0.0, **label_sum)
    return F, y, Postprocess(release, rows)


@pytest.mark.parametrize("centre", [True, False])
def test_reduced_solutions_are_those_of_all_rows(centre):
    F, y, post = problem(centre=centre)
    assert post.reduced
    assert post.op is not None
    assert post.op.shape[0] == post.op.shape[1]
    lams = np.array([0.3, 3.0, 30.0])
    path = post.path(lams)
    assert post.reduced
    for k, lam in enumerate(lams):
        peer = Lasso(alpha=lam / 400, fit_intercept=centre, tol=1e-12, max_iter=1_000_000)
        peer.fit(F, y)
        np.testing.assert_allclose(F @ path.coef[:, k] + path.intercept[k], peer.predict(F),
                                   atol=1e-5)  # fmt: skip
        coef, intercept = post.solve(lam)
        np.testing.assert_allclose(coef, path.coef[:, k], rtol=1e-6, atol=1e-12)
        assert intercept == pytest.approx(path.intercept[k])


def test_nearly_collinear_and_short_matrices_keep_all_rows():
    assert square_root(problem(collinear=1e-6)[2].rows) is None
    assert square_root(problem(m=60)[2].rows) is None
    assert not problem(collinear=1e-6)[2].full_rank


def spoil(post):
    """Change the square root, as if it had lost digits."""
    post.op._F[:, -1] *= 1.001
    return post


def test_a_solution_that_fails_on_all_rows_is_solved_on_all_rows():
    good = problem()[2].path(np.array([3.0])).coef
    spoilt = spoil(problem()[2])
    found = spoilt.path(np.array([3.0]))
    assert not spoilt.reduced
    np.testing.assert_allclose(found.coef, good, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(spoil(problem()[2]).solve(3.0)[0], good[:, 0], rtol=1e-5, atol=1e-9)


def test_gram_by_blocks(monkeypatch):
    monkeypatch.setattr("privasso.operators._covariates._GRAM_CHUNK", 100)
    for order in ("C", "F"):
        F = np.asarray(problem()[0], order=order)
        centred = F - F.mean(axis=0)
        rows = Covariates(F, centre=True)
        exact = (centred.T @ centred)[np.ix_(rows.live, rows.live)]
        np.testing.assert_allclose(rows.gram, exact, rtol=1e-9, atol=1e-9)
        x = np.random.default_rng(1).standard_normal((19, 2))
        np.testing.assert_allclose(rows.normal_products(x), exact @ x, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("m", [1, 3])
def test_fewer_rows_than_threads(m, monkeypatch):
    """Spans of no rows began where others began, and took the place of their sums."""
    monkeypatch.setattr("privasso.operators._covariates.n_threads", lambda: 4)
    F = np.random.default_rng(0).standard_normal((m, 3))
    for _ in range(20):
        np.testing.assert_allclose(Covariates(F, centre=False).moments(None), F.T @ F)
