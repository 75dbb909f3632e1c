"""Newton's method with exact sums, against the other solver and against rational numbers."""

from fractions import Fraction

import numpy as np
import pytest

import privasso as pv
from privasso.problem import Huber
from privasso.solvers import (
    ExactPass,
    ExactProblem,
    FixedPoint,
    LongProblem,
    PassSetting,
    PassState,
    entry_grid,
    minimise_exactly,
    minimise_long,
)
from privasso.solvers._exact_pass import _limbs, pass_sums, pulled, whole_numbers
from privasso.solvers._exact_steps import digit_width
from privasso.solvers._long_newton import _rows_in_memory
from privasso.solvers._long_sums import long_bits, row_sums


def rows(m, n, seed, *, radius=None):
    """Rows and labels on their grids."""
    rng = np.random.default_rng(seed)
    G = rng.uniform(-0.7, 1.3, (m, n))
    G[:, -1] = 1.0
    radius = 0.45 * np.sqrt(n) if radius is None else radius
    G *= np.minimum(1.0, radius / np.linalg.norm(G, axis=1))[:, None] * (1 - 1e-9)
    grid = entry_grid(1.3)
    G = np.trunc(np.ldexp(G, grid)) / 2.0**grid
    x = np.where(rng.random(n) < 0.3, 0.4 * rng.standard_normal(n), 0.0)
    y = np.clip(G @ x + 0.1 * rng.standard_normal(m), -0.5, 0.5)
    return G, np.trunc(np.ldexp(y, 32)) / 2.0**32, grid, radius


def rational_sums(G, y, x, kappa):
    """Σψf and the rows that are not clipped, with no rounding at all."""
    total = [Fraction(0)] * G.shape[1]
    free = []
    for f, label in zip(G.tolist(), y.tolist(), strict=True):
        r = Fraction(label) - sum(Fraction(a) * b for a, b in zip(f, x, strict=True))
        free.append(abs(r) <= kappa)
        psi = max(-kappa, min(kappa, r))
        total = [t + psi * Fraction(a) for t, a in zip(total, f, strict=True)]
    return total, np.array(free)


@pytest.mark.parametrize("kappa", [0.05, 0.25, 3.0])
@pytest.mark.parametrize("size", [0.0, 0.3, 40.0])
def test_sums_of_a_pass_are_those_of_rational_numbers(kappa, size):
    G, y, grid, radius = rows(60, 5, 0)
    rng = np.random.default_rng(1)
    bits = 75
    whole = tuple(int(size * z * 2**52) << (bits - 52) | 1 for z in rng.standard_normal(5))
    setting = PassSetting.of(5, grid, Huber(kappa))
    sums = ExactPass(setting)([(G, y)], PassState(FixedPoint(whole, bits)))
    x = [Fraction(k, 2**bits) for k in whole]
    exact, free = rational_sums(G, y, x, Fraction(setting.kappa, 2**setting.unit))
    unit = Fraction(2) ** (setting.unit + grid)
    # Each residual is rounded by at most two units.
    allowed = 2 * 60 * Fraction(radius) / Fraction(2) ** setting.unit
    for found, true in zip(pulled(sums["pull"]), exact, strict=True):
        assert abs(found / unit - true) <= allowed
    coarse = np.rint(G * 2.0 ** (grid - 4)).astype(int)
    removed = -coarse[~free].T @ coarse[~free]
    assert np.array_equal(sums.get("curved", np.zeros((5, 5), int)), removed)
    assert sums["free"].tolist() == [free.sum()]


def test_changes_of_the_second_derivatives_add_up():
    G, y, grid, _ = rows(500, 4, 3)
    setting = PassSetting.of(4, grid, Huber(0.1))
    task = ExactPass(setting)
    a, b = FixedPoint((0, 0, 0, 0), 60), FixedPoint((1 << 57, -(1 << 58), 3, 1 << 56), 60)
    first = task([(G, y)], PassState(a, fresh=True))["curved"]
    to_a = task([(G, y)], PassState(a))["curved"]
    to_b = task([(G, y)], PassState(b))["curved"]
    between = task([(G, y)], PassState(b, a))["curved"]
    assert np.array_equal(first + to_a + between, first + to_b)
    assert np.abs(between).max() > 0


@pytest.mark.parametrize(("m", "n", "kappa"), [(40, 30, 0.05), (300, 8, 0.02), (3000, 25, 0.25)])
@pytest.mark.parametrize("lam", [0.0, 0.3])
def test_the_minimiser_is_that_of_the_other_solver(m, n, kappa, lam):
    G, y, grid, radius = rows(m, n, m)
    eta = np.random.default_rng(7).standard_normal(n)
    omega = np.append(np.ones(n - 1), 0.0)
    ridge = radius**2 / 0.3
    setting = PassSetting.of(n, grid, Huber(kappa))
    task = ExactPass(setting)
    problem = ExactProblem(setting, m, radius, ridge, eta, lam * omega)
    first = task([(G, y)], PassState(FixedPoint((0,) * n, 1), fresh=True))
    found = minimise_exactly(problem, first, lambda state: task([(G, y)], state), 1e-14)
    other = pv.solve_clipped(G, y, lam, eta, kappa=kappa, ridge=ridge, penalty_weights=omega)
    assert found.distance <= 1e-14
    assert found.n_passes < 20
    apart = float(np.linalg.norm(found.x.values - other.x))
    assert apart <= found.distance + other.distance / np.sqrt(ridge) + 1e-15
    assert np.array_equal(found.x.values == 0.0, other.x == 0.0)


