"""State evolution of the clipped-residual LASSO against integration, solves and its limits."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import norm

import privasso as pv
from privasso.theory import FixedPointStatus
from privasso.theory._nodes import Nodes
from privasso.theory._root import FOUND, fixed_point
from privasso.theory._system import values

U, L, C = pv.Uniform, pv.LogNormal, pv.Constant

# alpha, rho, sigma_xi, law, lam, noise, kappa, ridge Λ and its power of v
POINTS = [
    (2.0, 0.1, 0.1, L(0.0, 0.5), 0.1, pv.PowerLaw(0.1, 1.0), 0.15, 0.1, 1.0),
    (5.0, 0.1, 0.1, U(), 0.1, pv.PowerLaw(0.2, 1.0), 0.05, 0.5, 1.0),
    (0.7, 0.1, 0.1, L(0.0, 0.5), 0.2, pv.PowerLaw(0.1, 1.0), 0.3, 0.0, 0.0),
    (0.5, 0.1, 0.1, U(), 0.1, pv.Gram(0.05), 0.1, 0.2, 1.0),
    (0.5, 0.1, 0.1, U(0.1, 1.0), 0.2, pv.Isotropic(0.12), 1.0, 0.1, 0.0),
    (1.0, 0.3, 0.3, C(2.0), 0.5, pv.Isotropic(0.3), 0.4, 1.0, 0.0),
    (3.0, 0.5, 0.1, U(0.2, 1.2), 0.05, pv.Isotropic(0.5), 0.02, 0.3, 2.0),
    (10.0, 0.1, 0.1, L(0.0, 0.5), 0.05, pv.PowerLaw(1.0, 1.0), 0.1, 5.0, 1.0),
    (20.0, 0.1, 0.1, U(), 0.3, pv.PowerLaw(0.0, 1.0), 0.03, 0.0, 0.0),
    (20.0, 0.02, 0.5, L(-1.0, 0.5), 1.0, pv.PowerLaw(2.0, 1.0), 0.5, 3.0, 1.0),
    (0.3, 0.02, 0.0, C(), 0.1, pv.Isotropic(0.02), 0.05, 0.05, 0.0),
    (2.0, 1.0, 1.0, L(0.0, 0.5), 0.01, pv.PowerLaw(0.3, 1.5), 2.0, 0.5, 1.0),
]


def ridge_of(law, level, gamma):
    """The ridge Λ v^γ as an argument of `state_evolution`."""
    return pv.PowerLaw(np.sqrt(level * law.moment(gamma)), gamma)


@pytest.mark.parametrize("point", POINTS)
def test_fixed_point_and_first_steps_against_integration(point, brute_step):
    alpha, rho, xi, law, lam, noise, kappa, level, gamma = point
    model = pv.Model(alpha, rho, xi, law)
    fp = pv.state_evolution(model, lam, noise, kappa=kappa, ridge=ridge_of(law, level, gamma))
    assert fp.status is FixedPointStatus.STABLE

    def step(E, V):
        return brute_step(model, lam, noise, E, V, kappa, lambda v: level * v**gamma)

    assert (fp.E, fp.V, fp.rho_hat) == pytest.approx(step(fp.E, fp.V), rel=1e-6)
    assert fp.trajectory[0] == pytest.approx([rho * law.moment(1) + xi**2, 0.0, 0.0], rel=1e-6)
    for before, after in zip(fp.trajectory[:3], fp.trajectory[1:4], strict=True):
        assert after == pytest.approx(step(*before[:2]), rel=1e-6)


def test_a_nearly_perfect_fit_keeps_its_digits(brute_step):
    # The terms of E are of order 1, and what is left of them is 1e-9.
    law, noise, kappa, ridge = L(0.0, 0.5), pv.PowerLaw(0.03, 0.8), 0.0015, 0.01
    model = pv.Model(500.0, 1.0, 0.001, law)
    fp = pv.state_evolution(model, 0.003, noise, kappa=kappa, ridge=ridge_of(law, ridge, 0.8))
    E = brute_step(model, 0.003, noise, fp.E, fp.V, kappa, lambda v: ridge * v**0.8)[0]
    assert pytest.approx(E - 1e-6, rel=1e-4) == fp.E - 1e-6
    # A coefficient is zero where |x0| < λΣ, which the density of x0 at zero says.
    slope = (2 * norm.cdf(kappa * (1 + fp.V) / np.sqrt(fp.E)) - 1) / (1 + fp.V)
    small = 2 * norm.pdf(0) * 0.003 * law.moment(-1.0) / (500.0 * slope)
    assert 1 - fp.rho_hat == pytest.approx(small, rel=1e-3)


def test_no_clipping_and_no_ridge_is_the_lasso():
    model, noise = pv.Model(scales=L(0.0, 0.5)), pv.PowerLaw(0.1, 1.0)
    plain = pv.state_evolution(model, 0.2, noise)
    same = pv.state_evolution(model, 0.2, noise, kappa=np.inf, ridge=pv.Isotropic(0.0))
    assert (same.E, same.V, same.rho_hat) == (plain.E, plain.V, plain.rho_hat)
    assert same.onavekl() == plain.onavekl()
    # A threshold that no residual reaches takes the other path to the same point.
    other = pv.state_evolution(model, 0.2, noise, kappa=100.0)
    assert (other.E, other.V, other.rho_hat) == pytest.approx(
        (plain.E, plain.V, plain.rho_hat), rel=1e-6
    )
    assert other.stability == pytest.approx(plain.stability, rel=1e-6)
    assert other.trajectory[:5] == pytest.approx(plain.trajectory[:5], rel=1e-6)
    rng = np.random.default_rng(0)
    for law in (U(), L(0.0, 0.5), C(2.0)):
        for _ in range(10):
            alpha, lam = 10 ** rng.uniform(0.0, 1.0), 10 ** rng.uniform(-2.0, 0.0)
            v, w = law.quadrature(64)
            var = pv.PowerLaw(10 ** rng.uniform(-2, 0), 1.0).variances(v, w)
            found = []
            for ridge in (0.0, np.zeros_like(v)):
                s = Nodes(v, w, var).system(pv.Model(alpha), lam, ridge=ridge)
                status, x, y = fixed_point(s, np.nan, np.nan, False)
                assert status == FOUND
                found.append(values(s, x, y))
            assert found[1] == pytest.approx(found[0], rel=1e-12)


def measured(model, lam, noise, kappa, level, gamma, *, N, data_sets, seed=0):
    """Means of E and ρ̂ over certified solves, with standard errors."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(data_sets):
        s = model.sample(N, rng)
        ridge = np.maximum(level * s.v**gamma, 1e-6 * s.v)  # a solve needs some ridge
        eta = noise.sigma * np.sqrt(s.v**noise.gamma / model.scales.moment(noise.gamma))
        eta = eta * rng.standard_normal(N)
        sol = pv.solve_clipped(s.F, s.y, lam, eta, kappa=kappa, ridge=ridge)
        error = model.sigma_xi**2 + np.mean(s.v * (sol.x - s.x0) ** 2)
        rows.append((error, np.count_nonzero(sol.x) / N))
    return np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) / np.sqrt(data_sets)


