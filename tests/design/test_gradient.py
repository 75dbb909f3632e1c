"""Derivatives of the fixed point against differences of the public predictions."""

import numpy as np
import pytest

import privasso as pv
from privasso.theory._gradient import exists, gradients, layer_gradient, root
from privasso.theory._information import layer


@pytest.mark.parametrize(
    ("kappa", "s"), [(1.0, 0.3), (5.0, 2.0), (2.0, 10.0), (0.1, 0.1), (30.0, 8.0), (3.0, 1e-9)]
)
def test_layer(kappa, s):
    G, by_kappa, by_s = layer_gradient(kappa, s)
    assert layer(kappa, s) == pytest.approx(G, rel=1e-12)
    h = 1e-2

    def slope(f):  # of fourth order
        return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)

    scale = 1e-6 * max(abs(by_kappa), abs(by_s), G)
    assert slope(lambda t: layer(kappa * np.exp(t), s)) == pytest.approx(
        by_kappa, rel=1e-4, abs=scale
    )
    assert slope(lambda t: layer(kappa, s * np.exp(t))) == pytest.approx(by_s, rel=1e-4, abs=scale)


CASES = [(0.5, 0.1, 0.1, 0.25, 0.1), (0.3, 0.3, 0.5, 0.6, 0.2), (3.0, 0.05, 0.05, 0.4, 0.5)]


@pytest.mark.parametrize(("alpha", "rho", "xi", "lam", "sigma"), CASES)
def test_against_differences_of_state_evolution(alpha, rho, xi, lam, sigma):
    rng = np.random.default_rng(1)
    scales = np.sort(np.exp(rng.normal(0.0, 0.5, 7)))
    v, w = scales**2, np.full(7, 1 / 7)
    model = pv.Model(alpha, rho, xi, pv.Empirical(scales))
    profile = rng.normal(0.0, 0.4, 7)

    def predict(lam, log_variances):
        # A table through all columns can take any variances; sigma is their root mean.
        level = float(np.sqrt(np.mean(np.exp(log_variances))))
        design = pv.Tabulated(level, tuple(np.log(v)), tuple(log_variances))
        np.testing.assert_allclose(design.variances(v), np.exp(log_variances))
        fp = pv.state_evolution(model, lam, design)
        return np.log([fp.E, fp.onavekl()])

    at = profile + 2 * np.log(sigma)
    e, u = root(0.0, 0.0, lam, np.exp(at), alpha, rho, xi**2, v, w)
    error_by, leak_by = np.zeros(7), np.zeros(7)
    E, _, _, K, E_lam, K_lam = gradients(
        e, u, lam, np.exp(at), alpha, rho, xi**2, v, w, True, error_by, leak_by
    )
    np.testing.assert_allclose(np.log([E, K]), predict(lam, at), rtol=1e-8)
    h = 3e-3
    found = (predict(lam * np.exp(h), at) - predict(lam * np.exp(-h), at)) / (2 * h)
    np.testing.assert_allclose([E_lam, K_lam], found, rtol=1e-3)
    for i in range(7):
        step = np.zeros(7)
        step[i] = h
        found = (predict(lam, at + step) - predict(lam, at - step)) / (2 * h)
        np.testing.assert_allclose([error_by[i], leak_by[i]], found, rtol=2e-3, atol=1e-5)


@pytest.mark.parametrize("law", [pv.Uniform(0.1, 1.0), pv.LogNormal(0.0, 0.5), pv.Constant()])
@pytest.mark.parametrize("alpha", [0.2, 0.7, 1.5])
def test_existence_is_the_critical_line(law, alpha):
    v, w = law.quadrature(128)
    for design in (pv.Isotropic(1.0), pv.Gram(1.0)):
        ratio = pv.critical_lambda_ratio(pv.Model(alpha=alpha, scales=law), design)
        variances = design.variances(v, w)
        assert exists(1.001 * ratio + 1e-9, variances, alpha, v, w)
        if alpha < 1.0:
            assert not exists(0.999 * ratio, variances, alpha, v, w)
            assert root(0.0, 0.0, 0.999 * ratio, variances, alpha, 0.1, 0.01, v, w)[1] == 0.0
