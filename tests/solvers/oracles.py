"""Checks that share no code with the solvers, and problems to run them on."""

import numpy as np
import scipy.sparse as sp

import privasso as pv


def dense(F):
    return F.toarray() if sp.issparse(F) else np.asarray(F, dtype=np.float64)


def objective(F, y, lam, eta, x):
    residual = y - dense(F) @ x
    return 0.5 * residual @ residual + lam * np.abs(x).sum() + eta @ x


def kkt(F, y, lam, eta, x):
    """Largest distance of −(gradient of the smooth part) from λ∂‖x‖₁, over λ."""
    F = dense(F)
    c = F.T @ (y - F @ x) - eta
    distance = [
        abs(ci - lam * np.sign(xi)) if xi != 0 else max(abs(ci) - lam, 0.0)
        for ci, xi in zip(c, x, strict=True)
    ]
    return max(distance) / lam


def check_ray(F, lam, eta, ray):
    """Fd = 0 to working precision and ηᵀd + λ‖d‖₁ < 0."""
    F = dense(F)
    scale = np.abs(F) @ np.abs(ray)
    assert np.abs(F @ ray).max() <= 1e-8 * max(scale.max(), np.finfo(float).tiny)
    assert eta @ ray + lam * np.abs(ray).sum() < 0


def check_solution(F, y, lam, eta, sol, tol=1e-8):
    assert sol.status is pv.Status.CONVERGED
    assert sol.kkt <= tol
    assert kkt(F, y, lam, eta, sol.x) <= 2 * tol
    assert 0 <= sol.gap <= 1e-6 * (1 + abs(objective(F, y, lam, eta, sol.x)))


LAWS = {"v1": pv.Uniform(), "v2": pv.LogNormal()}
DESIGNS = {"isotropic": pv.Isotropic, "gram": pv.Gram}


def stable_problem(rng, n_features=None):
    """A random problem of the paper's model, well inside the region of stability."""
    law = LAWS[rng.choice(sorted(LAWS))]
    design = DESIGNS[rng.choice(sorted(DESIGNS))]
    n = int(rng.integers(200, 2001)) if n_features is None else n_features
    alpha = rng.uniform(0.3, 2.0)
    sample = pv.Model(alpha, rho=0.1, sigma_xi=0.1, scales=law).sample(n, rng=rng)
    lam = float(10 ** rng.uniform(-1, 0))
    # The critical lambda of the worst combination (v1, isotropic) stays below 4 sigma.
    eta = design(lam / 5).draw(sample.v, rng=rng)
    return sample.F, sample.y, lam, eta


def correlated_problem(rng, n_features=None):
    """Columns with an autoregressive correlation, common factors, means and scales over 1e±3."""
    n = int(rng.integers(50, 400)) if n_features is None else n_features
    m = int(rng.integers(40, 400))
    kind = rng.integers(3)
    F = rng.standard_normal((m, n))
    if kind == 0:
        r = 0.9
        for j in range(1, n):
            F[:, j] = r * F[:, j - 1] + np.sqrt(1 - r * r) * F[:, j]
    elif kind == 1:
        F = 0.3 * F + rng.standard_normal((m, 3)) @ rng.standard_normal((3, n))
    else:
        F += 3.0
    scales = 10 ** rng.uniform(-3, 3, size=n)
    F *= scales
    y = F @ (rng.standard_normal(n) * (rng.uniform(size=n) < 0.05) / scales)
    y += 0.1 * rng.standard_normal(m)
    lam = 0.1 * float(np.abs(F.T @ y).max())
    eta = 0.2 * lam * rng.standard_normal(n) * np.minimum(1.0, scales)
    return F, y, lam, eta


def check_both_sides_of_critical(rng, kind, n_features):
    """A ray at 0.9 times the critical lambda of the linear programme, a minimiser at 1.1 times."""
    law = list(LAWS.values())[kind % 2]
    design = list(DESIGNS.values())[kind // 2 % 2]
    s = pv.Model(rng.uniform(0.3, 0.9), scales=law).sample(n_features, rng=rng)
    eta = design(0.3).draw(s.v, rng=rng)
    critical = pv.critical_lambda(s.F, eta)
    below = pv.solve(s.F, s.y, 0.9 * critical, eta, throw=False)
    assert below.status is pv.Status.UNBOUNDED
    check_ray(s.F, 0.9 * critical, eta, below.ray)
    above = pv.solve(s.F, s.y, 1.1 * critical, eta)
    check_solution(s.F, s.y, 1.1 * critical, eta, above)
