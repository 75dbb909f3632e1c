"""State evolution against brute-force integration, sampling, AMP and its own limits."""

from dataclasses import dataclass
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import privasso as pv
from privasso.solvers import Amp
from privasso.theory import FixedPointStatus
from privasso.theory._nodes import Nodes
from privasso.theory._root import fixed_point
from privasso.theory._system import values

U, L, C = pv.Uniform, pv.LogNormal, pv.Constant

# alpha, rho, sigma_xi, law, lam, design
POINTS = [
    (0.5, 0.1, 0.1, U(), 0.2, pv.Gram(0.1)),
    (0.5, 0.1, 0.1, U(), 0.2, pv.Gram(0.25)),
    (0.5, 0.1, 0.1, U(), 0.5, pv.PowerLaw(0.3, 1.0)),
    (0.5, 0.1, 0.1, U(0.1, 1.0), 0.2, pv.Isotropic(0.12)),
    (0.5, 0.1, 0.1, L(0.0, 0.5), 0.2, pv.Isotropic(0.1)),
    (0.5, 0.1, 0.1, L(0.0, 0.5), 0.2, pv.Gram(0.1)),
    (0.5, 0.1, 0.1, L(0.0, 0.5), 0.2, pv.PowerLaw(0.2, 1.0)),
    (0.5, 0.1, 0.3, C(), 0.15, pv.Isotropic(0.1)),
    (0.3, 0.02, 0.0, C(2.0), 0.5, pv.Isotropic(0.1)),
    (0.3, 0.02, 0.1, L(0.0, 0.5), 0.3, pv.PowerLaw(0.1, 0.5)),
    (0.3, 0.1, 1.0, U(0.5, 2.0), 1.0, pv.Gram(0.2)),
    (0.3, 0.5, 0.1, U(), 0.4, pv.Gram(0.1)),
    (0.8, 0.5, 0.2, L(-1.0, 0.5), 0.1, pv.PowerLaw(0.05, 1.5)),
    (1.0, 0.3, 0.1, L(0.0, 1.0), 0.5, pv.Isotropic(0.3)),
    (1.0, 0.2, 0.5, U(), 0.1, pv.PowerLaw(0.1, 3.0)),
    (2.0, 0.5, 0.1, U(0.2, 1.2), 0.05, pv.Isotropic(1.0)),
    (2.0, 0.02, 0.1, L(0.0, 0.5), 2.0, pv.Gram(0.5)),
    (3.0, 0.5, 0.0, C(0.5), 0.01, pv.Isotropic(0.02)),
    (3.0, 0.3, 2.0, L(0.5, 0.3), 1.0, pv.PowerLaw(2.0, 1.0)),
    (3.0, 1.0, 0.1, U(), 0.3, pv.PowerLaw(0.0, 1.0)),
]


#: One of each law, with each kind of noise.
QUICK = {0, 3, 4, 7, 9, 12, 14, 19}


@pytest.mark.parametrize(
    ("alpha", "rho", "xi", "law", "lam", "design"),
    [
        pytest.param(*point, marks=[] if k in QUICK else [pytest.mark.slow])
        for k, point in enumerate(POINTS)
    ],
)
def test_fixed_point_and_first_steps_against_integration(
    alpha, rho, xi, law, lam, design, brute_step
):
    model = pv.Model(alpha=alpha, rho=rho, sigma_xi=xi, scales=law)
    fp = pv.state_evolution(model, lam, design)
    assert fp.status is FixedPointStatus.STABLE
    # A fixed point is one that the recursion returns; 1/(1 - stability) amplifies what it misses.
    expected = brute_step(model, lam, design, fp.E, fp.V)
    assert (fp.E, fp.V, fp.rho_hat) == pytest.approx(expected, rel=1e-5)
    assert pytest.approx(fp.rho_hat / (alpha - fp.rho_hat), rel=1e-9) == fp.V
    assert fp.stability == fp.rho_hat / alpha

    assert fp.trajectory[0] == pytest.approx([rho * law.moment(1) + xi**2, 0.0, 0.0], rel=1e-6)
    for before, after in zip(fp.trajectory[:3], fp.trajectory[1:4], strict=True):
        assert after == pytest.approx(brute_step(model, lam, design, *before[:2]), rel=1e-5)


