"""Matrices of many kinds: the minimiser against scikit-learn, and optimality in long doubles."""

from typing import Any, cast

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import enet_path

import privasso as pv
from oracles import check_ray, dense
from privasso._clock import Clock
from privasso.operators import Centred
from privasso.problem import LabelledProblem, Problem, certify_point, critical_lambda
from privasso.solvers import solve_problem
from privasso.solvers._growth import Growth


def autoregressive(rng, m=120, n=300, r=0.95):
    F = rng.standard_normal((m, n))
    for j in range(1, n):
        F[:, j] = r * F[:, j - 1] + np.sqrt(1 - r * r) * F[:, j]
    return F


def one_hot(rng, m=400, n=600):
    p = 1.0 / (1 + np.arange(n)) ** 0.6
    columns = rng.choice(n, (m, 4), p=p / p.sum()).ravel()
    F = sp.csc_array((np.ones(4 * m), (np.repeat(np.arange(m), 4), columns)), shape=(m, n))
    F.sum_duplicates()
    return F


def counts(rng, m=150, n=160):
    mean = rng.lognormal(0, 0.6, (m, 1)) * rng.lognormal(0, 1.5, n)
    return rng.poisson(mean).astype(float)


KINDS = {
    "autoregressive": autoregressive,
    "factors": lambda rng: (
        rng.standard_normal((100, 3)) @ rng.standard_normal((3, 250))
        + 0.2 * rng.standard_normal((100, 250))
    ),
    "counts": counts,
    "one-hot": one_hot,
    "one-hot, many columns": lambda rng: one_hot(rng, 300, 2000),
    "csr": lambda rng: sp.random_array((300, 900), density=0.03, rng=rng, format="csr"),
    "tall": lambda rng: rng.standard_normal((5000, 30)),
    "wide": lambda rng: rng.standard_normal((60, 5000)),
    "copies": lambda rng: np.repeat(rng.standard_normal((80, 100)), 2, axis=1),
    "ill-conditioned": lambda rng: (
        (rng.standard_normal((100, 100)) * np.geomspace(1, 1e-6, 100))
        @ np.linalg.qr(rng.standard_normal((100, 100)))[0]
    ),
    "float32": lambda rng: autoregressive(rng).astype(np.float32),
    "fortran": lambda rng: np.asfortranarray(autoregressive(rng)),
}


def labels(F, rng):
    truth = np.zeros(F.shape[1])
    truth[rng.choice(truth.size, 12, replace=False)] = rng.standard_normal(12)
    signal = F @ truth
    return signal + 0.3 * np.std(signal) * rng.standard_normal(F.shape[0])


def kkt_in_long_doubles(F, b, lam, x):
    A = dense(F).astype(np.longdouble)
    c = b.astype(np.longdouble) - A.T @ (A @ x.astype(np.longdouble))
    off = np.where(x != 0, np.abs(c - lam * np.sign(x)), np.maximum(np.abs(c) - lam, 0))
    return float(off.max() / lam)


# Where scikit-learn does not converge, its point still is no better than the minimiser.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("part", [2, pytest.param(30, marks=pytest.mark.slow), 500])
@pytest.mark.parametrize("kind", KINDS)
def test_the_minimiser_is_that_of_scikit_learn(kind, part):
    rng = np.random.default_rng(0)
    F = KINDS[kind](rng)
    y = labels(F, rng)
    A = dense(F)
    b = A.T @ y
    lam = float(np.abs(b).max()) / part
    found = {method: pv.solve(F, y, lam, method=method) for method in ("auto", "cd")}
    # scikit-learn declares these as text.
    gram, alphas = cast(Any, A.T @ A), cast(Any, [lam / len(y)])
    peer = enet_path(A, y, l1_ratio=1.0, alphas=alphas, precompute=gram, Xy=b, tol=1e-8)[1]

    def objective(x):
        return 0.5 * np.sum((y - A @ x) ** 2) + lam * np.abs(x).sum()

    for sol in found.values():
        assert sol.status is pv.Status.CONVERGED
        assert sol.kkt_beyond_rounding <= 1e-8
        exact = kkt_in_long_doubles(F, A.astype(np.longdouble).T @ y, lam, sol.x)
        assert exact <= 1e-8 + 1e-11 * part
        assert objective(sol.x) <= objective(np.asarray(peer)[:, 0]) * (1 + 1e-9)
        assert 0 <= sol.gap <= 1e-6 * objective(sol.x)


