"""The support that bordered systems find is that of the minimiser, from wherever they start."""

import numpy as np
import pytest

import privasso as pv
from privasso._blas import FIXED, factorise_upper, fixed_correlations
from privasso._clock import Clock
from privasso.operators import as_operator
from privasso.solvers import _batch_steps, _bordered, _tuned
from privasso.solvers._batch_steps import NewtonSteps


def lasso(m=120, n=150, seed=0, part=0.15):
    """F with columns of length one, b, λ, and the minimiser by coordinate descent."""
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((m, n))
    F /= np.linalg.norm(F, axis=0)
    y = F[:, :20] @ rng.choice([-3.0, 3.0], size=20) + 0.5 * rng.standard_normal(m)
    b = F.T @ y
    lam = part * float(np.abs(b).max())
    return F, b, lam, pv.solve(F, y, lam, method="cd", tol=1e-12).x


def settled(F, b, lam, z, active, limit=120):
    """Outcome, z, path and signs of `settle` from the first support `active`."""
    H = fixed_correlations(F, np.ones(F.shape[1]))
    gamma = b - F.T @ (F @ z)
    side = np.zeros(z.size)
    side[active] = np.where(z[active] != 0, np.sign(z[active]), np.sign(gamma[active]))
    n = active.size
    Q = np.empty((n, n), np.float32)
    L = Q.view(np.int32)
    _bordered.square_submatrix(H, active, Q, L)
    assert factorise_upper(Q)
    others = np.setdiff1d(np.arange(z.size), active)
    watched, path = np.concatenate([active, others]), np.zeros(z.size)
    z, weights = z.copy(), np.full(z.size, lam)
    outcome = _bordered.settle(Q, L, H, watched, side, z, gamma, weights, limit, path)
    return outcome, z, path, side


@pytest.mark.parametrize("wrong", [0, 1, 4, 12])
@pytest.mark.parametrize("seed", range(5))
def test_columns_leave_and_join(seed, wrong):
    """Some columns of the minimiser are missing from the start, and some do not belong there."""
    F, b, lam, x = lasso(seed=seed)
    rng = np.random.default_rng(seed + 100)
    on, off = np.flatnonzero(x), np.flatnonzero(x == 0)
    z = x * rng.uniform(0.97, 1.03, size=x.size)
    z[rng.choice(on, wrong, replace=False)] = 0.0
    z[rng.choice(off, wrong, replace=False)] = 0.01 * rng.standard_normal(wrong)
    outcome, found, path, side = settled(F, b, lam, z, np.flatnonzero(z))
    assert outcome == _bordered.SETTLED
    np.testing.assert_array_equal(side, np.sign(x))
    np.testing.assert_allclose(found, x, atol=1e-7 * np.abs(x).max())
    A = F[:, on]
    np.testing.assert_allclose(
        path[on], np.linalg.solve(A.T @ A, lam * np.sign(x[on])), rtol=1e-4, atol=1e-5 * lam
    )
    assert not path[off].any()


def test_a_column_may_come_back_with_the_other_sign():
    F, b, lam, x = lasso()
    z = x.copy()
    turned = np.argsort(np.where(x != 0, np.abs(x), np.inf))[:3]
    z[turned] *= -1.0
    outcome, found, _, side = settled(F, b, lam, z, np.flatnonzero(z))
    assert outcome == _bordered.SETTLED
    np.testing.assert_array_equal(side, np.sign(x))
    np.testing.assert_allclose(found, x, atol=1e-7 * np.abs(x).max())


def test_a_small_border_is_crowded():
    F, b, lam, x = lasso()
    z = x.copy()
    z[np.flatnonzero(x)[:8]] = 0.0
    outcome, found, _, _ = settled(F, b, lam, z, np.flatnonzero(z), limit=3)
    assert outcome == _bordered.CROWDED
    np.testing.assert_array_equal(found, z)