@pytest.mark.parametrize("point", [POINTS[0], POINTS[4], POINTS[13]])
def test_fixed_point_against_sampling(point):
    alpha, rho, xi, law, lam, design = point
    model = pv.Model(alpha=alpha, rho=rho, sigma_xi=xi, scales=law)
    fp = pv.state_evolution(model, lam, design)
    rng = np.random.default_rng(0)
    n = 400_000
    v = law.draw(n, rng) ** 2
    x0 = np.where(rng.random(n) < rho, rng.standard_normal(n), 0.0)
    eta = rng.standard_normal(n) * design.sigma
    eta *= np.sqrt(v**design.gamma / law.moment(design.gamma))
    Sigma = (1 + fp.V) / (alpha * v)
    m = x0 + np.sqrt(fp.E / (alpha * v)) * rng.standard_normal(n) - eta * Sigma
    x = np.sign(m) * np.maximum(np.abs(m) - lam * Sigma, 0.0)
    for sample, value in ((v * (x - x0) ** 2 + xi**2, fp.E), (x != 0, fp.rho_hat)):
        assert abs(sample.mean() - value) < 4 * sample.std() / np.sqrt(n)


LAWS = [U(), U(0.01, 1.0), L(0.0, 0.5), L(0.0, 1.0), L(1.0, 0.1)]
DESIGNS = [pv.PowerLaw(0.1, gamma) for gamma in (0.0, 0.5, 1.0, 2.0, 3.0)]


# A law that reaches down to zero has a heavy lower tail under the flattest designs; other tests
# are about that.
SETTLED = [(law, d) for law in LAWS for d in DESIGNS if law != U() or d.gamma > 0.5]


@pytest.mark.parametrize(("law", "design"), SETTLED, ids=repr)
def test_average_over_scales_has_settled(law, design):
    model = pv.Model(scales=law)
    fp = pv.state_evolution(model, 0.3, design)
    # The same law as very many columns: the law's own rule with forty times the nodes.
    v, w = law.quadrature(3000)
    unit = design.with_sigma(1.0).variances(v, w)
    s = Nodes(v, w, unit).system(model, 0.3, design.sigma**2)
    E, _, rho_hat, _, _ = values(s, *fixed_point(s, np.nan, np.nan, True)[1:])
    assert pytest.approx(E, rel=3e-6) == fp.E
    assert fp.rho_hat == pytest.approx(rho_hat, rel=3e-6)


def test_newton_finds_what_the_plain_recursion_finds():
    rng = np.random.default_rng(1)
    laws = [U(), L(0.0, 0.5), L(0.0, 1.0), C(2.0), pv.Empirical(rng.lognormal(size=30))]
    for _ in range(150):
        model = pv.Model(
            alpha=rng.uniform(0.4, 3.0),
            rho=rng.uniform(0.02, 0.5),
            sigma_xi=10 ** rng.uniform(-2, 0.5),
            scales=laws[rng.integers(len(laws))],
        )
        design = pv.PowerLaw(10 ** rng.uniform(-3, 1), rng.choice([1.0, 2.0, 3.0]))
        fp = pv.state_evolution(model, 10 ** rng.uniform(-2, 1), design)
        E, V, rho_hat = fp.trajectory[-1]
        if fp.status is FixedPointStatus.STABLE and len(fp.trajectory) < 1000:
            assert (fp.E, fp.V, fp.rho_hat) == pytest.approx((E, V, rho_hat), rel=1e-5, abs=1e-12)
        elif fp.status is FixedPointStatus.UNSTABLE:
            assert fp.E == fp.V == np.inf
            assert fp.rho_hat >= model.alpha
            if fp.stability > 1.1:
                assert V > 1e4
                assert fp.rho_hat == pytest.approx(rho_hat, rel=1e-3)


