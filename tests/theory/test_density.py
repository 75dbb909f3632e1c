"""The exact density: normalisation, sampling, the update for changed rows, and extreme values."""

import itertools

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import dblquad, quad
from scipy.stats import norm

import privasso as pv
from privasso.theory._density import log_mass


def density(F, y, lam, variances, x):
    return np.exp(pv.log_density(F, y, lam, variances, x))


def test_one_column_integrates_to_one():
    F, y, lam, variances = np.array([[0.7], [-0.2]]), np.array([1.0, 0.5]), 0.3, [0.4]
    total = density(F, y, lam, variances, [0.0])
    for low, high in ((-30, 0), (0, 2), (2, 30)):
        total += quad(lambda t: density(F, y, lam, variances, [t]), low, high, epsabs=1e-11)[0]
    assert total == pytest.approx(1.0, abs=1e-9)


def test_two_columns_integrate_to_one():
    F = np.array([[1.0, 0.6], [0.2, -0.8], [0.3, 0.4]])
    y, lam, variances = np.array([0.8, -0.4, 0.5]), 0.4, [0.3, 0.5]
    total = density(F, y, lam, variances, [0.0, 0.0])
    halves = ((-9.0, 0.0), (0.0, 9.0))
    for low, high in halves:
        total += quad(lambda t: density(F, y, lam, variances, [t, 0.0]), low, high)[0]
        total += quad(lambda t: density(F, y, lam, variances, [0.0, t]), low, high)[0]
    # Gauss–Legendre on each quadrant, where the density is smooth.
    g, w = np.polynomial.legendre.leggauss(60)
    for (a, b), (c, d) in itertools.product(halves, halves):
        for i, j in itertools.product(range(60), range(60)):
            x = [0.5 * (a + b) + 0.5 * (b - a) * g[i], 0.5 * (c + d) + 0.5 * (d - c) * g[j]]
            total += w[i] * w[j] * 0.25 * (b - a) * (d - c) * density(F, y, lam, variances, x)
    assert total == pytest.approx(1.0, abs=1e-5)


def test_more_columns_than_rows_integrate_to_the_probability_of_a_minimiser():
    # F = (1, 1): a minimiser exists when |η₁ − η₂| ≤ 2λ.
    F, y, lam, variances = np.array([[1.0, 1.0]]), np.array([0.7]), 0.5, [0.6, 0.9]
    total = density(F, y, lam, variances, [0.0, 0.0])
    for low, high in ((-20.0, 0.0), (0.0, 20.0)):
        total += quad(lambda t: density(F, y, lam, variances, [t, 0.0]), low, high)[0]
        total += quad(lambda t: density(F, y, lam, variances, [0.0, t]), low, high)[0]
    exists = 1 - 2 * norm.sf(2 * lam / np.sqrt(1.5))
    assert total == pytest.approx(exists, abs=1e-7)
    rng = np.random.default_rng(0)
    count = sum(
        pv.solve(F, y, lam, rng.standard_normal(2) * np.sqrt(variances), throw=False).status
        is pv.Status.CONVERGED
        for _ in range(400)
    )
    assert abs(count / 400 - exists) < 4 * np.sqrt(exists * (1 - exists) / 400)


@pytest.mark.slow
def test_density_against_a_histogram_of_solutions():
    F = np.array([[1.0, 0.6], [0.2, -0.8], [0.3, 0.4]])
    y, lam, variances = np.array([0.8, -0.4, 0.5]), 0.4, np.array([0.3, 0.5])
    rng = np.random.default_rng(1)
    n = 3000
    x = np.array(
        [pv.solve(F, y, lam, rng.standard_normal(2) * np.sqrt(variances)).x for _ in range(n)]
    )
    boxes = {
        "zero": (np.all(x == 0, axis=1), density(F, y, lam, variances, [0.0, 0.0])),
        "first": (
            (x[:, 1] == 0) & (x[:, 0] > 0) & (x[:, 0] < 0.5),
            quad(lambda t: density(F, y, lam, variances, [t, 0.0]), 0, 0.5)[0],
        ),
        "both": (
            (x > 0).all(axis=1) & (x < 0.6).all(axis=1),
            dblquad(
                lambda s, t: density(F, y, lam, variances, [t, s]), 0, 0.6, 0, 0.6, epsrel=1e-4
            )[0],
        ),
    }
    for hit, p in boxes.values():
        assert abs(hit.mean() - p) < 4 * np.sqrt(p * (1 - p) / n)


@pytest.fixture(scope="module")
def release():
    model = pv.Model(alpha=1.5, rho=0.2, scales=pv.LogNormal(0.0, 0.5))
    s = model.sample(80, rng=0)
    design = pv.PowerLaw(0.2, 1.0)
    x = pv.solve(s.F, s.y, 0.2, design.draw(s.v, rng=1)).x
    return s, design.variances(s.v), x, model.sample(80, rng=2)


def alternatives(s, other):
    """Data sets that differ from s by a replaced, removed, added row, by two, and by all."""
    F, y = s.F.copy(), s.y.copy()
    F[3], y[3] = other.F[3], other.y[3]
    yield "replaced", F, y
    label = s.y.copy()
    label[-1] += 0.3
    yield "label", s.F, label
    for k in (0, 17, len(s.y) - 1):
        yield f"removed {k}", np.delete(s.F, k, 0), np.delete(s.y, k)
        yield (
            f"added {k}",
            np.insert(s.F, k, other.F[k], axis=0),
            np.insert(s.y, k, other.y[k]),
        )
    yield "two added", np.vstack([s.F, other.F[:2]]), np.append(s.y, other.y[:2])
    F = s.F.copy()
    F[[2, 9]] = other.F[[2, 9]]
    yield "two replaced", F, s.y
    yield "all", other.F, other.y
    yield "none", s.F, s.y