def agrees(alpha, law, lam, sigma, kappa, level, *, N, data_sets):
    """Whether prediction and measurement agree, for noise and ridge ∝ v."""
    model, noise = pv.Model(alpha, 0.1, 0.1, law), pv.PowerLaw(sigma, 1.0)
    fp = pv.state_evolution(model, lam, noise, kappa=kappa, ridge=ridge_of(law, level, 1.0))
    assert fp.status is FixedPointStatus.STABLE
    mean, error = measured(model, lam, noise, kappa, level, 1.0, N=N, data_sets=data_sets)
    # Corrections are of relative order 1/N.
    slack = 4 * error + np.array([fp.E, fp.rho_hat]) / N
    return bool(np.all(np.abs(mean - [fp.E, fp.rho_hat]) < slack)), mean, error, fp


FEW = [
    (2.0, L(0.0, 0.5), 0.1, 0.1, 0.15, 0.1),
    (5.0, U(), 0.05, 0.2, 0.05, 0.5),
    (0.7, L(0.0, 0.5), 0.2, 0.1, 0.3, 0.0),
]


@pytest.mark.parametrize("point", FEW)
def test_prediction_against_a_few_solves(point):
    good, *found = agrees(*point, N=150, data_sets=12)
    assert good, found


MANY = [
    (0.5, U(), 0.1, 0.03, 0.1, 0.1),
    (0.5, L(0.0, 0.5), 0.2, 0.1, 0.3, 0.0),
    (0.7, L(0.0, 0.5), 0.1, 0.05, 0.05, 0.5),
    (1.0, U(), 0.05, 0.0, 0.03, 0.0),
    (1.0, L(0.0, 0.5), 0.3, 0.3, 0.2, 1.0),
    (2.0, L(0.0, 0.5), 0.1, 0.1, 0.15, 0.1),
    (2.0, U(), 0.1, 0.2, 2.0, 0.5),
    (5.0, L(0.0, 0.5), 0.2, 0.5, 0.1, 0.5),
    (5.0, U(), 0.02, 0.02, 0.02, 0.0),
    (10.0, L(0.0, 0.5), 0.5, 1.0, 0.3, 3.0),
    (10.0, U(), 0.1, 0.0, 0.1, 3.0),
    (20.0, L(0.0, 0.5), 0.3, 2.0, 0.05, 2.0),
]


