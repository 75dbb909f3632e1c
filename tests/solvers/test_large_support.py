"""AMP on the columns copied out: the same answer, and a Gram matrix if that fails."""

from dataclasses import replace

import numpy as np
import pytest

import privasso as pv
from oracles import check_solution
from privasso.solvers import _amp, _iteration, _tuned


@pytest.fixture
def always_alone(monkeypatch):
    monkeypatch.setattr(_amp, "_alone", lambda *_: True)


def problem(seed, law):
    s = pv.Model(0.5, scales=law).sample(500, rng=seed)
    return s.F, s.y, 0.15, pv.Gram(0.05).draw(s.v, rng=seed + 1)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("law", [pv.Uniform(), pv.LogNormal()], ids=["v1", "v2"])
def test_certified_and_the_same(seed, law, always_alone):
    F, y, lam, eta = problem(seed, law)
    sol = pv.solve(F, y, lam, eta)
    check_solution(F, y, lam, eta, sol)
    np.testing.assert_allclose(sol.x, pv.solve(F, y, lam, eta, method="cd").x, atol=1e-7)


def test_violating_columns_join(always_alone, monkeypatch):
    """A working set that misses half of the support still ends in the minimiser."""
    F, y, lam, eta = problem(0, pv.Uniform())
    everything = _amp.candidate_columns
    monkeypatch.setattr(
        _amp, "candidate_columns", lambda problem, state: everything(problem, state)[::2]
    )
    rounds = []
    original = _iteration.iterate
    monkeypatch.setattr(
        _iteration, "iterate", lambda *args, **kw: rounds.append(1) or original(*args, **kw)
    )
    sol = pv.solve(F, y, lam, eta)
    check_solution(F, y, lam, eta, sol)
    assert len(rounds) > 1


def test_without_a_fixed_point_the_gram_matrix_is_used(always_alone, monkeypatch):
    monkeypatch.setattr(_tuned, "ALONE_ITERATIONS", 2)
    F, y, lam, eta = problem(1, pv.Uniform())
    sol = pv.solve(F, y, lam, eta)
    check_solution(F, y, lam, eta, sol)
    assert sol.history[-1].phase == "working set"


@pytest.mark.parametrize("unit", [1e-50, 1e50])
def test_covariates_that_single_precision_cannot_hold(unit):
    F, y, lam, eta = problem(2, pv.Uniform())
    sol = pv.solve(F * unit, y, lam * unit, eta * unit)
    check_solution(F, y, lam, eta, replace(sol, x=sol.x * unit))
