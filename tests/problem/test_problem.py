"""Objective, optimality, certificates and boundedness against independent computations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import privasso as pv
from privasso.operators import Metered, as_operator
from privasso.problem import (
    Problem,
    certify,
    dual_gap,
    is_ray,
    linear_programme,
    ray_from,
    rounding_floor,
    zero_column_ray,
)
from privasso.problem._boundedness import RaySearch, project
from privasso.problem._certificate import (
    least_squares_anchor,
    programme_anchor,
    step_to_feasible,
)


def small(seed=0, m=20, n=30, noise=0.05):
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((m, n))
    return F, rng.standard_normal(m), noise * rng.standard_normal(n)


def test_b_form_is_the_labels_form_up_to_a_constant():
    F, y, eta = small()
    problem = Problem.from_labels(F, y, 0.3, eta)
    rng = np.random.default_rng(1)
    for _ in range(5):
        x = rng.standard_normal(30)
        direct = 0.5 * np.sum((y - F @ x) ** 2) + 0.3 * np.abs(x).sum() + eta @ x
        assert problem.objective(x) == pytest.approx(direct - 0.5 * y @ y)
        c = F.T @ (y - F @ x) - eta
        assert problem.kkt(x) == pytest.approx(np.abs(c - 0.3 * np.sign(x)).max() / 0.3)


def test_a_problem_holds_neither_labels_nor_noise():
    F, y, eta = small()
    problem = Problem.from_labels(F, y, 0.3, eta)
    held = [value for value in vars(problem).values() if isinstance(value, np.ndarray)]
    assert all(value.shape == (30,) for value in held)
    assert not any(np.array_equal(value, eta) for value in held)
    assert "0.3" in repr(problem)
    assert str(y[0]) not in repr(problem)


def test_with_lam_reads_nothing():
    F, y, eta = small()
    op = Metered(as_operator(F))
    problem = Problem.from_labels(op, y, 0.3, eta)
    assert op.passes == 1.0
    assert problem.with_lam(0.5).lam == 0.5
    assert op.passes == 1.0


@given(seed=st.integers(0, 1000), distance=st.floats(1e-6, 1.0))
def test_gap_bounds_the_distance_to_the_minimum(seed, distance):
    """At any point, P(x) − min P ≤ gap; the minimum comes from a certified solve elsewhere."""
    F, y, eta = small(seed)
    lam = 1.2 * pv.critical_lambda(F, eta) + 0.05
    problem = Problem.from_labels(F, y, lam, eta)
    minimum = problem.objective(pv.solve(F, y, lam, eta, method="cd").x)
    rng = np.random.default_rng(seed)
    x = pv.solve(F, y, lam, eta).x + distance * rng.standard_normal(30)
    w = F @ x
    gap = dual_gap(problem, x, w, problem.b - F.T @ w)
    assert problem.objective(x) - minimum <= gap * (1 + 1e-9) + 1e-9
    assert np.isfinite(gap)


def test_gap_vanishes_at_the_minimum():
    F, y, eta = small(3)
    lam = 1.2 * pv.critical_lambda(F, eta)
    problem = Problem.from_labels(F, y, lam, eta)
    x = pv.solve(F, y, lam, eta).x
    w = F @ x
    assert dual_gap(problem, x, w, problem.b - F.T @ w) < 1e-10


def test_anchors_are_strictly_feasible():
    F, y, eta = small(4)
    critical = pv.critical_lambda(F, eta)
    problem = Problem.from_labels(F, y, 1.01 * critical, eta)
    anchor = programme_anchor(problem)
    assert anchor is not None
    w, c = anchor
    np.testing.assert_allclose(c, problem.b - F.T @ w, atol=1e-12)
    assert np.abs(c).max() < problem.lam
    assert np.abs(c).max() == pytest.approx(critical, rel=1e-6)
    # Least squares (every constraint weighted by its column) needs a larger lambda.
    norms = np.linalg.norm(F, axis=0)
    fit = np.linalg.lstsq((F / norms).T, eta / norms, rcond=None)[0]
    least = np.abs(eta - F.T @ fit).max()
    assert least > critical
    assert least_squares_anchor(problem.with_lam(0.99 * least)) is None
    anchor = least_squares_anchor(problem.with_lam(1.01 * least))
    assert anchor is not None
    w = anchor[0]
    assert np.abs(problem.b - F.T @ w).max() == pytest.approx(least, rel=1e-6)


def test_no_dual_point_below_the_critical_lambda():
    F, y, eta = small(5, noise=1.0)
    problem = Problem.from_labels(F, y, 0.5 * pv.critical_lambda(F, eta), eta)
    x = np.zeros(30)
    certificate = certify(problem, x, F @ x, problem.b)
    assert certificate.gap == np.inf


def test_step_to_feasible_by_brute_force():
    rng = np.random.default_rng(0)
    for _ in range(200):
        c, q = rng.uniform(-1.5, 1.5, 4), rng.uniform(-1, 1, 4)
        grid = np.linspace(0, 5, 20001)
        inside = np.abs(c[:, None] - grid * q[:, None]).max(axis=0) <= 1.0
        t = step_to_feasible(c, q, 1.0)
        if inside.any():
            assert t == pytest.approx(grid[inside.argmax()], abs=3e-4)
        else:
            assert t is None or np.abs(c - t * q).max() <= 1 + 1e-9


def primal_programme(F, eta):
    """max ηᵀd subject to Fd = 0, ‖d‖₁ ≤ 1: the other side of the duality."""
    m, n = F.shape
    result = linprog(
        np.concatenate([-eta, eta]),
        A_ub=np.ones((1, 2 * n)),
        b_ub=[1.0],
        A_eq=np.hstack([F, -F]),
        b_eq=np.zeros(m),
        method="highs-ds",
    )
    return -result.fun


@pytest.mark.parametrize("seed", range(5))
def test_critical_lambda_against_the_dual_programme(seed):
    F, _, eta = small(seed)
    F = F * np.logspace(-2, 2, 30)
    assert pv.critical_lambda(F, eta) == pytest.approx(primal_programme(F, eta), rel=1e-6)


def test_critical_lambda_properties():
    F, y, eta = small(6)
    critical = pv.critical_lambda(F, eta)
    assert pv.critical_lambda(F, 3 * eta) == pytest.approx(3 * critical)
    # Noise in the row space costs nothing.
    assert pv.critical_lambda(F, eta + F.T @ y) == pytest.approx(critical)
    assert pv.critical_lambda(F, F.T @ y) == pytest.approx(0.0, abs=1e-9)
    assert pv.critical_lambda(F.T, y) == pytest.approx(0.0, abs=1e-9)  # full column rank
    assert pv.critical_lambda(F, np.zeros(30)) == 0.0


@pytest.mark.parametrize("scale", [1e-200, 1e-12, 1e-9, 1e12, 1e100])
def test_critical_lambda_depends_on_the_row_space_alone(scale):
    F, _, eta = small(6)
    F[:, 3] = 0.0
    critical = primal_programme(F, eta)
    assert pv.critical_lambda(F * scale, eta) == pytest.approx(critical, rel=1e-7)
    rows = np.logspace(-6, 6, len(F))[:, None]
    assert pv.critical_lambda(F * rows, eta) == pytest.approx(critical, rel=1e-7)


def test_a_column_whose_square_is_zero_is_no_ray():
    tiny = Problem(np.array([[1e-200, 1.0]]), b=[1e-200, 0.0], lam=1e-203)
    assert not is_ray(tiny, np.array([1.0, 0.0]))
    assert zero_column_ray(tiny) is None
    assert zero_column_ray(Problem(np.array([[0.0, 1.0]]), b=[1.0, 0.0], lam=0.1)) is not None


def test_programme_direction_is_a_ray_just_below():
    F, y, eta = small(7)
    problem = Problem.from_labels(F, y, 1.0, eta)
    programme = linear_programme(problem)
    assert np.abs(programme.d).sum() == pytest.approx(1.0)
    assert is_ray(problem.with_lam(0.99 * programme.critical), programme.d)
    assert not is_ray(problem.with_lam(1.01 * programme.critical), programme.d)


def test_is_ray_refuses_what_is_not_in_the_null_space():
    F, y, eta = small(8, noise=1.0)
    problem = Problem.from_labels(F, y, 1e-3, eta)
    d = -eta / np.abs(eta).max()
    assert eta @ d + 1e-3 * np.abs(d).sum() < 0  # steep enough,
    assert not is_ray(problem, d)  # but F d is not zero
    assert not is_ray(problem, np.full(30, np.nan))


def test_ray_from_projects():
    F, y, eta = small(9, noise=1.0)
    problem = Problem.from_labels(F, y, 1e-3, eta)
    d = ray_from(problem, -eta)
    assert d is not None
    assert np.abs(F @ d).max() < 1e-9
    assert eta @ d + 1e-3 * np.abs(d).sum() < 0
    assert ray_from(problem.with_lam(100.0), -eta) is None
    assert ray_from(problem, np.zeros(30)) is None


def test_projection_is_that_of_the_pseudo_inverse():
    F, y, eta = small(10)
    F = F * np.logspace(-3, 3, 30)
    problem = Problem.from_labels(F, y, 1.0, eta)
    unit = F / np.linalg.norm(F, axis=0)
    d = np.random.default_rng(0).standard_normal(30)
    *_, last = project(problem, d)
    np.testing.assert_allclose(last.residual, d - np.linalg.pinv(unit) @ (unit @ d), atol=1e-8)


def test_rays_of_small_problems_by_hand():
    problem = Problem(np.array([[1.0, 0.0]]), b=[5.0, -3.0], lam=1.0)
    ray = zero_column_ray(problem)
    assert ray is not None
    assert ray.tolist() == [0.0, -1.0]
    twins = Problem(np.array([[1.0, 1.0]]), b=[0.0, 0.0], lam=1.0)
    found = RaySearch(twins.op, np.ones(2))._outside(np.array([3.0, 1.0]))
    np.testing.assert_allclose(found, [1.0, -1.0], rtol=1e-12)


def test_rounding_grows_with_b():
    floor = rounding_floor(np.array([1.0, 100.0]), norms=np.ones(2), length=0.0)
    assert floor[1] == 100.0 * floor[0] > 0.0
