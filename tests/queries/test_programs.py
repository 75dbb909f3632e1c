"""Programs: what they ask depends on answers alone, and answers do not depend on the storage."""

from collections import Counter
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import polars as pl
import pytest

import privasso as pv
from privasso.accounting import ChoiceLoss
from privasso.accounting._composed import compose_losses
from privasso.blocks import RowBlocks, of_dask, open_files
from privasso.fit import Classes, FitOptions, plan_for
from privasso.fit._plan import statement
from privasso.privacy import Terms
from privasso.programs import Release
from privasso.programs._clipped_sums import ClippedLabels
from privasso.queries import Answering, NoisySum, UndeclaredError, bit_source, declared
from privasso.queries._query import Replaying, same_question

M, N = 240, 6
BOUNDS = [(0.0, 2.0)] * N
#: Settings of `RecordDP` and options of the fit.
PROGRAMS = {
    "plain": ({"level": True}, {}),
    "through zero": ({}, {"fit_intercept": False}),
    "wide": ({"kappa": 2.0**-21, "level": True}, {}),
    "private bounds": ({"bounds": "private"}, {}),
    "private scales": ({"scales": "private"}, {}),
    "statistics": ({"mechanism": "statistics"}, {}),
    "private shape": ({"shape": "private", "level": True}, {}),
    "public shape": ({"shape": np.random.default_rng(5).random((30, N)).tolist()}, {}),
    "logistic": ({"y_bounds": (0, 1)}, {"classes": Classes()}),
    "scaled logistic": (
        {"y_bounds": (0, 1), "scales": "private", "bounds": "private"},
        {"classes": Classes()},
    ),
    "replaced": ({"level": True, "neighbours": "replaced", "scales": "private"}, {}),
    "replaced statistics": ({"mechanism": "statistics", "neighbours": "replaced"}, {}),
    "screened, replaced": ({"neighbours": "replaced"}, {"screen": 3}),
    "screened": ({}, {"screen": 3}),
    "range of the labels": ({"y_bounds": "private"}, {}),
    "range and intervals": ({"y_bounds": "private"}, {"intervals": "huber"}),
    "range for statistics": ({"y_bounds": "private", "mechanism": "statistics"}, {}),
    "quantile": ({}, {"loss": pv.Quantile(0.8)}),
    "shaped quantile": ({"shape": "private"}, {"loss": pv.Quantile(0.2)}),
    "screened quantile": ({}, {"screen": 3, "loss": pv.Quantile(0.8)}),
    "screened through zero": ({}, {"screen": 3, "fit_intercept": False}),
    "zeros and ones": ({"bounds": "0/1"}, {}),
    "screened zeros and ones": ({"bounds": "0/1"}, {"screen": 3}),
    "intervals": ({}, {"intervals": True}),
    "intervals through zero": ({}, {"intervals": "huber", "fit_intercept": False}),
    "intervals, replaced": ({"neighbours": "replaced"}, {"intervals": "least-squares"}),
    "intervals, screened": ({}, {"intervals": True, "screen": 3}),
    "intervals of statistics": ({"mechanism": "statistics"}, {"intervals": True}),
    "intervals of odds": ({"y_bounds": (0, 1)}, {"intervals": True, "classes": Classes()}),
}
#: Settings of `LabelDP`.
LABELS = {
    "labels": ({"level": True}, {}),
    "labels through zero": ({}, {"fit_intercept": False}),
    "products of labels": ({"mechanism": "release"}, {}),
    "products with a design": ({}, {"noise": pv.PowerLaw(1.0, 0.5)}),
    "labels, logistic": ({"y_bounds": (0, 1)}, {"classes": Classes()}),
    "labels of large tables": ({"level": True}, {}),
    "emptied labels": ({"level": True, "neighbours": "emptied"}, {}),
    "products of emptied labels": ({"mechanism": "release", "neighbours": "emptied"}, {}),
    "chosen by emptied labels": ({"neighbours": "emptied"}, {"screen": 3}),
    "chosen by labels": ({}, {"screen": 3}),
    "labels in a range": ({"y_bounds": "private"}, {}),
    "labels of large tables in a range": ({"y_bounds": "private"}, {}),
    "emptied labels in a range": (
        {"y_bounds": "private", "neighbours": "emptied"}, {"intervals": True},
    ),
    "chosen by labels in a range": ({"y_bounds": "private"}, {"screen": 3}),
    "quantile of labels": ({}, {"loss": pv.Quantile(0.8)}),
    "quantile of emptied labels": ({"neighbours": "emptied"}, {"loss": pv.Quantile(0.8)}),
    "intervals of labels": ({}, {"intervals": True}),
    "intervals of labels of large tables": ({}, {"intervals": True}),
    "intervals of emptied labels": (
        {"neighbours": "emptied", "mechanism": "release"}, {"intervals": "huber"},
    ),
    "intervals of chosen labels": ({}, {"intervals": True, "screen": 3}),
    "intervals of odds of labels": (
        {"y_bounds": (0, 1)}, {"intervals": True, "classes": Classes()},
    ),
}  # fmt: skip
ALL = [*PROGRAMS, *LABELS]


