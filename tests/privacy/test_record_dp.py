"""Differential privacy of records: sensitivity, certificate, attack and bad input."""

import dataclasses
import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from scipy.optimize import minimize

import privasso as pv
from privasso.accounting import objective_delta
from privasso.planning import RecordTable, calibrate_objective, release_mechanism
from privasso.privacy import Guarantee
from privasso.problem import Huber
from privasso.queries import (
    EMPTIED,
    LABEL_REPLACED,
    UncertifiedError,
    _minimiser,
    _objective_noise,
    bit_source,
)
from privasso.queries._minimiser import perturbed_minimiser

BOUNDS = [(0.0, 10.0), (-1.0, 3.0), (2.0, 2.0), (0.0, 1e6)]
PRIVACY = pv.RecordDP(1.0, 1e-6, bounds=BOUNDS, y_bounds=(0.0, 5.0))


def table(m=400, seed=0, far=False):
    rng = np.random.default_rng(seed)
    low, high = np.transpose(BOUNDS)
    X = rng.uniform(low, high, (m, 4))
    if far:
        X += rng.standard_cauchy((m, 4)) * (high - low)
    y = 0.3 * X[:, 0] + 0.2 * X[:, 1] + 0.3 * rng.standard_normal(m)
    return X, y


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("far", [False, True])
def test_no_row_is_longer_than_the_radius_and_no_residual_counts_beyond_kappa(fit_intercept, far):
    from fractions import Fraction

    X, y = table(far=far)
    objective = RecordTable(PRIVACY, 400, 4, fit_intercept=fit_intercept).objective()
    rows, labels = objective.rows(X, y)
    radius = Fraction(objective.noise.radius)
    for row in rows:
        assert sum(Fraction(float(x)) ** 2 for x in row) <= radius**2
    assert np.max(np.abs(labels)) <= 1.0
    # The calibration: σ = κR/c and Λ = R²/t, up to rounding in the safe direction.
    noise = objective.noise
    assert noise.kappa * noise.radius / noise.sigma <= noise.c
    assert noise.radius**2 / noise.ridge <= noise.t
    assert objective_delta(1.0, noise.c, noise.t, "records") <= 1e-6
    assert objective_delta(1.0, 1.001 * noise.c, noise.t, "records") > 1e-6


def test_a_row_depends_on_its_own_record_only():
    X, y = table(far=True)
    objective = RecordTable(PRIVACY, 400, 4).objective()
    rows, labels = objective.rows(X, y)
    X[7], y[7] = 1e300, -1e300
    other, others = objective.rows(X, y)
    keep = np.arange(400) != 7
    assert np.array_equal(rows[keep], other[keep])
    assert np.array_equal(labels[keep], others[keep])


def test_the_minimiser_is_that_of_the_objective(monkeypatch):
    """Against a general-purpose optimiser, the noise of the objective and the output known."""
    X, y = table(60)
    objective = RecordTable(
        pv.RecordDP(1.0, 1e-3, bounds=BOUNDS, y_bounds=(0.0, 5.0), kappa=0.05), 60, 4
    ).objective()
    rows, labels = objective.rows(X, y)
    noise, drawn = objective.noise, []

    def recorded(deviation, size, bits):
        drawn.append(rounded(deviation, size, bits))
        return drawn[-1]

    rounded = _objective_noise.rounded_gaussian
    monkeypatch.setattr(_objective_noise, "rounded_gaussian", recorded)
    weights = np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    x = perturbed_minimiser(
        rows, labels, 0.3, noise, bit_source(np.random.default_rng(0)), penalty_weights=weights
    )
    eta = noise.sigma * drawn[0] / 2.0**52

    def value(u):
        plus, minus, free = u[:4], u[4:8], u[8:]
        v = np.append(plus - minus, free)
        r = np.abs(labels - rows @ v)
        huber = np.where(r <= noise.kappa, r**2 / 2, noise.kappa * r - noise.kappa**2 / 2)
        return huber.sum() + 0.3 * (plus + minus).sum() + noise.ridge / 2 * v @ v + eta @ v

    bounds = [(0, None)] * 8 + [(None, None)]
    found = minimize(value, np.full(9, 0.01), method="L-BFGS-B", bounds=bounds,
                     options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000})  # fmt: skip
    exact = np.append(found.x[:4] - found.x[4:8], found.x[8])
    assert np.max(np.abs(x - exact)) < 6 * noise.sigma_out + 1e-5
    assert np.all((x[:4] == 0.0) | (np.abs(x[:4]) > 5 * noise.sigma_out))


