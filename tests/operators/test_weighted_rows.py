"""Weighted rows against dense algebra, in every storage."""

import numpy as np
import pytest
import scipy.sparse as sp

from privasso.noise import Diagonal, Factored
from privasso.operators import Covariates

M, N = 30, 6
STORAGES = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "float32": np.float32,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "coo": sp.coo_array,
}
WEIGHTS = {
    "any": np.random.default_rng(1).exponential(size=M),
    "zeros": np.random.default_rng(2).exponential(size=M) * (np.arange(M) % 3 > 0),
    "spread": np.geomspace(1e-8, 1e3, M),
    "one row": np.eye(M)[4],
    "ones": np.ones(M),
}


def matrix():
    rng = np.random.default_rng(0)
    F = rng.standard_normal((M, N)) * np.logspace(-2, 3, N) + np.linspace(-3, 3, N)
    F[rng.random((M, N)) < 0.4] = 0.0
    F[:, 2] = 0.25  # constant
    return F.astype(np.float32).astype(np.float64)


@pytest.fixture(params=WEIGHTS)
def w(request):
    return WEIGHTS[request.param]


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("centre", [False, True])
def test_against_dense_algebra(storage, centre, w):
    F = matrix()
    rows = Covariates(STORAGES[storage](F), centre=centre, weights=w)
    mean = (w @ F) / w.sum() if centre else np.zeros(N)
    C = F - mean
    squares = w @ C**2
    atol = 1e-10 * float(np.max(squares))
    assert rows.total == pytest.approx(w.sum(), rel=1e-14)
    np.testing.assert_allclose(rows.mean, mean, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(rows.squares, squares, rtol=1e-9, atol=atol)
    # One row with all the weight is its own mean: nothing is left once it is centred.
    alone = centre and np.count_nonzero(w) == 1
    live = np.zeros(N, bool) if alone else squares > 1e-20
    np.testing.assert_array_equal(rows.live, live)
    L = C[:, live]
    np.testing.assert_allclose(rows.v, squares[live] * N / w.sum(), rtol=1e-9)
    g = np.random.default_rng(5).standard_normal(M)
    found = rows.rmatvec(g)
    np.testing.assert_allclose(found[live], L.T @ g, rtol=1e-9, atol=1e-9)
    assert not found[~live].any()
    if not live.any():
        return
    np.testing.assert_allclose(rows.gram, (w[:, None] * L).T @ L, rtol=1e-9, atol=atol)
    other = np.random.default_rng(6).random(M)
    ones = np.column_stack([L, np.ones(M)])
    for weights in (None, other, w**2):
        D = np.ones(M) if weights is None else weights
        atol = 1e-10 * float(np.max(D @ L**2))
        found = rows.moments(weights)
        np.testing.assert_allclose(found, (D[:, None] * L).T @ L, rtol=1e-9, atol=atol)
        found = rows.moments(weights, ones=True)
        np.testing.assert_allclose(found, (D[:, None] * ones).T @ ones, rtol=1e-9, atol=atol)
    X = np.random.default_rng(7).standard_normal((L.shape[1], 3))
    wide = (w[:, None] * L).T @ (L @ X)
    scale = 1e-9 * np.max(np.abs(wide))
    np.testing.assert_allclose(rows.normal_products(X), wide, rtol=1e-8, atol=scale)
    A = np.sqrt(w)[:, None] * L
    op = rows.operator()
    size = 1e-6 if storage == "float32" else 1e-11
    np.testing.assert_allclose(op.toarray(), A, rtol=size, atol=size * np.max(np.abs(A)))
    some = np.array([3, 0, 7])
    found = op.rows(some)
    found = found.toarray() if sp.issparse(found) else found
    np.testing.assert_allclose(found, A[some], rtol=size, atol=size * np.max(np.abs(A)))
    np.testing.assert_allclose(op.gram(), A.T @ A, rtol=1e-5, atol=1e-6 * np.max(A.T @ A))


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("centre", [False, True])
def test_norms_are_those_of_the_rows_without_weights(storage, centre, w):
    F = matrix()
    rows = Covariates(STORAGES[storage](F), centre=centre, weights=w)
    C = (F - rows.mean)[:, rows.live]
    n = C.shape[1]
    if n == 0:
        assert not rows.squared_row_norms(Diagonal([])).any()
        return
    rng = np.random.default_rng(3)
    variances = np.exp(rng.standard_normal(n))
    root = rng.standard_normal((n, n)) + 3 * np.eye(n)
    for noise in (Diagonal(variances), Factored(root)):
        expected = np.sum(C * np.linalg.solve(noise.matrix(), C.T).T, axis=1)
        found = rows.squared_row_norms(noise)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10 * expected.max())
    # A column without noise is not hidden by that of the others.
    silent = Diagonal(np.where(np.arange(n) == 0, 0.0, variances))
    found = rows.squared_row_norms(silent)
    assert np.all(np.isinf(found[C[:, 0] != 0.0]))


@pytest.mark.parametrize("storage", STORAGES)
def test_other_weights_centre_anew(storage):
    F, w = matrix(), WEIGHTS["any"]
    rows = Covariates(STORAGES[storage](F), centre=True)
    other = rows.reweighted(w)
    np.testing.assert_allclose(other.mean, (w @ F) / w.sum(), rtol=1e-12)
    assert other.reweighted(None).weights is None
    np.testing.assert_array_equal(other.reweighted(None).mean, rows.mean)


def test_integer_weights_are_repeated_rows():
    F, w = matrix(), np.arange(M) % 4
    for how in STORAGES.values():
        for centre in (False, True):
            rows = Covariates(how(F), centre=centre, weights=w.astype(float))
            many = Covariates(how(np.repeat(F, w, axis=0)), centre=centre)
            np.testing.assert_allclose(rows.mean, many.mean, rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(rows.squares, many.squares, rtol=1e-10)
            np.testing.assert_allclose(rows.gram, many.gram, rtol=1e-8, atol=1e-9)
            np.testing.assert_array_equal(rows.live, many.live)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(M - 1), "weights must have shape"),
        (np.r_[np.ones(M - 1), -1.0], "zero or more, and not all zero"),
        (np.r_[np.ones(M - 1), np.nan], "weights contains NaN"),
        (np.zeros(M), "not all zero"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        Covariates(matrix(), centre=True, weights=weights)


def test_sums_that_are_kept_cannot_be_changed():
    """A caller that wrote to them would change what the next one gets."""
    F = matrix()
    rows = Covariates(F, centre=True)
    with pytest.raises(ValueError, match="read-only"):
        rows.moments(None)[0, 0] = 1.0
    assert rows.moments(None)[0, 0] == pytest.approx(F.shape[0] * np.var(F[:, 0]))


@pytest.mark.parametrize("least", [0.5, 1e-9])
def test_moments_of_rows_of_which_some_are_shrunk(least):
    rng = np.random.default_rng(3)
    F = rng.standard_normal((400, 5)) * np.logspace(-2, 3, 5)
    w = np.where(rng.random(400) < 0.4, rng.uniform(least, 1.0, 400), 1.0)
    w[7] = least
    rows = Covariates(F, centre=True)
    G = np.column_stack([F - F.mean(axis=0), np.ones(400)])
    units = np.outer(*2 * [np.sqrt(np.sum(G * G, axis=0))])
    for weights in (None, w, w * w):
        expected = (G.T * (1.0 if weights is None else weights)) @ G
        found = rows.moments(weights, ones=True)
        np.testing.assert_allclose(found / units, expected / units, atol=1e-13)
