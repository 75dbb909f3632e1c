"""Rays by one factorisation, on columns that conjugate gradients cannot deal with."""

import numpy as np
import pytest

import privasso as pv
from privasso.problem import Problem, RaySearch, critical_lambda, is_ray


def powers(m=40, n=90):
    """Sines of nearby frequencies: condition number about 1e10 and more."""
    t = np.linspace(0, 1, m)
    return np.sin(np.outer(t, np.linspace(1, 60, n))) + 0.5


def test_the_projection_is_that_of_the_singular_value_decomposition():
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.standard_normal((n, 30)))[0] for n in (30, 90))
    F = (U * np.geomspace(1, 1e-8, 30)) @ V.T
    problem = Problem(F, b=rng.standard_normal(90), lam=1e-9)
    found = RaySearch(problem.op, problem.norms).ray(problem, problem.b)
    assert found is not None
    assert is_ray(problem, found)
    null = np.linalg.svd(F / problem.norms)[2][30:]
    expected = null.T @ (null @ (problem.b * problem.norms)) / problem.norms
    expected /= np.abs(expected).max()
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_full_column_rank_has_no_ray():
    x = np.random.default_rng(0).standard_normal(90)
    full = Problem(np.eye(90), b=x, lam=1e-9)
    assert RaySearch(full.op, full.norms).ray(full, x) is None


@pytest.mark.parametrize("part", [0.3, 0.9, 1.1])
def test_ill_conditioned_columns_have_a_verdict(part):
    rng = np.random.default_rng(1)
    F, eta = powers(), rng.standard_normal(90)
    lam = part * critical_lambda(F, eta)
    sol = pv.solve(F, F[:, 3], lam, eta, throw=False, time_limit=20.0)
    assert sol.status is (pv.Status.UNBOUNDED if part < 1 else pv.Status.CONVERGED)
    if sol.ray is not None:
        size = np.abs(F) @ np.abs(sol.ray)
        assert np.abs(F @ sol.ray).max() <= 1e-8 * size.max()
        assert eta @ sol.ray + lam * np.abs(sol.ray).sum() < 0
