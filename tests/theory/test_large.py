"""Predictions against large samples; run with `make test-slow`."""

import numpy as np
import pytest

import privasso as pv
from privasso.solvers import Amp

pytestmark = pytest.mark.slow

V1, V2 = pv.Uniform(), pv.LogNormal(0.0, 0.5)

AMP_POINTS = [
    (V1, pv.Isotropic(0.04), 0.2),
    (V1, pv.Isotropic(0.1), 0.5),
    (V1, pv.PowerLaw(0.1, 1.0), 0.2),
    (V1, pv.PowerLaw(0.05, 1.0), 0.1),
    (V1, pv.Gram(0.1), 0.2),
    (V1, pv.Gram(0.2), 0.4),
    (V2, pv.Isotropic(0.05), 0.2),
    (V2, pv.Isotropic(0.1), 0.2),
    (V2, pv.PowerLaw(0.1, 1.0), 0.2),
    (V2, pv.PowerLaw(0.05, 1.0), 0.1),
    (V2, pv.Gram(0.1), 0.2),
    (V2, pv.Gram(0.3), 0.5),
]


@pytest.mark.parametrize(("law", "design", "lam"), AMP_POINTS)
def test_amp_ends_where_predicted(law, design, lam):
    model = pv.Model(scales=law)
    rng = np.random.default_rng(0)
    found, columns = [], []
    for _ in range(8):
        s = model.sample(4000, rng)
        x = pv.solve(s.F, s.y, lam, design.draw(s.v, rng)).x
        found.append((np.mean(s.v * (x - s.x0) ** 2) + 0.01, np.count_nonzero(x) / 4000))
        fp = pv.state_evolution(pv.Model(scales=pv.Empirical(np.sqrt(s.v))), lam, design)
        columns.append((fp.E, fp.rho_hat))
    found, columns = np.array(found), np.array(columns)
    limit = pv.state_evolution(model, lam, design)
    predictions = [columns]
    if limit.status is pv.theory.FixedPointStatus.STABLE:
        predictions.append(np.array([[limit.E, limit.rho_hat]]))
    for predicted in predictions:
        difference = found - predicted
        error = difference.std(axis=0, ddof=1) / np.sqrt(len(found))
        assert np.all(np.abs(difference.mean(axis=0)) < 4 * error)
        assert error[0] < 0.05 * found[:, 0].mean()  # a loose test would show nothing


@pytest.mark.parametrize(("law", "design"), [(V1, pv.Gram(0.1)), (V2, pv.Isotropic(0.1))])
def test_amp_follows_the_trajectory(law, design):
    model = pv.Model(scales=law)
    fp = pv.state_evolution(model, 0.2, design)
    rng = np.random.default_rng(1)
    runs = []
    for _ in range(8):
        s = model.sample(4000, rng)
        seen = []
        problem = pv.problem.Problem.from_labels(s.F, s.y, 0.2, design.draw(s.v, rng))
        state = Amp().init(problem)
        for _ in range(12):
            state = Amp().step(problem, state)
            E = np.mean(s.v * (state.x - s.x0) ** 2) + 0.01
            seen.append((E, state.s_theta, state.n_active / 4000))
        runs.append(seen)
    runs = np.array(runs)
    error = runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
    assert np.all(np.abs(runs.mean(axis=0) - fp.trajectory[2:14]) < 4 * error)


KL_POINTS = [
    (pv.Constant(), 0.3, 0.15, pv.Isotropic(0.05)),
    (pv.Constant(), 0.3, 0.15, pv.Isotropic(0.1)),
    (pv.Constant(), 0.1, 0.2, pv.Isotropic(0.1)),
    (V1, 0.1, 0.2, pv.Gram(0.1)),
    (V2, 0.1, 0.2, pv.PowerLaw(0.1, 1.0)),
    (V2, 0.1, 0.3, pv.Isotropic(0.15)),
]


@pytest.mark.parametrize(("law", "xi", "lam", "design"), KL_POINTS)
def test_joint_divergence(law, xi, lam, design, replacement_losses):
    model = pv.Model(sigma_xi=xi, scales=law)
    fp = pv.state_evolution(model, lam, design)
    losses = replacement_losses(model, lam, design, N=500, data_sets=120, records=12)
    mean, error = losses.mean(axis=0), losses.std(axis=0, ddof=1) / np.sqrt(len(losses))
    P, V = fp.onavekl("paper"), fp.V
    added = V - np.log1p(V) + P * (1 + V) ** 2 / 2
    removed = np.log1p(V) - V / (1 + V) + P / 2
    assert np.all(np.abs(mean - [fp.onavekl(), added, removed]) < 4 * error)
    assert mean[0] - P > 4 * error[0]
