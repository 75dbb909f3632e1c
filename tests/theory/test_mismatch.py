"""Noise shaped after wrong scales: against the ordinary prediction and against exact solutions."""

import numpy as np
import pytest

import privasso as pv
from privasso.theory import mismatched_state_evolution

V1, V2 = pv.Uniform(), pv.LogNormal(0.0, 0.5)


def test_without_error_it_is_state_evolution():
    for law, n in ((V1, None), (V2, None), (V2, 300)):
        model = pv.Model(scales=law)
        ordinary = pv.state_evolution(model, 0.3, pv.Gram(0.1), n_features=n)
        exact = mismatched_state_evolution(model, 0.3, pv.Gram(0.1), 0.0, n_features=n)
        near = mismatched_state_evolution(model, 0.3, pv.Gram(0.1), 1e-5, n_features=n)
        assert exact.E == ordinary.E
        assert pytest.approx(ordinary.E, rel=1e-6) == near.E
        assert near.onavekl() == pytest.approx(ordinary.onavekl(), rel=1e-6)


def test_equal_noise_needs_no_scales():
    model = pv.Model(scales=V2)
    ordinary = pv.state_evolution(model, 0.3, pv.Isotropic(0.1))
    found = mismatched_state_evolution(model, 0.3, pv.Isotropic(0.1), 1.5)
    assert pytest.approx(ordinary.E, rel=1e-6) == found.E
    assert found.onavekl() == pytest.approx(ordinary.onavekl(), rel=1e-6)
    infinite = mismatched_state_evolution(pv.Model(scales=V1), 0.3, pv.Isotropic(0.1), 0.5)
    assert infinite.status is pv.theory.FixedPointStatus.INFINITE_ERROR


def solved(model, lam, noise, scale_error, N, samples):
    """E and ρ̂ of exact solutions, less the prediction for the same columns."""
    rng = np.random.default_rng(7)
    rows = []
    for _ in range(samples):
        s = model.sample(N, rng)
        seen = s.v * np.exp(scale_error * rng.standard_normal(N))
        x = pv.solve(s.F, s.y, lam, noise.draw(seen, rng)).x
        rows.append((np.mean(s.v * (x - s.x0) ** 2) + model.sigma_xi**2, np.mean(x != 0)))
    return np.array(rows)


def agrees(law, noise, scale_error, N, samples):
    model = pv.Model(scales=law)
    fp = mismatched_state_evolution(model, 0.3, noise, scale_error)
    found = solved(model, 0.3, noise, scale_error, N, samples)
    error = found.std(axis=0, ddof=1) / np.sqrt(samples)
    assert np.all(np.abs(found.mean(axis=0) - [fp.E, fp.rho_hat]) < 4 * error)
    return found.mean(axis=0), error


def test_exact_solutions():
    mean, error = agrees(V2, pv.Gram(0.2), 1.0, 400, 40)
    without = pv.state_evolution(pv.Model(scales=V2), 0.3, pv.Gram(0.2))
    assert mean[0] - without.E > 4 * error[0]  # wrong scales are seen in the data


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "noise", "scale_error"),
    [
        (V2, pv.Gram(0.3), 0.8),
        (V2, pv.PowerLaw(0.15, 1.0), 1.2),
        (V1, pv.Gram(0.15), 1.0),
        (V1, pv.PowerLaw(0.1, 0.75), 0.5),
    ],
)
def test_exact_solutions_at_scale(law, noise, scale_error):
    agrees(law, noise, scale_error, 1500, 16)


@pytest.mark.slow
def test_leakage_by_the_exact_density():
    # The same design on both data sets, shaped after wrong scales of the columns.
    model, noise, lam, scale_error = pv.Model(scales=V2), pv.PowerLaw(0.12, 1.5), 0.35, 0.8
    fp = mismatched_state_evolution(model, lam, noise, scale_error)
    rng = np.random.default_rng(3)
    N, M, records = 400, 200, 8
    means = []
    for _ in range(80):
        s = pv.Model(alpha=(M + records) / N, scales=V2).sample(N, rng)
        variances = noise.variances(s.v * np.exp(scale_error * rng.standard_normal(N)))
        F, y = s.F[:M], s.y[:M]
        x = pv.solve(F, y, lam, np.sqrt(variances) * rng.standard_normal(N)).x
        losses = []
        for k in range(records):
            F2, y2 = F.copy(), y.copy()
            F2[k], y2[k] = s.F[M + k], s.y[M + k]
            losses.append(pv.privacy_loss(F, y, F2, y2, lam, variances, x))
        means.append(np.mean(losses))
    error = np.std(means, ddof=1) / np.sqrt(len(means))
    assert abs(np.mean(means) - fp.onavekl()) < 4 * error
    assert fp.onavekl() - pv.state_evolution(model, lam, noise).onavekl() > 4 * error


def test_a_negative_error_is_refused():
    with pytest.raises(ValueError, match="scale_error must be zero or"):
        mismatched_state_evolution(pv.Model(), 0.2, pv.Gram(0.1), -1.0)
