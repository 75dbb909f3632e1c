"""What a solution holds in each status, and when two of them are equal."""

from dataclasses import replace

import numpy as np
import pytest

import privasso as pv
from oracles import kkt
from privasso.solvers import Amp, AmpPaper, CoordinateDescent, amp_paper_many, paper_starts


def problem(n=300, seed=0):
    s = pv.Model(0.5).sample(n, rng=seed)
    return s.F, s.y, 0.15, pv.Gram(0.03).draw(s.v, rng=seed + 1)


def correlated():
    rng = np.random.default_rng(0)
    return rng.standard_normal((200, 400)) + 5.0, rng.standard_normal(200), 0.5, np.zeros(400)


def unbounded():
    F, y, lam, eta = problem()
    return F, y, lam, 30 * eta


ENDS = {
    "CONVERGED": (problem, "auto"),
    "FIXED_POINT": (problem, AmpPaper(rng=0)),
    "MAX_ITER": (problem, Amp(polish=False, max_iter=3)),
    "DIVERGED": (correlated, "amp"),
    "UNBOUNDED": (unbounded, "auto"),
    "TIME_LIMIT": (problem, "auto"),
}
#: Passed before the first iteration.
LIMITS = {"TIME_LIMIT": 1e-9}


def test_every_status_is_covered():
    assert set(ENDS) == {status.name for status in pv.Status}


@pytest.mark.parametrize("name", ENDS)
def test_x_is_what_its_docstring_says(name):
    make, method = ENDS[name]
    F, y, lam, eta = make()
    sol = pv.solve(F, y, lam, eta, method=method, throw=False, time_limit=LIMITS.get(name))
    assert sol.status.name == name
    assert sol.message
    assert (sol.ray is not None) == (name == "UNBOUNDED")
    if name == "UNBOUNDED":
        assert np.isnan(sol.x).all()
    else:
        assert np.isfinite(sol.x).all()
    if name in ("UNBOUNDED", "DIVERGED"):
        assert sol.kkt == sol.kkt_beyond_rounding == sol.gap == np.inf
    else:
        assert sol.kkt == pytest.approx(kkt(F, y, lam, eta, sol.x), rel=1e-6, abs=1e-9)
        assert (sol.kkt <= 1e-8) == (name == "CONVERGED")


@pytest.mark.parametrize("name", ENDS)
def test_only_failures_raise(name):
    make, method = ENDS[name]
    F, y, lam, eta = make()
    if name in ("CONVERGED", "FIXED_POINT"):
        assert pv.solve(F, y, lam, eta, method=method).status.name == name
    else:
        error = pv.UnboundedError if name == "UNBOUNDED" else pv.NotConvergedError
        with pytest.raises(error) as caught:
            pv.solve(F, y, lam, eta, method=method, time_limit=LIMITS.get(name))
        assert caught.value.solution == pv.solve(
            F, y, lam, eta, method=method, throw=False, time_limit=LIMITS.get(name)
        )


@pytest.mark.parametrize("seed", range(8))
def test_the_paper_algorithm_converges_only_to_a_minimiser(seed):
    F, y, lam, eta = problem(n=200, seed=seed)
    for part in (
        1.0,
        100.0,
    ):  # at 100 times lambda both the minimiser and the fixed point are zero
        sol = pv.solve(F, y, part * lam, eta, method=AmpPaper(rng=seed), throw=False)
        if sol.status is pv.Status.CONVERGED:
            assert kkt(F, y, part * lam, eta, sol.x) <= 1e-8
    assert sol.status is pv.Status.CONVERGED
    assert not sol.x.any()


def test_solutions_are_equal_if_all_attributes_are():
    F, y, lam, eta = problem()
    one, two = (pv.solve(F, y, lam, eta) for _ in range(2))
    assert one == two
    assert one is not two
    assert one != pv.solve(F, y, 2 * lam, eta)
    assert one != replace(one, x=one.x[:-1])
    assert one != replace(one, ray=one.x)
    assert one != replace(one, history=one.history[:-1])
    assert one != "a solution"
    bad = unbounded()
    assert pv.solve(*bad, throw=False) == pv.solve(*bad, throw=False)  # NaN equals NaN
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_batches_are_equal_if_all_attributes_are():
    F, y, lam, eta = problem()
    etas = np.stack([eta, 30 * eta, -eta], axis=1)
    one, two = (pv.solve_many(F, y, lam, etas, throw=False) for _ in range(2))
    assert one == two
    assert list(one.rays) == [1]
    assert one != pv.solve_many(F, y, lam, etas[:, ::-1], throw=False)
    assert one != replace(one, rays={1: -one.rays[1]})
    lams, starts = np.full(3, 0.5), paper_starts(300, range(3))
    assert amp_paper_many(F, y, lams, etas, starts) == amp_paper_many(F, y, lams, etas, starts)


def test_a_zero_column_needs_no_algorithm():
    F = np.column_stack([np.zeros(5), np.ones(5)])
    for method in ("auto", "amp", "cd", "amp-paper", CoordinateDescent()):
        sol = pv.solve(F, np.ones(5), 0.1, [0.5, 0.0], method=method, throw=False)
        assert sol.status is pv.Status.UNBOUNDED
        assert sol.method == (method if isinstance(method, str) else "cd")
        assert sol.n_iter == 0
