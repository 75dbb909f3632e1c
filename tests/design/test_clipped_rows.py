"""Settings of objective perturbation that are chosen from the rows."""

import numpy as np
import pytest

from privasso.noise import Diagonal, Factored
from privasso.operators import Covariates
from privasso.planning import _clipped_rows, clipped_settings, release_shape, whitened_moments
from privasso.solvers import solve_clipped


def test_whitened_moments_are_those_of_whitened_rows():
    rng = np.random.default_rng(0)
    scale = np.array([1e-8, 1.0, 1e6])
    F = rng.standard_normal((40, 3)) * scale
    for noise in (
        Diagonal(scale**2 * [1.0, 2.0, 3.0]),
        Factored(scale[:, None] * rng.standard_normal((3, 3))),
    ):
        a, root = whitened_moments(F.T @ F, noise, 0.0, scale)
        white = noise.whiten(F.T).T
        np.testing.assert_allclose(a, np.linalg.eigvalsh(white.T @ white), rtol=1e-6)
        units = np.outer(scale, scale)
        np.testing.assert_allclose(root @ root.T / units, noise.matrix() / units, atol=1e-9)


def test_rows_without_a_full_rank_are_no_trouble():
    rng = np.random.default_rng(1)
    rows = Covariates(rng.standard_normal((8, 20)), centre=True)
    found = clipped_settings(rows, 0.1, {0.1: 0.23})
    assert 0.5 < found.error < 2.0


@pytest.mark.parametrize(
    ("kappa", "c", "t", "shrink", "close"),
    [
        (0.1, 0.22, 0.1, 0.0, 0.08),
        (0.4, 0.6, 0.3, 0.5, 0.16),
        pytest.param(0.1, 1.8, 1.0, 0.0, 0.08, marks=pytest.mark.slow),
        pytest.param(0.4, 0.6, 0.3, 0.0, 0.08, marks=pytest.mark.slow),
        pytest.param(0.1, 0.22, 0.1, 0.5, 0.16, marks=pytest.mark.slow),
        pytest.param(0.1, 1.8, 1.0, 0.5, 0.16, marks=pytest.mark.slow),
    ],
)
def test_the_expected_error_is_that_of_simulated_fits(kappa, c, t, shrink, close, monkeypatch):
    """Against minimisers of the objective itself, and the best linear guess from these.

    Rows that are shrunk differently have residuals of different sizes, which the prediction
    replaces by their mean.
    """
    monkeypatch.setattr(_clipped_rows, "LABEL_DEVIATIONS", (1 / 6,))
    monkeypatch.setattr(_clipped_rows, "EXPLAINED_PARTS", (0.6,))
    rng = np.random.default_rng(2)
    m, n, draws = 300, 5, 400
    F = rng.standard_normal((m, n))
    rows = Covariates(F, centre=False)
    predicted = clipped_settings(rows, kappa, {t: c}, (shrink,)).error
    shape = release_shape(rows, shrink)
    G = shape.covariance.whiten(F.T).T
    roots = np.minimum(1.0, 1.0 / np.linalg.norm(G, axis=1))
    G *= roots[:, None]
    a, vectors = np.linalg.eigh(G.T @ G)
    scale = np.sqrt(rows.squares / m)
    truths, found = np.empty((2, draws, n))
    for k in range(draws):
        x = rng.normal(0.0, np.sqrt(0.6 / 36 / n), n) / scale
        y = F @ x + np.sqrt(0.4 / 36) * rng.standard_normal(m)
        eta = 2.0 * kappa / c * rng.standard_normal(n)
        u = solve_clipped(
            G, roots * y, 0.0, eta, kappa=kappa, ridge=1.0 / t, penalty_weights=np.zeros(n)
        ).x
        # Coordinates w with Gw = √w F x.
        truths[k] = vectors.T @ np.linalg.lstsq(G, roots * (F @ x), rcond=None)[0]
        found[k] = vectors.T @ u
    slope = np.sum(truths * found, axis=0) / np.sum(found**2, axis=0)
    errors = ((truths - slope * found) ** 2) @ a / (m * np.mean(roots**2)) * 36
    assert predicted == pytest.approx(np.mean(errors), rel=close)
