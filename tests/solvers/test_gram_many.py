"""LASSOs that share a Gram matrix, against scikit-learn."""

import time

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from privasso._clock import Clock
from privasso.model import AutoRegressive, Factors, GivenCovariance
from privasso.solvers import GramLasso


@pytest.mark.parametrize("kind", [AutoRegressive(0.9), Factors(3, 0.8)], ids=repr)
def test_minimisers(kind):
    rng = np.random.default_rng(0)
    N, lam = 60, 0.3
    s = np.exp(rng.standard_normal(N))
    C = GivenCovariance(kind.matrix(N, rng) * np.outer(s, s))
    y = 0.5 * rng.standard_normal((C.rank, 5))
    X, solved = GramLasso(C.covariance).minimise(C.root @ y, lam)
    assert solved.all()
    for k in range(5):  # ½‖y − Lᵀx‖² has the Gram matrix C
        peer = Lasso(lam / C.rank, fit_intercept=False, tol=1e-12, max_iter=100_000)
        np.testing.assert_allclose(X[:, k], peer.fit(C.root.T, y[:, k]).coef_, atol=1e-4)
        c = C.root @ (y[:, k] - C.root.T @ X[:, k])
        assert np.max(np.abs(c)) <= lam * (1 + 1e-5)
    # From a start far away the answer is the same.
    again, solved = GramLasso(C.covariance).minimise(C.root @ y, lam, X[:, ::-1] + 1.0)
    assert solved.all()
    np.testing.assert_allclose(again, X, atol=1e-4)


def tables(m, n, rng):
    """Columns of many kinds: independent, copies in other units, levels, sums and powers."""
    yield rng.standard_normal((m, n))
    yield rng.standard_normal((m, max(1, n // 3)))[:, rng.integers(0, max(1, n // 3), n)]
    yield np.eye(n)[rng.integers(0, n, m)]
    yield np.cumsum(rng.standard_normal((m, n)), axis=1)
    u = rng.uniform(-1.0, 1.0, m)
    yield np.stack([u ** (1 + k % 12) for k in range(n)], axis=1)


@pytest.mark.parametrize("shape", [(10, 40), (60, 5), (60, 60), (300, 80)])
def test_every_point_of_a_path_is_optimal(shape):
    rng, (m, n) = np.random.default_rng(1), shape
    for F in tables(m, n, rng):
        Z = F - F.mean(axis=0)
        Z = Z[:, np.any(np.abs(Z) > 1e-9, axis=0)] * np.exp(rng.normal(0.0, 2.0))
        k = Z.shape[1]
        truth = np.where(rng.random(k) < 0.3, rng.standard_normal(k), 0.02)
        C, b = Z.T @ Z, Z.T @ (Z @ truth)
        lams = np.max(np.abs(b)) * rng.permutation(np.append(np.geomspace(1.2, 1e-3, 11), 0.5))
        X, solved = GramLasso(C, rank=min(shape)).path(b, lams, tol=1e-8)
        assert solved.all()
        slopes = b[:, None] - C @ X
        # The distance of each slope from the subgradients of λ|x|.
        off = np.where(X != 0.0, np.abs(slopes - lams * np.sign(X)), np.abs(slopes) - lams)
        assert np.max(off / lams) <= 1e-7
        assert not X[:, lams > np.max(np.abs(b))].any()


def test_a_path_agrees_with_scikit_learn():
    rng = np.random.default_rng(2)
    Z = rng.standard_normal((50, 20)) @ rng.standard_normal((20, 20))
    y = Z @ rng.standard_normal(20)
    lams = np.max(np.abs(Z.T @ y)) * np.array([0.02, 0.4, 0.1])
    X, _ = GramLasso(Z.T @ Z).path(Z.T @ y, lams, tol=1e-10)
    for lam, x in zip(lams, X.T, strict=True):
        peer = Lasso(lam / 50, fit_intercept=False, tol=1e-14, max_iter=1_000_000).fit(Z, y)
        np.testing.assert_allclose(x, peer.coef_, atol=1e-6)


def test_a_path_says_what_there_was_no_time_for():
    rng = np.random.default_rng(3)
    Z = rng.standard_normal((50, 20))
    b = Z.T @ Z @ np.ones(20)
    over = Clock(1e-9)
    time.sleep(0.001)
    X, solved = GramLasso(Z.T @ Z).path(b, np.array([2.0, 0.1]) * np.max(np.abs(b)), clock=over)
    assert solved.tolist() == [True, False]
    assert not X.any()


def test_no_minimiser():
    C = np.ones((2, 2))  # the objective falls along (1, −1)
    assert not GramLasso(C, rank=1).minimise(np.array([[1.0], [-1.0]]), 0.1)[1][0]


def test_bad_input():
    with pytest.raises(ValueError, match="positive diagonal"):
        GramLasso([[0.0, 0.0], [0.0, 1.0]])
