"""Certificates prove nothing about what is no number, and along paths that lead nowhere."""

import numpy as np
import pytest

from privasso.problem import Problem, certify


def point(seed=0, m=40, n=60):
    """A problem, a point near its minimiser with its products, and the direction of its path."""
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((m, n)) * rng.uniform(0.1, 10.0, size=n)
    x = np.where(rng.random(n) < 0.3, rng.standard_normal(n), 0.0)
    lam = float(rng.uniform(0.5, 2.0))
    c = np.where(x != 0, lam * np.sign(x), lam * rng.uniform(-1.0, 1.0, size=n))
    c += 1e-9 * rng.standard_normal(n)
    w, A = F @ x, F[:, x != 0]
    delta = A @ np.linalg.solve(A.T @ A, lam * np.sign(x[x != 0]))
    return Problem(F, c + F.T @ w, lam), x, w, c, (delta, F.T @ delta)


def test_directions_that_lead_nowhere_leave_an_infinite_gap():
    problem, x, w, c, (delta, q) = point()
    assert np.isfinite(certify(problem, x, w, c, (delta, q), anchors=False).gap)
    assert certify(problem, x, w, c, (-delta, -q), anchors=False).gap == np.inf
    nothing = np.zeros_like(w), np.zeros_like(c)
    assert certify(problem, x, w, c, nothing, anchors=False).gap == np.inf


def test_violations_that_rounding_explains_are_left_out():
    problem, x, w, c, path = point()
    b = problem.b.copy()
    b[0], c[0] = 1e12, np.sign(x[0]) * problem.lam + 1e-7 if x[0] else problem.lam + 1e-7
    F = problem.op.toarray()
    F[:, 0] *= 1e9
    found = certify(Problem(F, b, problem.lam), x, w, c, path, anchors=False)
    assert found.kkt == pytest.approx(1e-7 / problem.lam, rel=0.1)
    assert found.kkt_beyond_rounding < 0.1 * found.kkt


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("where", ["condition", "coefficient"])
def test_what_is_not_a_number_proves_nothing(bad, where):
    problem, x, w, c, path = point()
    with np.errstate(invalid="ignore"):
        (c if where == "condition" else x)[5] = bad
        found = certify(problem, x, w, c, path, anchors=False)
    assert not found.proves(1e-6)
    assert found.gap == np.inf