def test_fixed_point_that_the_plain_recursion_never_reaches(brute_step):
    # Few rows, little noise: ρ̂ < α, and yet the recursion ends in a cycle of two.
    model = pv.Model(alpha=0.166, rho=0.267, sigma_xi=0.02, scales=C(2.0))
    fp = pv.state_evolution(model, 0.15, pv.Isotropic(4e-4))
    assert fp.stability < 0.9
    last = fp.trajectory[-3:, 1]
    assert len(fp.trajectory) == 1000
    assert last[0] == pytest.approx(last[2])
    assert abs(last[1] / last[0] - 1) > 0.5
    expected = brute_step(model, 0.15, pv.Isotropic(4e-4), fp.E, fp.V)
    assert (fp.E, fp.V, fp.rho_hat) == pytest.approx(expected, rel=1e-5)
    # Coordinate descent does not care, and finds the predicted estimator.
    rng = np.random.default_rng(0)
    active = []
    for _ in range(6):
        s = model.sample(500, rng)
        x = pv.solve(s.F, s.y, 0.15, pv.Isotropic(4e-4).draw(s.v, rng), method="cd").x
        active.append(np.count_nonzero(x) / 500)
    assert np.mean(active) == pytest.approx(fp.rho_hat, rel=0.05)


def test_near_the_critical_line():
    model = pv.Model(scales=L(0.0, 0.5))
    edge = pv.critical_noise(model, 0.2, pv.Gram(1.0))
    distances = np.array([1e-2, 1e-3, 1e-4, 1e-5])
    V = [pv.state_evolution(model, 0.2, pv.Gram(edge * (1 - d))).V for d in distances]
    # The fixed point ends in a fold, so V diverges like an inverse square root.
    slopes = np.diff(np.log(V)) / np.diff(np.log(distances))
    assert slopes[-1] == pytest.approx(-0.5, abs=0.02)
    for d in distances:
        beyond = pv.state_evolution(model, 0.2, pv.Gram(edge * (1 + d)))
        assert beyond.status is FixedPointStatus.UNSTABLE
        assert 1.0 <= beyond.stability < 1.0 + 10 * d


def test_columns():
    values = np.random.default_rng(0).lognormal(0.0, 0.5, 300)
    model = pv.Model(scales=pv.Empirical(values))
    fp = pv.state_evolution(model, 0.2, pv.PowerLaw(0.1, 1.0))
    v = values**2
    var = 0.1**2 * v / v.mean()
    Sigma = (1 + fp.V) / (0.5 * v)
    noise = np.sqrt(fp.E / (0.5 * v) + Sigma**2 * var)
    t0, t1 = 0.2 * Sigma / noise, 0.2 * Sigma / np.sqrt(1 + noise**2)
    assert fp.rho_hat == pytest.approx(np.mean(0.9 * 2 * norm.sf(t0) + 0.1 * 2 * norm.sf(t1)))

    # Many quantiles of a law approach the law.
    law = pv.Model(scales=U(0.2, 1.0))
    limit = pv.state_evolution(law, 0.2, pv.Gram(0.1))
    many = pv.state_evolution(law, 0.2, pv.Gram(0.1), n_features=20_000)
    few = pv.state_evolution(law, 0.2, pv.Gram(0.1), n_features=4)
    assert abs(many.E / limit.E - 1) < 1e-6 < 1e-4 < abs(few.E / limit.E - 1)