def test_nothing_is_published_without_a_certificate(monkeypatch):
    from dataclasses import replace

    for name in ("minimise_exactly", "minimise_further"):
        solve = getattr(_minimiser, name)

        def careless(*args, solve=solve):
            return replace(solve(*args), distance=1e-6)

        monkeypatch.setattr(_minimiser, name, careless)
    X, y = table()
    with pytest.raises(UncertifiedError, match="nothing was published"):
        pv.PrivateLasso(privacy=PRIVACY, random_state=0).fit(X, y)


def releases(privacy, X, y, count, seed):
    """Coefficients of many fits, in the units of the scaled rows."""
    objective = RecordTable(privacy, *X.shape, fit_intercept=False).objective()
    rows, labels = objective.rows(X, y)
    rng = np.random.default_rng(seed)
    return np.array([
        perturbed_minimiser(
            rows, labels, 0.0, objective.noise, bit_source(rng), penalty_weights=np.zeros(1)
        )[0]
        for _ in range(count)
    ])  # fmt: skip


def refuted_epsilon(inside, outside, delta, level=1e-4):
    """Largest ε refuted by thresholds on the released coefficient, Clopper–Pearson limits."""
    count, best = inside.size, -math.inf
    thresholds = np.quantile(outside, np.linspace(0.02, 0.98, 13))
    level = level / (4 * thresholds.size)
    for t in thresholds:
        for sign in (1.0, -1.0):
            for a, b in ((inside, outside), (outside, inside)):
                hits, false = int(np.sum(sign * (a - t) > 0)), int(np.sum(sign * (b - t) > 0))
                power = stats.beta.ppf(level, hits, count - hits + 1) if hits else 0.0
                size = stats.beta.ppf(1 - level, false + 1, count - false) if false < count else 1.0
                if power > delta:
                    best = max(best, math.log((power - delta) / size))
    return best


