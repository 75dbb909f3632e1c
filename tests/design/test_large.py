"""Designed noise in exact solutions, and its leakage by the exact density; `make test-slow`."""

import numpy as np
import pytest

import privasso as pv

pytestmark = pytest.mark.slow

V1, V2 = pv.Uniform(), pv.LogNormal(0.0, 0.5)
POINTS = [
    (pv.Model(scales=V1), {"target": pv.MaxLeakage(0.5)}),
    (pv.Model(scales=V1), {"target": pv.MaxLeakage(2.0)}),
    (pv.Model(scales=V2), {"target": pv.MaxLeakage(2.0)}),
    (pv.Model(scales=V2), {"target": pv.MaxLeakage(0.5)}),
    (pv.Model(1.5, 0.2, 0.3, V2), {"target": pv.MaxError(0.16)}),
    (pv.Model(2.0, 0.1, 0.1, V2), {"target": pv.Budget(pv.LabelDP(80.0, 1e-5, (-1.0, 1.0)))}),
]


@pytest.mark.parametrize(("model", "target"), POINTS)
def test_error_of_exact_solutions(model, target):
    best = pv.optimal_design(model, **target)
    rng = np.random.default_rng(0)
    found = []
    for _ in range(12):
        s = model.sample(2000, rng)
        x = pv.solve(s.F, s.y, best.lam, best.noise.draw(s.v, rng)).x
        found.append((np.mean(s.v * (x - s.x0) ** 2) + model.sigma_xi**2, np.mean(x != 0)))
    found = np.array(found)
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert np.all(np.abs(found.mean(axis=0) - [best.E, best.rho_hat]) < 4 * error)
    assert error[0] < 0.05 * best.E


@pytest.mark.parametrize(("model", "target"), POINTS)
def test_leakage_by_the_exact_density(model, target):
    best = pv.optimal_design(model, **target)
    rng = np.random.default_rng(1)
    N, records = 400, 10
    M = round(model.alpha * N)
    larger = pv.Model((M + records) / N, model.rho, model.sigma_xi, model.scales)
    means = []
    for _ in range(60):
        s = larger.sample(N, rng)
        F, y, variances = s.F[:M], s.y[:M], best.noise.variances(s.v)
        x = pv.solve(F, y, best.lam, np.sqrt(variances) * rng.standard_normal(N)).x
        losses = []
        for k in range(records):
            F2, y2 = F.copy(), y.copy()
            F2[k], y2[k] = s.F[M + k], s.y[M + k]
            losses.append(pv.privacy_loss(F, y, F2, y2, best.lam, variances, x))
        means.append(np.mean(losses))
    error = np.std(means, ddof=1) / np.sqrt(len(means))
    assert abs(np.mean(means) - best.onavekl()) < 4 * error
    assert error < 0.2 * best.onavekl()
