"""Brute-force sensitivities: no record moves anything that is released by more than is claimed.

Every query of a fit is compared for a table and for the same table with one record emptied, or one
label replaced, in rationals and at the same history; see `replayed`. A new query is covered by a
line of `RECORDS` or `LABELS` with a fit that makes it.
"""

import itertools
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from replayed import Replayed

import privasso as pv
from privasso.blocks import RowBlocks, Variants, variants_of
from privasso.fit import FitOptions, plan_for
from privasso.planning import RecordTable, ScreeningSettings, _objective_noise
from privasso.planning._record_screening import screened_objective
from privasso.problem import Huber
from privasso.programs import LabelRange
from privasso.queries import Answering, Neighbours, Relation, bit_source

M, N, AT = 24, 4, 11
BOUNDS = [(0.0, 2.0), (-1.0, 2.0), (0.0, 2.0), (0.0, 2.0)]
MIXED = ["0/1", (-1.0, 2.0), "0/1", (0.0, 2.0)]
NAN, INF = np.nan, np.inf
ROWS, CENTRE, LEVEL, PRODUCTS = "pulls", "ClippedLabels", "ResidualSum", "ProductSum"
COUNTS, SCALES, MOMENTS = "MagnitudeCounts", "ScaleSums", "Products"
#: Fits of whole records: settings, options, storages, and the queries that they must have.
DENSE = ("array", "fortran", "float32")
PLAIN = (*DENSE, "memmap", "blocks", "genotypes", "many genotypes")
ALL = (*PLAIN, "csr", "csc")
RECORDS = {
    "objective": ({"level": True}, {}, PLAIN, {ROWS, LEVEL}),
    "quantile": ({}, {"loss": pv.Quantile(0.8)}, PLAIN, {ROWS}),
    "low quantile": ({}, {"loss": pv.Quantile(0.1)}, (*DENSE, "blocks"), {ROWS}),
    "wide": ({"level": True, "kappa": 2.0**-21}, {}, PLAIN, {"rows", LEVEL}),
    "through zero": ({}, {"fit_intercept": False}, (*DENSE, "blocks"), {ROWS}),
    "private bounds": ({"bounds": "private"}, {}, (*DENSE, "blocks"), {COUNTS, ROWS}),
    "private scales": (
        {"scales": "private", "level": True}, {}, (*DENSE, "blocks"), {COUNTS, SCALES, LEVEL},
    ),
    "both": ({"bounds": "private", "scales": "private"}, {}, ("array",), {COUNTS, SCALES}),
    "statistics": ({"mechanism": "statistics"}, {}, (*DENSE, "blocks"), {MOMENTS}),
    "scaled statistics": (
        {"mechanism": "statistics", "scales": "private"}, {"fit_intercept": False}, ("array",),
        {COUNTS, SCALES, MOMENTS},
    ),
    "private shape": ({"shape": "private", "level": True}, {}, PLAIN, {MOMENTS, "rows", LEVEL}),
    "logistic": ({"y_bounds": (0, 1)}, {"logistic": True}, PLAIN, {"rows"}),
    "scaled logistic": (
        {"y_bounds": (0, 1), "bounds": "private", "scales": "private"}, {"logistic": True},
        ("array",), {COUNTS, SCALES, "rows"},
    ),
    "screened": ({}, {"screen": 2}, ALL, {CENTRE, "choice", ROWS, LEVEL}),
    "screened through zero": ({}, {"screen": 2, "fit_intercept": False}, ALL, {"choice", ROWS}),
    "alike": ({"bounds": [(0.0, 2.0)] * N}, {"screen": 2}, ALL, {CENTRE, "choice", ROWS, LEVEL}),
    "further rounds": (
        {}, {"rounds": 1}, ("array", "csr", "blocks", "many genotypes"),
        {CENTRE, "choice", ROWS, LEVEL},
    ),
    "zeros and ones": ({"bounds": MIXED, "level": True}, {}, PLAIN, {ROWS, LEVEL}),
    "long rows of ones": ({"bounds": "0/1", "level": True}, {}, PLAIN, {ROWS, LEVEL}),
    "scaled ones": ({"bounds": MIXED, "scales": "private"}, {}, ("array",), {COUNTS, SCALES}),
    "statistics of ones": (
        {"bounds": MIXED, "mechanism": "statistics"}, {}, (*DENSE, "blocks"), {MOMENTS},
    ),
    "logistic of ones": (
        {"bounds": MIXED, "y_bounds": (0, 1)}, {"logistic": True}, PLAIN, {"rows"},
    ),
    "screened ones": ({"bounds": MIXED}, {"screen": 2}, ALL, {CENTRE, "choice", ROWS, LEVEL}),
    "flat": (
        {"bounds": [(0.0, 2.0), (1.0, 1.0), (0.0, 2.0), (0.0, 0.0)]}, {"screen": 2}, ALL,
        {CENTRE, "choice", ROWS, LEVEL},
    ),
}  # fmt: skip
#: Covariates and labels of one record.
CELLS = (0.0, 1.0, 2.0, -1.0, NAN, INF, -INF, 1e308, -1e308, -0.0, 5e-324, 2.0 + 4e-16)
TARGETS = (0.0, 3.0, 1.5, INF, -INF, 1e308, -0.0, 5e-324)
EXTREME = [([cell] * N, label) for cell, label in zip(CELLS, TARGETS * 2, strict=False)]


