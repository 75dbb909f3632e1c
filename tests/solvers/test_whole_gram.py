"""What the Gram matrix proves holds on F, in extended precision."""

import numpy as np
import pytest

import privasso as pv
from privasso.operators import as_operator
from privasso.problem import Problem, certify
from privasso.solvers import _batch
from privasso.solvers._shared import WholeGram


def violation(F, b, lam, x):
    """Largest violation over λ, with all products in extended precision."""
    F, x = F.astype(np.longdouble), x.astype(np.longdouble)
    c = b - F.T @ (F @ x)
    off = np.where(x != 0, np.abs(c - lam * np.sign(x)), np.maximum(np.abs(c) - lam, 0))
    return float(off.max() / lam)


def matrix(kind, rng):
    F = rng.standard_normal((120, 40))
    if kind == "correlated":
        F = np.cumsum(F, axis=1)
    elif kind == "large means":
        F += 1e6
    elif kind == "scales":
        F *= 10.0 ** rng.uniform(-6, 6, size=40)
    elif kind == "float32":
        F = F.astype(np.float32)
    return np.asfortranarray(F) if kind == "correlated" else F


@pytest.mark.parametrize("kind", ["independent", "correlated", "large means", "scales", "float32"])
@pytest.mark.parametrize("seed", range(4))
def test_the_violation_is_an_upper_bound(kind, seed):
    rng = np.random.default_rng(seed)
    F = matrix(kind, rng)
    exact = F.astype(np.float64)
    y = exact @ (rng.standard_normal(40) / np.linalg.norm(exact, axis=0))
    b = exact.T @ y
    lam = 0.01 * float(np.abs(b).max())
    x = pv.solve(F, y, lam, throw=False).x
    for point in (x, x * (1 + 1e-9 * rng.standard_normal(40)), x + 1e-3 * x[::-1]):
        gram = WholeGram(as_operator(F), np.linalg.norm(exact, axis=0))
        found = gram.certificate(b, lam, point, gram.conditions(b, point), dual_point=y)
        assert found.kkt >= violation(exact, b, lam, point) * (1 - 1e-9)
        assert found.kkt_beyond_rounding == found.kkt


@pytest.mark.parametrize("noisy", [False, True])
def test_the_gap_is_that_of_the_certificate_on_f(noisy):
    rng = np.random.default_rng(7)
    F, y, lam = rng.standard_normal((60, 30)), rng.standard_normal(60), 4.0
    b = F.T @ y - (0.1 * rng.standard_normal(30) if noisy else 0.0)
    point = y if not noisy else None
    problem = Problem(F, b, lam, dual_point=point)
    x = pv.solvers.solve_problem(problem).x
    support = np.flatnonzero(x)
    path = np.zeros(30)
    path[support] = np.linalg.solve(F[:, support].T @ F[:, support], lam * np.sign(x[support]))
    gram = WholeGram(as_operator(F), problem.norms)
    for factor in (1.0, 1.001, 0.9):
        at = x * factor
        w = F @ at
        direction = None if point is not None else (F @ path, F.T @ (F @ path))
        expected = certify(problem, at, w, b - F.T @ w, direction, anchors=False)
        found = gram.certificate(b, lam, at, gram.conditions(b, at), dual_point=point, path=path)
        assert found.gap == pytest.approx(expected.gap, rel=1e-6, abs=1e-9)
        assert found.kkt == pytest.approx(expected.kkt, rel=1e-6, abs=1e-10)


def test_where_it_proves_too_little_f_itself_decides(monkeypatch):
    rng = np.random.default_rng(3)
    F = np.cumsum(rng.standard_normal((200, 50)), axis=1)
    y = rng.standard_normal(200)
    lams = np.geomspace(0.9, 0.01, 20) * float(np.abs(F.T @ y).max())
    checked = []
    original = _batch.Batch._verify
    monkeypatch.setattr(
        _batch.Batch, "_verify", lambda self, k: checked.append(k.size) or original(self, k)
    )
    assert (pv.solve_path(F, y, lams).kkt <= 1e-8).all()
    assert not checked  # the Gram matrix was enough
    rounding = pv.solve_path(F, y, lams, tol=1e-13, throw=False)
    assert checked
    for k, lam in enumerate(lams):
        if rounding.status[k] is pv.Status.CONVERGED and not rounding.rounding_limited[k]:
            assert violation(F, F.T @ y, lam, rounding.x[:, k]) <= 2e-13
