"""Oracles of the design: brute force with the public predictions, and random models."""

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar

import privasso as pv

SHAPES = {"isotropic": pv.Isotropic(1.0), "gamma=1": pv.PowerLaw(1.0, 1.0), "gram": pv.Gram(1.0)}


def least_error(model, lam, design, kappa, sigmas):
    """Least E over all σ with OnAveKL ≤ κ at one λ: both ends of that range, and inside it.

    More noise mostly means more error, but not always: under a λ that is large for the signal,
    noise can lower E. So the smallest feasible σ need not be the best.
    """
    leak = pv.tradeoff(model, lam, design, sigmas)["onavekl"].fill_null(np.inf).to_numpy()
    log_sigmas = np.log(sigmas)

    def excess(log_sigma):
        noise = design.with_sigma(float(np.exp(log_sigma)))
        leak = pv.state_evolution(model, lam, noise).onavekl()
        return np.log(leak / kappa) if np.isfinite(leak) else 50.0

    k = int(np.argmin(leak))
    inside = log_sigmas[k]
    if leak[k] > kappa:  # the least may lie between two points
        near = (log_sigmas[max(k - 1, 0)], log_sigmas[min(k + 1, sigmas.size - 1)])
        least = minimize_scalar(excess, bounds=near, method="bounded")
        if least.fun > 0:  # pyright: ignore
            return 1e6
        inside = least.x  # pyright: ignore
    ends = []
    for side in (log_sigmas[:k][::-1], log_sigmas[k + 1 :]):
        end = inside
        for x in side:
            if excess(x) > 0:
                end = float(brentq(excess, *sorted((end, x)), xtol=1e-7))  # pyright: ignore
                break
            end = x
        ends.append(end)
    path = np.exp(np.linspace(ends[0] + 1e-6, ends[1] - 1e-6, 25))
    return float(pv.tradeoff(model, lam, design, path)["E"].min())  # pyright: ignore


def tuned_by_brute_force(model, design, kappa, n_lams=34):
    """Least E with OnAveKL ≤ κ over λ and σ for one shape, on a grid that is refined thrice."""
    v = model.scales.quantile([0.99])[0] ** 2
    null = model.rho * model.scales.moment(1) + model.sigma_xi**2
    top = np.log(6 * np.sqrt(model.alpha * v * (null + model.alpha * v)))

    def error(log_lam):
        lam = float(np.exp(log_lam))
        return least_error(model, lam, design, kappa, lam * np.geomspace(1e-4, 40.0, 60))

    grid = np.linspace(top - 10.0, top, n_lams)
    values = [error(x) for x in grid]
    k = int(np.argmin(values))
    best = values[k]
    for _ in range(3):  # finer grids: some λ may be infeasible, which line searches do not take
        grid = np.linspace(grid[max(k - 1, 0)], grid[min(k + 1, grid.size - 1)], 10)
        values = [error(x) for x in grid]
        k = int(np.argmin(values))
        best = min(best, values[k])
    return best


@pytest.fixture(scope="session")
def brute_force():
    return tuned_by_brute_force


@pytest.fixture(scope="session")
def shapes():
    return SHAPES


@pytest.fixture(scope="session")
def random_model():
    def draw(seed):
        rng = np.random.default_rng(seed)
        laws = (
            pv.Uniform(),
            pv.Uniform(float(rng.uniform(0.01, 0.5)), 1.0),
            pv.LogNormal(0.0, float(rng.uniform(0.1, 1.1))),
            pv.Empirical(np.exp(rng.normal(0.0, 0.8, 40))),
        )
        alpha, rho, xi = np.exp(rng.uniform(np.log([0.25, 0.02, 0.02]), np.log([4.0, 0.4, 0.8])))
        kappa = float(np.exp(rng.uniform(np.log(0.05), np.log(20.0))))
        law = laws[int(rng.integers(4))]
        return pv.Model(float(alpha), float(rho), float(xi), law), kappa

    return draw