def test_loss_is_the_difference_of_densities(release):
    s, variances, x, other = release
    base = pv.log_density(s.F, s.y, 0.2, variances, x)
    for name, F2, y2 in alternatives(s, other):
        loss = pv.privacy_loss(s.F, s.y, F2, y2, 0.2, variances, x)
        expected = base - pv.log_density(F2, y2, 0.2, variances, x)
        assert loss == pytest.approx(expected, abs=1e-8 * max(1, abs(expected))), name
        back = pv.privacy_loss(F2, y2, s.F, s.y, 0.2, variances, x)
        assert back == pytest.approx(-loss, abs=1e-8 * max(1, abs(loss))), name


def test_loss_without_support(release):
    s, variances, _, other = release
    x = np.zeros(80)
    F2 = np.vstack([s.F, other.F[:1]])
    y2 = np.append(s.y, other.y[0])
    expected = pv.log_density(s.F, s.y, 0.2, variances, x)
    expected -= pv.log_density(F2, y2, 0.2, variances, x)
    assert pv.privacy_loss(s.F, s.y, F2, y2, 0.2, variances, x) == pytest.approx(expected)


@pytest.mark.parametrize("change", ["replace", "add", "remove"])
def test_likelihood_ratio_averages_to_one(change):
    # E over x ~ p(·|D) of p(x|D')/p(x|D) = 1, when a minimiser always exists.
    model = pv.Model(alpha=2.0, rho=0.2, scales=pv.Uniform(0.3, 1.0))
    s = model.sample(30, rng=0)
    variances = np.full(30, 0.5**2)
    F2, y2 = s.F.copy(), s.y.copy()
    if change == "replace":
        F2[4], y2[4] = -F2[4], 0.3
    elif change == "add":
        F2, y2 = np.vstack([F2, F2[:1]]), np.append(y2, 0.5)
    else:
        F2, y2 = F2[1:], y2[1:]
    rng = np.random.default_rng(1)
    losses = np.empty(500)
    for k in range(losses.size):
        x = pv.solve(s.F, s.y, 0.3, 0.5 * rng.standard_normal(30)).x
        losses[k] = pv.privacy_loss(s.F, s.y, F2, y2, 0.3, variances, x)
    ratios = np.exp(-losses)
    assert abs(ratios.mean() - 1.0) < 4 * ratios.std() / np.sqrt(losses.size)
    assert losses.std() > 0.05  # the two data sets can be told apart, or this shows nothing


@given(
    width=st.floats(-9.0, 2.0).map(lambda p: 10**p),
    c=st.floats(-3.0, 1.8).map(lambda p: 10**p),
)
def testlog_mass_in_high_precision(width, c):
    a, b = width - c, width + c
    with mpmath.workdps(60 + int(c * c)):
        expected = float(mpmath.log(mpmath.ncdf(a) - mpmath.ncdf(-mpmath.mpf(b))))
    value = log_mass(np.array([a]), np.array([b]))[0]
    # a + b is known to the rounding of a and b only.
    assert value == pytest.approx(expected, rel=1e-12, abs=1e-9 + 1e-15 * c / width)


def test_refusals(release):
    s, variances, x, _ = release
    with pytest.raises(ValueError, match="variances must be positive"):
        pv.log_density(s.F, s.y, 0.2, np.zeros(80), x)
    with pytest.raises(ValueError, match="variances must be positive"):
        pv.privacy_loss(s.F, s.y, s.F, s.y, 0.2, -variances, x)
    with pytest.raises(ValueError, match="variances must have shape"):
        pv.log_density(s.F, s.y, 0.2, 1.0, x)
    with pytest.raises(ValueError, match="lam must be positive"):
        pv.log_density(s.F, s.y, 0.0, variances, x)
    with pytest.raises(ValueError, match="NaN"):
        pv.log_density(s.F, s.y * np.nan, 0.2, variances, x)
    with pytest.raises(ValueError, match="same columns"):
        pv.privacy_loss(s.F, s.y, s.F[:, 1:], s.y, 0.2, variances, x)
    dense = np.ones(80)
    with pytest.raises(ValueError, match="linearly dependent"):
        pv.log_density(s.F[:40], s.y[:40], 0.2, variances, dense)
    twins = np.column_stack([s.F[:, 0], s.F[:, 0]])
    with pytest.raises(ValueError, match="linearly dependent"):
        pv.log_density(twins, s.y, 0.2, [1.0, 1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="linearly dependent"):
        pv.privacy_loss(twins, s.y, twins[1:], s.y[1:], 0.2, [1.0, 1.0], [1.0, 2.0])


def test_a_covariance_stands_for_its_variances():
    s = pv.Model(alpha=2.0).sample(n_features=6, rng=0)
    noise = pv.PowerLaw(0.1, 0.5).covariance(s.v)
    x = np.array([0.5, 0.0, 0.0, -0.2, 0.0, 0.0])
    plain = pv.log_density(s.F, s.y, 0.2, noise.diagonal, x)
    assert pv.log_density(s.F, s.y, 0.2, noise, x) == plain
    correlated = pv.noise.Factored.from_matrix(np.eye(6) + 0.1)
    with pytest.raises(ValueError, match="correlated over the columns"):
        pv.log_density(s.F, s.y, 0.2, correlated, x)
