"""Derivatives of the fixed point against differences of the public predictions."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import privasso as pv
from privasso.theory import clipped_moments, point_gradients
from privasso.theory._nodes import Nodes
from privasso.theory._onavekl import layer
from privasso.theory._root import exists


def layer_by_integration(kappa, s):
    """E[(φ(a) − φ(b))²/(Φ(a) − Φ(−b))] over z ~ N(0, s²), a = κ − z, b = κ + z."""

    def integrand(z):
        a, b = kappa - z, kappa + z
        mass = norm.cdf(a) - norm.cdf(-b) if a > 0 else norm.sf(-a) - norm.sf(b)
        return (norm.pdf(a) - norm.pdf(b)) ** 2 / mass * norm.pdf(z, scale=s)

    # Beyond 8 deviations of either factor there is nothing.
    top = min(8 * s, kappa + 8)
    return 2 * quad(integrand, 0, top, points=(min(kappa, top / 2),), limit=200, epsrel=1e-10)[0]


@pytest.mark.parametrize(
    ("kappa", "s"), [(1.0, 0.3), (5.0, 2.0), (2.0, 10.0), (0.1, 0.1), (30.0, 8.0), (3.0, 1e-9)]
)
def test_layer(kappa, s):
    G, by_kappa, by_s = layer(kappa, s, True)
    assert layer(kappa, s, False) == (G, 0.0, 0.0)
    assert pytest.approx(layer_by_integration(kappa, s), rel=1e-6, abs=1e-12) == G
    h = 1e-2

    def slope(f):  # of fourth order
        return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)

    scale = 1e-6 * max(abs(by_kappa), abs(by_s), G)
    assert slope(lambda t: layer(kappa * np.exp(t), s, False)[0]) == pytest.approx(
        by_kappa, rel=1e-4, abs=scale
    )
    assert slope(lambda t: layer(kappa, s * np.exp(t), False)[0]) == pytest.approx(
        by_s, rel=1e-4, abs=scale
    )


CASES = [(0.5, 0.1, 0.1, 0.25, 0.1), (0.3, 0.3, 0.5, 0.6, 0.2), (3.0, 0.05, 0.05, 0.4, 0.5)]


@pytest.mark.parametrize("leakage", ["onavekl", "advantage"])
@pytest.mark.parametrize(("alpha", "rho", "xi", "lam", "sigma"), CASES)
def test_against_differences_of_state_evolution(alpha, rho, xi, lam, sigma, leakage):
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
        return np.log([fp.E, fp.onavekl() if leakage == "onavekl" else fp.attack().advantage])

    at = profile + 2 * np.log(sigma)
    point = point_gradients(model, lam, np.exp(at), v, w, leakage=leakage)
    assert point is not None
    np.testing.assert_allclose(np.log([point.E, point.leakage]), predict(lam, at), rtol=1e-8)
    h = 3e-3
    found = (predict(lam * np.exp(h), at) - predict(lam * np.exp(-h), at)) / (2 * h)
    np.testing.assert_allclose([point.E_by_lam, point.leakage_by_lam], found, rtol=1e-3)
    for i in range(7):
        step = np.zeros(7)
        step[i] = h
        found = (predict(lam, at + step) - predict(lam, at - step)) / (2 * h)
        by = [point.E_by_variances[i], point.leakage_by_variances[i]]
        np.testing.assert_allclose(by, found, rtol=2e-3, atol=1e-5)
    # Without the OnAveKL, and from another start, the rest is the same.
    again = point_gradients(model, lam, np.exp(at + 0.1), v, w, start=point.start)
    fresh = point_gradients(model, lam, np.exp(at + 0.1), v, w, leakage=None)
    assert again is not None
    assert fresh is not None
    assert pytest.approx(fresh.E, rel=1e-9) == again.E
    assert again.E_by_lam == pytest.approx(fresh.E_by_lam, rel=1e-6)
    np.testing.assert_allclose(again.E_by_variances, fresh.E_by_variances, rtol=1e-6)
    assert fresh.leakage == 0.0


@pytest.mark.parametrize("law", [pv.Uniform(0.1, 1.0), pv.LogNormal(0.0, 0.5), pv.Constant()])
@pytest.mark.parametrize("alpha", [0.2, 0.7, 1.5])
def test_existence_is_the_critical_line(law, alpha):
    v, w = law.quadrature(128)
    for design in (pv.Isotropic(1.0), pv.Gram(1.0)):
        model = pv.Model(alpha=alpha, scales=law)
        ratio = pv.theory.critical_lambda_ratio(model, design)
        variances = design.variances(v, w)
        nodes = Nodes(v, w, variances)
        assert exists(nodes.system(model, 1.001 * ratio + 1e-9))
        if alpha < 1.0:
            assert not exists(nodes.system(model, 0.999 * ratio))
            assert not exists(nodes.system(model, 1e-3 * ratio))
            assert point_gradients(model, 0.999 * ratio, variances, v, w) is None


@pytest.mark.parametrize("kappa", [1e-12, 1e-9, 1e-6, 1e-3, 1.0])
def test_squares_of_residuals_that_are_nearly_all_clipped(kappa):
    E, V = 0.3, 0.7
    edge = kappa * (1 + V) / np.sqrt(E)  # in units of √E
    inside = 2 * quad(lambda z: (z / edge) ** 2 * norm.pdf(z), 0, edge, epsabs=0)[0]
    slope, square = clipped_moments(kappa, E, V)
    assert square / kappa**2 == pytest.approx(inside + 2 * norm.sf(edge), rel=1e-9)
    assert slope == pytest.approx((1 - 2 * norm.sf(edge)) / (1 + V), rel=1e-3)