def table(public=False):
    rng, m = np.random.default_rng(0), M
    X = rng.uniform(-0.1, 2.2, (m, N))
    y = (X[:, 0] + 0.5 * X[:, 1] - X[:, 2] + 0.4 * rng.standard_normal(m) > 0.5).astype(float)
    y[7] = np.nan
    if not public:
        X[5, 2], X[6, 0] = np.nan, np.inf
    return X, y


@pytest.fixture(autouse=True)
def large(request, monkeypatch):
    if "large" in request.node.name:
        monkeypatch.setattr("privasso.fit._rows.LARGEST", 0)


def planned(name, rows) -> Any:
    if name in LABELS:
        settings, options = LABELS[name]
        privacy = pv.LabelDP(2.0, 1e-4, **{"y_bounds": (-0.5, 1.5), **settings})
        if options.get("classes"):
            privacy = privacy.for_classes()
        return plan_for(rows, FitOptions(privacy, **options), seeded=True)
    settings, options = PROGRAMS[name]
    given = {"bounds": BOUNDS, "y_bounds": (-0.5, 1.5), **settings}
    privacy = pv.RecordDP(2.0, 1e-4, **given)
    return plan_for(rows, FitOptions(privacy, **options), seeded=True)


@cache
def asked(name, seed=1):
    """The transcript and the result of one run, which the tests only read."""
    X, y = table(name in LABELS)
    plan = planned(name, X)
    ask = Answering(RowBlocks.of_arrays(X, y), bit_source(np.random.default_rng(seed)))
    return plan, ask, run(plan, ask)


def run(plan, ask):
    """What comes of a program, as numbers."""
    found = plan.program(ask)
    if plan.range is not None:
        found, within = found
        assert within.low < within.high
    if isinstance(found, tuple):
        steps = found[1].steps.values()
        return [x for at, one in steps for x in (*at, *one.H.ravel(), *one.s, *one.V.ravel())]
    if isinstance(found, Release):
        return [*found.b.tolist(), found.label_sum, found.level]
    chosen = getattr(found, "chosen", np.empty(0)).tolist()
    found = getattr(found, "few", found)
    found = found.solve(plan.lam) if hasattr(found, "solve") else found
    return [*chosen, *found.coef.tolist(), found.intercept]


@pytest.mark.parametrize("name", ALL)
def test_the_same_answers_lead_to_the_same_questions_and_the_same_result(name):
    """Without any rows, so that no record can decide what is asked."""
    plan, ask, found = asked(name)
    replay = Replaying([answer for _, answer in ask.transcript], M)
    assert run(plan, replay) == found
    assert len(replay.transcript) == len(ask.transcript)
    for (one, _), (two, _) in zip(ask.transcript, replay.transcript, strict=True):
        assert same_question(one, two)
    _, other, _ = asked(name, seed=2)
    later = zip(ask.transcript[1:], other.transcript[1:], strict=True)
    same = [same_question(one, two) for (one, _), (two, _) in later]
    # Later ones follow from answers; but the range of zeros and ones is from 0 to 1.
    assert plan.range is not None or not (same and all(same))


@pytest.mark.parametrize("name", ALL)
def test_the_questions_cost_what_is_stated(name):
    """Composed by other code than that which the noise was calibrated with."""
    _, ask, _ = asked(name)
    losses = [query.loss for query, _ in ask.transcript]
    # Choices of the same ε₀ one after the other compose exactly only together.
    counts: Counter[float] = Counter()
    for one in losses:
        if isinstance(one, ChoiceLoss):
            counts[one.epsilon_each] += one.count
    together = [ChoiceLoss(epsilon, count) for epsilon, count in counts.items()]
    others: list[Any] = [one for one in losses if not isinstance(one, ChoiceLoss)]
    delta = compose_losses([*together, *others]).delta(2.0)
    assert 0.3e-4 < delta < 1.03e-4
    assert all(query.sentence for query, _ in ask.transcript)


