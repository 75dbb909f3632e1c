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
from privasso.queries import EMPTIED, LABEL_REPLACED, REPLACED, Answering, Neighbours, bit_source

M, N, AT = 24, 4, 11
BOUNDS = np.array([(0.0, 2.0), (-1.0, 2.0), (0.0, 2.0), (1.0, 1.0)])
NAN, INF = np.nan, np.inf
CELLS = (0.0, 1.0, 2.0, -1.0, NAN, INF, -INF, 1e308, 5e-324, 2.0 + 4e-16)
LABELS = (0.0, 3.0, 1.5, INF, -INF, 1e308, -0.0)
RECORDS = [([cell] * N, label) for cell, label in zip(CELLS, LABELS * 2, strict=False)]
RECORDS += [([2.0, -1.0, 2.0, 1.0], 3.0), ([2.0, -1.0, 0.0, 1.0], 0.0), ([0.0, 2.0, 2.0, 1.0], 1.4)]
COEF = np.array([0.5, -0.3, 0.0, 0.1])
SUMS = {"ScaleSums", "SizeCounts", "ScoreSums"}


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
    assert found.keys() >= SUMS - ({"SizeCounts"} if "logistic" in targets else set())
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
    one = IntervalProgram(frame, 12.0, neighbours, ("least-squares", "huber"), (-0.5, 2.0), 0.05)
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
