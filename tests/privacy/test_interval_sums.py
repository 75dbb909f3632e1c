"""Brute-force sensitivities of the sums for intervals, in rationals, and what they add up to."""

import itertools

import numpy as np
import pytest
from replayed import Replayed
from scipy.optimize import minimize

import privasso as pv
from privasso.blocks import RowBlocks
from privasso.fit._rows import prepared_rows
from privasso.programs import IntervalProgram, LabelFrame, RecordFrame
from privasso.programs._scores import exceeded_by
from privasso.queries import EMPTIED, LABEL_REPLACED, Answering, Neighbours, bit_source
from privasso.queries._query import REPLACED

M, N, AT = 24, 4, 11
BOUNDS = np.array([(0.0, 2.0), (-1.0, 2.0), (0.0, 2.0), (1.0, 1.0)])
NAN, INF = np.nan, np.inf
CELLS = (0.0, 1.0, 2.0, -1.0, NAN, INF, -INF, 1e308, 5e-324, 2.0 + 4e-16)
LABELS = (0.0, 3.0, 1.5, INF, -INF, 1e308, -0.0)
RECORDS = [([cell] * N, label) for cell, label in zip(CELLS, LABELS * 2, strict=False)]
RECORDS += [([2.0, -1.0, 2.0, 1.0], 3.0), ([2.0, -1.0, 0.0, 1.0], 0.0), ([0.0, 2.0, 2.0, 1.0], 1.4)]
COEF = np.array([0.5, -0.3, 0.0, 0.1])
TWO = ("least-squares", "huber")
SUMS = {"ScaleSums", "RowCounts", "ResidualSums", "ScoreSums"}


def program(frame, neighbours, targets=("least-squares", "huber"), y_bounds=(0.0, 3.0)):
    return IntervalProgram(frame, 0.3, neighbours, targets, y_bounds, 0.1)


def table():
    rng = np.random.default_rng(0)
    return rng.integers(0, 3, (M, N)).astype(float), rng.choice([0.0, 1.0, 3.0], M)


def asked(one, X, y):
    ask = Answering(RowBlocks.of_arrays(X, y), bit_source(np.random.default_rng(0)))
    return lambda: one(ask, COEF, 0.7)


def runs(replayed, one, records):
    X, y = table()
    for record, label in records:
        X[AT], y[AT] = record, label
        yield replayed.run(asked(one, X.copy(), y.copy()))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    ("targets", "y_bounds"),
    [(("least-squares", "huber"), (0.0, 3.0)), (("logistic",), (0.0, 1.0))],
)
def test_no_record_moves_the_sums_by_more_than_their_noise_hides(targets, y_bounds, intercept):
    one = program(RecordFrame(BOUNDS, intercept), EMPTIED, targets, y_bounds)
    replayed, found = Replayed(), {}
    empty, *full = runs(replayed, one, [([1.0] * N, NAN), ([INF] * N, NAN), *RECORDS])
    assert not any(replayed.distances(empty, full[0]).values())  # nothing of an empty one is read
    for other in full:
        for name, distance in replayed.distances(empty, other).items():
            found[name] = max(found.get(name, 0), distance)
    assert found.keys() >= SUMS - ({"ResidualSums"} if "logistic" in targets else set())
    assert max(found.values()) <= 1
    assert found["ScoreSums"] > 0.4


def test_no_record_in_the_place_of_another_moves_them_by_more():
    one = program(RecordFrame(BOUNDS, intercept=True), REPLACED)
    replayed, found = Replayed("replaced"), {}
    all_runs = list(runs(replayed, one, [([1.0] * N, NAN), *RECORDS]))
    for first, second in itertools.combinations(all_runs, 2):
        for name, distance in replayed.distances(first, second).items():
            found[name] = max(found.get(name, 0), distance)
    assert max(found.values()) <= 1
    assert min(found[name] for name in SUMS) > 0.2


@pytest.mark.parametrize("neighbours", [LABEL_REPLACED, Neighbours("label", "emptied")], ids=str)
@pytest.mark.parametrize("targets", [("least-squares", "huber"), ("logistic",)])
def test_no_label_moves_them_by_more(neighbours, targets):
    X, y = table()
    X[AT] = [2.0, 2.0, 0.0, 1.0]
    bounds = (0.0, 1.0) if "logistic" in targets else (0.0, 3.0)
    one = program(LabelFrame(prepared_rows(X, fit_intercept=True)), neighbours, targets, bounds)
    replayed, found, seen = Replayed("labels"), {}, []
    for label in (*LABELS, NAN, 0.55, 1.1, 2.4):
        y[AT] = label
        seen.append(replayed.run(asked(one, X, y.copy())))
    if neighbours.empties:
        pairs = [(seen[len(LABELS)], other) for other in seen]
    else:
        pairs = itertools.combinations(seen, 2)
    for first, second in pairs:
        for name, distance in replayed.distances(first, second).items():
            found[name] = max(found.get(name, 0), distance)
    assert max(found.values()) <= 1
    assert found["ScoreSums"] > 0.1


