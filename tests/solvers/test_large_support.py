"""AMP on rounded covariates and on columns copied out: the same answer, or a Gram matrix."""

from dataclasses import replace

import numpy as np
import pytest

import privasso as pv
from oracles import check_ray, check_solution
from privasso.operators import Rough, _dense
from privasso.solvers import Amp, _amp, _iteration, _tuned


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


@pytest.fixture
def passes_over_copies(monkeypatch):
    """How many entries each pass over a rounded copy has; small matrices are rounded, too."""
    monkeypatch.setattr(_dense, "ROUGH_FROM", 0)
    sizes, update = [], Rough.update

    def counted(self, x, *args):
        sizes.append(x.size)
        return update(self, x, *args)

    monkeypatch.setattr(Rough, "update", counted)
    return sizes


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("law", [pv.Uniform(), pv.LogNormal()], ids=["v1", "v2"])
@pytest.mark.parametrize("noisy", [True, False])
def test_iterations_on_rounded_covariates_end_in_the_same_minimiser(
    seed, law, noisy, passes_over_copies, always_alone
):
    F, y, lam, eta = problem(seed, law)
    eta = eta if noisy else np.zeros_like(eta)
    sol = pv.solve(F, y, lam, eta)
    assert 0 < min(passes_over_copies) < max(passes_over_copies) == 500
    check_solution(F, y, lam, eta, sol)
    assert {step.phase for step in sol.history} == {"amp"}
    np.testing.assert_allclose(sol.x, pv.solve(F, y, lam, eta, method="cd").x, atol=1e-7)


def test_violating_columns_join_those_that_are_rounded(
    passes_over_copies, always_alone, monkeypatch
):
    F, y, lam, eta = problem(0, pv.Uniform())
    everything = _amp.candidate_columns
    monkeypatch.setattr(
        _amp, "candidate_columns", lambda problem, state: everything(problem, state)[::2]
    )
    sol = pv.solve(F, y, lam, eta)
    check_solution(F, y, lam, eta, sol)
    assert len(set(passes_over_copies)) > 2


def test_a_ray_is_found_by_iterations_on_rounded_covariates(passes_over_copies):
    s = pv.Model(0.5).sample(600, rng=0)
    eta = pv.Gram(0.1).draw(s.v, rng=1)
    sol = pv.solve(s.F, s.y, 0.05, eta, throw=False)
    assert passes_over_copies
    assert sol.status is pv.Status.UNBOUNDED
    check_ray(s.F, 0.05, eta, sol.ray)


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("unit", [1e-50, 1e50])
def test_covariates_that_single_precision_cannot_hold(unit, alone, passes_over_copies, monkeypatch):
    """All entries of the rounded copy are zero or infinite."""
    monkeypatch.setattr(_amp, "_alone", lambda *_: alone)
    F, y, lam, eta = problem(2, pv.Uniform())
    sol = pv.solve(F * unit, y, lam * unit, eta * unit)
    assert passes_over_copies
    check_solution(F, y, lam, eta, replace(sol, x=sol.x * unit))


def test_a_study_of_the_iteration_is_not_rounded(passes_over_copies):
    F, y, lam, eta = problem(0, pv.Uniform())
    pv.solve(F, y, lam, eta, method=Amp(polish=False))
    assert not passes_over_copies
