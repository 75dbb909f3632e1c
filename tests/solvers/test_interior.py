"""Close to the critical λ, on ill-conditioned columns: a minimiser or a ray, with its proof."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import privasso as pv
from privasso._clock import Clock
from privasso.problem import Problem
from privasso.solvers._interior import interior_point


def polynomials(n_rows, degree):
    """Products of the ten columns of the diabetes data, and labels."""
    data: Any = load_diabetes()
    X, y = data.data, data.target
    X = PolynomialFeatures(degree, include_bias=False).fit_transform(
        StandardScaler().fit_transform(X)
    )
    return StandardScaler().fit_transform(X[:n_rows]), y[:n_rows] - y[:n_rows].mean()


def kkt(F, b, lam, x):
    """Largest violation in long doubles, relative to λ."""
    A = F.astype(np.longdouble)
    c = b.astype(np.longdouble) - A.T @ (A @ x.astype(np.longdouble))
    off = np.where(x != 0, np.abs(c - lam * np.sign(x)), np.maximum(np.abs(c) - lam, 0))
    return float(off.max()) / lam


@pytest.mark.parametrize(
    ("n_rows", "degree"), [(100, 3), pytest.param(442, 4, marks=pytest.mark.slow)]
)
def test_both_sides_of_the_critical_lambda(n_rows, degree):
    F, y = polynomials(n_rows, degree)
    eta = 5.0 * np.random.default_rng(0).standard_normal(F.shape[1])
    b, critical = F.T @ y - eta, pv.critical_lambda(F, eta)
    for part in (0.3, 0.9, 0.99, 0.999, 1.001, 1.01, 1.1):
        lam = part * critical
        sol = pv.solve(F, y, lam, eta, throw=False)
        if part < 1:
            assert sol.status is pv.Status.UNBOUNDED
            assert sol.ray is not None
            size = np.linalg.norm(F, axis=0) @ np.abs(sol.ray)
            assert np.linalg.norm(F @ sol.ray) <= 1e-9 * size
            assert b @ sol.ray > lam * np.abs(sol.ray).sum()
        else:
            assert sol.status is pv.Status.CONVERGED
            assert kkt(F, b, lam, sol.x) <= 1e-7  # coefficients of 10⁶ cancel
            assert np.isfinite(sol.gap)


@pytest.mark.parametrize("shape", [(20, 50), (50, 20)], ids=str)
@pytest.mark.parametrize("kind", [np.asarray, sp.csc_array], ids=["dense", "sparse"])
def test_it_agrees_with_the_other_solvers(shape, kind):
    rng = np.random.default_rng(1)
    F = rng.standard_normal(shape) * np.geomspace(1, 100, shape[1])
    b = F.T @ rng.standard_normal(shape[0])
    lam = 0.05 * float(np.abs(b).max())
    found = interior_point(Problem(kind(F), b, lam), tol=1e-8, clock=Clock())
    assert found.x is not None
    assert found.certificate is not None
    assert found.certificate.gap <= 1e-8 * 0.5 * float(b @ found.x)
    assert kkt(F, b, lam, found.x) <= 1e-9
    assert found.n_steps <= 30


def test_a_limit_of_time():
    F, y = polynomials(100, 3)
    clock = Clock(1e-9)
    found = interior_point(Problem(F, F.T @ y, 1.0), tol=1e-8, clock=clock)
    assert found.x is None
    assert found.ray is None


def test_columns_that_still_join_are_no_reason_to_start_from_the_inside(monkeypatch):
    """A set of more than M columns is solved accurately, but some columns outside are missing."""
    rng = np.random.default_rng(0)
    F = rng.standard_normal((120, 800)) / np.sqrt(120)
    y = F[:, :50] @ rng.standard_normal(50) + 0.3 * rng.standard_normal(120)
    lam = float(np.abs(F.T @ y).max()) / 30
    monkeypatch.setattr("privasso.solvers._coordinate_descent.interior_point", None)
    for _ in range(5):
        eta = 0.1 * lam * rng.standard_normal(800)
        found = pv.solve(F, y, lam, eta, method="cd")
        assert found.kkt <= 1e-8