def test_equal_columns_are_lost():
    """A column that joins beside its own copy: the system is singular."""
    F, b, lam, x = lasso()
    twin = int(np.argmax(np.abs(x)))
    F, b = np.column_stack([F, F[:, twin]]), np.append(b, b[twin])
    z = np.append(x, 0.0)
    z[twin] *= 0.5  # both copies ask for more
    active = np.flatnonzero(z)
    side = np.append(np.sign(x), np.sign(x[twin]))
    H = fixed_correlations(F, np.ones(F.shape[1]))
    Q = np.empty((active.size, active.size), np.float32)
    _bordered.square_submatrix(H, active, Q, Q.view(np.int32))
    assert factorise_upper(Q)
    watched, weights = np.append(active, x.size), np.full(z.size, lam)
    gamma, path = b - F.T @ (F @ z), np.zeros(z.size)
    args = Q, Q.view(np.int32), H, watched, side, z, gamma, weights, 10, path
    assert _bordered.settle(*args) == _bordered.LOST


@pytest.mark.parametrize("least", [100, 6], ids=["one factor", "several"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_steps_from_a_rough_start(dtype, least, monkeypatch):
    """Ten columns are on the wrong side, columns differ in scale, and factors are renewed."""
    monkeypatch.setattr(_tuned, "LEAST_BORDER", least)
    monkeypatch.setattr(_tuned, "BORDER_FACTORS", 12)
    outcomes = []

    def recorded(*args):
        outcomes.append(_bordered.settle(*args))
        return outcomes[-1]

    monkeypatch.setattr(_batch_steps, "settle", recorded)
    monkeypatch.setattr(_tuned, "BORDER_PART", 30 if least == 6 else 6)
    rng = np.random.default_rng(8)
    scales = 10.0 ** rng.uniform(-0.5, 0.5, size=300)
    F = (rng.standard_normal((200, 300)) * scales / np.sqrt(200)).astype(dtype)
    F64 = F.astype(np.float64)
    norms = np.linalg.norm(F64, axis=0)
    y = F64 @ (np.where(np.arange(300) < 40, 2.0, 0.0) / scales) + 0.2 * rng.standard_normal(200)
    etas = 0.05 * scales[:, None] * rng.standard_normal((300, 6))
    lam = 0.3
    exact = np.stack([pv.solve(F, y, lam, eta, method="cd", tol=1e-11).x for eta in etas.T])
    X = exact * rng.uniform(0.98, 1.02, size=exact.shape)
    for row in X:
        row[np.argsort(np.where(row != 0, np.abs(row), np.inf))[:5]] = 0.0
        row[rng.choice(np.flatnonzero(row == 0), 5, replace=False)] = 1e-3
    B = F64.T @ y - etas.T
    paths, lams = np.zeros_like(X), np.full(6, lam)
    steps = NewtonSteps(as_operator(F), norms, np.arange(300))
    for _ in range(2):
        moved = steps.take(X, B - (X @ F64.T) @ F64, lams, np.arange(6), paths, Clock())
        assert moved.all()
    assert (_bordered.CROWDED in outcomes) == (least == 6)
    C = B - (X @ F64.T) @ F64
    on = X != 0
    assert np.abs(C - lam * np.sign(X))[on].max() <= 1e-7 * lam
    assert np.abs(C[~on]).max() <= lam * (1 + 1e-7)
    np.testing.assert_allclose(X * norms, exact * norms, atol=1e-6)


def test_integers_are_closer_to_correlations_than_single_precision():
    rng = np.random.default_rng(3)
    F = rng.standard_normal((700, 600)) * 10.0 ** rng.uniform(-3, 3, size=600)
    norms = np.linalg.norm(F, axis=0)
    exact = (F / norms).astype(np.longdouble)
    exact = np.asarray(exact.T @ exact, dtype=np.float64)
    off = ~np.eye(600, dtype=bool)
    found = fixed_correlations(F, norms) * FIXED
    assert np.abs(found - exact).max() <= 1.01 * FIXED
    np.testing.assert_array_equal(found, found.T)
    rounded = np.abs(exact.astype(np.float32) - exact)[off]
    ours = np.abs(found - exact)[off]
    assert np.sqrt(np.mean(ours**2)) < 0.3 * np.sqrt(np.mean(rounded**2))
