"""The clipped-residual LASSO against an interior-point method, other solvers, and itself."""

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import privasso as pv
from privasso.noise import Factored
from privasso.operators import Centred
from privasso.problem import ClippedProblem, Huber, Logistic
from privasso.solvers import solve_clipped_problem
from privasso.solvers._clipped_face import minimise_quadratic


def data(m=120, n=30, seed=0, scales=0.0):
    """A table with outliers, columns over `scales` orders of magnitude."""
    rng = np.random.default_rng(seed)
    s = 10.0 ** rng.uniform(-scales / 2, scales / 2, n)
    F = rng.standard_normal((m, n))
    x = rng.standard_normal(n) * (rng.uniform(size=n) < 0.3)
    y = F @ x + 0.2 * rng.standard_t(2, m)
    return F * s, y, s, rng


def reference(F, y, lam, loss, Q, eta, w, omega):
    """The minimiser by cvxpy, which shares nothing with the solver."""
    x = cp.Variable(F.shape[1])
    if isinstance(loss, Logistic):
        fit = cp.sum(cp.multiply(w, cp.logistic(F @ x) - cp.multiply(y, F @ x)))
    elif np.isinf(loss.kappa):
        fit = 0.5 * cp.sum(cp.multiply(w, cp.square(y - F @ x)))
    else:
        fit = 0.5 * cp.sum(cp.multiply(w, cp.huber(y - F @ x, loss.kappa)))
    penalty = lam * (omega @ cp.abs(x)) + 0.5 * cp.quad_form(x, cp.psd_wrap(Q)) + eta @ x
    programme = cp.Problem(cp.Minimize(fit + penalty))
    programme.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return np.asarray(x.value)


CASES = {
    "huber": {},
    "all clipped": {"kappa": 1e-3, "lam": 1e-3},
    "quadratic": {"kappa": np.inf},
    "lambda zero": {"lam": 0.0},
    "wide": {"m": 15, "n": 40},
    "one row": {"m": 1, "n": 5},
    "full ridge": {"full": True},
    "logistic": {"logistic": True},
    "logistic, full ridge": {"logistic": True, "full": True},
}


@pytest.mark.parametrize("case", CASES)
def test_against_an_interior_point_method(case):
    options = {"m": 120, "n": 30, "kappa": 0.3, "lam": 2.0, "full": False, "logistic": False}
    options |= CASES[case]
    F, y, _, rng = data(options["m"], options["n"])
    n = F.shape[1]
    B = rng.standard_normal((n, n)) / np.sqrt(n)
    Q = B @ B.T + 0.2 * np.eye(n) if options["full"] else np.diag(rng.uniform(0.2, 2, n))
    Q = (Q + Q.T) / 2
    eta, w = rng.standard_normal(n), rng.uniform(0.5, 1.5, len(y))
    w[::7] = 0.0
    omega = rng.uniform(0.5, 1.5, n)
    omega[0] = 0.0
    loss = Logistic() if options["logistic"] else Huber(options["kappa"])
    y = (y > 0).astype(float) if options["logistic"] else y
    problem = ClippedProblem(
        F,
        y,
        options["lam"],
        loss=loss,
        ridge=Q if options["full"] else np.diag(Q).copy(),
        eta=eta,
        weights=w,
        penalty_weights=omega,
    )
    found = solve_clipped_problem(problem)
    x = reference(F, y, options["lam"], loss, Q, eta, w, omega)
    assert found.status is pv.Status.CONVERGED
    value = problem.objective(x)
    assert problem.objective(found.x) <= value + 1e-8 * (1 + abs(value))
    off = found.x - x
    assert np.sqrt(off @ Q @ off) <= found.distance + 1e-3
    assert found.kkt <= 1e-13
    assert found.gap <= 1e-20


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(1, 60),
    n=st.integers(1, 40),
    kappa=st.floats(-3, 3),
    lam=st.floats(-3, 2),
    ridge=st.floats(-4, 4),
    orders=st.sampled_from([0.0, 8.0]),
)
def test_random_problems_converge_and_satisfy_their_conditions(
    seed, m, n, kappa, lam, ridge, orders
):
    F, y, s, rng = data(m, n, seed, orders)
    kappa, lam, Q = 10.0**kappa, 10.0**lam, 10.0**ridge * s**2
    eta = rng.standard_normal(n) * s
    if n > 3:
        F[:, 1], F[:, 2] = F[:, 0] * s[1] / s[0], 0.0
    found = pv.solve_clipped(F, y, lam, eta, kappa=kappa, ridge=Q, penalty_weights=s)
    psi = np.clip(y - F @ found.x, -kappa, kappa)
    gradient = Q * found.x + eta - F.T @ psi
    off = np.where(
        found.x != 0,
        np.abs(gradient + lam * s * np.sign(found.x)),
        np.maximum(np.abs(gradient) - lam * s, 0),
    )
    size = np.abs(F).T @ (np.abs(psi) + np.abs(F) @ np.abs(found.x)) + Q * np.abs(found.x)
    assert np.all(off <= 1e-11 * (size + np.abs(eta) + lam * s))
    # plain arithmetic agrees with the bound, up to its own rounding
    assert np.linalg.norm(off / np.sqrt(Q)) <= found.distance + 1e-11 * np.linalg.norm(
        (size + np.abs(eta)) / np.sqrt(Q)
    )


