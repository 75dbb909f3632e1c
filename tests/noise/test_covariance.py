"""Every verb of a covariance against the dense matrix it stands for."""

import numpy as np
import pytest

import privasso as pv
from privasso.noise import Diagonal, Factored

RNG = np.random.default_rng(0)
ROOT = RNG.standard_normal((5, 5)) + 2 * np.eye(5)
COVARIANCES = {
    "diagonal": Diagonal(np.geomspace(1e-3, 1e3, 5)),
    "design": pv.PowerLaw(2.0, 0.5).covariance(np.geomspace(1e-2, 1e2, 5)),
    "full": Factored.from_matrix(ROOT @ ROOT.T),
    "square root": Factored(ROOT),
    "thin root": Factored(ROOT[:, :3]),
}
every = pytest.mark.parametrize("covariance", COVARIANCES.values(), ids=COVARIANCES)


@every
def test_products(covariance):
    S = covariance.matrix()
    assert covariance.size == 5
    np.testing.assert_allclose(S, S.T)
    np.testing.assert_allclose(covariance.diagonal, np.diag(S))
    np.testing.assert_allclose(covariance.sigma**2, np.diag(S))
    W = RNG.standard_normal((5, 5))
    W = W + W.T
    x = RNG.standard_normal(5)
    np.testing.assert_allclose(covariance.quadratic(x), x @ S @ x)
    np.testing.assert_allclose(covariance.trace(), np.trace(S))
    np.testing.assert_allclose(covariance.trace(W), np.trace(W @ S), rtol=1e-9)
    np.testing.assert_allclose(covariance.trace_of_square(W), np.trace(S @ W @ S @ W), rtol=1e-9)
    J = RNG.standard_normal((2, 5))
    np.testing.assert_allclose(covariance.propagated(J), np.diag(J @ S @ J.T))
    np.testing.assert_allclose(covariance.scaled(4.0).matrix(), 4.0 * S)


@every
def test_whitening_and_row_norms(covariance):
    S = covariance.matrix()
    # Vectors in the range of Σ, so that their norm is finite for a thin root too.
    A = S @ RNG.standard_normal((5, 3))
    exact = A.T @ np.linalg.pinv(S) @ A
    white = covariance.whiten(A)
    np.testing.assert_allclose(white.T @ white, exact, rtol=1e-6)
    np.testing.assert_allclose(covariance.row_norms(A.T) ** 2, np.diag(exact), rtol=1e-6)
    one = covariance.whiten(A[:, 0])
    assert one.ndim == 1
    np.testing.assert_allclose(one @ one, exact[0, 0], rtol=1e-6)
    if covariance.rank == 5:
        np.testing.assert_allclose(covariance.precisions, np.diag(np.linalg.inv(S)), rtol=1e-9)


@every
def test_draws_have_the_covariance(covariance):
    draws = covariance.draw(rng=1, size=100_000)
    assert draws.shape == (5, 100_000)
    S = covariance.matrix()
    scale = np.sqrt(np.outer(np.diag(S), np.diag(S)))
    assert np.max(np.abs(draws @ draws.T / 100_000 - S) / scale) < 5 * np.sqrt(2 / 100_000)
    assert covariance.draw(rng=1).shape == (5,)


@every
def test_parts(covariance):
    S, take = covariance.matrix(), np.array([3, 1])
    np.testing.assert_allclose(covariance.restricted(take).matrix(), S[np.ix_(take, take)])
    live = np.array([True, False, True, True, False, True, True])
    wide = covariance.embedded(live)
    assert wide.size == 7
    np.testing.assert_allclose(wide.matrix()[np.ix_(live, live)], S)
    assert not wide.matrix()[~live].any()


def test_what_no_noise_hides_is_infinitely_large():
    F = np.eye(3)
    np.testing.assert_array_equal(Diagonal([1.0, 0.0, 4.0]).row_norms(F), [1.0, np.inf, 0.5])
    thin = Factored(np.array([[1.0], [0.0], [0.0]]))
    np.testing.assert_array_equal(thin.row_norms(F), [1.0, np.inf, np.inf])
    assert Diagonal([1.0, 0.0, 4.0]).row_norms(np.array([[2.0, 0.0, 0.0]]))[0] == 2.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Diagonal([-1.0]), "zero or more"),
        (lambda: Diagonal([np.inf]), "finite"),
        (lambda: Diagonal(np.eye(2)), "a vector"),
        (lambda: Factored(np.ones((2, 3))), "linearly independent"),
        (lambda: Factored(np.ones((3, 2))), "linearly independent"),
        (lambda: Factored.from_matrix([[1.0, 2.0], [2.0, 1.0]]), "positive definite"),
        (lambda: Factored.from_matrix([[1.0, 2.0], [0.0, 1.0]]), "symmetric"),
    ],
)
def test_bad_covariances(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_triangular_root_is_one_of_the_same_covariance():
    rng = np.random.default_rng(8)
    for root in (
        ROOT,
        np.eye(4)[::-1],
        rng.standard_normal((6, 6)) * np.logspace(-8, 8, 6)[:, None],
    ):
        noise = Factored(root)
        found = noise.triangular
        np.testing.assert_array_equal(np.triu(found.root, 1), 0.0)
        assert np.all(np.diag(found.root) > 0.0)
        units = np.outer(noise.sigma, noise.sigma)
        np.testing.assert_allclose(found.matrix() / units, noise.matrix() / units, atol=1e-12)
        white = found.whitener @ found.root
        np.testing.assert_allclose(white, np.eye(len(root)), atol=1e-9)
        assert found.triangular is found
    thin = Factored(ROOT[:, :3])
    assert thin.triangular is thin