def least_squares(X, y):
    return np.linalg.lstsq(np.c_[X, np.ones(len(X))], y, rcond=None)[0][:-1]


def huber(X, y, kappa):
    rows = np.c_[X, np.ones(len(X))]

    def loss(x):
        r = y - rows @ x
        size = np.abs(r)
        value = np.where(size <= kappa, 0.5 * r * r, kappa * size - 0.5 * kappa**2)
        return value.sum(), -rows.T @ np.clip(r, -kappa, kappa)

    return minimize(loss, np.zeros(rows.shape[1]), jac=True, options={"gtol": 1e-6}).x[:-1]


@pytest.mark.parametrize("kind", ["records", "labels"])
def test_without_noise_they_lead_to_the_fit_without_a_penalty(kind):
    """From a start that is off, with a budget that hides nothing, against other solvers."""
    rng = np.random.default_rng(2)
    X = rng.uniform(0.0, 1.0, (4000, 3)) * [1.0, 10.0, 1.0]
    X[:, 2] = X[:, 2] < 0.1
    y = X @ [0.3, 0.02, -0.2] + 0.2 * rng.exponential(size=4000)
    bounds = [(0.0, 1.0), (0.0, 10.0), (0.0, 1.0)]
    given = {
        "records": RecordFrame(np.array(bounds), intercept=True),
        "labels": LabelFrame(prepared_rows(X, fit_intercept=True)),
    }
    neighbours = EMPTIED if kind == "records" else LABEL_REPLACED
    frame, ask = given[kind], Answering(RowBlocks.of_arrays(X, y), bit_source(rng))
    one = IntervalProgram(frame, 20.0, neighbours, ("least-squares", "huber"), (-0.5, 2.0), 0.05)
    start = np.array([0.25, 0.018, -0.17])
    found = one(ask, start, float(np.mean(y - X @ start))).intervals()
    y = np.clip(y, -0.5, 2.0)
    np.testing.assert_allclose(found.estimates(), least_squares(X, y), rtol=0.03)
    exact = huber(X, y, 2.5 * 0.05)
    assert found.kappa == 2.5 * 0.05
    np.testing.assert_allclose(found.estimates("huber"), exact, rtol=0.12)
    rows = np.c_[X, np.ones(len(X))]
    r, inverse = y - rows @ np.linalg.lstsq(rows, y, rcond=None)[0], np.linalg.inv(rows.T @ rows)
    sandwich = inverse @ ((rows * r[:, None] ** 2).T @ rows) @ inverse
    length = np.diff(found.confint(0.95), axis=1)[:, 0]
    np.testing.assert_allclose(length, 3.92 * np.sqrt(np.diag(sandwich))[:-1], rtol=0.1)


def covered(kind, repetitions, seed=0):
    """How often intervals hold the coefficients of the population, by target."""
    rng = np.random.default_rng(seed)
    beta, found = np.array([0.3, 0.02, 0.0, -0.2]), {"least-squares": [], "huber": []}
    privacy = {
        "records": pv.RecordDP(3.0, 1e-6, [(0, 1), (0, 10), (0, 1), (0, 1)], y_bounds=(0, 2)),
        "labels": pv.LabelDP(3.0, 1e-6, y_bounds=(0, 2)),
    }[kind]
    for k in range(repetitions):
        X = rng.uniform(0.0, 1.0, (3000, 4)) * [1.0, 10.0, 1.0, 1.0]
        X[:, 3] = X[:, 3] < 0.1
        y = 1.0 + (X - [0.5, 5.0, 0.5, 0.1]) @ beta + rng.normal(0.0, 0.1, 3000)
        est = pv.PrivateLasso(privacy=privacy, intervals=True, random_state=k).fit(X, y)
        for target, held in found.items():
            low, high = est.confint(0.9, target).T
            held.append((low <= beta) & (beta <= high))
    return {target: np.mean(held) for target, held in found.items()}


@pytest.mark.parametrize("kind", ["records", "labels"])
def test_intervals_hold_the_coefficients_of_the_population(kind):
    """Normal residuals have one coefficient for both targets; 80 intervals of 90 % each."""
    for held in covered(kind, 20).values():
        assert held > 0.83  # four deviations below; noise that hides much makes them longer
        assert held < 1.0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["records", "labels"])
def test_intervals_hold_them_as_often_as_they_say(kind):
    for held in covered(kind, 400, seed=1).values():
        assert 0.885 < held < 0.975


