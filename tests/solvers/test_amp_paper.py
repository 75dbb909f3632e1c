"""Algorithm 1 in a compiled loop is the single one, iterate by iterate, and ends where it says."""

import numpy as np
import pytest
from numpy.typing import ArrayLike

import privasso as pv
from bench.reproduction import Transcription
from privasso.problem import LabelledProblem
from privasso.solvers import AmpPaper, amp_paper_many, paper_starts

N = 120


def problems(n_rhs, law=None, sigma: ArrayLike = 0.05, seed=0, alpha=0.6):
    s = pv.Model(alpha, scales=law or pv.LogNormal()).sample(N, rng=seed)
    etas = pv.Gram(1.0).draw(s.v, rng=seed + 1, size=n_rhs) * np.asarray(sigma)
    return s.F, s.y, np.geomspace(0.2, 1.0, n_rhs), etas, paper_starts(N, range(n_rhs))


def single_iterates(F, y, lam, eta, seed, count):
    problem, paper = LabelledProblem(F, y, lam, eta), AmpPaper(rng=seed)
    state, seen = paper.init(problem), []
    for _ in range(count):
        state = paper.step(problem, state)
        seen.append(state.x)
    return seen


@pytest.mark.parametrize("n_rhs", [3, 40])
def test_iterates_are_those_of_the_single_solver(n_rhs):
    F, y, lams, etas, starts = problems(n_rhs)
    iterates = {k: single_iterates(F, y, lams[k], etas[:, k], k, 12) for k in (0, n_rhs - 1)}
    for t in (1, 2, 3, 6, 12):
        runs = amp_paper_many(F, y, lams, etas, starts, max_iter=t, single=False)
        assert (runs.n_iter == t).all()
        for k, single in iterates.items():
            np.testing.assert_allclose(runs.x[:, k], single[t - 1], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("n_rhs", [4, 40])
def test_converged_runs_solve_the_equations_of_the_fixed_point(n_rhs):
    F, y, lams, etas, starts = problems(n_rhs)
    runs = amp_paper_many(F, y, lams, etas, starts)
    assert runs.converged.mean() > 0.5
    M = len(y)
    squares = (F**2).sum(axis=0)
    for k in np.flatnonzero(runs.converged):
        x, s = runs.x[:, k], runs.s[:, k]
        s_theta, c = squares @ s / M, (F * F) @ s
        g = (y - F @ x) / (1 + s_theta - c)
        u = F.T @ g + x * squares / (1 + s_theta) - etas[:, k]
        soft = np.sign(u) * np.maximum(np.abs(u) - lams[k], 0)
        size = np.linalg.norm(x)
        assert np.linalg.norm(x - soft * (1 + s_theta) / squares) <= 1e-6 * size
        assert np.array_equal(s > 0, x != 0)


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("law", [pv.Uniform(), pv.LogNormal()], ids=["v1", "v2"])
def test_ends_as_the_transcription_does(law, single):
    F, y, lams, etas, starts = problems(60, law, sigma=np.geomspace(0.02, 1.5, 60), alpha=0.5)
    lams[:] = 0.3
    runs = amp_paper_many(F, y, lams, etas, starts, max_iter=200, single=single)
    plain = Transcription(F, y)
    kinds = runs.converged.astype(int) + 2 * runs.blown_up + 4 * runs.cycling
    assert set(kinds.tolist()) <= {0, 1, 2, 4}
    assert {1, 2} <= set(kinds.tolist())
    for k in range(60):
        x, converged, n_iter = plain.run(
            lams[k], etas[:, k], starts[0][:, k], starts[1][:, k], max_iter=200
        )
        assert converged == runs.converged[k]
        if converged:  # rounding to single precision may happen to end nearer
            assert abs(n_iter - runs.n_iter[k]) <= 1 + single
            np.testing.assert_allclose(runs.x[:, k], x, rtol=1e-6, atol=1e-8)
        elif runs.blown_up[k]:
            assert abs(n_iter - runs.n_iter[k]) <= 1
        else:
            assert n_iter == 200


def test_a_cycle_comes_back_and_never_ends():
    F, y, _, etas, starts = problems(200, sigma=np.linspace(0.02, 0.3, 200), alpha=0.5)
    lams = np.full(200, 0.2)
    runs = amp_paper_many(F, y, lams, etas, starts)
    found = np.flatnonzero(runs.cycling)
    assert found.size >= 3
    plain = Transcription(F, y)
    for k in found[:2]:
        ends = [
            plain.run(0.2, etas[:, k], starts[0][:, k], starts[1][:, k], max_iter=t)
            for t in range(300, 330)
        ]
        assert not any(converged for _, converged, _ in ends)
        last = ends[-1][0]
        distance = [np.linalg.norm(x - last) / np.linalg.norm(last) for x, _, _ in ends[:-1]]
        assert min(distance) < 1e-9
        assert distance[-1] > 1e-6


def test_zero_column_and_no_noise():
    F, y, lams, _, starts = problems(3, alpha=1.5)
    F[:, 7] = 0.0
    runs = amp_paper_many(F, y, lams, np.zeros((N, 3)), starts)
    assert runs.converged.all()
    assert (runs.x[7] == 0).all()