@pytest.mark.parametrize("kind", ["autoregressive", "one-hot, many columns", "csr", "copies"])
def test_a_ray_or_a_minimiser_on_each_side_of_the_critical_lambda(kind):
    rng = np.random.default_rng(1)
    F: Any = KINDS[kind](rng) if kind != "csr" else sp.random_array((40, 90), density=0.1, rng=rng)
    if kind == "one-hot, many columns":
        F = one_hot(rng, 60, 150)
    F = F.tocsr() if sp.issparse(F) else F[:, :150]
    m, n = F.shape
    y, eta = rng.standard_normal(m), rng.standard_normal(n)
    critical = critical_lambda(F, eta)
    below = pv.solve(F, y, 0.9 * critical, eta, throw=False)
    assert below.status is pv.Status.UNBOUNDED
    check_ray(F, 0.9 * critical, eta, below.ray)
    above = pv.solve(F, y, 1.1 * critical, eta)
    assert kkt_in_long_doubles(F, dense(F).T @ y - eta, 1.1 * critical, above.x) <= 1e-8


@pytest.mark.parametrize("part", [3, 100])
def test_centred_sparse_columns_are_those_of_the_dense_matrix(part):
    rng = np.random.default_rng(2)
    F = one_hot(rng)
    mean = np.asarray(F.mean(axis=0)).ravel()
    A = F.toarray() - mean
    b = A.T @ labels(A, rng)
    lam = float(np.abs(b).max()) / part
    op = Centred(F, mean, np.sum(A**2, axis=0))
    sparse = solve_problem(Problem(op, b, lam))
    plain = solve_problem(Problem(A, b, lam))
    assert kkt_in_long_doubles(A, b, lam, sparse.x) <= 1e-8
    fitted = A @ plain.x  # columns are copies of others, so that only the fit is unique
    np.testing.assert_allclose(A @ sparse.x, fitted, atol=1e-7 * np.abs(fitted).max())


def test_no_ray_is_looked_for_without_noise(monkeypatch):
    """A projection of any kind would be a search for a ray."""
    from privasso.problem import _boundedness

    def refuse(*_):
        raise AssertionError("a ray was looked for")

    monkeypatch.setattr(_boundedness, "project", refuse)
    rng = np.random.default_rng(3)
    F = KINDS["factors"](rng)
    y = labels(F, rng)
    sol = pv.solve(F, y, float(np.abs(F.T @ y).max()) / 1000)
    assert sol.status is pv.Status.CONVERGED


def test_amp_is_left_to_independent_columns():
    rng = np.random.default_rng(4)
    for F, phase in (
        (autoregressive(rng), "working set"),
        (rng.standard_normal((120, 300)), "amp"),
    ):
        y = labels(F, rng)
        sol = pv.solve(F, y, 0.2 * float(np.abs(F.T @ y).max()))
        assert sol.history[0].phase == phase


def dual_value(F, y, lam, x, gap):
    """The objective at x minus the gap: what the certificate claims as a lower bound."""
    A = dense(F).astype(np.longdouble)
    residual = y - A @ x
    return 0.5 * residual @ residual + lam * np.abs(x).sum() - gap


@pytest.mark.parametrize("kind", ["tall", "factors", "csr"])
def test_the_gap_without_noise_bounds_the_objective_of_every_point(kind):
    """The bound is below the objective at far better points, also for a poor x."""
    rng = np.random.default_rng(5)
    F = KINDS[kind](rng)
    y = labels(F, rng)
    lam = 0.05 * float(np.abs(F.T @ y).max())
    problem = LabelledProblem(F, y, lam)
    best = pv.solve(F, y, lam, tol=1e-11)
    floor = dual_value(F, y, lam, best.x, 0.0)
    for size in (1e-9, 1e-5, 1e-1):
        x = best.x * (1 + size * rng.standard_normal(best.x.size))
        gap = certify_point(problem, x, anchors=False).gap
        assert np.isfinite(gap)
        bound = dual_value(F, y, lam, x, gap)
        assert bound <= floor * (1 + 1e-12)
        assert floor - bound <= 10 * size * floor


def test_few_columns_of_many_rows_are_read_three_times():
    """Products with y, the Gram matrix of all columns, and the check (two products)."""
    rng = np.random.default_rng(6)
    F = rng.standard_normal((4000, 25))
    y = labels(F, rng)
    for part in (3, 1000):
        sol = pv.solve(F, y, float(np.abs(F.T @ y).max()) / part)
        assert sol.n_passes <= 5.0
        assert sol.n_iter == 1


def test_a_working_set_holds_no_column_twice():
    rng = np.random.default_rng(7)
    F = rng.standard_normal((200, 20))
    y = labels(F, rng)
    b = F.T @ y
    lams = np.abs(b).max() * np.array([1.0, 0.5, 0.7, 0.01, 0.3])
    growth = Growth(Problem(F, b, lams[0], bounded=True))
    for lam in lams:
        problem = Problem(F, b, lam, bounded=True)
        outcome = growth.minimise(problem, tol=1e-9, clock=Clock())
        assert kkt_in_long_doubles(F, b, lam, outcome.x) <= 1e-9
    assert np.array_equal(np.sort(growth._working.index), np.arange(20))


