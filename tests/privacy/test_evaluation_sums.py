"""Brute-force sensitivities of the sums of an evaluation, in rationals."""

import itertools

import numpy as np
import pytest
from replayed import Replayed

from privasso.blocks import RowBlocks
from privasso.evaluation._classes import ClassEvaluation
from privasso.evaluation._linear import LinearEvaluation
from privasso.evaluation._sums import Scored
from privasso.programs import Point
from privasso.queries import EMPTIED, LABEL_REPLACED, Answering, Neighbours, bit_source
from privasso.queries._query import REPLACED

M, N, AT = 24, 3, 11
BOUNDS = np.array([(0.0, 2.0), (-1.0, 2.0), (1.0, 1.0)])
NAN, INF = np.nan, np.inf
LABELS = (0.0, 3.0, 1.5, 0.7, INF, -INF, 1e308, -0.0)
CELLS = (0.0, 1.0, 2.0, -1.0, NAN, INF, -INF, 1e308, 5e-324)
#: Records whose predictions are anything between the bounds of the labels, and beyond.
RECORDS = [([cell] * N, label) for cell in CELLS for label in (0.0, 3.0, 1.6, INF)]
RECORDS += [([a, b, 1.0], label) for a in (0.0, 0.3, 2.0) for b in (-1.0, 2.0) for label in (0, 3)]
LABEL_EMPTIED = Neighbours("label", "emptied")
METRICS = (
    "r2", "mae", "mse", "calibration intercept", "calibration slope", "prediction-interval",
)  # fmt: skip
SUMS = {"linear": {"Moments", "Squares", "DistanceCounts"}, "classes": {"ScoreCounts"}}


@pytest.fixture(autouse=True)
def few_cells(monkeypatch):
    """Rationals take their time; cells are the same at every level."""
    monkeypatch.setattr("privasso.evaluation._sums.DEPTH", 5)


def program(kind, neighbours, y_bounds=(0.0, 3.0)):
    bounds = BOUNDS if neighbours.unit == "record" else None
    coef, intercept = np.array([1.5, -1.0, 0.1]), 0.9
    point = Point(coef, intercept, y_bounds, bounds, neighbours.empties)
    scored = Scored(point, bounds is None)
    if kind == "linear":
        return LinearEvaluation(scored, None, METRICS, 0.3, neighbours, 0.9)
    return ClassEvaluation(scored, None, ("auc", "calibration slope"), 0.3, neighbours)


def asked(one, X, y):
    ask = Answering(RowBlocks.of_arrays(X, y), bit_source(np.random.default_rng(0)))
    return lambda: one(ask)


def runs(kind, neighbours, records, replayed):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (M, N)).astype(float), rng.choice([0.0, 1.0, 3.0], M)
    bounds = (0.0, 1.0) if kind == "classes" else (0.0, 3.0)
    one = program(kind, neighbours, bounds)
    found = []
    for record, label in records:
        X[AT], y[AT] = record, label
        found.append(replayed.run(asked(one, X.copy(), y.copy())))
    return found


def largest(replayed, pairs):
    found = {}
    for first, second in pairs:
        for name, distance in replayed.distances(first, second).items():
            found[name] = max(found.get(name, 0), distance)
    return found


@pytest.mark.parametrize("kind", ["linear", "classes"])
@pytest.mark.parametrize("neighbours", [EMPTIED, LABEL_EMPTIED], ids=str)
def test_no_record_moves_the_sums_by_more_than_their_noise_hides(kind, neighbours):
    replayed = Replayed()
    records = RECORDS if neighbours is EMPTIED else [r for r in RECORDS if np.isfinite(r[0]).all()]
    empties = [([1.0] * N, NAN), ([2.0] * N, NAN)]
    first, other, *full = runs(kind, neighbours, [*empties, *records], replayed)
    assert not any(replayed.distances(first, other).values())  # nothing of an empty one is read
    found = largest(replayed, ((first, one) for one in full))
    assert found.keys() == SUMS[kind]
    assert max(found.values()) <= 1
    assert min(found.values()) > 0.05
    assert max(found.values()) > 0.99 or kind == "linear"
    if kind == "linear":
        assert found["Moments"] > 0.5


@pytest.mark.parametrize("kind", ["linear", "classes"])
def test_no_record_in_the_place_of_another_moves_them_by_more(kind):
    replayed = Replayed("replaced")
    records = [([1.0] * N, NAN), *RECORDS[::3], *RECORDS[-6:]]
    found = largest(replayed, itertools.combinations(runs(kind, REPLACED, records, replayed), 2))
    assert found.keys() == SUMS[kind]
    assert max(found.values()) <= 1
    assert max(found.values()) > (0.5 if kind == "linear" else 0.25)


@pytest.mark.parametrize("kind", ["linear", "classes"])
@pytest.mark.parametrize("row", [[2.0, -1.0, 1.0], [0.0, 2.0, 1.0], [0.4, 0.3, 1.0]])
def test_no_label_in_the_place_of_another_moves_them_by_more(kind, row):
    replayed = Replayed("labels")
    records = [(row, label) for label in (*LABELS, NAN, 0.55, 1.1, 2.4)]
    found = runs(kind, LABEL_REPLACED, records, replayed)
    found = largest(replayed, itertools.combinations(found, 2))
    assert found.keys() == SUMS[kind]
    assert max(found.values()) <= 1
    assert max(found.values()) > 0.2
