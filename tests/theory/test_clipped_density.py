"""The density of perturbed minimisers integrates to one, and is that of simulated minimisers."""

import math

import numpy as np
import pytest

from privasso.problem import ClippedProblem, Huber, Logistic
from privasso.solvers import solve_clipped_problem
from privasso.theory import clipped_log_densities

RNG = np.random.default_rng(0)
F = RNG.standard_normal((12, 2))
Y = F @ [0.5, 0.1] + 0.4 * RNG.standard_normal(12)
LABELS = (Y > 0.0).astype(float)


def labels(loss):
    return LABELS if isinstance(loss, Logistic) else Y


def probabilities(lam, weights, loss):
    """Mass of every support, by sums over a fine grid."""
    grid = np.linspace(-4.5, 4.5, 151) + 1e-9
    cell = grid[1] - grid[0]
    both = np.array(np.meshgrid(grid, grid)).reshape(2, -1)
    one, two = (np.zeros((2, grid.size)) for _ in range(2))
    one[0], two[1] = grid, grid

    def mass(points, volume):
        found = clipped_log_densities(
            F, labels(loss), lam, 1.0, points, loss=loss, ridge=1.0, penalty_weights=weights
        )
        return float(np.sum(np.exp(found))) * volume

    found = {(1, 1): mass(both, cell**2)}
    if lam > 0.0:
        found[0, 1] = mass(two, cell)
        if weights[1] > 0.0:
            found[1, 0], found[0, 0] = mass(one, cell), mass(np.zeros((2, 1)), 1.0)
    return found


@pytest.mark.parametrize(
    "loss",
    [
        pytest.param(Huber(0.3), id="huber"),
        pytest.param(Logistic(), id="logistic", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(
    ("lam", "weights"),
    [
        pytest.param(0.0, [1.0, 1.0], marks=pytest.mark.slow),
        (0.8, [1.0, 1.0]),
        pytest.param(0.8, [1, 0], marks=pytest.mark.slow),
    ],
)
def test_the_masses_of_all_supports_are_those_of_simulated_minimisers(loss, lam, weights):
    found = probabilities(lam, weights, loss)
    # The density jumps where a residual begins to be clipped, and at zero: sums are rough there.
    assert sum(found.values()) == pytest.approx(1.0, abs=0.02)
    count, seen = 300, {}
    for eta in np.random.default_rng(1).standard_normal((count, 2)):
        problem = ClippedProblem(
            F, labels(loss), lam, loss=loss, ridge=1.0, eta=eta, penalty_weights=weights
        )
        support = tuple((solve_clipped_problem(problem).x != 0.0).astype(int))
        seen[support] = seen.get(support, 0) + 1
    for support, mass in found.items():
        error = 4.5 * math.sqrt(mass * max(1.0 - mass, 0.0) / count) + 0.02
        assert abs(seen.get(support, 0) / count - mass) < error


def test_one_column_against_the_change_of_variables():
    """With η = −g(x), the density is φ(g(x)/σ)/σ times |g′(x)|, here by a difference quotient."""
    f, label, sigma, ridge = 1.5, 1.0, 0.7, 0.4
    x = np.linspace(-2.0, 2.0, 41)

    def gradient(x):
        return ridge * x - (1.0 - 1.0 / (1.0 + np.exp(-f * x))) * f

    slope = (gradient(x + 1e-6) - gradient(x - 1e-6)) / 2e-6
    expected = -0.5 * (gradient(x) / sigma) ** 2 - np.log(sigma * math.sqrt(2.0 * math.pi))
    found = clipped_log_densities(
        [[f]], [label], 0.0, sigma, x[None, :], loss=Logistic(), ridge=ridge
    )
    np.testing.assert_allclose(found, expected + np.log(slope), atol=1e-6)