def test_without_clipping_and_with_a_tiny_ridge_it_is_the_lasso():
    s = pv.Model(alpha=2.0).sample(n_features=150, rng=0)
    eta = pv.Gram(0.05).draw(s.v, rng=1)
    plain = pv.solve(s.F, s.y, 0.1, eta)
    found = pv.solve_clipped(s.F, s.y, 0.1, eta, kappa=np.inf, ridge=1e-11)
    np.testing.assert_allclose(found.x, plain.x, atol=1e-8)


STORAGES = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "coo": sp.coo_array,
    "float32": lambda F: F.astype(np.float32),
    "float32 Fortran": lambda F: np.asfortranarray(F, dtype=np.float32),
    "strided": lambda F: np.repeat(F, 2, axis=1)[:, ::2],
}


@pytest.mark.parametrize("shape", [(90, 400), (300, 40)])
@pytest.mark.parametrize("storage", STORAGES)
def test_storages_agree(storage, shape):
    F, y, _, _ = data(*shape, seed=3)
    F = F.astype(np.float32).astype(np.float64)
    one = pv.solve_clipped(F, y, 5.0, kappa=0.3, ridge=0.5)
    other = pv.solve_clipped(STORAGES[storage](F), y, 5.0, kappa=0.3, ridge=0.5)
    off = one.x - other.x
    assert np.sqrt(0.5) * np.linalg.norm(off) <= one.distance + other.distance
    assert other.kkt < 1e-14


def test_memory_map(tmp_path):
    F, y, _, _ = data(300, 40, seed=3)
    path = tmp_path / "F.npy"
    np.save(path, F)
    mapped = np.load(path, mmap_mode="r")
    one = pv.solve_clipped(F, y, 5.0, kappa=0.3, ridge=0.5)
    np.testing.assert_array_equal(pv.solve_clipped(mapped, y, 5.0, kappa=0.3, ridge=0.5).x, one.x)


def test_centred_columns():
    rng = np.random.default_rng(0)
    F = sp.random_array((200, 30), density=0.2, rng=rng, format="csr")
    y = rng.standard_normal(200)
    mean = np.asarray(F.mean(axis=0)).ravel()
    dense = F.toarray() - mean
    problem = ClippedProblem(
        Centred(F, mean, (dense**2).sum(axis=0)), y, 0.3, loss=Huber(0.5), ridge=0.2
    )
    found = solve_clipped_problem(problem)
    other = pv.solve_clipped(dense, y, 0.3, kappa=0.5, ridge=0.2)
    np.testing.assert_allclose(found.x, other.x, atol=1e-13)


def test_covariance_as_ridge():
    F, y, _, rng = data()
    noise = Factored(rng.standard_normal((30, 30)))
    Q = noise.matrix()
    one = pv.solve_clipped(F, y, 2.0, kappa=0.3, ridge=noise.scaled(0.1))
    other = pv.solve_clipped(F, y, 2.0, kappa=0.3, ridge=0.05 * (Q + Q.T))
    np.testing.assert_allclose(one.x, other.x, atol=1e-10)


def test_warm_starts_end_at_the_same_point_in_fewer_steps():
    F, y, _, rng = data(400, 60)
    eta = rng.standard_normal(60)
    cold = pv.solve_clipped(F, y, 2.0, eta, kappa=0.3, ridge=0.5)
    for lam, kappa, noise in [(2.1, 0.3, eta), (2.0, 0.31, eta), (2.0, 0.3, 1.01 * eta)]:
        start = pv.solve_clipped(F, y, lam, noise, kappa=kappa, ridge=0.5)
        warm = pv.solve_clipped(F, y, 2.0, eta, kappa=0.3, ridge=0.5, x0=start.x)
        off = warm.x - cold.x
        assert np.sqrt(0.5) * np.linalg.norm(off) <= warm.distance + cold.distance
        assert warm.n_iter < cold.n_iter