@pytest.mark.slow
@pytest.mark.parametrize("point", MANY)
def test_prediction_against_solves(point):
    good, *found = agrees(*point, N=max(150, min(600, round(1500 / point[0]))), data_sets=40)
    assert good, found


def test_clipping_too_much_noise_has_no_minimiser():
    # The loss grows by κ per unit only, so that noise can win however many rows there are.
    model = pv.Model(alpha=5.0, scales=C())
    noise = pv.Isotropic(1.0)
    assert pv.state_evolution(model, 0.1, noise).status is FixedPointStatus.STABLE
    clipped = pv.state_evolution(model, 0.1, noise, kappa=0.05)
    assert clipped.status is FixedPointStatus.UNSTABLE
    assert clipped.E == clipped.V == np.inf
    assert clipped.stability == 1.0
    assert clipped.trajectory[-1, 0] > 1e9
    # Any ridge makes it strongly convex; the error then is as large as the ridge is small.
    E = [pv.state_evolution(model, 0.1, noise, kappa=0.05, ridge=r).E for r in (1.0, 0.1, 0.01)]
    assert 1.0 < 20 * E[0] < E[1] < E[2] / 20 < np.inf


def steepest_descent(F, eta, lam, kappa):
    """min ηᵀd + λ‖d‖₁ + κ‖Fd‖₁ over |d| ≤ 1, a linear programme: below zero there is a ray."""
    M, N = F.shape
    one, zero = np.eye(M), np.zeros
    cost = np.concatenate([eta + lam, lam - eta, np.full(2 * M, kappa)])  # d⁺, d⁻, (Fd)⁺, (Fd)⁻
    found = linprog(
        cost,
        A_eq=np.hstack([F, -F, -one, one]),
        b_eq=zero(M),
        bounds=[(0, 1)] * (2 * N) + [(0, None)] * (2 * M),
    )
    return found.fun


