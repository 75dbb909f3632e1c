"""Certificates of many problems are those of one problem at a time."""

import numpy as np
import pytest

from privasso.problem import Problem, certify, certify_rows


def rows(seed=0, m=40, n=60, k=9):
    """F, and K points near the minimisers of as many problems, with their products."""
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((m, n)) * rng.uniform(0.1, 10.0, size=n)
    X = np.where(rng.random((k, n)) < 0.3, rng.standard_normal((k, n)), 0.0)
    lams = rng.uniform(0.5, 2.0, size=k)
    inside = lams[:, None] * rng.uniform(-1.0, 1.0, size=(k, n))
    C = np.where(X != 0, lams[:, None] * np.sign(X), inside)
    C += 1e-9 * rng.standard_normal((k, n)) * (rng.random((k, 1)) < 0.7)
    W = X @ F.T
    return F, lams, X, W, C + W @ F, C


def paths(F, lams, X):
    """Directions along the path of λ, and their products with F."""
    D = np.zeros((len(X), F.shape[0]))
    for k, x in enumerate(X):
        A = F[:, x != 0]
        D[k] = A @ np.linalg.solve(A.T @ A, lams[k] * np.sign(x[x != 0]))
    return D, D @ F


def one_by_one(F, B, lams, X, W, C, directions):
    norms = np.linalg.norm(F, axis=0)
    found = []
    for k in range(len(X)):
        problem = Problem(F, B[k], float(lams[k]))
        assert np.allclose(problem.norms, norms)
        path = directions[0][k], directions[1][k]
        found.append(certify(problem, X[k], W[k], C[k], path, anchors=False))
    return found


def assert_equal(ours, theirs, rtol=1e-9):
    for field in ("kkt", "kkt_beyond_rounding", "gap"):
        a, b = ([getattr(c, field) for c in found] for found in (ours, theirs))
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-15, err_msg=field)


@pytest.mark.parametrize("seed", range(6))
def test_rows_are_certified_as_single_problems_are(seed):
    F, lams, X, W, B, C = rows(seed)
    norms = np.linalg.norm(F, axis=0)
    ours = certify_rows(norms, B, lams, X, W, C, paths(F, lams, X))
    assert_equal(ours, one_by_one(F, B, lams, X, W, C, paths(F, lams, X)))
    assert any(c.kkt > 1e-10 for c in ours)
    assert any(np.isfinite(c.gap) for c in ours)


def test_directions_that_lead_nowhere_leave_an_infinite_gap():
    F, lams, X, W, B, C = rows()
    C[0, 3] = 1.5 * lams[0]
    nothing = np.zeros_like(W), np.zeros_like(C)
    norms = np.linalg.norm(F, axis=0)
    ours = certify_rows(norms, B, lams, X, W, C, nothing)
    assert ours[0].gap == np.inf
    assert_equal(ours, one_by_one(F, B, lams, X, W, C, nothing))
    away = -paths(F, lams, X)[0]
    assert certify_rows(norms, B, lams, X, W, C, (away, away @ F))[0].gap == np.inf


def test_violations_that_rounding_explains_are_left_out():
    F, lams, X, W, B, C = rows()
    F[:, 0] *= 1e9
    norms = np.linalg.norm(F, axis=0)
    C[:, 0] = np.where(X[:, 0] != 0, lams * np.sign(X[:, 0]), lams) + 1e-7
    B[:, 0] = 1e12
    ours = certify_rows(norms, B, lams, X, W, C, paths(F, lams, X))
    assert all(c.kkt_beyond_rounding < c.kkt for c in ours)
    assert_equal(ours, one_by_one(F, B, lams, X, W, C, paths(F, lams, X)), rtol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("where", ["condition", "coefficient"])
def test_what_is_not_a_number_proves_nothing(bad, where):
    F, lams, X, W, B, C = rows()
    (C if where == "condition" else X)[2, 5] = bad
    found = certify_rows(np.linalg.norm(F, axis=0), B, lams, X, W, C, (W, C))
    assert not found[2].proves(1e-6)
    assert found[2].gap == np.inf
    assert found[1].kkt < 1e-6


def test_directions_in_single_precision_give_a_gap_that_is_not_smaller():
    """The dual point that stands for the bound satisfies its constraints, in double precision."""
    F, lams, X, W, B, C = rows(seed=2)
    D, Q = paths(F, lams, X)
    norms = np.linalg.norm(F, axis=0)
    exact = certify_rows(norms, B, lams, X, W, C, (D, Q))
    D32 = D.astype(np.float32)
    single = certify_rows(norms, B, lams, X, W, C, (D32, D32 @ F.astype(np.float32)))
    compared = 0
    for k, (ours, theirs) in enumerate(zip(single, exact, strict=True)):
        if not np.isfinite(theirs.gap) or np.abs(C[k]).max() <= lams[k]:
            continue
        compared += 1
        assert theirs.gap <= ours.gap <= theirs.gap * (1 + 1e-3)
        # The step that the gap stands for: the positive root of its quadratic.
        base = float(np.sum(lams[k] * np.abs(X[k]) - C[k] * X[k]))
        along, square = float(W[k] @ D32[k]), float(D32[k].astype(float) @ D32[k].astype(float))
        t = (np.sqrt(along**2 + 2 * square * (ours.gap - base)) - along) / square
        over = np.abs(C[k] - t * (D32[k].astype(float) @ F)).max() - lams[k]
        assert over <= 1e-14 * lams[k]
    assert compared


def test_a_longer_step_that_leaves_the_feasible_set_proves_no_gap():
    """The second constraint ends where the first begins: there is no room for a longer step."""
    x, direction = np.zeros((1, 2)), np.array([[1.0, -1.0]])
    C, lams = np.array([[1.5, 0.5]]), np.ones(1)
    exact = certify_rows(np.ones(2), C, lams, x, x, C, (direction, direction))
    assert np.isfinite(exact[0].gap)
    single = direction.astype(np.float32)
    assert certify_rows(np.ones(2), C, lams, x, x, C, (single, single))[0].gap == np.inf
