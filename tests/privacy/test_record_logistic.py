"""Logistic regression on whole records: accounting, solve, and what is refused."""

import math
import warnings

import mpmath
import numpy as np
import pytest
from parts import last_fit, mu_of_sums
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

import privasso as pv
from privasso.accounting import gaussian_delta
from privasso.blocks import RowBlocks
from privasso.planning import RecordTable
from privasso.planning._objective_noise import calibrate_logistic
from privasso.queries import EMPTIED, Answering, bit_source
from privasso.queries import _minimiser as inside

BOUNDS = [(0.0, 10.0), (-1.0, 1.0), (100.0, 200.0)]


def weight(length, noise, reach):
    return min(1.0, noise.radius / length, noise.radius * reach / length**2)


def divergences(record, others, pull, epsilon, noise, points=20_001):
    """Both orders of with and without one record, for one coefficient without penalty.

    The minimiser x̂ solves η = Σ w f (y − p) − Λx, so that its density is explicit. `pull` stands
    for the pull of many rows whose predictions are certain.
    """
    reach = (9.0 * noise.sigma + abs(pull) + 5.0) / noise.ridge
    x = np.linspace(-reach, reach, points)

    def density(rows):
        g, slope = noise.ridge * x + pull, np.full_like(x, noise.ridge)
        for w, f, y in rows:
            p = 0.5 * (1.0 + np.tanh(0.5 * f * x))
            g, slope = g - w * f * (y - p), slope + w * f * f * p * (1.0 - p)
        return slope * norm.pdf(g / noise.sigma) / noise.sigma

    p, q, step = density([*others, record]), density(others), x[1] - x[0]
    both = (p - math.exp(epsilon) * q, q - math.exp(epsilon) * p)
    return tuple(float(np.maximum(gap, 0.0).sum() * step) for gap in both)


def worst(epsilon, noise, reach, rng, pairs=150):
    """The largest divergence found over single records, far rows and random others."""
    most = 0.0
    for k in range(pairs):
        length = reach if k % 3 == 0 else rng.uniform(0.05, 4.0) * reach
        pull = rng.uniform(-6.0, 6.0) * noise.sigma
        others = []
        for _ in range(int(rng.integers(0, 3)) if k % 2 else 0):
            f = rng.uniform(-2.0, 2.0) * reach
            others.append((weight(abs(f), noise, reach), f, float(rng.integers(0, 2))))
        record = weight(length, noise, reach), length, float(rng.integers(0, 2))
        most = max(most, *divergences(record, others, pull, epsilon, noise))
    return most


@pytest.mark.parametrize(("epsilon", "t"), [(1.0, 1.0), (0.5, 0.3), (3.0, 0.5)])
def test_no_pair_of_records_exceeds_the_claim(epsilon, t):
    delta, reach = 1e-3, 2.0
    noise = calibrate_logistic(epsilon, delta, EMPTIED, radius=0.7, reach=reach, t=t, n_rows=50)
    found = worst(epsilon, noise, reach, np.random.default_rng(0))
    assert 0.05 * delta < found <= delta


@pytest.mark.parametrize("wrong", ["curvature", "slope"])
def test_too_little_ridge_or_noise_is_noticed(wrong):
    epsilon, delta, reach = 1.0, 1e-3, 2.0
    noise = calibrate_logistic(epsilon, delta, EMPTIED, radius=0.7, reach=reach, t=1.0, n_rows=50)
    # As if the curvature of the loss were at most 1/8, or its slope at most 1/2.
    less = {"ridge": noise.ridge / 2.0} if wrong == "curvature" else {"sigma": noise.sigma / 2.0}
    mutant = inside.ObjectiveNoise(**{**vars(noise), **less})
    assert worst(epsilon, mutant, reach, np.random.default_rng(0)) > 2.0 * delta


def test_the_bound_without_against_with_the_record_is_reached():
    # Far rows hold the prediction where the record is certainly misjudged: it pulls with all of R.
    epsilon, reach = 1.0, 2.0
    noise = calibrate_logistic(epsilon, 1e-3, EMPTIED, radius=0.7, reach=reach, t=0.3, n_rows=50)
    record = weight(reach, noise, reach), reach, 1.0
    _, found = divergences(record, [], 8.0 * noise.sigma, epsilon, noise, points=200_001)
    assert 0.98 < found / gaussian_delta(epsilon, noise.c) <= 1.0 + 1e-6


def binary_table(m, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(low, high, m) for low, high in BOUNDS])
    odds = 0.6 * (X[:, 0] - 5.0) - 1.2 * X[:, 1]
    return X, (rng.random(m) < 1.0 / (1.0 + np.exp(-odds))).astype(float)


