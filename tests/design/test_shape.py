"""The best covariance: against a semidefinite programme, against other candidates, at the edges."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes

import privasso as pv
from privasso.operators import Covariates
from privasso.planning import _shape


def standardised_cost(S, F):
    return float(np.trace(S / np.mean(F**2, axis=0)))


def oracle(F, W):
    """min tr(WΣ) with (1 fᵀ; f Σ) ⪰ 0 for every row, which is fᵀΣ⁻¹f ≤ 1."""
    n = F.shape[1]
    S = cp.Variable((n, n), symmetric=True)
    blocks = [cp.bmat([[np.ones((1, 1)), f[None, :]], [f[:, None], S]]) for f in F]
    problem = cp.Problem(cp.Minimize(cp.trace(W @ S)), [block >> 0 for block in blocks])
    problem.solve(solver="CLARABEL")
    return float(problem.value)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("seed", range(6))
def test_a_semidefinite_programme_finds_the_same_cost(seed):
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((25, 4)) @ rng.standard_normal((4, 4))
    if seed % 2:
        W = rng.standard_normal((4, 4))
        W = W @ W.T + 0.1 * np.eye(4)
        shape = pv.optimal_shape(F, W, tol=1e-3)
    else:
        W = np.diag(1 / np.mean(F**2, axis=0))
        shape = pv.optimal_shape(F, tol=1e-3)
    least = oracle(F, W)
    assert shape.certificate <= 1e-3
    assert least * (1 - 1e-5) <= shape.cost <= least * (1 + 1.001e-3)
    assert np.trace(W @ shape.covariance) == pytest.approx(shape.cost, rel=1e-9)


def matrices():
    rng = np.random.default_rng(1)
    X = np.asarray(load_diabetes(return_X_y=True, scaled=False)[0])
    products = np.column_stack([X[:, i] * X[:, j] for i in range(10) for j in range(i, 10)])
    yield "diabetes", X
    yield "products", products[:, :20] - products[:, :20].mean(0)
    yield "wide", rng.standard_normal((20, 50))
    yield "heavy", rng.standard_t(2, (300, 8))
    yield "binary", (rng.random((200, 6)) < 0.1).astype(float)
    yield "one row", rng.standard_normal((1, 3))
    yield "one column", rng.standard_normal((50, 1))
    yield "scales", rng.standard_normal((100, 7)) * np.logspace(-30, 30, 7)
    for k in range(12):
        m, n = int(rng.integers(2, 200)), int(rng.integers(1, 12))
        mix = np.eye(n) + rng.uniform(0, 2) * rng.standard_normal((n, n))
        yield f"random {k}", rng.standard_normal((m, n)) @ mix * np.exp(rng.normal(0, 1, (m, 1)))


MATRICES = dict(matrices())


@pytest.mark.parametrize("name", MATRICES)
def test_no_candidate_is_better(name):
    F = MATRICES[name]
    shape = pv.optimal_shape(F)
    assert shape.certificate <= 0.01
    norms = shape.noise.row_norms(F)
    assert np.max(norms) == pytest.approx(1.0, rel=1e-6)
    cost = standardised_cost(shape.covariance, F)
    assert cost == pytest.approx(shape.cost, rel=1e-6)
    G = F / np.sqrt(np.mean(F**2, axis=0))
    gram = G.T @ G
    w, V = np.linalg.eigh(gram)
    ours = shape.covariance / np.outer(*2 * [np.sqrt(np.mean(F**2, axis=0))])
    rng = np.random.default_rng(2)
    candidates = [np.eye(G.shape[1])]
    candidates += [(V * np.maximum(w, 0) ** power) @ V.T for power in (0.25, 0.5, 1.0, 2.0)]
    for _ in range(20):
        A = np.eye(G.shape[1]) + 0.1 * rng.standard_normal((G.shape[1],) * 2)
        candidates.append(A @ ours @ A.T)
    for S in candidates:
        if np.linalg.matrix_rank(S) < G.shape[1]:
            continue
        level = np.max(np.einsum("ij,ij->i", G @ np.linalg.inv(S), G))
        assert level * np.trace(S) >= cost / 1.0101


def test_dead_duplicate_and_collinear_columns():
    rng = np.random.default_rng(3)
    F = rng.standard_normal((80, 3))
    extra = np.column_stack([F, F[:, 0], np.zeros(80), F[:, 1] + F[:, 2]])
    shape = pv.optimal_shape(extra)
    assert shape.certificate <= 0.01
    assert shape.noise.rank == 3
    S = shape.covariance
    assert not S[4].any()
    np.testing.assert_allclose(S[0, 0], S[0, 3])
    assert np.max(shape.noise.row_norms(extra)) == pytest.approx(1.0)


def test_the_intercept_is_one_more_column():
    rng = np.random.default_rng(4)
    F = rng.standard_normal((150, 4)) + 5.0
    shape = pv.optimal_shape(F, fit_intercept=True)
    by_hand = pv.optimal_shape(np.column_stack([F - F.mean(0), np.ones(150)]))
    assert shape.noise.size == 5
    assert shape.cost == pytest.approx(by_hand.cost, rel=0.01)


@pytest.mark.parametrize("kind", [sp.csr_array, np.asfortranarray, np.float32])
def test_storages(kind):
    rng = np.random.default_rng(5)
    F = np.where(rng.random((300, 6)) < 0.4, rng.standard_normal((300, 6)), 0.0)
    plain, other = pv.optimal_shape(F), pv.optimal_shape(kind(F))
    assert other.cost == pytest.approx(plain.cost, rel=1e-4)
    assert pv.optimal_shape(Covariates(F, centre=False)).cost == pytest.approx(plain.cost)


def test_units_do_not_matter():
    rng = np.random.default_rng(6)
    F = rng.standard_normal((200, 5))
    scale = np.logspace(-8, 8, 5)
    plain, scaled = pv.optimal_shape(F), pv.optimal_shape(F * scale)
    np.testing.assert_allclose(
        scaled.covariance / np.outer(scale, scale), plain.covariance, rtol=1e-6, atol=1e-9
    )


def test_few_rows_are_looked_at_and_a_start_helps(monkeypatch):
    rng = np.random.default_rng(7)
    F = rng.standard_normal((40_000, 10)) * np.exp(0.5 * rng.standard_normal((40_000, 1)))
    steps = []
    real = _shape._norms
    monkeypatch.setattr(_shape, "_norms", lambda G, p: steps.append(G.shape[0]) or real(G, p))
    shape = pv.optimal_shape(F)
    assert shape.certificate <= 0.01
    assert shape.rows.size < 200
    assert max(steps) < 8_000
    cold = len(steps)
    steps.clear()
    again = pv.optimal_shape(F, np.linspace(1.0, 1.2, 10), start=shape)
    assert again.certificate <= 0.01
    assert len(steps) < cold


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda F: pv.optimal_shape(np.zeros((3, 2))), "no column of F carries data"),
        (lambda F: pv.optimal_shape(F, [1.0, -1.0]), "weight must be positive"),
        (lambda F: pv.optimal_shape(F, np.ones((2, 2))), "positive definite"),
        (lambda F: pv.optimal_shape(F, np.ones(3)), "weight must have shape"),
        (lambda F: pv.optimal_shape(F, tol=0.0), "tol must be positive"),
        (lambda F: pv.optimal_shape(F * np.nan), "NaN"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.random.default_rng(0).standard_normal((5, 2)))


def test_indicators_of_few_rows():
    """Powers of q/T are beyond floating point on the way."""
    rng = np.random.default_rng(36)
    X = (rng.random((3000, 10)) < 2e-3 * rng.random(10) ** 2 + 4e-4).astype(float)
    assert pv.optimal_shape(X, fit_intercept=True).certificate <= 0.01
