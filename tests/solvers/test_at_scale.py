"""The figures the solvers promise, on as many problems as they are promised for."""

import time

import numpy as np
import pytest

import privasso as pv
from oracles import (
    check_both_sides_of_critical,
    check_ray,
    check_solution,
    correlated_problem,
    kkt,
    stable_problem,
)

pytestmark = pytest.mark.slow


def skglm_minimiser(F, y, lam, eta):
    """An independent solver that takes a linear term: skglm on the Hessian."""
    from skglm.datafits import QuadraticHessian
    from skglm.penalties import L1
    from skglm.solvers import AndersonCD

    solver = AndersonCD(
        tol=1e-11, max_iter=500, max_epochs=100_000, ws_strategy="fixpoint", fit_intercept=False
    )
    G = np.asfortranarray(F.T @ F)
    found = solver.solve(G, eta - F.T @ y, QuadraticHessian(), L1(lam))
    assert found is not None
    return found[0]


@pytest.mark.parametrize("seed", range(200))
def test_stable_problems(seed):
    F, y, lam, eta = stable_problem(np.random.default_rng(seed))
    sol = pv.solve(F, y, lam, eta)
    check_solution(F, y, lam, eta, sol)
    reference = skglm_minimiser(F, y, lam, eta)
    np.testing.assert_allclose(sol.x, reference, atol=1e-6 * (1 + np.abs(reference).max()))


@pytest.mark.parametrize("seed", range(50))
def test_correlated_ill_scaled_problems(seed):
    F, y, lam, eta = correlated_problem(np.random.default_rng(1000 + seed))
    sol = pv.solve(F, y, lam, eta)
    assert sol.status is pv.Status.CONVERGED
    assert sol.kkt_beyond_rounding <= 1e-8
    assert kkt(F, y, lam, eta, sol.x) <= 1e-7


@pytest.mark.parametrize("seed", range(50))
def test_both_sides_of_the_critical_lambda(seed):
    rng = np.random.default_rng(2000 + seed)
    check_both_sides_of_critical(rng, seed, int(rng.integers(100, 400)))


def test_an_unbounded_problem_is_recognised_quickly():
    """N = 5000: the proof that there is no minimiser costs at most 20 bounded solves."""
    s = pv.Model(0.5).sample(5000, rng=0)
    eta = pv.Gram(0.1).draw(s.v, rng=1)

    def best(lam):
        times = []
        sol = pv.solve(s.F, s.y, lam, eta, throw=False)
        for _ in range(3):
            start = time.perf_counter()
            pv.solve(s.F, s.y, lam, eta, throw=False)
            times.append(time.perf_counter() - start)
        return sol, min(times)

    # The critical lambda is about 0.07 here.
    bounded, time_bounded = best(0.15)
    unbounded, time_unbounded = best(0.06)
    assert bounded.status is pv.Status.CONVERGED
    assert unbounded.status is pv.Status.UNBOUNDED
    check_ray(s.F, 0.06, eta, unbounded.ray)
    assert time_unbounded < 20 * time_bounded