def test_a_column_that_noise_hides_has_no_interval_and_the_summary_says_so(tmp_path):
    rng = np.random.default_rng(0)
    X = np.c_[rng.uniform(size=(3000, 2)), rng.uniform(size=3000) < 0.001, np.full(3000, 0.5)]
    y = X[:, 0] + 0.1 * rng.standard_normal(3000)
    privacy = pv.RecordDP(1.0, 1e-6, [(0, 1)] * 4, y_bounds=(-0.5, 1.5))
    est = pv.PrivateLasso(privacy=privacy, intervals=True, random_state=0).fit(X, y)
    ends = est.confint()
    assert ends.shape == (4, 2)
    assert np.isnan(ends[3]).all()
    assert ends[0, 0] > 0.5
    notes = est.summary()["note"].to_list()
    assert notes[0] == ""
    assert notes[1] == "cannot be told from zero"
    assert notes[3].startswith("no interval")
    wider, at_once = est.confint(0.99), est.confint(simultaneous=True)
    for other in (wider, at_once):
        assert other[0, 0] < ends[0, 0]
        assert ends[0, 1] < other[0, 1]
    pv.save(est, tmp_path / "model.json")
    loaded = pv.load(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.confint(0.8, "huber"), est.confint(0.8, "huber"))
    assert loaded.summary().equals(est.summary())


def test_public_columns_that_depend_on_others_have_no_interval():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(500, 3))
    X = np.c_[X, X[:, 0] + X[:, 1], np.ones(500)]
    privacy = pv.LabelDP(3.0, 1e-5, y_bounds=(0, 1))
    est = pv.PrivateLasso(privacy=privacy, intervals=True, random_state=0).fit(X, X[:, 2])
    assert np.isnan(est.confint()[:, 0]).tolist() == [True, True, False, True, True]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"intervals": "median"}, "True, False or one of 'least-squares', 'huber'"),
        ({"intervals": True, "loss": pv.Quantile(0.9)}, "no intervals for the 0.9-quantile"),
        ({"intervals": True, "privacy": pv.OnAverage(0.1), "lam": 1.0}, "need LabelDP or RecordDP"),
    ],
)
def test_what_has_no_intervals_is_refused(options, said):
    given = {"privacy": pv.RecordDP(1.0, 1e-6, [(0, 1)] * 2, y_bounds=(0, 1)), **options}
    with pytest.raises(ValueError, match=said):
        pv.PrivateLasso(**given).fit(np.zeros((300, 2)), np.zeros(300))


def test_intervals_must_be_asked_for():
    privacy = pv.RecordDP(1.0, 1e-6, [(0, 1)] * 2, y_bounds=(0, 1))
    est = pv.PrivateLasso(privacy=privacy, random_state=0).fit(np.eye(300)[:, :2], np.zeros(300))
    with pytest.raises(ValueError, match="fit again with intervals=True"):
        est.confint()
    assert est.summary().columns == ["column", "coefficient"]


def far_away(rows=3000):
    """Columns with far outliers, of which one is nearly the square of another."""
    rng = np.random.default_rng(4)
    x = rng.lognormal(0.0, 1.0, rows)
    return np.c_[x, x**2 + 0.1 * rng.standard_normal(rows), rng.uniform(size=rows) < 0.02]


def test_the_noise_on_public_rows_is_near_the_best_that_hides_them_all():
    """Against the certified best shape; the variance of coefficients over that without privacy."""
    X = far_away()
    nobody = Answering(RowBlocks.of_arrays(X, X[:, 0]), bit_source(np.random.default_rng(0)))
    frame = LabelFrame(prepared_rows(X, fit_intercept=True))
    placed = frame.settled(nobody, 1.0, LABEL_REPLACED)
    rows = placed.rows(X)
    assert np.max(np.sum(rows**2, axis=1)) == pytest.approx(1.0, abs=0.05)
    assert np.max(np.sum(rows**2, axis=1)) <= 1.0 + 1e-6
    np.testing.assert_allclose(rows.T @ rows / len(X), np.diag(placed.unit), atol=1e-4)
    whole = np.c_[X - X.mean(axis=0), np.ones(len(X))]
    inverse = np.linalg.inv(whole.T @ whole / len(X))
    weight = inverse @ np.diag([*(1.0 / np.diag(inverse)[:-1]), 1.0]) @ inverse
    best = pv.optimal_shape(X, weight, fit_intercept=True)
    ours = placed.into @ np.diag(1.0 / placed.unit**2) @ placed.into.T
    cost = np.sum(np.diag(ours) / np.diag(inverse)[:-1])
    theirs = inverse @ best.covariance @ inverse
    least = np.sum(np.diag(theirs)[:-1] / np.diag(inverse)[:-1])
    assert 0.9 * least < cost < 2.5 * least