@pytest.mark.parametrize(("alpha", "kappa", "law"), [(1.5, 0.1, C()), (0.7, 0.3, L(0.0, 0.5))])
def test_the_edge_of_existence_against_linear_programmes(alpha, kappa, law):
    model, noise = pv.Model(alpha=alpha, scales=law), pv.PowerLaw(1.0, 1.0)
    low, high = 0.05, 5.0
    while high / low > 1.001:
        lam = np.sqrt(low * high)
        exists = pv.state_evolution(model, lam, noise, kappa=kappa).status
        low, high = (lam, high) if exists is FixedPointStatus.UNSTABLE else (low, lam)
    rng = np.random.default_rng(0)
    s = model.sample(150, rng)
    eta = noise.draw(s.v, rng)
    assert steepest_descent(s.F, eta, 0.85 * low, kappa) < -1e-6
    assert steepest_descent(s.F, eta, 1.15 * low, kappa) > -1e-9


def test_every_point_is_found():
    # The plain recursion reaches the point slowly or not at all, the search always.
    rng = np.random.default_rng(3)
    laws = [U(), L(0.0, 0.5), L(0.0, 1.0), C(2.0)]
    settled = 0
    for _ in range(150):
        model = pv.Model(
            10 ** rng.uniform(-1, 2), rng.uniform(0.02, 1.0), 10 ** rng.uniform(-2, 0.5),
            laws[rng.integers(4)],
        )  # fmt: skip
        noise = pv.PowerLaw(10 ** rng.uniform(-3, 1), 1.0)
        ridge = pv.PowerLaw(10 ** rng.uniform(-2, 1) if rng.random() < 0.7 else 0.0, 1.0)
        kappa, lam = 10 ** rng.uniform(-3, 1), 10 ** rng.uniform(-2, 1)
        fp = pv.state_evolution(model, lam, noise, kappa=kappa, ridge=ridge)
        if ridge.sigma > 0.0:
            assert fp.status is FixedPointStatus.STABLE
        E, V, rho_hat = fp.trajectory[-1]
        if fp.status is FixedPointStatus.UNSTABLE:
            assert V > 1e3
        elif len(fp.trajectory) < 1000:
            settled += 1
            assert (fp.E, fp.V, fp.rho_hat) == pytest.approx((E, V, rho_hat), rel=1e-5, abs=1e-12)
    assert settled > 90


def test_infinite_error_is_decided_by_moments():
    noise = pv.Isotropic(0.1)
    fp = pv.state_evolution(pv.Model(), 0.2, noise, kappa=0.1, ridge=pv.PowerLaw(0.3, 1.0))
    assert fp.status is FixedPointStatus.INFINITE_ERROR
    assert np.inf == fp.E
    assert np.isnan(fp.rho_hat)
    assert fp.trajectory[1, 0] == np.inf
    few, many = (
        pv.state_evolution(
            pv.Model(), 0.2, noise, kappa=0.1, ridge=pv.PowerLaw(0.3, 1.0), n_features=n
        ).E
        for n in (100, 10_000)
    )
    assert few < many < np.inf
    # A ridge that stays away from zero tames the small columns.
    tame = pv.state_evolution(pv.Model(), 0.2, noise, kappa=0.1, ridge=0.1)
    assert tame.status is FixedPointStatus.STABLE
    near = pv.state_evolution(pv.Model(), 0.2, noise, kappa=0.1, ridge=0.1, n_features=20_000)
    assert pytest.approx(near.E, rel=1e-4) == tame.E


def test_what_does_not_apply_is_refused():
    model, noise = pv.Model(), pv.Gram(0.1)
    fp = pv.state_evolution(model, 0.2, noise, kappa=0.1)
    with pytest.raises(ValueError, match="squared loss without a ridge"):
        fp.onavekl()
    with pytest.raises(ValueError, match="kappa"):
        pv.state_evolution(model, 0.2, noise, kappa=0.0)
    with pytest.raises(ValueError, match="kappa"):
        pv.state_evolution(model, 0.2, noise, kappa=np.nan)
    with pytest.raises(ValueError, match="ridge"):
        pv.state_evolution(model, 0.2, noise, ridge=-1.0)
    with pytest.raises(ValueError, match="no limit of many columns"):
        pv.state_evolution(model, 0.2, pv.PowerLaw(0.1, -0.6), kappa=0.1)
