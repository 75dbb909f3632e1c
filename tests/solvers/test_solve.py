"""Every method on every problem: the minimiser with proof, or proof that there is none."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import privasso as pv
from oracles import (
    check_both_sides_of_critical,
    check_ray,
    check_solution,
    correlated_problem,
    kkt,
    objective,
    stable_problem,
)
from privasso.solvers import Amp, AmpPaper


def model(seed, n, alpha=0.5, law=None, **kwargs):
    scales = pv.Uniform() if law is None else law
    return pv.Model(alpha, scales=scales, **kwargs).sample(n, rng=seed)


def paper_like(n=300, alpha=0.5, sigma=0.03, lam=0.1, law=None, seed=0):
    s = model(seed, n, alpha, law)
    return s.F, s.y, lam, pv.Gram(sigma).draw(s.v, rng=seed + 1)


def sparse_problem():
    rng = np.random.default_rng(3)
    F = sp.random_array((200, 300), density=0.05, rng=rng, format="csr")
    return F, rng.standard_normal(200), 0.3, 0.05 * rng.standard_normal(300)


def tall_problem():
    rng = np.random.default_rng(4)
    F = rng.standard_normal((2000, 60)) * np.logspace(-2, 2, 60)
    return F, rng.standard_normal(2000), 20.0, rng.standard_normal(60)


PROBLEMS = {
    "v1": lambda: paper_like(),
    "v2": lambda: paper_like(law=pv.LogNormal()),
    "no noise": lambda: (*paper_like()[:3], np.zeros(300)),
    "many rows": lambda: paper_like(alpha=2.0, sigma=0.2),
    "few rows": lambda: paper_like(n=1000, alpha=0.2, lam=0.3),
    "large lambda": lambda: (*paper_like()[:2], 100.0, paper_like()[3]),
    "fortran": lambda: (np.asfortranarray(paper_like()[0]), *paper_like()[1:]),
    "float32": lambda: (paper_like()[0].astype(np.float32), *paper_like()[1:]),
    "sparse": sparse_problem,
    "tall": tall_problem,
    "one row": lambda: (np.array([[1.0, -2.0, 0.5]]), np.array([3.0]), 0.1, np.zeros(3)),
    "one column": lambda: (np.arange(1.0, 6)[:, None], np.ones(5), 0.5, np.array([0.2])),
    "zero column": lambda: (
        np.column_stack([np.zeros(9), np.arange(9.0), np.ones(9)]),
        np.arange(9.0) + 1,
        0.5,
        np.array([0.4, 0.0, 0.1]),
    ),
    "twin columns": lambda: (
        np.column_stack([np.arange(9.0), np.arange(9.0), np.ones(9)]),
        np.arange(9.0) + 1,
        0.5,
        np.array([0.4, 0.0, 0.1]),
    ),
}


# AMP is not made for a single row, mostly zeros, or dependent columns.
NOT_FOR_AMP = {"one row", "sparse", "twin columns"}
METHODS = [(name, method) for name in PROBLEMS for method in ("auto", "amp", "cd", "vamp")]
METHODS = [case for case in METHODS if case not in {(name, "amp") for name in NOT_FOR_AMP}]


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_every_method_on_every_problem(name, method):
    F, y, lam, eta = PROBLEMS[name]()
    sol = pv.solve(F, y, lam, eta, method=method)
    check_solution(F, y, lam, eta, sol)
    assert sol.n_passes > 0


@pytest.mark.parametrize("name", ["v1", "v2", "many rows", "sparse", "tall", "zero column"])
def test_agrees_with_an_interior_point_method(name):
    import cvxpy as cp

    F, y, lam, eta = PROBLEMS[name]()
    x = cp.Variable(F.shape[1])
    loss = 0.5 * cp.sum_squares(y - F @ x) + lam * cp.norm1(x) + eta @ x
    cp.Problem(cp.Minimize(loss)).solve(solver="CLARABEL")
    sol = pv.solve(F, y, lam, eta)
    assert objective(F, y, lam, eta, sol.x) <= objective(F, y, lam, eta, x.value) + 1e-9
    # The reported gap bounds the true distance to the minimum from above.
    excess = objective(F, y, lam, eta, sol.x) - loss.value
    assert excess <= sol.gap + 1e-7 * (1 + abs(loss.value))


@pytest.mark.parametrize("seed", range(12))
def test_random_stable_problems(seed):
    F, y, lam, eta = stable_problem(np.random.default_rng(seed), n_features=200 + 40 * seed)
    sol = pv.solve(F, y, lam, eta)
    check_solution(F, y, lam, eta, sol)


@pytest.mark.parametrize("seed", range(12))
def test_random_correlated_problems(seed):
    F, y, lam, eta = correlated_problem(np.random.default_rng(100 + seed))
    sol = pv.solve(F, y, lam, eta)
    assert sol.status is pv.Status.CONVERGED
    assert sol.kkt_beyond_rounding <= 1e-8
    assert kkt(F, y, lam, eta, sol.x) <= 1e-7
    assert sol.gap <= 1e-6 * (1 + abs(objective(F, y, lam, eta, sol.x)))


@pytest.mark.parametrize("seed", range(6))
def test_both_sides_of_the_critical_lambda(seed):
    check_both_sides_of_critical(np.random.default_rng(200 + seed), seed, 150)


def test_unbounded_error_says_what_to_do():
    s = model(0, 200)
    eta = pv.Isotropic(1.0).draw(s.v, rng=0)
    with pytest.raises(pv.UnboundedError, match="raise lambda to at least") as error:
        pv.solve(s.F, s.y, 0.1, eta)
    solution = error.value.solution
    check_ray(s.F, 0.1, eta, solution.ray)
    # The lambda that the message asks for is a lower bound of the critical one, never more.
    needed = float(str(error.value).split("at least ")[1].split(" ")[0])
    assert 0.1 < needed <= pv.critical_lambda(s.F, eta) * (1 + 1e-6)


def test_passes_are_those_of_one_solve():
    F, y, lam, eta = paper_like()
    problem = pv.problem.Problem.from_labels(F, y, lam, eta)
    first, second = (pv.solvers.solve_problem(problem).n_passes for _ in range(2))
    assert first == pytest.approx(second)
    assert pv.solve(F, y, lam, eta).n_passes == pytest.approx(first + 1)
    assert first < 12


def test_zero_column_is_recognised_in_one_pass_and_its_entries_looked_at():
    F = np.column_stack([np.zeros(5), np.ones(5)])
    sol = pv.solve(F, np.ones(5), 0.1, [0.5, 0.0], throw=False)
    assert sol.status is pv.Status.UNBOUNDED
    assert sol.n_passes == 2
    np.testing.assert_array_equal(sol.ray, [-1.0, 0.0])


def test_amp_says_that_it_diverged_and_auto_takes_over():
    rng = np.random.default_rng(0)
    F = rng.standard_normal((200, 400)) + 5.0
    y = rng.standard_normal(200)
    with pytest.raises(pv.NotConvergedError, match="correlated"):
        pv.solve(F, y, 0.5, method="amp")
    sol = pv.solve(F, y, 0.5)
    assert sol.method == "cd"
    check_solution(F, y, 0.5, np.zeros(400), sol)


def test_amp_alone_reaches_the_same_fixed_point():
    F, y, lam, eta = paper_like(n=400)
    alone = pv.solve(F, y, lam, eta, method=Amp(polish=False))
    damped = pv.solve(F, y, lam, eta, method=Amp(polish=False, damping=0.3))
    exact = pv.solve(F, y, lam, eta, method="cd")
    np.testing.assert_allclose(alone.x, exact.x, atol=1e-7)
    np.testing.assert_allclose(damped.x, exact.x, atol=1e-7)
    assert damped.n_iter > alone.n_iter


def test_amp_is_that_of_the_labels_form():
    """AMP on (0, −b) from g = 0 has the iterates of AMP on (y, η) from g = y."""
    F, y, lam, eta = paper_like(n=200)
    problem = pv.problem.Problem.from_labels(F, y, lam, eta)
    states = [Amp().init(problem)]
    for _ in range(5):
        states.append(Amp().step(problem, states[-1]))
    m = F.shape[0]
    squares = (F**2).sum(axis=0)
    x, g, s_theta = np.zeros(F.shape[1]), y.copy(), 0.0
    for t in range(6):
        g = (y - F @ x + s_theta * g) / (1 + s_theta) if t else y
        scale = (1 + s_theta) / squares
        m_field = scale * (F.T @ g) + x - eta * scale
        x = np.sign(m_field) * np.maximum(np.abs(m_field) - lam * scale, 0)
        s_theta = float(np.sum(squares * scale * (x != 0))) / m
        np.testing.assert_allclose(states[t].x, x, atol=1e-12)


def test_the_paper_algorithm_is_close_but_not_exact():
    F, y, lam, eta = paper_like(n=1000, sigma=0.02)
    sol = pv.solve(F, y, lam, eta, method=AmpPaper(rng=0))
    assert sol.status is pv.Status.FIXED_POINT
    assert "not the minimiser" in sol.message
    violation = kkt(F, y, lam, eta, sol.x)
    assert sol.kkt == pytest.approx(violation, rel=1e-6)
    assert 1e-3 < violation < 0.2
    exact = pv.solve(F, y, lam, eta).x
    assert np.linalg.norm(sol.x - exact) < 0.05 * np.linalg.norm(exact)


def test_the_paper_algorithm_needs_labels():
    problem = pv.problem.Problem(np.eye(3), np.ones(3), 0.1)
    with pytest.raises(ValueError, match="amp-paper"):
        pv.solvers.solve_problem(problem, method="amp-paper")


@pytest.mark.parametrize("shape", [(300, 100), (200, 400)])
def test_scales_over_eighteen_orders_of_magnitude(shape):
    m, n = shape
    rng = np.random.default_rng(1)
    scales = 10 ** rng.uniform(-9, 9, size=n)
    F0, y = rng.standard_normal(shape), rng.standard_normal(m)
    F = F0 * scales
    sol = pv.solve(F, y, 0.1, np.zeros(n))
    assert sol.status is pv.Status.CONVERGED
    # In units of the scaled columns every condition holds to the precision of the arithmetic.
    c = F0.T @ (y - F @ sol.x)
    weight = 0.1 / scales
    active = sol.x != 0
    assert np.abs(c - weight * np.sign(sol.x))[active].max() < 1e-12 * m
    assert (np.abs(c) - weight)[~active].max() < 1e-12 * m


@given(
    seed=st.integers(0, 10_000),
    scale=st.floats(1e-3, 1e3),
    flip=st.integers(0, 39),
)
def test_equivariances(seed, scale, flip):
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((25, 40)) * rng.uniform(0.2, 2.0, 40) / 5
    y = rng.standard_normal(25)
    lam = 0.3
    eta = 0.05 * rng.standard_normal(40)
    x = pv.solve(F, y, lam, eta).x
    close = {"atol": 1e-6 * (1 + np.abs(x).max())}
    # y, λ and η in other units: x in those units.
    scaled = pv.solve(F, scale * y, scale * lam, scale * eta).x
    np.testing.assert_allclose(scaled / scale, x, **close)
    # F and y rescaled together leave x, with λ and η scaled twice.
    again = pv.solve(scale * F, scale * y, scale**2 * lam, scale**2 * eta).x
    np.testing.assert_allclose(again, x, **close)
    order = rng.permutation(40)
    np.testing.assert_allclose(pv.solve(F[:, order], y, lam, eta[order]).x, x[order], **close)
    wider = pv.solve(np.column_stack([F, np.zeros(25)]), y, lam, np.append(eta, 0.1)).x
    np.testing.assert_allclose(wider, np.append(x, 0.0), **close)
    signs = np.ones(40)
    signs[flip] = -1
    np.testing.assert_allclose(pv.solve(F * signs, y, lam, eta * signs).x, x * signs, **close)


def spoilt(F, value):
    F = F.copy()
    F[0, 0] = value
    return F


BAD = {
    "NaN in F": lambda F, y, e: (spoilt(F, np.nan), y, 0.1, e),
    "inf in F": lambda F, y, e: (spoilt(F, np.inf), y, 0.1, e),
    "NaN in sparse F": lambda F, y, e: (
        sp.csr_array(spoilt(F, np.nan)),
        y,
        0.1,
        e,
    ),
    "NaN in y": lambda F, y, e: (F, np.append(y[:-1], np.nan), 0.1, e),
    "NaN in eta": lambda F, y, e: (F, y, 0.1, np.append(e[:-1], np.nan)),
    "short y": lambda F, y, e: (F, y[:-1], 0.1, e),
    "short eta": lambda F, y, e: (F, y, 0.1, e[:-1]),
    "F a vector": lambda F, y, e: (F[0], y, 0.1, e),
    "y a matrix": lambda F, y, e: (F, y[:, None], 0.1, e),
    "empty": lambda F, y, e: (np.empty((0, 3)), np.empty(0), 0.1, np.zeros(3)),
    "empty sparse": lambda F, y, e: (sp.csr_array((0, 3)), np.empty(0), 0.1, np.zeros(3)),
    "complex": lambda F, y, e: (F.astype(complex), y, 0.1, e),
    "complex sparse": lambda F, y, e: (sp.csr_array(F.astype(complex)), y, 0.1, e),
    "object": lambda F, y, e: (F.astype(object), y, 0.1, e),
    "text": lambda F, y, e: (F.astype(str), y, 0.1, e),
    "ragged": lambda F, y, e: ([[1.0], [1.0, 2.0]], y, 0.1, e),
    "lam zero": lambda F, y, e: (F, y, 0.0, e),
    "lam negative": lambda F, y, e: (F, y, -1.0, e),
    "lam NaN": lambda F, y, e: (F, y, np.nan, e),
    "lam text": lambda F, y, e: (F, y, "0.1", e),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_clear_error(case):
    rng = np.random.default_rng(0)
    arguments = BAD[case](rng.standard_normal((6, 4)), np.ones(6), np.zeros(4))
    with pytest.raises(ValueError, match=r"^[^\n]{15,200}$"):
        pv.solve(*arguments)


@pytest.mark.parametrize(
    "options",
    [{"method": "lars"}, {"method": None}, {"tol": 0}],
)
def test_bad_options(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        pv.solve(np.eye(2), np.ones(2), 0.1, **options)
