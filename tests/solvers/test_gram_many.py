"""LASSOs that share a Gram matrix, against scikit-learn."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso

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


def test_no_minimiser():
    C = np.ones((2, 2))  # the objective falls along (1, −1)
    assert not GramLasso(C, rank=1).minimise(np.array([[1.0], [-1.0]]), 0.1)[1][0]


def test_bad_input():
    with pytest.raises(ValueError, match="positive diagonal"):
        GramLasso([[0.0, 0.0], [0.0, 1.0]])
