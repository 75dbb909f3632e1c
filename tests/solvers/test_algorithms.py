"""Algorithms as values: names, options, and how to add one."""

from dataclasses import FrozenInstanceError, dataclass
from typing import ClassVar

import numpy as np
import pytest

import privasso as pv
from oracles import check_solution
from privasso.problem import LabelledProblem, certify_point
from privasso.solvers import (
    Algorithm,
    Amp,
    AmpPaper,
    Auto,
    CoordinateDescent,
    Outcome,
    Vamp,
    VampTextbook,
    _algorithm,
    register,
)

BY_NAME = {
    "auto": Auto,
    "amp": Amp,
    "amp-paper": AmpPaper,
    "cd": CoordinateDescent,
    "vamp": Vamp,
    "vamp-textbook": VampTextbook,
}


def problem(n=300, seed=0):
    s = pv.Model(0.5).sample(n, rng=seed)
    return s.F, s.y, 0.15, pv.Gram(0.03).draw(s.v, rng=seed + 1)


@pytest.mark.parametrize("name", ["auto", "amp", "cd", "vamp"])
def test_a_name_is_the_algorithm_with_default_options(name):
    F, y, lam, eta = problem()
    by_name = pv.solve(F, y, lam, eta, method=name)
    assert by_name == pv.solve(F, y, lam, eta, method=BY_NAME[name]())
    b_form = pv.problem.Problem.from_labels(F, y, lam, eta)
    assert pv.solvers.solve_problem(b_form, method=name) == pv.solvers.solve_problem(
        b_form, method=BY_NAME[name]()
    )


def test_the_registry_holds_the_algorithms():
    assert {name: type(_algorithm.algorithm_for(name)) for name in BY_NAME} == BY_NAME
    assert set(_algorithm._REGISTRY) == set(BY_NAME)


def test_adding_an_algorithm_takes_one_class(monkeypatch):
    monkeypatch.setattr(_algorithm, "_REGISTRY", dict(_algorithm._REGISTRY))

    @register
    @dataclass(frozen=True)
    class ProximalGradient(Algorithm):
        name: ClassVar[str] = "proximal-gradient"
        advice: ClassVar = {pv.Status.MAX_ITER: "Raise n_steps."}
        n_steps: int = 3000

        def minimise(self, problem, tol, clock):
            x = np.zeros(problem.shape[1])
            length = 1 / np.linalg.norm(problem.op.toarray(), 2) ** 2
            for _ in range(self.n_steps):
                u = x + length * problem.correlation(x)
                x = u - np.clip(u, -length * problem.lam, length * problem.lam)
            certificate = certify_point(problem, x)
            proved = certificate.proves(tol)
            status = pv.Status.CONVERGED if proved else pv.Status.MAX_ITER
            return Outcome(x, status, [], certificate)

    F, y, lam, eta = problem(n=100)
    sol = pv.solve(F, y, lam, eta, method="proximal-gradient")
    assert sol.method == "proximal-gradient"
    check_solution(F, y, lam, eta, sol)
    np.testing.assert_allclose(sol.x, pv.solve(F, y, lam, eta).x, atol=1e-6)
    with pytest.raises(pv.NotConvergedError, match=r"gradient stopped .* Raise n_steps\.$"):
        pv.solve(F, y, lam, eta, method=ProximalGradient(n_steps=2))
    with pytest.raises(ValueError, match="already is an algorithm"):
        register(ProximalGradient)


@pytest.mark.parametrize("kind", BY_NAME.values())
def test_an_algorithm_is_a_value(kind):
    assert kind() == kind()
    assert hash(kind()) == hash(kind())
    with pytest.raises(FrozenInstanceError):
        kind().name = "other"


@pytest.mark.parametrize("algorithm", [Amp(damping=0.2), AmpPaper(rng=0)])
def test_a_step_leaves_the_state_before_it_alone(algorithm):
    F, y, lam, eta = problem()
    labelled = LabelledProblem(F, y, lam, eta)
    first = algorithm.init(labelled)
    x, g = first.x.copy(), first.g.copy()
    one, two = (algorithm.step(labelled, first).x for _ in range(2))
    np.testing.assert_array_equal(first.x, x)
    np.testing.assert_array_equal(first.g, g)
    np.testing.assert_array_equal(one, two)


def test_options_belong_to_their_algorithm():
    F, y, lam, eta = problem()
    limited = pv.solve(F, y, lam, eta, method=Amp(polish=False, max_iter=2), throw=False)
    assert (limited.status, limited.n_iter) == (pv.Status.MAX_ITER, 2)
    limited = pv.solve(F, y, lam, eta, method=CoordinateDescent(max_rounds=1), throw=False)
    assert (limited.status, limited.n_iter) == (pv.Status.MAX_ITER, 1)
    only_cd = pv.solve(F, y, lam, eta, method=Auto(amp=Amp(polish=False, max_iter=2)))
    assert only_cd.method == "cd"
    assert [step.phase for step in only_cd.history[:3]] == ["amp", "amp", "working set"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Amp(damping=1.0), "damping"),
        (lambda: Amp(damping=-0.1), "damping"),
        (lambda: Amp(max_iter=0), "max_iter"),
        (lambda: AmpPaper(damping=1.0), "damping"),
        (lambda: AmpPaper(max_iter=-1), "max_iter"),
        (lambda: CoordinateDescent(max_rounds=0), "max_rounds"),
    ],
)
def test_bad_options(make, message):
    with pytest.raises(ValueError, match=message):
        make()
