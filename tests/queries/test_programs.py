"""Programs: what they ask depends on answers alone, and answers do not depend on the storage."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import privasso as pv
from privasso.accounting import compose_losses
from privasso.blocks import RowBlocks, of_dask, open_files
from privasso.fit import Classes, FitOptions, plan_for
from privasso.queries import Answering, Replaying, bit_source, same_question

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
    "screened": ({}, {"screen": 3}),
    "screened through zero": ({}, {"screen": 3, "fit_intercept": False}),
}


def table(seed=0, m=M):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.1, 2.2, (m, N))
    y = (X[:, 0] + 0.5 * X[:, 1] - X[:, 2] + 0.4 * rng.standard_normal(m) > 0.5).astype(float)
    X[5, 2], X[6, 0], y[7] = np.nan, np.inf, np.nan
    return X, y


def planned(name, rows) -> Any:
    settings, options = PROGRAMS[name]
    given = {"bounds": BOUNDS, "y_bounds": (-0.5, 1.5), **settings}
    privacy = pv.RecordDP(2.0, 1e-4, **given)
    return plan_for(rows, FitOptions(privacy, **options), seeded=True)


def asked(name, seed=1):
    """The transcript and the result of one run."""
    X, y = table()
    plan = planned(name, X)
    ask = Answering(RowBlocks.of_arrays(X, y), bit_source(np.random.default_rng(seed)))
    return plan, ask, plan.objective(ask, plan.lam)


def numbers(found, lam):
    found = found.solve(lam) if hasattr(found, "solve") else found
    return [*found.coef.tolist(), found.intercept]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_answers_lead_to_the_same_questions_and_the_same_result(name):
    """Without any rows, so that no record can decide what is asked."""
    plan, ask, found = asked(name)
    replay = Replaying([answer for _, answer in ask.transcript], M)
    again = plan.objective(replay, plan.lam)
    assert numbers(again, plan.lam) == numbers(found, plan.lam)
    assert len(replay.transcript) == len(ask.transcript)
    for (one, _), (two, _) in zip(ask.transcript, replay.transcript, strict=True):
        assert same_question(one, two)
    _, other, _ = asked(name, seed=2)
    last = ask.transcript[-1][0], other.transcript[-1][0]
    assert len(ask.transcript) == 1 or not same_question(*last)  # later ones follow from answers


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_questions_cost_what_is_stated(name):
    """Composed by other code than that which the noise was calibrated with."""
    _, ask, _ = asked(name)
    delta = compose_losses([query.loss for query, _ in ask.transcript]).delta(2.0)
    assert 0.3e-4 < delta < 1.03e-4
    assert all(query.sentence for query, _ in ask.transcript)


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
    return of_dask(da.from_array(X, chunks=(4, N)), da.from_array(y, chunks=4)), None


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_model_to_the_last_bit_from_every_storage(name, tmp_path):
    """From an array, an array by columns, parts, a mapped file, seven files, and 60 partitions."""
    X, y = table()

    def model(data, labels):
        made = planned(name, data).release(labels, rng=np.random.default_rng(3), charged=True)
        found = made.solve()
        return found.coef.tolist(), found.intercept

    expected = model(X, y)
    for storage in ("fortran", "three parts", "mapped", "seven files", "dask"):
        assert model(*stored(storage, X, y, tmp_path)) == expected, storage
