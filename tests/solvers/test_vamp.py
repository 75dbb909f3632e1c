"""Vector AMP: iterates against state evolution, fixed points against certificates."""

import numpy as np
import pytest

import privasso as pv
from oracles import check_solution
from privasso.model import (
    AutoRegressive,
    MarchenkoPastur,
    Orthogonal,
    PowerSpectrum,
    RotatedModel,
    TwoLevel,
)
from privasso.solvers import Amp, Status, Vamp, VampTextbook

LAW = pv.LogNormal(0.0, 0.5)
SPECTRA = [MarchenkoPastur(), Orthogonal(), TwoLevel(100.0), PowerSpectrum(1.0)]


def check_iterates(alpha, spectrum, N, reps, noise=None):
    """Every iterate within four standard errors of the recursion."""
    noise = noise or pv.Gram(0.05)
    model = RotatedModel(alpha, scales=LAW, spectrum=spectrum)
    predicted = pv.state_evolution(model, 0.2, noise, n_features=N).trajectory[1:7, [0, 2]]
    rng = np.random.default_rng(0)
    runs = []
    for _ in range(reps):
        s = model.sample(N, rng)
        problem = pv.problem.Problem.from_labels(s.F, s.y, 0.2, noise.draw(s.v, rng))
        state = VampTextbook().init(problem, np.sqrt(s.v))
        rows = []
        for _ in predicted:
            rows.append((np.mean(s.v * (state.x - s.x0) ** 2) + 0.01, state.active))
            state = VampTextbook().step(problem, state)
        runs.append(rows)
    mean = np.mean(runs, axis=0)
    error = np.std(runs, axis=0, ddof=1) / np.sqrt(reps)
    off = np.abs(mean - predicted) / error
    assert np.all(off < 4.5), off


@pytest.mark.parametrize("spectrum", SPECTRA, ids=repr)
def test_iterates_follow_state_evolution(spectrum):
    check_iterates(0.6, spectrum, N=250, reps=16)


@pytest.mark.slow
@pytest.mark.parametrize("spectrum", SPECTRA, ids=repr)
@pytest.mark.parametrize("alpha", [0.5, 1.5])
def test_iterates_follow_state_evolution_at_a_thousand_columns(spectrum, alpha):
    check_iterates(alpha, spectrum, N=1000, reps=24)


@pytest.mark.parametrize("spectrum", [*SPECTRA, PowerSpectrum(2.0)], ids=repr)
@pytest.mark.parametrize("polish", [True, False])
def test_fixed_points_are_minimisers(spectrum, polish):
    s = RotatedModel(0.6, scales=LAW, spectrum=spectrum).sample(120, rng=0)
    eta = pv.Gram(0.05).draw(s.v, rng=1)
    method = Vamp(polish=polish, max_iter=4000)
    sol = pv.solve(s.F, s.y, 0.2, eta, method=method)
    assert sol.kkt <= 1e-8
    assert sol.method == "vamp"
    check_solution(s.F, s.y, 0.2, eta, sol)


def test_where_vamp_converges_and_amp_does_not_and_where_neither_does():
    s = RotatedModel(0.6, scales=LAW, spectrum=PowerSpectrum(1.0)).sample(200, rng=0)
    statuses = {
        method.name: pv.solve(s.F, s.y, 0.2, method=method, throw=False).status
        for method in (Amp(polish=False), VampTextbook())
    }
    assert statuses == {"amp": Status.DIVERGED, "vamp-textbook": Status.CONVERGED}
    # Neighbours that are correlated have eigenvectors with preferred directions.
    s = pv.Model(0.5, scales=pv.Constant(1.0), covariance=AutoRegressive(0.9)).sample(200, rng=0)
    eta = pv.Isotropic(0.05).draw(s.v, rng=1)
    for method in (Amp(polish=False), VampTextbook(max_iter=100)):
        sol = pv.solve(s.F, s.y, 0.2, eta, method=method, throw=False)
        assert sol.status is not Status.CONVERGED
    sol = pv.solve(s.F, s.y, 0.2, eta, method=Vamp(polish=False, max_iter=3000))
    assert sol.status is Status.CONVERGED


def test_the_linear_term_may_be_on_either_side():
    """With Aᵀy in the ridge estimate and η in the threshold, the iterates are the same."""
    s = RotatedModel(0.6, scales=LAW, spectrum=TwoLevel(10.0)).sample(80, rng=0)
    eta = pv.Gram(0.1).draw(s.v, rng=1)
    scales = np.sqrt(s.v)
    A, lam = s.F / scales, 0.2 / scales
    state = VampTextbook().init(pv.problem.Problem.from_labels(s.F, s.y, 0.2, eta), scales)
    problem = pv.problem.Problem.from_labels(s.F, s.y, 0.2, eta)
    gamma1 = np.trace(A.T @ A) / 80
    r1 = A.T @ s.y / gamma1
    for _ in range(6):
        u = r1 - eta / scales / gamma1
        theta = np.sign(u) * np.maximum(np.abs(u) - lam / gamma1, 0.0)
        np.testing.assert_allclose(state.x * scales, theta, atol=1e-9)
        a = np.mean(theta != 0)
        gamma2 = gamma1 * (1 - a) / a
        r2 = (theta - a * r1) / (1 - a)
        inverse = np.linalg.inv(A.T @ A + gamma2 * np.eye(80))
        ridge = inverse @ (A.T @ s.y + gamma2 * r2)
        b = gamma2 * np.trace(inverse) / 80
        r1, gamma1 = (ridge - b * r2) / (1 - b), gamma2 * (1 - b) / b
        state = VampTextbook().step(problem, state)


def test_no_minimiser():
    s = pv.Model(0.5).sample(120, rng=0)
    eta = pv.Isotropic(0.5).draw(s.v, rng=1)
    sol = pv.solve(s.F, s.y, 0.2, eta, method="vamp", throw=False)
    assert sol.status is Status.UNBOUNDED
    assert sol.ray is not None


def test_limits_and_options():
    s = pv.Model(0.5).sample(120, rng=0)
    assert pv.solve(s.F, s.y, 1e3, method="vamp").x.any() == np.False_
    short = pv.solve(s.F, s.y, 0.2, method=Vamp(polish=False, max_iter=2), throw=False)
    assert short.status is Status.MAX_ITER
    damped = pv.solve(s.F, s.y, 0.2, method=Vamp(damping=0.3, polish=False))
    np.testing.assert_allclose(damped.x, pv.solve(s.F, s.y, 0.2).x, atol=1e-6)
    assert (
        pv.solve(s.F, s.y, 0.2, method="vamp", time_limit=1e-9, throw=False).status
        is Status.TIME_LIMIT
    )
    with pytest.raises(ValueError, match="damping"):
        Vamp(damping=1.0)


def test_only_the_last_iterate_gets_a_gap_from_a_linear_programme(monkeypatch):
    from privasso.problem import _certificate

    tried = []
    solve_programme = _certificate.linear_programme
    monkeypatch.setattr(
        _certificate, "linear_programme", lambda p: tried.append(p) or solve_programme(p)
    )
    model = pv.Model(0.5, covariance=AutoRegressive(0.9)).realised(60, 0)
    s = model.sample(rng=0)
    eta = 0.05 * np.random.default_rng(1).standard_normal(60)
    found = pv.solve(s.F, s.y, 0.2, eta, method=Vamp(polish=False), throw=False)
    assert found.n_iter >= 30  # it looks at every tenth iterate
    assert len(tried) <= 1
