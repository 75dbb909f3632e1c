"""Leakage with noise that is correlated over the columns, against exact densities.

The oracles of `bench.correlated_density` integrate the density itself, one dimension at a time.
"""

from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import privasso as pv
from bench.correlated_density import SHARED, FactorNoise, MarkovNoise, exact_divergence
from privasso.model import AutoRegressive
from privasso.theory._correlated_leakage import box_chain, information, shared_information


@pytest.mark.parametrize("low", [-0.3, 0.2])
def test_moments_in_a_box_against_integration(low):
    """Two correlated normal numbers, restricted to a box that may leave out the origin."""
    Sigma = np.array([[1.0, 0.9], [0.9, 2.0]])
    box = np.array([[low, 1.0], [-1.5, 0.5]])
    x, y = (np.linspace(side[0], side[1], 400) for side in box)
    law: Any = multivariate_normal
    p = law(cov=Sigma).pdf(np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1))
    p /= p.sum()
    wanted = np.array([p.sum(1) @ x, p.sum(0) @ y, x @ p @ y, p.sum(1) @ x**2])
    rng = np.random.default_rng(0)
    velocities = rng.standard_normal((40_000, 2)) @ np.linalg.cholesky(Sigma).T
    states, complete = box_chain(Sigma, box[:, 0], box[:, 1], box.mean(axis=1), velocities)
    assert complete
    assert np.all((states >= box[:, 0] - 1e-12) & (states <= box[:, 1] + 1e-12))
    each = np.column_stack([states, states[:, 0] * states[:, 1], states[:, 0] ** 2])
    blocks = each.reshape(200, 200, 4).mean(axis=1)  # neighbours are hardly correlated
    off = (blocks.mean(axis=0) - wanted) / (blocks.std(axis=0, ddof=1) / np.sqrt(200))
    assert np.all(np.abs(off) < 4), off


def test_the_oracles_against_integration():
    """Both integrals on three columns, one of them active, against that of scipy."""
    i, lam = np.arange(3), 0.2
    c, signs, rest = np.array([[0.05, -0.1, 0.15]]), np.array([0.0, 1.0, 0.0]), [0, 2]
    groups = FactorNoise(0.01, np.array([0.1, 0.2, -0.1]), np.zeros(3, dtype=int))
    chain = 0.01 * 0.7 ** abs(i[:, None] - i)
    for Sigma, density in ((groups.matrix(), groups), (chain, MarkovNoise(chain))):
        active = c[0, 1] - lam
        mean = Sigma[rest, 1] / Sigma[1, 1] * active
        within = Sigma[np.ix_(rest, rest)]
        within = within - np.outer(Sigma[rest, 1], Sigma[1, rest]) / Sigma[1, 1]
        mass = multivariate_normal(mean, within).cdf(c[0, rest] + lam, lower_limit=c[0, rest] - lam)
        wanted = np.log(mass) + multivariate_normal(0.0, Sigma[1, 1]).logpdf(active)
        assert density.log_mass(c, lam, signs)[0] == pytest.approx(wanted, abs=1e-7)


def test_independent_noise_by_the_chain_is_the_closed_form():
    """The Markov chain for noise of any covariance, on noise that needs none."""
    model = pv.Model(scales=pv.LogNormal(0.0, 0.3), covariance=AutoRegressive(0.7)).realised(
        300, rng=0
    )
    noise = pv.PowerLaw(0.1, 1.0)
    fp: Any = pv.state_evolution(model, 0.2, noise, draws=24, rng=0)
    e, u = fp._at
    v = noise.variances(model.covariance.diagonal)
    gap = shared_information(fp._system, e, u, noise, 0) - information(fp._system, e, u, v)
    assert abs(gap.mean()) < 4 * gap.std(ddof=1) / np.sqrt(gap.size)
    assert gap.std(ddof=1) / np.sqrt(gap.size) < 0.03 * information(fp._system, e, u, v).mean()


def test_noise_by_groups_against_the_exact_density():
    check_shared_density(*SHARED[1][1:], N=200, reps=16, records=12)


@pytest.mark.slow
@pytest.mark.parametrize("point", SHARED, ids=lambda point: point[0])
def test_correlated_noise_against_the_exact_density_of_400_columns(point):
    check_shared_density(*point[1:], N=400, reps=40, records=40)


def check_shared_density(kind, law, alpha, lam, noise, N, reps, records):
    model = pv.Model(alpha, 0.1, 0.1, law, covariance=kind).realised(N, rng=0)
    shape, density = noise(model.covariance.covariance)
    fp: Any = pv.state_evolution(model, lam, shape, draws=24, rng=1)
    Sigma = shape.covariance(model.covariance.covariance).matrix()
    mean, error = exact_divergence(model, lam, Sigma, density, reps, records)
    assert abs(fp.onavekl() - mean) < 4 * np.hypot(error, fp.onavekl_error), (fp.onavekl(), mean)
    # Neither a wrong variance nor the bound would pass.
    assert np.hypot(error, fp.onavekl_error) < 0.2 * mean
    assert fp.onavekl("bound") > fp.onavekl() + 4 * np.hypot(error, fp.onavekl_error)