@pytest.mark.parametrize("shape", [(300, 40), (80, 300)])
def test_another_lambda_needs_no_new_problem(shape):
    F, y, _, _ = data(*shape)
    problem = ClippedProblem(F, y, 4.0, loss=Huber(0.3), ridge=0.5)
    for lam in (20.0, 5.0, 1.0, 0.0):
        found = solve_clipped_problem(problem.with_lam(lam))
        one = pv.solve_clipped(F, y, lam, kappa=0.3, ridge=0.5)
        off = np.sqrt(0.5) * np.linalg.norm(one.x - found.x)
        assert off <= one.distance + found.distance


def test_path_of_the_quadratic_lasso():
    s = pv.Model(alpha=2.0).sample(n_features=100, rng=0)
    eta = pv.Gram(0.05).draw(s.v, rng=1)
    path = pv.solve_path(s.F, s.y, [0.5, 0.1], eta)
    for k, lam in enumerate([0.5, 0.1]):
        np.testing.assert_allclose(path.x[:, k], pv.solve(s.F, s.y, lam, eta).x, atol=1e-8)


EDGES = {
    "all weights zero": {"weights": np.zeros(120)},
    "tiny ridge": {"ridge": 1e-12},
    "huge ridge": {"ridge": 1e12},
    "huge labels": {"factor": 1e8},
    "enormous labels": {"factor": 1e140},
    "tiny kappa": {"kappa": 1e-12},
    "huge noise": {"noise": 1e10},
    "constant, zero and equal columns": {"columns": True},
    "equal columns, tiny ridge, no penalty": {"columns": True, "lam": 0.0, "ridge": 1e-8},
    "intercept far away": {"intercept": 1e8},
}


@pytest.mark.parametrize("edge", EDGES)
def test_edges_converge(edge):
    options: dict[str, Any] = dict(EDGES[edge])
    F, y, _, rng = data()
    if options.pop("columns", False):
        F[:, 3], F[:, 4], F[:, 5] = 0.0, 1.0, F[:, 6]
    y = y * options.pop("factor", 1.0)
    eta = rng.standard_normal(30) * options.pop("noise", 1.0)
    far = options.pop("intercept", 0.0)
    if far:
        F[:, 0], y = 1.0, y + far
        options["penalty_weights"] = np.r_[0.0, np.ones(29)]
        options["ridge"] = np.r_[1e-8, np.ones(29)]
    options = {"lam": 2.0, "kappa": 0.3, "ridge": 0.5} | options
    found = pv.solve_clipped(F, y, options.pop("lam"), eta, **options)
    assert found.status is pv.Status.CONVERGED
    # One rounding of the coefficients may move the gradient by this much.
    size = np.sqrt((F**2).sum(axis=0) + options["ridge"])
    floor = 1e-15 * (size * np.linalg.norm(size * found.x)).max()
    psi = np.clip(y - F @ found.x, -0.3, 0.3)
    assert found.kkt <= 1e-12 + floor / np.linalg.norm(psi)
    assert found.n_iter < 50


def test_zero_is_found_without_a_step():
    F, y, _, _ = data()
    found = pv.solve_clipped(F, y, 1e4, kappa=0.3, ridge=0.5)
    assert not found.x.any()
    assert found.n_iter == 0


def test_one_pass_over_F_per_round():
    s = pv.Model(alpha=0.5).sample(n_features=1000, rng=0)
    found = pv.solve_clipped(s.F, s.y, 0.3, kappa=0.2, ridge=0.05 * s.v)
    rounds = len(found.history)
    assert found.n_passes <= rounds + 3  # the start, and copies of the working set


def test_stopping_early_is_said():
    F, y, _, _ = data()
    problem = ClippedProblem(F, y, 2.0, loss=Huber(0.3), ridge=0.5)
    asked = []
    stop = solve_clipped_problem(
        problem, throw=False, expired=lambda: len(asked) > 1 or asked.append(1) is not None
    )
    assert stop.status is pv.Status.MAX_ITER
    # the bound holds for the point where it stopped
    full = solve_clipped_problem(problem)
    assert np.sqrt(0.5) * np.linalg.norm(stop.x - full.x) <= stop.distance
    with pytest.raises(pv.NotConvergedError):
        solve_clipped_problem(problem, expired=lambda: True)


def test_input_is_left_as_it_was():
    F, y, _, rng = data()
    eta, x0 = rng.standard_normal(30), rng.standard_normal(30)
    copies = [a.copy() for a in (F, y, eta, x0)]
    pv.solve_clipped(F, y, 2.0, eta, kappa=0.3, ridge=0.5, x0=x0)
    for a, b in zip((F, y, eta, x0), copies, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_quadratic_in_two_coefficients_by_hand():
    H = np.array([[2.0, 1.0], [1.0, 2.0]])
    found = minimise_quadratic(H, np.array([4.0, 1.0]), np.array([1.0, 0.0]), np.zeros(2), 1e-12)
    assert found == pytest.approx([5 / 3, -1 / 3])
