"""What the figures compute themselves, against simulation and a recursion that is written out."""

import numpy as np
import polars as pl
import pytest

import privasso as pv
from privasso.paper._error import PROBE, half_level, recursion
from privasso.paper._noise import SIGMA, axis_ratio, channel, covariances, covariates
from privasso.paper._small import column


@pytest.mark.parametrize("design", [pv.Isotropic(SIGMA), pv.Gram(SIGMA)])
def test_mass_beyond_the_threshold_by_simulation(design):
    row = channel({pv.Isotropic: "isotropic", pv.Gram: "gram"}[type(design)])
    rng = np.random.default_rng(0)
    v = pv.LogNormal().draw(1_000_000, rng) ** 2
    v[0] = row["v"]
    deviation = np.sqrt(design.variances(v)[0])
    z, eta = rng.standard_normal((2, 1_000_000))
    before = np.sqrt(row["E"] / (0.5 * row["v"])) * z - deviation * eta * row["Sigma"]
    share = np.mean(np.abs(before) > row["threshold"])
    assert share == pytest.approx(row["beyond"], rel=0.03, abs=1e-5)


@pytest.mark.parametrize("design", [pv.Isotropic(1.0), pv.Gram(1.0)])
@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_effective_covariance_by_simulation(design, correlation):
    F = covariates(correlation)
    gram = F.T @ F
    draws = np.linalg.solve(gram, design.draw(np.diagonal(gram), rng=0, size=200_000))
    computed = covariances(F, design)["effective"]
    np.testing.assert_allclose(np.cov(draws), computed, atol=0.02 * computed.max())
    assert axis_ratio(np.cov(draws)) == pytest.approx(axis_ratio(computed), rel=0.02)


def test_state_evolution_cycles_where_the_estimator_exists():
    """The recursion written out for equal scales, with an integral in place of the closed form."""
    alpha, rho, lam, sigma, xi = 0.166, 0.27, PROBE["lam"], PROBE["sigma"], 0.1
    z = np.linspace(-9.0, 9.0, 20_001)
    weights = np.exp(-0.5 * z**2)
    weights /= weights.sum()
    E, V, seen = rho + xi**2, 0.0, []
    for _ in range(60):
        width = (1.0 + V) / alpha
        noise = np.sqrt(E / alpha + (width * sigma) ** 2)
        error = active = 0.0
        # A coefficient given the sum of signal and noise: E[x | sum] and what is left of it.
        for share, signal in ((1.0 - rho, 0.0), (rho, 1.0)):
            total = np.sqrt(signal + noise**2)
            m = total * z
            x = np.sign(m) * np.maximum(np.abs(m) - lam * width, 0.0)
            mean = m * signal / total**2
            left = signal * noise**2 / total**2
            error += share * (weights @ (x - mean) ** 2 + left)
            active += share * (weights @ (x != 0.0))
        E, V = error + xi**2, width * active
        seen.append((E, V))
    table = recursion().tail(2)
    np.testing.assert_allclose(sorted(v for _, v in seen[-2:]), sorted(table["V"]), rtol=0.02)
    assert abs(seen[-1][1] - seen[-2][1]) > 1.0


@pytest.mark.parametrize("design", [pv.Isotropic(0.05), pv.Gram(0.05), pv.PowerLaw(0.05, 1.0)])
@pytest.mark.parametrize("scales", [pv.Uniform(), pv.LogNormal()])
def test_leakage_of_the_columns_adds_up_to_that_of_all(design, scales):
    """The mean over the columns is the paper's cwOnAveKL, which `theory` integrates in closed form.

    So is the share of nonzero coefficients.
    """
    n = 300
    fp = pv.state_evolution(pv.Model(scales=scales), 0.2, design, n_features=n)
    v = scales.quantiles(n) ** 2
    pairs = zip(v, np.sqrt(design.variances(v)), strict=True)
    nonzero, leakage = np.mean([column(fp.E, fp.V, 0.2, *pair) for pair in pairs], axis=0)
    assert nonzero == pytest.approx(fp.rho_hat, rel=1e-3)
    assert leakage == pytest.approx(fp.onavekl("paper"), rel=1e-3)


def test_leakage_of_a_column_by_differences_of_its_law():
    """R_v as the paper writes it, with numerical derivatives of r and an integral over m̂."""
    E, V, lam, v, deviation, alpha, rho = 0.05, 0.6, 0.2, 0.8, 0.07, 0.5, 0.1
    from scipy.special import erfc

    width = (1.0 + V) / (alpha * v)
    m = np.linspace(-14.0, 14.0, 400_001)
    spread = np.sqrt(2.0) * width * deviation
    r = 0.5 * (erfc((lam * width - m) / spread) + erfc((lam * width + m) / spread))
    first = np.gradient(r, m)
    R = (
        first**2 / np.maximum(1.0 - r, 1e-300)
        + np.gradient(first, m)
        + r / (width * deviation) ** 2
    )
    R[1.0 - r < 1e-12] = 1.0 / (width * deviation) ** 2
    density = sum(
        share * np.exp(-0.5 * m**2 / var) / np.sqrt(2.0 * np.pi * var)
        for share, var in ((1.0 - rho, E / (alpha * v)), (rho, 1.0 + E / (alpha * v)))
    )
    nonzero, leakage = column(E, V, lam, v, deviation)
    assert nonzero == pytest.approx(np.trapezoid(density * r, m), rel=1e-4)
    assert leakage == pytest.approx(E / alpha**2 * np.trapezoid(density * R, m) / v, rel=1e-3)


def test_half_of_the_runs():
    def level(*converged):
        return half_level(
            pl.DataFrame({"sigma": [0.1, 0.2, 0.4], "samples": 10, "amp_converged": converged})
        )

    assert level(10, 10, 0) == pytest.approx(np.sqrt(0.08))
    assert level(10, 10, 10) == np.inf
    assert level(4, 10, 10) == 0.0
    assert level(10, 4, 9) == pytest.approx(0.1 * 2.0 ** (5 / 6))
