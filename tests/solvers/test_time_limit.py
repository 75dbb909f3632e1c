"""A limit of wall time: the best point so far with its certificate, and Ctrl-C at any moment."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import privasso as pv
from oracles import kkt
from privasso.problem import Problem
from privasso.solvers import solve_problem, solve_problems

OVER = 1e-9


def problem(n=300, seed=0):
    s = pv.Model(0.5).sample(n, rng=seed)
    return s.F, s.y, 0.15, pv.Gram(0.03).draw(s.v, rng=seed + 1)


@pytest.mark.parametrize("method", ["auto", "amp", "amp-paper"])
def test_a_late_solution_has_a_certificate(method):
    F, y, lam, eta = problem()
    sol = pv.solve(F, y, lam, eta, method=method, throw=False, time_limit=OVER)
    assert sol.status is pv.Status.TIME_LIMIT
    assert sol.kkt == pytest.approx(kkt(F, y, lam, eta, sol.x), rel=1e-9)
    assert "time_limit" in sol.message
    with pytest.raises(pv.NotConvergedError, match="The time limit was over"):
        pv.solve(F, y, lam, eta, method=method, time_limit=OVER)


def test_coordinate_descent_asks_the_clock_in_every_round():
    F, y, _, eta = problem()
    sol = pv.solve(F, y, 0.02, 0.02 * eta, method="cd", throw=False, time_limit=OVER)
    assert sol.status is pv.Status.TIME_LIMIT
    assert sol.n_iter == 1
    assert sol.kkt == pytest.approx(kkt(F, y, 0.02, 0.02 * eta, sol.x), rel=1e-6)


def test_a_generous_limit_changes_nothing():
    F, y, lam, eta = problem()
    assert pv.solve(F, y, lam, eta, time_limit=600.0) == pv.solve(F, y, lam, eta)
    lams = [0.3, 0.2, 0.1]
    assert pv.solve_many(F, y, lams, time_limit=600.0) == pv.solve_many(F, y, lams)


def test_late_problems_of_a_batch_have_certificates():
    F, y, _, _ = problem()
    lams = np.array([0.1, 0.3, 0.2])
    many = pv.solve_many(F, y, lams, throw=False, time_limit=OVER)
    assert [status.name for status in many.status] == ["TIME_LIMIT"] * 3
    for k, lam in enumerate(lams):
        expected = kkt(F, y, lam, np.zeros(300), many.x[:, k])
        assert many.kkt[k] == pytest.approx(expected, rel=1e-9)
        assert "time_limit" in many.messages[k]
    with pytest.raises(pv.NotConvergedError, match=r"3 of 3 problems failed.*time limit"):
        pv.solve_many(F, y, lams, time_limit=OVER)


def test_one_ray_serves_all_smaller_lambdas():
    F = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    b = np.array([5.0, 0.0, 1.0])
    many = solve_problems(F, b[:, None], [0.5, 4.0, 1.0, 2.0], throw=False)
    assert [s.name for s in many.status] == ["UNBOUNDED", "CONVERGED", "UNBOUNDED", "UNBOUNDED"]
    for k, lam in ((0, 0.5), (2, 1.0), (3, 2.0)):
        d = many.rays[k]
        assert np.abs(F @ d).max() < 1e-9
        assert b @ d > lam * np.abs(d).sum()
        assert f"lambda = {lam:.6g}" in many.messages[k]


@pytest.mark.parametrize("limit", [0.0, -1.0, np.nan, "soon"])
def test_a_limit_is_positive(limit):
    F, y, lam, _ = problem(n=60)
    for call in (
        lambda: pv.solve(F, y, lam, time_limit=limit),
        lambda: pv.solve_many(F, y, lam, time_limit=limit),
        lambda: solve_problem(Problem(F, F.T @ y, lam), time_limit=limit),
    ):
        with pytest.raises((TypeError, ValueError), match="time_limit"):
            call()


#: Each line runs for long, or for ever.
LONG = {
    "solve": "while True: pv.solve(F, y, 1e-3 * np.abs(F.T @ y).max(), throw=False)",
    "solve_many": "while True: "
    "pv.solve_many(F, y, np.abs(F.T @ y).max() * np.geomspace(1, 1e-3, 9), throw=False)",
    "critical_lambda": "pv.critical_lambda(F, rng.standard_normal(1600))",
    "gram": "from privasso._blas import gram_matrix; gram_matrix(np.ones((20_000, 6000)))",
    "factorise": "from privasso._threads import interruptible; "
    "interruptible(lambda: np.linalg.eigh(np.eye(9000) + 1.0))",
}
SCRIPT = """
import numpy as np, privasso as pv
rng = np.random.default_rng(0)
F = rng.standard_normal((800, 5)) @ rng.standard_normal((5, 1600))
F += 1e-3 * rng.standard_normal(F.shape)
y = rng.standard_normal(800)
print("ready", flush=True)
{line}
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="SIGINT cannot be sent to one process on Windows")
@pytest.mark.parametrize("name", LONG)
def test_ctrl_c_ends_a_long_call_within_seconds(name):
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(line=LONG[name])],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(3.0)
    if process.poll() is not None:
        pytest.skip("this machine is too fast for this problem")
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert time.monotonic() - start < 3.0
    assert "KeyboardInterrupt" in error