@pytest.mark.parametrize("name", ALL)
def test_the_questions_are_those_that_were_declared(name):
    """Without any rows, and with answers that are made up."""
    plan, ask, _ = asked(name)
    asked_for = [query.loss for query in declared(partial(run, plan), M)]
    assert asked_for == [query.loss for query, _ in ask.transcript]
    assert tuple(asked_for) == plan.guarantee.losses


@pytest.mark.parametrize("fault", ["one more", "more noise", "less noise"])
def test_what_was_not_declared_is_not_answered(fault):
    """A program whose questions depend on answers, which no table must be able to do."""

    def program(ask):
        first = float(ask(NoisySum(ClippedLabels((0.0, 1.0), 0.5, 0.5), 0.1))[0])
        if first > 100.0:  # as many labels are above the middle
            factor = {"one more": 1.0, "more noise": 0.5, "less noise": 2.0}[fault]
            ask(NoisySum(ClippedLabels((0.0, 1.0), 0.5, 0.5), 0.1 * factor))
        if fault != "one more" and first <= 100.0:
            ask(NoisySum(ClippedLabels((0.0, 1.0), 0.5, 0.5), 0.1))

    losses, drawn = [query.loss for query in declared(program, 200)], []
    for labels, refused in ((np.zeros(200), False), (np.ones(200), True)):
        rows = RowBlocks.of_arrays(np.empty((200, 0)), labels)
        ask = Answering(rows, bit_source(np.random.default_rng(0)), losses)
        if refused:
            with pytest.raises(UndeclaredError, match="was not answered"):
                program(ask)
        else:
            program(ask)
        drawn.append(len(ask.transcript))
    assert drawn[1] == 1


def stored(storage, X, y, folder):
    if storage == "fortran":
        return np.asfortranarray(X), y
    if storage == "three parts":
        return RowBlocks.of_arrays(X, y, n_parts=3), None
    if storage == "mapped":
        np.save(folder / "X.npy", X)
        return RowBlocks.of_arrays(np.load(folder / "X.npy", mmap_mode="r"), y, n_parts=2), None
    if storage == "seven files":
        for k, rows in enumerate(np.array_split(np.arange(len(y)), 7)):
            frame = pl.DataFrame({f"x{j}": X[rows, j] for j in range(N)} | {"y": y[rows]})
            frame.write_parquet(folder / f"{k}.parquet")
        return open_files(sorted(folder.glob("*.parquet")), "y"), None
    da = pytest.importorskip("dask.array")
    return of_dask(da.from_array(X, chunks=(16, N)), da.from_array(y, chunks=16)), None


STORAGES = ("fortran", "three parts", "mapped", "seven files", "dask")
#: Each program from one storage, and each storage for several programs; the rest is slow.
FEW = [(name, (STORAGES[k % len(STORAGES)],)) for k, name in enumerate(ALL)]
EVERY = [pytest.param(name, STORAGES, marks=pytest.mark.slow) for name in ALL]


@pytest.mark.parametrize(("name", "storages"), [*FEW, *EVERY])
def test_the_same_model_to_the_last_bit_from_every_storage(name, storages, tmp_path):
    """From an array, an array by columns, parts, a mapped file, seven files, and 15 partitions."""
    X, y = table(name in LABELS)

    def model(data, labels):
        made = planned(name, data).release(labels, rng=np.random.default_rng(3), charged=True)
        found = made.solve()
        intervals = None if found.intervals is None else found.intervals.to_dict()
        return found.coef.tolist(), found.intercept, intervals

    expected = model(X, y)
    for storage in storages:
        assert model(*stored(storage, X, y, tmp_path)) == expected, storage


@pytest.mark.parametrize("name", ["plain", "private scales", "statistics", "screened"])
def test_noise_for_other_neighbours_is_not_stated(name):
    """A question that was meant for emptied records has the same loss, but half of the noise."""
    plan, terms = planned(name, table()[0]), Terms(fit_intercept=True, seeded=True, n_rows=M)
    emptied = plan.options.privacy
    assert statement(emptied, partial(run, plan), terms).losses == plan.guarantee.losses
    with pytest.raises((UndeclaredError, ValueError), match=r"not among those|other neighbours"):
        statement(replace(emptied, neighbours="replaced"), partial(run, plan), terms)