def test_rows_that_are_alike_and_change_sides_together_take_few_passes():
    """Zeros and ones in columns and labels: the slope along a step bends sharply."""
    most = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        m, n = int(rng.integers(200, 2000)), int(rng.integers(2, 8))
        G = (rng.random((m, n)) < rng.uniform(0.02, 0.5, n)).astype(float)
        G[:, -1] = 1.0
        chance = np.clip(0.7 + G[:, :-1] @ rng.uniform(-0.4, 0.2, n - 1), 0.0, 1.0)
        y = (rng.random(m) < chance) - 0.5
        radius, ridge = float(np.sqrt(n)), rng.uniform(0.2, 2.0)
        eta, kappa = 0.3 * rng.standard_normal(n), rng.uniform(0.05, 0.2)
        setting = PassSetting.of(n, entry_grid(1.0), Huber(kappa))
        task = ExactPass(setting)
        problem = ExactProblem(setting, m, radius, ridge, eta, np.zeros(n))
        first = task([(G, y)], PassState(FixedPoint((0,) * n, 1), fresh=True))
        found = minimise_exactly(problem, first, lambda s, t=task, r=(G, y): t([r], s), 1e-12)
        assert found.distance <= 1e-12
        most = max(most, found.n_passes)
    assert most <= 30


def test_the_distance_is_a_bound():
    """The certificate of a point that is moved by a known amount covers that amount."""
    G, y, grid, radius = rows(200, 3, 5)
    setting = PassSetting.of(3, grid, Huber(0.1))
    task = ExactPass(setting)
    problem = ExactProblem(setting, 200, radius, 2.0, np.ones(3), np.zeros(3))
    first = task([(G, y)], PassState(FixedPoint((0,) * 3, 1), fresh=True))

    def run(distance):
        return minimise_exactly(problem, first, lambda s: task([(G, y)], s), distance)

    best = run(1e-16)
    for distance in (1.0, 1e-1, 1e-3, 1e-6):
        rough = run(distance)
        apart = np.linalg.norm(rough.x.values - best.x.values)
        assert apart <= rough.distance + best.distance <= distance + best.distance


def test_labels_far_from_any_prediction_and_huge_coefficients():
    G = np.ones((3, 1))
    setting = PassSetting.of(1, 19, Huber(0.5))
    x = FixedPoint((5 << 90,), 70)  # 5·2²⁰
    sums = ExactPass(setting)([(G, np.array([1000.0, 0.0, -1000.0]))], PassState(x))
    assert pulled(sums["pull"]) == [-3 * setting.kappa << 19]


def test_fixed_points_by_hand():
    assert FixedPoint((3, 5), 2).with_bits(1).whole == (2, 3)
    assert FixedPoint((3, 5), 2).in_steps_of(-1) == [2, 3]
    assert FixedPoint((3,), 2).in_steps_of(-4) == [12]
    assert (digit_width(500), digit_width(4096)) == (25, 22)
    assert whole_numbers(_limbs([3 << 70, -5]) + _limbs([1, 1])) == [(3 << 70) + 1, -4]


def test_sums_over_two_rows_by_hand():
    setting = PassSetting.of(1, 19, Huber(0.25))
    rows, labels = np.array([[1.0], [0.5]]), np.array([0.125, 1.0])
    state = PassState(FixedPoint((0,), 70), fresh=True)
    sums = pass_sums(setting, None, [(rows, labels)], state)
    assert float(pulled(sums["pull"])[0]) * 2.0 ** -(setting.unit + setting.grid) == 0.25
    assert (sums["curved"] * 2.0 ** (2 * (4 - setting.grid))).tolist() == [[1.25]]
    x = FixedPoint((1 << 60,), 61)  # one half
    long = row_sums(rows, np.array([0.75, 1.0]), None, Huber(0.5), x, 20)
    assert long.pull[0] / 2 ** (long_bits(x) + long.grid) == 0.5  # 1/4 and, clipped, 1/2 times 1/2


def test_a_long_minimiser_by_hand():
    rows = _rows_in_memory(np.ones((2, 1)), np.array([0.25, 9.0]), Huber(1.0), None)
    sums = rows(FixedPoint((1,), 2))  # at 1/4, where the residuals are 0 and 8.75
    assert (float(sums.pull[0]), float(sums.value)) == (1.0, 8.25)
    problem = LongProblem(rows, 2.0, 2.5, 0.5, [Fraction(0)], np.zeros(1))
    x, distance, _ = minimise_long(problem, FixedPoint((0,), 1), 1e-30)
    assert float(x.values[0]) == pytest.approx((0.25 + 1.0) / (1.0 + 0.5), rel=1e-15)
    assert distance <= 1e-30