@pytest.mark.parametrize("part", [2, 50, 1000])
def test_columns_with_large_means_are_solved_to_rounding(part):
    """Means of 1e6 deviations: every pair of columns looks like one column."""
    rng = np.random.default_rng(8)
    F = rng.standard_normal((120, 80)) + 1e6
    y = rng.standard_normal(120)
    b = F.T @ y
    lam = float(np.abs(b).max()) / part
    sol = pv.solve(F, y, lam)
    assert sol.status is pv.Status.CONVERGED
    exact = F.astype(np.longdouble).T @ y
    assert kkt_in_long_doubles(F, exact, lam, sol.x) <= 1e-8


def test_amp_alone_and_the_gram_matrix_agree_on_tall_independent_columns():
    rng = np.random.default_rng(9)
    F = rng.standard_normal((3000, 400))
    y = labels(F, rng)
    lam = float(np.abs(F.T @ y).max()) / 500
    auto, cd = pv.solve(F, y, lam), pv.solve(F, y, lam, method="cd")
    assert (auto.method, cd.method) == ("amp", "cd")
    assert {step.phase for step in auto.history} == {"amp"}
    np.testing.assert_allclose(auto.x, cd.x, atol=1e-8 * np.abs(cd.x).max())
    assert kkt_in_long_doubles(F, F.astype(np.longdouble).T @ y, lam, auto.x) <= 1e-8


def test_a_tolerance_below_rounding_is_not_met_in_silence():
    rng = np.random.default_rng(10)
    F = rng.standard_normal((40, 30)) * 10.0 ** rng.uniform(0, 6, 30)
    y = F[:, 0] + rng.standard_normal(40)
    sol = pv.solve(F, y, 10.0, tol=1e-13)
    assert sol.status is pv.Status.CONVERGED
    assert sol.kkt > 1e-13
    assert sol.rounding_limited
    assert "Rounding was the limit" in sol.message
    assert "rounding_limited=True" in repr(sol)
    loose = pv.solve(F, y, 10.0, tol=2 * sol.kkt)
    assert not loose.rounding_limited
    assert "Rounding" not in loose.message
    many = pv.solve_many(F, y, [10.0, 1e12], tol=1e-13)
    assert many.rounding_limited.tolist() == [True, False]


def test_a_path_with_a_time_limit_reports_what_it_could_not_finish():
    rng = np.random.default_rng(11)
    F = autoregressive(rng)
    y = labels(F, rng)
    lams = float(np.abs(F.T @ y).max()) * np.geomspace(1, 1e-3, 5)
    path = pv.solve_path(F, y, lams, throw=False, time_limit=1e-9)
    assert set(path.status) == {pv.Status.TIME_LIMIT}
    assert np.isfinite(path.kkt).all()
    assert len(path.messages) == 5


@pytest.mark.slow
@pytest.mark.parametrize("part", [2, 10, 50, 200, 1000])
def test_no_cell_of_the_benchmark_is_wrong_in_long_doubles(part):
    """Every CONVERGED of the matrices of `bench`, checked in extended precision."""
    from bench.matrices import MATRICES

    # These take more memory in long doubles than a small machine has.
    large = ("tall 200,000 × 1,000", "wide 200 × 1,000,000")
    for name, make in MATRICES.items():
        if name in large:
            continue
        F, y = make()
        lam = float(np.abs(F.T @ y).max()) / part
        sol = pv.solve(F, y, lam, throw=False, time_limit=120.0)
        assert sol.status is pv.Status.CONVERGED, (name, sol.message)
        worst = _kkt_by_columns(F, y, lam, sol.x)
        assert worst <= max(1e-8, sol.kkt) * 1.01 + 1e-12, (name, worst, sol.kkt)
        assert worst <= 1e-8 or sol.rounding_limited, (name, worst, sol.kkt)


def _kkt_by_columns(F, y, lam, x):
    """The violation in long doubles, a few columns at a time."""
    w = np.zeros(F.shape[0], dtype=np.longdouble)
    blocks = [np.arange(k, min(k + 200, x.size)) for k in range(0, x.size, 200)]
    on = np.flatnonzero(x)
    for part in np.array_split(on, max(1, on.size // 200)):
        w += dense(F[:, part]).astype(np.longdouble) @ x[part]
    worst = 0.0
    for part in blocks:
        c = dense(F[:, part]).astype(np.longdouble).T @ (y - w)
        at = x[part]
        off = np.where(at != 0, np.abs(c - lam * np.sign(at)), np.maximum(np.abs(c) - lam, 0))
        worst = max(worst, float(off.max()))
    return worst / lam
