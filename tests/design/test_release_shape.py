"""The shape of the noise of a release: optimal where it claims to be, and whole in odd cases."""

import numpy as np
import pytest
import scipy.sparse as sp

from privasso.operators import Covariates
from privasso.planning import best_shrink, release_shape
from privasso.planning._release_shape import _shape_of

SUM_WEIGHT = 4.0


def rows_of(seed=0, m=300, n=5, centre=True, tail=0.0, **options):
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((m, n)) @ (np.eye(n) + 0.7 * rng.standard_normal((n, n)))
    F *= np.exp(tail * rng.standard_normal((m, 1)))
    return Covariates(F * np.logspace(-3, 3, n), centre=centre, **options)


def sizes(rows, shape):
    q = rows.squared_row_norms(shape.covariance)
    return np.sqrt(q + (shape.sigma_sum**-2 if rows.centred else 0.0))


def cost(rows, shape):
    """tr(WΣ) + 4σ₀²."""
    W = rows.total / rows.squares[rows.live]
    return float(W @ shape.covariance.diagonal) + SUM_WEIGHT * shape.sigma_sum**2


@pytest.mark.parametrize("shrink", [0.0, 0.25, 0.75])
@pytest.mark.parametrize("centre", [False, True])
def test_the_part_that_was_asked_for_exceeds_the_bound(shrink, centre):
    for tail in (0.0, 1.0):
        rows = rows_of(centre=centre, tail=tail)
        shape = release_shape(rows, shrink)
        assert np.sum(sizes(rows, shape) > 1 + 1e-9) == pytest.approx(300 * shrink, abs=1)
        assert (shape.sigma_sum > 0.0) == centre


def test_no_other_share_of_the_label_sum_costs_less():
    """Where no row is shrunk: Σ = C/(1 − s) and σ₀² = 1/s keep all rows at most at size 1."""
    rows = rows_of()
    found = release_shape(rows, 0.0)
    W = rows.total / rows.squares[rows.live]
    # The rule looks at the two parts of the size one by one: C has the largest row at 1, and so
    # has the column of ones. The level is the same factor on both noises.
    C = found.covariance.diagonal / np.max(rows.squared_row_norms(found.covariance)) ** -1
    V, costs = float(W @ C), []
    shares = np.linspace(0.01, 0.99, 197)
    for s in shares:
        costs.append(V / (1.0 - s) + SUM_WEIGHT / s)
    best = shares[np.argmin(costs)]
    share = 1.0 / found.sigma_sum**2 / np.max(sizes(rows, found)) ** 2
    assert share == pytest.approx(best, abs=0.01)


@pytest.mark.parametrize("centre", [False, True])
def test_no_other_covariance_of_equal_mean_size_costs_less(centre):
    rng = np.random.default_rng(4)
    rows = rows_of(centre=centre)
    W = rows.total / rows.squares[rows.live]
    scale = np.sqrt(rows.squares[rows.live] / rows.total)
    found = release_shape(rows, 0.6)
    # The rows as they were shrunk for the last shape, up to one more round.
    g = np.minimum(1.0, 1.0 / sizes(rows, found))
    A = rows.moments(g**2)
    S = found.covariance.matrix()

    def at_mean_size(S):
        return float(W @ np.diag(S)) * float(np.sum(A * np.linalg.inv(S)))

    least = at_mean_size(S)
    G = A / np.outer(scale, scale)
    values, vectors = np.linalg.eigh(G)
    exact = at_mean_size(np.outer(scale, scale) * ((vectors * np.sqrt(values)) @ vectors.T))
    assert exact == pytest.approx(np.sum(np.sqrt(values)) ** 2, rel=1e-9)
    assert least <= 1.02 * exact  # one more round of shrinking changes little
    for gamma in np.linspace(-0.5, 1.5, 21):
        power = np.outer(scale, scale) * ((vectors * values**gamma) @ vectors.T)
        assert at_mean_size(power) >= exact * (1 - 1e-9)
    for size in (0.01, 0.1, 0.5):
        for _ in range(60):
            E = rng.standard_normal(S.shape) * size
            R = np.linalg.cholesky(S) @ (np.eye(len(S)) + E)
            assert at_mean_size(R @ R.T) >= exact * (1 - 1e-9)


