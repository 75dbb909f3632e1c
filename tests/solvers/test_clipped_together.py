"""Many small problems at once: the points and bounds of the solver that takes one at a time."""

import numpy as np
import pytest

from privasso.problem import ClippedProblem, Huber, Logistic, Quantile
from privasso.solvers import minimise_together, solve_clipped_problem


@pytest.mark.parametrize("loss", [Huber(0.1), Logistic(), Quantile(0.8, 0.05)], ids=str)
@pytest.mark.parametrize("lam", [0.0, 1.0])
@pytest.mark.parametrize("shape", [(60, 4), (300, 3), (10, 15)])
def test_minimisers_are_those_of_the_solver_of_one(loss, lam, shape):
    rng = np.random.default_rng(0)
    m, n = shape
    F, y = rng.standard_normal((m, n)) / np.sqrt(n), rng.standard_normal(m)
    y = (y > 0.0).astype(float) if isinstance(loss, Logistic) else y
    weights = rng.random(m) if isinstance(loss, Logistic) else None
    thresholds = lam * np.append(np.ones(n - 1), 0.0)
    etas = 2.0 * rng.standard_normal((12, n))
    x, off = minimise_together(F, y, loss, weights, 0.5, thresholds, etas)
    assert np.median(off) < 1e-10
    for point, bound, eta in zip(x, off, etas, strict=True):
        problem = ClippedProblem(
            F, y, 1.0, loss=loss, ridge=0.5, eta=eta, weights=weights, penalty_weights=thresholds
        )
        one = solve_clipped_problem(problem)
        assert np.linalg.norm(point - one.x) <= bound + one.distance / 0.5**0.5
        if bound < 1e-10:
            assert np.array_equal(point == 0.0, one.x == 0.0)