def fitted(table, X, y, lam):
    """Coefficients and intercept of one fit."""
    ask = Answering(RowBlocks.of_arrays(X, y), bit_source(np.random.default_rng(0)))
    found = table(ask, lam)
    return found.coef, found.intercept


def scaled(table, X, y):
    """Rows as long as they are."""
    return table.view(np.asarray(X), y, 0, len(y))[0]


def test_with_next_to_no_noise_it_is_scikit_learns_solution():
    X, y = binary_table(4000)
    privacy = pv.RecordDP(100.0, 0.1, bounds=BOUNDS, y_bounds=(0, 1))
    table = RecordTable(privacy, len(X), 3).logistic()
    lam = 30.0
    coef, intercept = fitted(table, X, y, lam)
    rows = scaled(table, X, y)
    oracle = LogisticRegression(l1_ratio=1.0, C=1 / lam, solver="saga", tol=1e-8, max_iter=10_000)
    oracle.fit(rows[:, :-1], y, sample_weight=table.view.weights(rows))
    half = np.array([5.0, 1.0, 50.0])
    np.testing.assert_allclose(coef * half, oracle.coef_[0], atol=0.02)
    assert coef[2] == oracle.coef_[0, 2] == 0.0
    odds = X @ coef + intercept
    np.testing.assert_allclose(odds, oracle.decision_function(rows[:, :-1]), atol=0.03)


def test_no_row_pulls_or_bends_more_than_the_accounting_says():
    privacy = pv.RecordDP(1.0, 1e-6, bounds=BOUNDS, y_bounds=(0, 1))
    table = RecordTable(privacy, 60, 3).logistic()
    rng = np.random.default_rng(1)
    X = rng.uniform(-1.0, 2.0, (60, 3)) * [10.0, 3.0, 200.0]  # many values outside of the bounds
    rows = scaled(table, X, np.zeros(60))
    w, length = table.view.weights(rows), np.linalg.norm(rows, axis=1)
    assert np.max(w * length) <= table.noise.radius
    assert np.max(w * length**2) <= table.noise.radius * table.reach
    assert table.noise.t == pytest.approx(
        0.25 * table.noise.radius * table.reach / table.noise.ridge
    )
    assert np.max(w * length) > 0.999 * table.noise.radius
    alone = table.view.weights(scaled(table, X[:1], np.zeros(1)))
    assert alone[0] == w[0]  # a weight depends on its own record only


def exact_minimiser(rows, y, w, lam, noise, eta, start):
    """Newton's method on the support and signs of `start`, with 50 digits."""
    support = np.flatnonzero(start)
    with mpmath.workdps(50):
        x = mpmath.matrix([mpmath.mpf(float(start[k])) for k in support])
        f = mpmath.matrix(rows[:, support].tolist())
        signs = np.sign(start[support]) * (support < rows.shape[1] - 1)  # the intercept is free
        for _ in range(8):
            g = mpmath.matrix(
                [
                    mpmath.mpf(float(eta[k])) + mpmath.mpf(float(lam)) * int(s) + noise.ridge * x[i]
                    for i, (k, s) in enumerate(zip(support, signs, strict=True))
                ]
            )
            H = mpmath.eye(len(support)) * noise.ridge
            u = f * x
            for m in range(len(y)):
                p = 1 / (1 + mpmath.exp(-u[m]))
                for i in range(len(support)):
                    g[i] -= mpmath.mpf(float(w[m])) * f[m, i] * (int(y[m]) - p)
                    for j in range(len(support)):
                        H[i, j] += mpmath.mpf(float(w[m])) * f[m, i] * f[m, j] * p * (1 - p)
            x -= mpmath.lu_solve(H, g)
        return support, x


def test_certified_distance_holds_against_fifty_digits(monkeypatch):
    X, y = binary_table(40, seed=3)
    privacy = pv.RecordDP(2.0, 1e-3, bounds=BOUNDS, y_bounds=(0, 1))
    table = RecordTable(privacy, len(X), 3).logistic()
    seen = []
    solve = inside.solve_clipped_problem

    def spied(problem, **options):
        seen.append((problem, solve(problem, **options)))
        return seen[-1][1]

    monkeypatch.setattr(inside, "solve_clipped_problem", spied)
    fitted(table, X, y, 0.05)
    problem, solution = seen[0]
    rows = scaled(table, X, y)
    found = exact_minimiser(
        rows, y, table.view.weights(rows), 0.05, table.noise, problem.eta, solution.x
    )
    support, x = found
    with mpmath.workdps(50):
        off = mpmath.norm(
            mpmath.matrix([x[i] - float(solution.x[k]) for i, k in enumerate(support)])
        )
    assert 0.0 < float(off) * math.sqrt(table.noise.ridge) <= solution.distance
    assert solution.distance / math.sqrt(table.noise.ridge) < 1e-3 * (
        table.noise.shift * table.noise.sigma_out
    )