@pytest.mark.parametrize("shrink", [0.0, 0.75])
def test_units_do_not_matter(shrink):
    rows = rows_of()
    plain, factors = release_shape(rows, shrink), 2.0 ** np.array([-30, 5, 0, 17, -3])
    other = release_shape(Covariates(rows._F * factors, centre=True), shrink)
    expected = np.outer(factors, factors) * plain.covariance.matrix()
    np.testing.assert_allclose(other.covariance.matrix(), expected, rtol=1e-9)
    assert other.sigma_sum == pytest.approx(plain.sigma_sum, rel=1e-12)


ODD = {
    "rank deficient": lambda F: np.column_stack([F, F @ [[1.0], [2.0], [-1.0]]]),
    "duplicate": lambda F: np.column_stack([F, F]),
    "constant": lambda F: np.column_stack([F, np.full(len(F), 3.0)]),
    "zero column": lambda F: np.column_stack([F, np.zeros(len(F))]),
    "more columns than rows": lambda F: F[:6].repeat(4, axis=1) ** np.arange(1, 13),
    "one column": lambda F: F[:, :1],
    "one row": lambda F: F[:1],
    "two rows": lambda F: F[:2],
    "equal rows": lambda F: np.repeat(F[:3], 20, axis=0),
    "zero rows": lambda F: F * (np.arange(len(F)) % 2)[:, None],
}


@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("shrink", [0.0, 0.25, 0.75])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_odd_covariates(case, centre, shrink, storage):
    F = ODD[case](np.random.default_rng(3).standard_normal((40, 3)))
    rows = Covariates(storage(F), centre=centre)
    shape = release_shape(rows, shrink)
    assert shape.covariance.size == int(rows.live.sum())
    if not rows.live.any():
        assert shape.sigma_sum == 1.0
        return
    q = sizes(rows, shape)
    used = q > 0.0
    assert np.isfinite(q).all()
    part = np.sum(q > 1 + 1e-7)
    assert part <= np.ceil(shrink * used.sum()) + 1
    assert np.max(np.minimum(q, 1.0)) == pytest.approx(1.0, rel=1e-6)
    assert np.all(shape.covariance.diagonal > 0.0)


def test_the_label_sum_alone():
    shape = release_shape(Covariates(np.ones((5, 2)), centre=True), 0.75)
    assert (shape.covariance.size, shape.sigma_sum) == (0, 1.0)
    assert release_shape(Covariates(np.zeros((5, 2)), centre=False), 0.75).sigma_sum == 0.0


def test_rows_are_shrunk_only_where_noise_is_the_main_cost():
    rows = Covariates(np.random.default_rng(0).standard_t(3, (300, 5)), centre=True)
    assert best_shrink(rows, bound=0.05, label_deviation=1.0) == 0.75
    assert best_shrink(rows, bound=50.0, label_deviation=1.0) == 0.0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("tail", [0.0, 1.0])
def test_a_sample_of_the_rows_is_enough(tail, weighted):
    """Against the shape for all rows: nearly the part that was asked for, and hardly more noise."""
    m = 12_000
    weights = np.random.default_rng(9).uniform(0.2, 1.0, m) if weighted else None
    rows = rows_of(m=m, n=5, tail=tail, weights=weights)
    own = np.ones(m) if weights is None else weights
    found, whole = release_shape(rows, 0.5, roots=True), _shape_of(rows, 0.5, roots=True)
    assert found.squares.size == 2000
    for shape in (found, whole):
        beyond = np.mean(np.sqrt(own) * sizes(rows, shape) > 1 + 1e-9)
        assert beyond == pytest.approx(0.5, abs=0.05)
    assert cost(rows, found) == pytest.approx(cost(rows, whole), rel=0.1)
    # Columns that the sample cannot tell apart are looked at in all rows.
    F = np.random.default_rng(1).standard_normal((m, 2))
    F = np.column_stack([F, F[:, 1]])
    F[5, 2] += 1.0
    twins = Covariates(F, centre=True)
    assert release_shape(twins, 0.5).covariance.rank == 3