@pytest.mark.parametrize("kind", ["records", "labels"])
def test_odds_lead_to_the_maximum_of_the_likelihood(kind):
    rng = np.random.default_rng(5)
    X = rng.uniform(0.0, 1.0, (6000, 3)) * [1.0, 10.0, 1.0]
    X[:, 2] = X[:, 2] < 0.2
    p = 1.0 / (1.0 + np.exp(-(X @ [1.0, 0.1, -1.0] - 0.8)))
    y = (rng.uniform(size=6000) < p).astype(float)
    bounds = np.array([(0.0, 1.0), (0.0, 10.0), (0.0, 1.0)])
    given = {
        "records": RecordFrame(bounds, intercept=True),
        "labels": LabelFrame(prepared_rows(X, fit_intercept=True)),
    }
    neighbours = EMPTIED if kind == "records" else LABEL_REPLACED
    ask = Answering(RowBlocks.of_arrays(X, y), bit_source(rng))
    one = IntervalProgram(given[kind], 12.0, neighbours, ("logistic",), (0.0, 1.0), 0.05)
    found = one(ask, np.array([0.9, 0.09, -0.9]), -0.7).intervals()
    rows = np.c_[X, np.ones(6000)]

    def loss(x):
        odds = rows @ x
        return np.sum(np.logaddexp(0.0, odds) - y * odds)

    exact = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-4}).x
    fitted = 1.0 / (1.0 + np.exp(-rows @ exact))
    errors = np.sqrt(np.diag(np.linalg.inv((rows.T * (fitted * (1.0 - fitted))) @ rows)))[:-1]
    assert np.all(np.abs(found.estimates() - exact[:-1]) < 0.5 * errors)
    length = np.diff(found.confint(0.95), axis=1)[:, 0]
    np.testing.assert_allclose(length, 3.92 * errors, rtol=0.15)


def test_few_values_are_beyond_a_size_that_is_found_from_noisy_counts():
    """For light and heavy tails; where counts are lost in noise it errs on the far side."""
    rng = np.random.default_rng(6)
    steps = tuple(2.0 ** (0.5 * k) for k in range(-9, 1))
    for values in (
        np.abs(rng.normal(0.0, 0.05, 20_000)),
        0.03 * rng.exponential(size=20_000),
        0.02 * rng.pareto(3.0, 20_000),
    ):
        above = np.array([np.sum(values > step) for step in steps], dtype=float)
        beyond = []
        for _ in range(30):
            noise = np.cumsum(rng.normal(0.0, 30.0, len(steps)))[::-1]
            found = exceeded_by(steps, above + noise, 30.0, 40.0)
            beyond.append(np.sum(values > found))
        assert np.median(beyond) <= 80
        assert np.max(beyond) <= 400


def test_they_hold_where_rows_are_far_away_and_the_model_is_wrong():
    """A square is fitted by a line; a row that counts less than the others would move it."""
    rng = np.random.default_rng(7)
    x = np.minimum(rng.lognormal(0.0, 1.0, 40_000), 40.0)
    everyone = np.c_[x, rng.uniform(size=40_000)]
    y = np.clip(0.2 * x - 0.004 * x**2 + 0.1 * everyone[:, 1], -1.0, 3.0)
    y = np.clip(y + 0.1 * rng.standard_normal(40_000), -1.0, 3.0)
    truth, held = least_squares(everyone, y), []
    for seed in range(20):
        at = rng.integers(0, 40_000, 4000)
        privacy = pv.LabelDP(3.0, 1e-6, y_bounds=(-1, 3))
        est = pv.PrivateLasso(privacy=privacy, intervals="least-squares", random_state=seed)
        low, high = est.fit(everyone[at], y[at]).confint().T
        held.append((low <= truth) & (truth <= high))
    assert np.mean(held) > 0.82  # 40 intervals of 95 %


def test_clipped_residuals_of_labels_need_little_more_than_squared_ones():
    """Their curvature is near a share of the public one; hidden by noise alone it would be lost."""
    rng = np.random.default_rng(8)
    X = rng.uniform(size=(2000, 20))
    y = np.clip(X[:, 0] + 0.1 * rng.standard_normal(2000), -1.0, 2.0)
    privacy = pv.LabelDP(1.0, 1e-6, y_bounds=(-1, 2))
    est = pv.PrivateLasso(privacy=privacy, intervals=True, random_state=0).fit(X, y)
    squared, clipped = (np.diff(est.confint(target=t), axis=1) for t in TWO)
    assert np.nanmedian(clipped) < 3.0 * np.nanmedian(squared)