@pytest.mark.parametrize(
    ("count", "least"), [(600, -0.5), pytest.param(4000, 0.2, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("fault", [None, "radius"])
def test_the_attack_stays_below_the_claim_and_catches_a_fault(fault, count, least, monkeypatch):
    """One record with the largest possible influence, emptied; seven others of no influence."""
    privacy = pv.RecordDP(1.0, 0.02, bounds=[(-1.0, 1.0)], y_bounds=(-1.0, 1.0), t=0.3)
    X, y = np.zeros((8, 1)), np.zeros(8)
    X[0], y[0] = 1.0, 1.0
    if fault == "radius":  # rows are not shrunk to the radius that the noise was made for
        monkeypatch.setattr("privasso.planning._records.usual_row", lambda n, standard: 0.4)
        monkeypatch.setattr(
            "privasso.programs._record_rows.PerturbedObjective.rows",
            lambda self, X, y: (np.asarray(X) / 1.0, np.asarray(y) / 2.0),
        )
    empty, blank = X.copy(), y.copy()
    empty[0], blank[0] = 0.0, 0.0
    inside, outside = (
        releases(privacy, *data, count, seed) for seed, data in enumerate([(X, y), (empty, blank)])
    )
    found = refuted_epsilon(inside, outside, 0.02)
    if fault is None:
        assert least < found < 1.0
    else:
        assert found > 1.0


def test_through_the_estimator():
    X, y = table(3000)
    est = pv.PrivateLasso(privacy=PRIVACY).fit(X, y)
    assert est.score(X, y) > 0.7
    assert est.coef_[2] == 0.0  # its bounds are equal
    assert not hasattr(est, "release_")
    guarantee = est.guarantee_
    assert guarantee.kind == "record-dp"
    assert guarantee.for_release
    assert "whole records" in str(guarantee)
    assert Guarantee.from_dict(guarantee.to_dict()) == guarantee
    assert guarantee.group(2)["epsilon"] > 1.5
    for use in (lambda: est.refit(X, 1.0), lambda: est.path(X, [1.0])):
        with pytest.raises(ValueError, match="RecordDP does not cover"):
            use()
    larger = pv.PrivateLasso(lam=1e6, privacy=PRIVACY)
    with pytest.warns(pv.PrivacyWarning, match="A Ledger keeps count of several fits"):
        larger.fit(X, y)
    assert not larger.coef_.any()


def test_units_do_not_matter():
    X, y = table(1000)
    scale = np.array([2.0**-20, 2.0**30, 1.0, 2.0**-3])
    bounds = np.array(BOUNDS) * scale[:, None]
    one = pv.PrivateLasso(privacy=PRIVACY, random_state=0).fit(X, y)
    other = pv.RecordDP(1.0, 1e-6, bounds=bounds, y_bounds=(0.0, 40.0))
    two = pv.PrivateLasso(privacy=other, random_state=0).fit(X * scale, 8.0 * y)
    np.testing.assert_array_equal(two.predict(X * scale), 8.0 * one.predict(X))


def test_settings_are_values():
    same = pv.RecordDP(1, 1e-6, bounds=np.array(BOUNDS), y_bounds=(0, 5))
    assert same == PRIVACY
    assert hash(same) == hash(PRIVACY)
    assert same != pv.RecordDP(1, 1e-6, bounds=BOUNDS, y_bounds=(0, 6))
    assert "bounds" not in repr(same).replace("y_bounds", "")  # one pair per column is too long


def test_bounds_by_name_and_the_ledger(tmp_path):
    polars = pytest.importorskip("polars")
    X, y = table()
    names = ["age", "dose", "site", "income"]
    frame = polars.DataFrame(X, schema=names)
    by_name = pv.RecordDP(
        1.0, 1e-6, bounds=dict(zip(names[::-1], BOUNDS[::-1], strict=True)), y_bounds=(0, 5)
    )
    ledger = pv.Ledger(1.2, 1e-6)
    est = pv.PrivateLasso(privacy=by_name, random_state=0, ledger=ledger).fit(frame, y)
    plain = pv.PrivateLasso(privacy=PRIVACY, random_state=0).fit(X, y)
    np.testing.assert_array_equal(est.coef_, plain.coef_)
    pv.save(est, tmp_path / "model.json")
    np.testing.assert_array_equal(pv.load(tmp_path / "model.json").coef, est.coef_)
    with pytest.raises(ValueError, match="have no names"):
        pv.PrivateLasso(privacy=by_name).fit(X, y)
    known = dict.fromkeys(("age", "site", "income"), (0, 1))
    few = pv.PrivateLasso(privacy=pv.RecordDP(1, 1e-6, bounds=known, y_bounds=(0, 1)))
    with pytest.raises(ValueError, match="bounds are missing for 'dose'"):
        few.fit(frame, y)


@pytest.mark.slow
def test_the_ledger_refuses_a_second_fit():
    X, y = table()
    ledger = pv.Ledger(1.2, 1e-6)
    est = pv.PrivateLasso(privacy=PRIVACY, ledger=ledger).fit(X, y)
    with pytest.raises(pv.BudgetError):
        est.fit(X, y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bounds": None}, "needs bounds=.*reveal"),
        ({"bounds": [(1.0, 0.0)]}, "must not decrease"),
        ({"bounds": [(math.nan, 0.0)]}, "bounds"),
        ({"bounds": [1.0, 2.0, 3.0]}, "pairs"),
        ({"bounds": (2.0, 1.0)}, "must not decrease"),
        ({"bounds": {}}, "empty"),
        ({"bounds": {"a": (3.0, 1.0)}}, "must not decrease"),
        ({"y_bounds": (1.0, 1.0)}, "must increase"),
        ({"epsilon": 0.0}, "epsilon must be positive"),
        ({"delta": 1.0}, "delta"),
        ({"kappa": -1.0}, "kappa must be positive"),
        ({"t": 0.0}, "t must be positive"),
    ],
)
def test_bad_settings(arguments, message):
    good = {"epsilon": 1.0, "delta": 1e-6, "bounds": [(0.0, 1.0)], "y_bounds": (0.0, 1.0)}
    with pytest.raises(ValueError, match=message):
        pv.RecordDP(**{**good, **arguments})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: pv.PrivateLasso(privacy=PRIVACY).fit(X[:, :3], y), "each of the 3 columns"),
        (lambda X, y: pv.PrivateLasso(privacy=PRIVACY).fit(sp.csr_array(X), y), "sparse"),
        (
            lambda X, y: pv.PrivateLasso(privacy=PRIVACY).fit(X, y[1:]),
            "one label for each",
        ),
        (lambda X, y: pv.PrivateLasso(privacy=PRIVACY, noise="gram").fit(X, y), "leave noise"),
        (lambda X, y: pv.PrivateLasso(privacy=PRIVACY, method="cd").fit(X, y), "leave method out"),
        (lambda X, y: pv.PrivateLasso(privacy=PRIVACY).fit(X, y, y), "sample_weight is not"),
        (lambda X, y: release_mechanism(PRIVACY), "coefficients only"),
    ],
)
def test_bad_input(change, message):
    X, y = table()
    with pytest.raises(ValueError, match=message):
        change(X, y)