def table(rng):
    X = rng.integers(0, 3, (M, N)).astype(np.float64)
    return X, rng.choice([0.0, 1.0, 3.0], M)


def stored(storage, X, y, folder) -> tuple[Any, Any]:
    """Covariates, and the labels unless the covariates hold them."""
    if storage == "genotypes":
        return variants_of(variants(X), y), None
    if storage == "many genotypes":  # as a table with many of them is
        return RowBlocks.of_arrays(variants(X), y), None
    if storage == "memmap":
        path = folder / "X.npy"
        np.save(path, X)
        return RowBlocks.of_arrays(np.load(path, mmap_mode="r"), y), None
    if storage == "blocks":
        return RowBlocks.of_arrays(X, y, n_parts=3), None
    with np.errstate(over="ignore"):
        return {
            "array": np.asarray,
            "fortran": np.asfortranarray,
            "float32": lambda X: X.astype(np.float32),
            "csr": sp.csr_array,
            "csc": sp.csc_array,
        }[storage](X), y


def variants(X):
    """Copies of an allele in two bits; what is neither 0, 1 nor 2 is missing."""
    codes = np.full((4 * -(-M // 4), N), 1, dtype=np.uint8)
    for copies, code in ((0.0, 3), (1.0, 2), (2.0, 0)):
        codes[:M][copies == X] = code
    bytes_ = sum(codes[k::4].T << (2 * k) for k in range(4))
    return Variants(np.ascontiguousarray(bytes_, dtype=np.uint8), M, np.ones(N))


def mechanism(settings, options) -> Any:
    """What a fit releases and how; the level of its noise does not matter here."""
    given = {"bounds": BOUNDS, "y_bounds": (0.0, 3.0), **settings}
    privacy = pv.RecordDP(3.0, 1e-3, **given)
    options = {"fit_intercept": True, **options}
    with mock.patch.object(_objective_noise, "sensitivity_beside", return_value=0.2):
        if options.pop("rounds", 0):
            budget = ScreeningSettings(2, 0.5, 3.0, 1e-3, second=1, further=1)
            given = np.array(BOUNDS), privacy.y_bounds, M
            return screened_objective(budget, *given, **options, loss=Huber(), t=1.0)
        screen, logistic = options.pop("screen", None), options.pop("logistic", False)
        planned = RecordTable(privacy, M, N, **options)
        if screen is not None:
            return planned.screened(screen)
        return planned.logistic() if logistic else planned.direct()


def released(objective, storage, X, y, folder):
    """What a fit of this table does, as a function without arguments."""
    data, labels = stored(storage, X, y, folder)
    bits = bit_source(np.random.default_rng(0))
    rows = data if isinstance(data, RowBlocks) else RowBlocks.of_arrays(data, labels)
    return lambda: objective(Answering(rows, bits), 0.1)


def with_record(X, y, record, label):
    X, y = X.copy(), y.copy()
    X[AT], y[AT] = record, label
    return X, y


def largest_squares(objective, storage, records, folder, seed=0):
    """By query, for each record against an empty one, which may hold anything."""
    rng = np.random.default_rng(seed)
    X, y = table(rng)
    replayed, found = Replayed(), {}
    first = replayed.run(released(objective, storage, *with_record(X, y, [1.0] * N, NAN), folder))
    for record, label in records:
        emptied = replayed.run(
            released(objective, storage, *with_record(X, y, record, NAN), folder)
        )
        assert not any(replayed.distances(first, emptied).values()), "an empty record was read"
        full = replayed.run(released(objective, storage, *with_record(X, y, record, label), folder))
        for name, distance in replayed.distances(first, full).items():
            found[name] = max(found.get(name, 0), distance)
    return found


CASES = [(name, storage) for name, (_, _, storages, _) in RECORDS.items() for storage in storages]


@pytest.mark.parametrize(("name", "storage"), CASES)
def test_no_record_moves_a_release_by_more_than_its_noise_hides(name, storage, tmp_path):
    settings, options, _, queries = RECORDS[name]
    some = EXTREME if storage == "array" else EXTREME[2::3]
    found = largest_squares(mechanism(settings, options), storage, some, tmp_path)
    assert found.keys() >= queries
    assert max(found.values()) <= 1
    # Most queries can be moved by all of what is claimed, so that the test would see an excess.
    assert max(found.values()) > 0.4


@pytest.mark.slow
@pytest.mark.parametrize(("name", "storage"), CASES)
def test_no_record_of_many_moves_a_release_by_more(name, storage, tmp_path):
    objective, rng = mechanism(*RECORDS[name][:2]), np.random.default_rng(1)
    cells = np.array([*CELLS, *rng.uniform(-2.0, 3.0, 12), *10.0 ** rng.uniform(-30, 30, 6)])
    records = [(rng.choice(cells, N), rng.choice(TARGETS)) for _ in range(60)]
    for seed in range(3):
        found = largest_squares(objective, storage, records[seed::3], tmp_path, seed)
        assert max(found.values()) <= 1


@pytest.mark.parametrize(
    "name",
    [
        "objective",
        "quantile",
        "private bounds",
        "private scales",
        "statistics",
        "private shape",
        "screened",
    ],
)
def test_no_record_in_the_place_of_another_moves_a_release_by_more(name, tmp_path):
    """All pairs of extreme records, where neighbours differ by one that is replaced."""
    settings, options, _, queries = RECORDS[name]
    objective = mechanism({**settings, "neighbours": "replaced"}, options)
    X, y = table(np.random.default_rng(0))
    replayed, found = Replayed("replaced"), {}
    records = [*EXTREME[:8], ([1.0] * N, NAN), ([2.0, -1.0, 2.0, 0.0], 3.0)]
    runs = [
        replayed.run(released(objective, "array", *with_record(X, y, *one), tmp_path))
        for one in records
    ]
    for one, two in itertools.combinations(runs, 2):
        for query, distance in replayed.distances(one, two).items():
            found[query] = max(found.get(query, 0), distance)
    # Of rows it is the length that counts, which is checked where they are.
    assert found.keys() >= queries
    assert max(distance for query, distance in found.items() if query != "rows") <= 1
    assert max(found.values()) > 0.4


def test_no_label_moves_the_range_of_all_labels_by_more(tmp_path):
    """Neither one that is emptied nor one in the place of another, however extreme."""

    def objective(ask, lam):
        return LabelRange(0.5, Neighbours("label", relation))(ask)

    relation: Relation = "emptied"
    for storage in ("array", "csr", "blocks", "memmap"):
        found = largest_squares(objective, storage, EXTREME, tmp_path)
        assert found.keys() == {"choice"}
        assert 0.4 < max(found.values()) <= 1
    relation, found = "replaced", {}
    X, y = table(np.random.default_rng(0))
    replayed = Replayed("replaced")
    runs = [
        replayed.run(released(objective, "array", *with_record(X, y, [1.0] * N, one), tmp_path))
        for one in (*TARGETS, -3.0, 0.75, NAN)
    ]
    for one, two in itertools.combinations(runs, 2):
        for query, distance in replayed.distances(one, two).items():
            found[query] = max(found.get(query, 0), distance)
    assert 0.4 < min(found.values()) <= max(found.values()) <= 1


def square(objective, record, other, query):
    """The squared distance of the answers to one query for two records."""
    X, y = table(np.random.default_rng(0))
    replayed = Replayed()
    first, second = (
        replayed.run(released(objective, "array", *with_record(X, y, *one), None))
        for one in (record, other)
    )
    return replayed.distances(first, second)[query]


@pytest.mark.parametrize(
    ("name", "query"), [("private bounds", COUNTS), ("private scales", SCALES)]
)
@pytest.mark.parametrize("left", [-INF, 0.5, NAN])
def test_an_emptied_record_is_neither_counted_nor_summed(name, query, left):
    """Whatever its covariates are: they were √2 and 1.79 times what the noise hides, with −∞."""
    objective = mechanism(*RECORDS[name][:2])
    assert square(objective, ([INF] * N, 3.0), ([left] * N, NAN), query) <= 1


@pytest.mark.parametrize("bounds", [(2.0**53, 2.0**53 + 2.0), (1e10, 1e10 + 1e-5)], ids=str)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_bounds_of_labels_that_round(bounds, fit_intercept):
    """Their middle rounds, and so labels were up to 1.6 and 1.09 times what the noise hides.

    `RecordDP` refuses such bounds, so that they are put into the mechanism here.
    """
    found = mechanism({"mechanism": "statistics"}, {"fit_intercept": fit_intercept})
    found = replace(found, table=replace(found.table, y_bounds=bounds))
    for label in bounds:
        for record in ([2.0, 2.0, 0.7, 0.7], [2.0, 2.0, 2.0, 0.0]):  # as long as is allowed
            assert square(found, (record, label), ([0.0] * N, NAN), MOMENTS) <= 1


def labelled(mechanism, options, storage, neighbours: Relation = "replaced"):
    """A fit of public covariates, as a function of the labels."""
    X, _ = table(np.random.default_rng(0))
    privacy = pv.LabelDP(3.0, 1e-3, (0.0, 3.0), mechanism, neighbours=neighbours)
    chosen = FitOptions(privacy, **options)

    plan = (
        None
        if storage == "blocks"
        else plan_for(stored(storage, X, X, None)[0], chosen, seeded=True)
    )

    def run(y):
        data, labels = stored(storage, X, y, None)
        here = plan or plan_for(data, chosen, seeded=True)
        return lambda: here.release(labels, rng=np.random.default_rng(0), charged=True)

    return run


LABELS = {
    "products": ("release", {}, ("array", "csr", "blocks", "large"), {PRODUCTS}),
    "through zero": (
        "release",
        {"fit_intercept": False, "noise": pv.PowerLaw(1.0, 0.5)},
        ("array", "csr"),
        {PRODUCTS},
    ),
    "objective": ("objective", {}, ("array", "csc", "blocks", "large"), {ROWS}),
    "quantile": ("objective", {"loss": pv.Quantile(0.8)}, ("array", "blocks"), {ROWS}),
    "screened": ("auto", {"screen": 2}, ("array", "csr"), {CENTRE, "choice", ROWS, LEVEL}),
}


@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
@pytest.mark.parametrize(
    ("name", "storage"),
    [
        pytest.param(name, storage, marks=pytest.mark.slow if name == "screened" else ())
        for name, one in LABELS.items()
        for storage in one[2]
    ],
)
def test_no_label_moves_a_release_by_more_than_its_noise_hides(name, storage, monkeypatch):
    if storage == "large":  # covariates are known by sums over blocks
        storage = "blocks"
        monkeypatch.setattr("privasso.fit._rows.LARGEST", 0)
    mechanism, options, _, queries = LABELS[name]
    run, (_, y) = labelled(mechanism, options, storage), table(np.random.default_rng(0))
    replayed, found, middle = Replayed("labels"), {}, None
    for label in (0.0, 1.5, *TARGETS, NAN, 3.0 + 1e-15):
        y = np.where(np.arange(M) == AT, label, y)
        releases = replayed.run(run(y))
        for name, distance in replayed.distances(replayed.first, releases).items():
            found[name] = max(found.get(name, 0), distance)
        if label == 1.5:
            middle = releases
        if np.isnan(label):  # counts as the middle of the bounds
            assert not any(replayed.distances(middle, releases).values())
    assert found.keys() >= queries
    assert max(found.values()) <= 1
    assert {"rows"} == queries or max(found.values()) > 0.4


@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
@pytest.mark.parametrize("storage", ["array", "blocks"])
@pytest.mark.parametrize(
    "name",
    ["products", "objective", "quantile", pytest.param("screened", marks=pytest.mark.slow)],
)
def test_no_emptied_label_moves_a_release_by_more(name, storage):
    """A record without a label contributes nothing, and each label is compared with that."""
    mechanism, options, _, queries = LABELS[name]
    run, (_, y) = labelled(mechanism, options, storage, "emptied"), table(np.random.default_rng(0))
    replayed, found = Replayed("emptied"), {}
    for label in (NAN, 0.0, 1.5, *TARGETS, 3.0 + 1e-15):
        y = np.where(np.arange(M) == AT, label, y)
        releases = replayed.run(run(y))
        for query, distance in replayed.distances(replayed.first, releases).items():
            found[query] = max(found.get(query, 0), distance)
    assert found.keys() >= queries
    assert max(found.values()) <= 1
    assert max(found.values()) > 0.4