def test_guarantee_says_what_is_protected():
    X, y = binary_table(300)
    privacy = pv.RecordDP(1.0, 1e-6, bounds=BOUNDS, y_bounds=(0, 1))
    est = pv.PrivateLogisticLasso(privacy=privacy).fit(X, y)
    guarantee = est.guarantee_
    assert last_fit(guarantee).loss == "logistic"
    assert guarantee.for_release
    assert "Covariates and labels are protected" in guarantee.claim
    again = pv.Guarantee.from_dict(guarantee.to_dict())
    assert again == guarantee
    assert again.loss.delta(1.0) <= 1e-6  # pyright: ignore[reportOptionalMemberAccess]
    two = guarantee.compose(guarantee)
    assert 1.0 < two["epsilon"] < 2.0
    assert guarantee.group(2)["epsilon"] > 2.0
    wrong = guarantee.to_dict()
    wrong["losses"][0]["t"] = 3.0
    with pytest.raises(ValueError, match="small enough for its"):
        pv.Guarantee.from_dict(wrong)
    for call in (lambda: est.refit(X, 1.0), lambda: est.path(X, [1.0])):
        with pytest.raises(ValueError, match="RecordDP does not cover"):
            call()


def test_ranges_and_scales_may_be_private():
    X, y = binary_table(3000)
    privacy = pv.RecordDP(3.0, 1e-6, bounds="private", scales="private", y_bounds=(0, 1))
    est = pv.PrivateLogisticLasso(privacy=privacy, random_state=0).fit(X, y)
    assert mu_of_sums(est.guarantee_) > 0.0
    assert est.score(X, y) > 0.7
    loss = est.guarantee_.loss
    assert loss is not None
    assert 0.99e-6 < loss.delta(3.0) <= 1e-6


def test_a_label_far_outside_is_one_of_two():
    # Nothing but 0 and 1 reaches the mechanism, also if someone calls it with other labels.
    X, y = binary_table(200)
    privacy = pv.RecordDP(5.0, 1e-3, bounds=BOUNDS, y_bounds=(0, 1))
    table = RecordTable(privacy, len(X), 3).logistic()
    first, second = (
        fitted(table, X, labels, 0.1) for labels in (y, np.where(y > 0, 1e300, -1e300))
    )
    assert first[0].tolist() == second[0].tolist()


def test_a_record_without_a_label_is_empty():
    X, y = binary_table(200)
    privacy = pv.RecordDP(5.0, 1e-3, bounds=BOUNDS, y_bounds=(0, 1))
    table = RecordTable(privacy, 200, 3).logistic()
    missing = np.where(np.arange(200) < 50, np.nan, y)
    moved = X.copy()
    moved[:50] = 7.0  # what an empty record holds does not matter
    first, second = (fitted(table, F, missing, 0.1) for F in (X, moved))
    assert first[0].tolist() == second[0].tolist()
    assert not scaled(table, X, missing)[:50].any()
    other = fitted(table, X, y, 0.1)
    assert first[0].tolist() != other[0].tolist()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"y_bounds": (0, 2)}, "so their bounds are 0 and 1"),
        ({"kappa": 0.1}, "no choice of kappa"),
        ({"shape": "private"}, "no choice of shape"),
        ({"mechanism": "statistics"}, "no choice of mechanism"),
    ],
)
def test_settings_that_it_does_not_have(settings, message):
    privacy = pv.RecordDP(1.0, 1e-6, bounds=BOUNDS, **{"y_bounds": (0, 1), **settings})
    X, y = binary_table(20)
    with pytest.raises(ValueError, match=message):
        pv.PrivateLogisticLasso(privacy=privacy).fit(X, y)


def test_strange_tables():
    privacy = pv.RecordDP(1.0, 1e-6, bounds=BOUNDS, y_bounds=(0, 1))
    X, y = binary_table(30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pv.PrivacyWarning)
        one = pv.PrivateLogisticLasso(privacy=privacy).fit(X[:1], y[:1])
        assert np.isfinite(one.coef_).all()
        same = pv.PrivateLogisticLasso(privacy=privacy).fit(X, np.ones(30))
        assert np.isfinite(same.predict_proba(X)).all()
        flat = pv.RecordDP(1.0, 1e-6, bounds=[(0, 1), (2, 2), (0, 1)], y_bounds=(0, 1))
        assert pv.PrivateLogisticLasso(privacy=flat).fit(X, y).coef_[0, 1] == 0.0