@pytest.mark.parametrize(
    ("design", "bad"),
    [
        (pv.Isotropic(0.0), False),
        (pv.Isotropic(0.25), True),
        (pv.PowerLaw(0.05, -0.4), True),
        (pv.PowerLaw(0.1, 0.1), False),
        (pv.PowerLaw(0.1, 0.5), False),
        (pv.Gram(0.1), False),
    ],
)
def test_infinite_error_is_decided_by_moments(design, bad):
    # Uniform scales reach down to zero with E[v**k] finite for k > -1/2 only.
    fp = pv.state_evolution(pv.Model(), 1.0, design)
    assert (fp.status is FixedPointStatus.INFINITE_ERROR) == bad
    assert np.isinf(fp.E) == bad
    bounded = pv.state_evolution(pv.Model(scales=U(1e-3, 1.0)), 1.0, design)
    assert bounded.status is not FixedPointStatus.INFINITE_ERROR
    if bad:
        assert fp.trajectory.shape == (2, 3)
        assert fp.trajectory[1, 0] == np.inf
        assert fp.onavekl() == fp.onavekl("paper") == np.inf
        above = pv.state_evolution(pv.Model(alpha=3.0), 1.0, design)
        assert (above.E, above.V, above.rho_hat) == (np.inf, 0.5, 1.0)
        # At a given number of columns E is finite, and grows with the number.
        E = [
            pv.state_evolution(pv.Model(alpha=3.0), 1.0, design, n_features=n).E
            for n in (10**2, 10**3, 10**4)
        ]
        assert np.isfinite(E[0])
        assert E[0] < E[1] < E[2]


def test_slowly_vanishing_noise_against_integration():
    # γ = 0.2 with uniform scales: finite, although columns as small as 1e-9 have weight in it.
    model = pv.Model(alpha=2.0, rho=0.1, sigma_xi=0.1)
    design = pv.PowerLaw(0.4, 0.2)
    fp = pv.state_evolution(model, 1.0, design)

    def integrand(log_s, part):
        v = np.exp(2 * log_s)
        Sigma = (1 + fp.V) / (2 * v)
        s0 = np.sqrt(fp.E / (2 * v) + Sigma**2 * 0.16 * v**0.2 * 1.4)  # E[v^0.2] = 1/1.4
        out = 0.0
        for weight, s, signal in ((0.9, s0, 0), (0.1, np.hypot(1, s0), 1)):
            t = Sigma / s
            q = 2 * norm.sf(t)
            if part == "rho":
                out += weight * q
            else:
                second = s * s * ((1 + t * t) * q - 2 * t * norm.pdf(t)) if t < 30 else 0.0
                out += weight * v * (signal * (1 - 2 * q) + second)
        return out * np.exp(log_s)

    edges = [-60, -30, -20, -12, -8, -5, -3, -2, -1, 0]
    E, rho_hat = (
        sum(quad(integrand, a, b, (part,), epsrel=1e-9)[0] for a, b in pairwise(edges))
        for part in ("E", "rho")
    )
    assert pytest.approx(E + 0.01, rel=1e-5) == fp.E
    assert fp.rho_hat == pytest.approx(rho_hat, rel=1e-5)


def test_custom_design_shares_the_rule_of_its_tail():
    @dataclass(frozen=True)
    class Twin(pv.NoiseDesign):
        gamma: float

        def log_profile(self, v):
            with np.errstate(divide="ignore"):
                return self.gamma * np.log(v) if self.gamma else np.zeros_like(v)

    for gamma in (0.0, 0.3, 2.0):
        twin = pv.state_evolution(pv.Model(), 0.5, Twin(0.1, gamma))
        own = pv.state_evolution(pv.Model(), 0.5, pv.PowerLaw(0.1, gamma))
        assert twin.status is own.status
        assert pytest.approx(own.E, rel=1e-9) == twin.E


