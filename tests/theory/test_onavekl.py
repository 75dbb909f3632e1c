"""OnAveKL: the component-wise integral in high precision, its limits, and the joint formula."""

import mpmath
import numpy as np
import pytest
from scipy.stats import norm

import privasso as pv


def fisher_average(kappa, s):
    """τ²·E[R] over m̂/τ ~ N(0, s²), with R as the paper writes it, in 25 digits."""
    with mpmath.workdps(25):
        kappa, s = mpmath.mpf(kappa), mpmath.mpf(s)

        def integrand(z):
            a, b = kappa - z, kappa + z
            r = mpmath.ncdf(-a) + mpmath.ncdf(-b)
            slope = mpmath.npdf(a) - mpmath.npdf(b)
            curve = a * mpmath.npdf(a) + b * mpmath.npdf(b)
            zero = mpmath.ncdf(a) - mpmath.ncdf(-b)
            return (slope**2 / zero + curve + r) * mpmath.npdf(z, 0, s)

        width = min(s, 1)
        marks = {0, 12 * s}
        for centre in (0, kappa, kappa * s**2 / (1 + s**2)):
            marks |= {centre + k * width for k in (-8, -3, 0, 3, 8)}
        marks = sorted(m for m in marks if 0 <= m <= 12 * s)
        return float(2 * mpmath.quad(integrand, marks))  # pyright: ignore


# Every level of noise from nothing to overwhelming; α > 1 keeps the estimator in existence.
LEVELS = [1e-6, 1e-4, 1e-2, 0.1, 0.3, 1.0, 10.0, 100.0]


@pytest.mark.parametrize(
    ("sigma", "lam"),
    [
        # One level with each λ is quick.
        pytest.param(
            sigma, lam, marks=[pytest.mark.slow] * ((sigma, lam) not in {(0.3, 0.05), (0.01, 1.0)})
        )
        for sigma in LEVELS
        for lam in (0.05, 1.0)
    ],
)
def test_component_wise_in_high_precision(sigma, lam):
    model = pv.Model(alpha=2.0, rho=0.2, sigma_xi=0.3, scales=pv.Constant(0.8))
    fp = pv.state_evolution(model, lam, pv.Isotropic(sigma))
    v = 0.64
    Sigma = (1 + fp.V) / (2.0 * v)
    tau = Sigma * sigma
    information = sum(
        weight * fisher_average(lam / sigma, np.sqrt(spread) / tau) / tau**2
        for weight, spread in ((0.8, fp.E / (2 * v)), (0.2, 1 + fp.E / (2 * v)))
    )
    expected = fp.E / 4.0 * information / v
    assert fp.onavekl("paper") == pytest.approx(expected, rel=1e-6)


def test_average_over_scales_of_the_component_wise_divergence():
    scales, design = np.array([0.5, 1.0, 1.7]), pv.PowerLaw(0.1, 1.5)
    model = pv.Model(scales=pv.Empirical(scales))
    fp = pv.state_evolution(model, 0.2, design)
    v = scales**2
    tau = (1 + fp.V) / (0.5 * v) * np.sqrt(design.variances(v))
    total = 0.0
    for v_i, tau_i, sigma_i in zip(v, tau, np.sqrt(design.variances(v)), strict=True):
        for weight, spread in ((0.9, fp.E / (0.5 * v_i)), (0.1, 1 + fp.E / (0.5 * v_i))):
            R = fisher_average(0.2 / sigma_i, np.sqrt(spread) / tau_i) / tau_i**2
            total += weight * R / v_i / 3
    assert fp.onavekl("paper") == pytest.approx(fp.E / 0.25 * total, rel=1e-6)

    law = pv.Model(scales=pv.Uniform(0.2, 1.0))
    limit = pv.state_evolution(law, 0.2, design)
    many = pv.state_evolution(law, 0.2, design, n_features=4000)
    assert limit.onavekl("paper") == pytest.approx(many.onavekl("paper"), rel=1e-6)


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
def test_little_noise_diverges_like_its_inverse_variance(gamma):
    law = pv.Uniform(0.2, 1.0)
    model = pv.Model(scales=law)
    silent = pv.state_evolution(model, 0.2, pv.Gram(0.0))
    assert silent.onavekl() == silent.onavekl("paper") == np.inf

    # Coefficient: e·E[v·P(active)·σ²/σ_η²(v)], every active column leaking through its own noise.
    v, w = law.quadrature(400)
    e, alpha = silent.E / (1 + silent.V) ** 2, model.alpha
    active = 0.0
    for weight, extra in ((0.9, 0.0), (0.1, (alpha * v / (1 + silent.V)) ** 2)):
        active = active + weight * 2 * norm.sf(0.2 / np.sqrt(alpha * v * e + extra))
    coefficient = e * np.sum(w * v * active * law.moment(gamma) / v**gamma)
    for sigma in (1e-4, 1e-6):
        fp = pv.state_evolution(model, 0.2, pv.PowerLaw(sigma, gamma))
        assert fp.onavekl("paper") * sigma**2 == pytest.approx(coefficient, rel=20 * sigma)


def test_strong_regularisation_leaks_nothing():
    for law in (pv.Uniform(), pv.LogNormal(0.0, 0.5)):
        values = [
            pv.state_evolution(pv.Model(scales=law), lam, pv.Gram(0.1)).onavekl()
            for lam in (1.0, 10.0, 1e3)
        ]
        assert values[0] > values[1] > values[2] >= 0.0
        assert values[2] < 1e-12


def test_joint_exceeds_component_wise_and_parts_from_it_near_instability():
    model = pv.Model(scales=pv.Constant())
    edge = pv.critical_noise(model, 0.2, pv.Isotropic(1.0))
    ratios = []
    for part in (0.1, 0.5, 0.9, 0.99):
        fp = pv.state_evolution(model, 0.2, pv.Isotropic(part * edge))
        ratios.append(fp.onavekl() / fp.onavekl(kind="paper"))
    assert 1.0 < ratios[0] < ratios[1] < ratios[2] < ratios[3]
    assert ratios[3] > 10
    beyond = pv.state_evolution(model, 0.2, pv.Isotropic(1.1 * edge))
    assert np.isnan(beyond.onavekl())
    assert np.isnan(beyond.onavekl("paper"))


def test_unknown_kind():
    fp = pv.state_evolution(pv.Model(), 0.2, pv.Gram(0.1))
    with pytest.raises(ValueError, match="kind must be one of joint, paper"):
        fp.onavekl("epsilon")


def test_joint_against_the_exact_density(replacement_losses):
    model, design = pv.Model(sigma_xi=0.3, scales=pv.Constant()), pv.Isotropic(0.1)
    fp = pv.state_evolution(model, 0.15, design)
    losses = replacement_losses(model, 0.15, design, N=200, data_sets=40, records=8)
    mean, error = losses.mean(axis=0), losses.std(axis=0, ddof=1) / np.sqrt(len(losses))
    P, V = fp.onavekl("paper"), fp.V
    added = V - np.log1p(V) + P * (1 + V) ** 2 / 2
    removed = np.log1p(V) - V / (1 + V) + P / 2
    assert fp.onavekl() == pytest.approx(added + removed)
    assert np.all(np.abs(mean - [fp.onavekl(), added, removed]) < 4 * error)
    assert mean[0] - P > 4 * error[0]