@pytest.mark.parametrize("shape", [(1, 1), (3, 10), (2, 1)])
def test_small_and_wide_tables(shape):
    rng = np.random.default_rng(0)
    privacy = pv.RecordDP(1.0, 1e-3, bounds=np.tile([-1.0, 1.0], (shape[1], 1)), y_bounds=(0, 1))
    est = pv.PrivateLasso(privacy=privacy).fit(rng.uniform(-1, 1, shape), rng.random(shape[0]))
    assert np.isfinite(est.coef_).all()


def test_very_many_rows_get_a_larger_ridge():
    """And a t to match, so that nothing is claimed that does not hold."""
    for rows, asked in ((100, 3.0), (10**7, 3.0), (10**6, 0.01)):
        noise = calibrate_objective(
            10.0, 1e-6, EMPTIED, loss=Huber(0.1), radius=1.0, t=asked, n_rows=rows
        )
        assert noise.ridge >= 5e-11 * rows**2
        assert noise.t == min(asked, 1.0 / (5e-11 * rows**2))
        assert noise.ridge >= noise.radius**2 / noise.t
        assert objective_delta(10.0, noise.c, noise.t, "records") <= 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_a_million_rows_are_certified(epsilon):
    rng = np.random.default_rng(0)
    X = rng.random((10**6, 3))
    y = X @ [0.3, -0.2, 0.1] + 0.1 * rng.standard_normal(10**6)
    privacy = pv.RecordDP(epsilon, 1e-6, bounds=[(0.0, 1.0)] * 3, y_bounds=(-1.0, 1.0))
    est = pv.PrivateLasso(privacy=privacy, random_state=0).fit(X, y)
    assert np.abs(est.coef_ - [0.3, -0.2, 0.1]).max() < 0.01


def test_more_noise_for_labels_than_for_records():
    both = [
        calibrate_objective(1.0, 1e-6, kind, loss=Huber(0.1), radius=1.0, t=0.3, n_rows=100).sigma
        for kind in (EMPTIED, LABEL_REPLACED)
    ]
    assert 1.5 * both[0] < both[1] < 2.1 * both[0]


def test_one_pair_of_bounds_is_for_all_columns():
    one = pv.RecordDP(1.0, 1e-6, bounds=(0, 2), y_bounds=(0, 1))
    np.testing.assert_array_equal(one.column_bounds(3), [[0.0, 2.0]] * 3)
    assert dataclasses.replace(one, epsilon=2.0).bounds == (0.0, 2.0)