def test_amp_follows_the_trajectory():
    model = pv.Model(scales=L(0.0, 0.5))
    design, lam = pv.PowerLaw(0.1, 1.0), 0.2
    fp = pv.state_evolution(model, lam, design)
    rng = np.random.default_rng(0)
    runs = []
    for _ in range(12):
        s = model.sample(600, rng)
        seen = []
        problem = pv.problem.Problem.from_labels(s.F, s.y, lam, design.draw(s.v, rng))
        state = Amp().init(problem)
        for _ in range(6):
            state = Amp().step(problem, state)
            E = np.mean(s.v * (state.x - s.x0) ** 2) + model.sigma_xi**2
            seen.append((E, state.s_theta, state.n_active / len(s.x0)))
        runs.append(seen)
    runs = np.array(runs)
    assert runs.shape == (12, 6, 3)
    error = runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
    # `init` ends with the first threshold and a step with the next: row 2 of the trajectory.
    assert np.all(np.abs(runs.mean(axis=0) - fp.trajectory[2:8]) < 4 * error)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"lam": 0.0}, "lam must be positive"),
        ({"lam": float("nan")}, "lam must be finite"),
        ({"noise": 0.1}, "noise must be a noise design"),
        ({"model": None}, "model must be a Model"),
        ({"n_features": 0}, "n_features must be at least 1"),
        ({"n_features": 2.5}, "n_features must be an integer"),
        ({"noise": pv.PowerLaw(0.1, -0.5)}, "pass n_features"),
    ],
)
def test_refusals(kwargs, message):
    arguments = {"model": pv.Model(), "lam": 0.2, "noise": pv.Gram(0.1)} | kwargs
    with pytest.raises(ValueError, match=message):
        pv.state_evolution(**arguments)


def test_scales_beyond_all_averages_are_refused_with_advice():
    model = pv.Model(scales=pv.LogNormal(0.0, 9.0))
    with pytest.raises(ValueError, match="pass n_features"):
        pv.state_evolution(model, 1e-3, pv.Gram(0.1))
    assert np.isfinite(pv.state_evolution(model, 1e-3, pv.Gram(0.1), n_features=1000).E)


def precise_step(s, E, V):
    """One iteration of the definitions, in many digits, on the columns of a system."""
    u, found = 1 / (1 + V), [mpmath.mpf(s.xi2), mpmath.mpf(0)]
    for v, w, var in zip(s.v, s.w, s.power * s.profile, strict=True):
        v, w, var = mpmath.mpf(float(v)), mpmath.mpf(float(w)), mpmath.mpf(float(var))
        k = s.alpha * v * u
        for share, signal in ((1 - mpmath.mpf(s.rho), 0), (mpmath.mpf(s.rho), 1)):
            A = s.alpha * v * E * u**2 + var + signal * k**2
            t = s.lam / mpmath.sqrt(A)
            active = 2 * mpmath.ncdf(-t)
            square = A * ((1 + t**2) * active - 2 * t * mpmath.npdf(t)) / k**2
            found[0] += w * share * v * (square + signal * (1 - 2 * active))
            found[1] += w * share * active / (s.alpha * u)
    return found


@pytest.mark.parametrize(
    ("model", "lam", "noise"),
    [
        (pv.Model(scales=L(0.0, 6.0)), 1e-3, pv.Gram(0.1)),
        (pv.Model(2.0, scales=L(0.0, 4.0)), 0.2, pv.Isotropic(0.1)),
        (pv.Model(1.0, 0.05, 0.0, L(0.0, 4.0)), 1e-8, pv.Isotropic(0.0)),
        (pv.Model(0.5, 0.05, 0.0, C(1.0)), 1e-8, pv.Isotropic(0.0)),
        (pv.Model(0.5, scales=L(0.0, 0.5)), 0.2, pv.Gram(0.288)),
    ],
)
def test_fixed_point_in_high_precision(model, lam, noise):
    """Nothing cancels, however wide the scales and however good the fit."""
    fp = pv.state_evolution(model, lam, noise, n_features=20)
    with mpmath.workdps(50):

        def equations(x, y):
            E, V = precise_step(fp._system, mpmath.exp(x), mpmath.exp(y))
            return [mpmath.log(E) - x, mpmath.log(V) - y]

        start = (mpmath.log(fp.E), mpmath.log(fp.V))
        x, y = mpmath.findroot(equations, start, tol=1e-30, maxsteps=30)
        assert pytest.approx((float(mpmath.exp(x)), float(mpmath.exp(y))), rel=1e-9) == (fp.E, fp.V)
