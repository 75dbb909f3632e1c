"""Whatever is wrong with the data, a refusal is one sentence of ours that holds no value of them.

A marker is planted in each bad table. It must not be in the message, in any exception behind it, in
the printed traceback or in a warning.
"""

import pickle
import traceback
import warnings
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import privasso as pv
from privasso._covariates import covariates
from privasso.attacks import audit
from privasso.blocks import WorkersLostError
from privasso.fit import Classes, FitOptions, plan_fit, plan_for

WORD, NUMBER = "SECRET-COVARIATE", 987654321.125
MARKS = (WORD, "SECRET", "987654321")
OURS = str(Path(pv.__file__).parent)
M = 40
RNG = np.random.default_rng(0)
X = RNG.random((M, 2))
Y = RNG.random(M)
B = (Y > 0.5).astype(int)

LABELS = pv.LabelDP(1.0, 1e-6, (0, 1))
RECORDS = {"bounds": [(0, 1)] * 2, "y_bounds": (0, 1)}
KINDS = {
    "labels": {"privacy": LABELS},
    "labels, chosen columns": {"privacy": LABELS, "screen": 1},
    "records": {"privacy": pv.RecordDP(1.0, 1e-6, **RECORDS)},
    "statistics": {"privacy": pv.RecordDP(1.0, 1e-6, mechanism="statistics", **RECORDS)},
    "records, chosen columns": {"privacy": pv.RecordDP(1.0, 1e-6, **RECORDS), "screen": 1},
    "records, private bounds": {"privacy": pv.RecordDP(1.0, 1e-6, "private", (0, 1))},
}


def changed(cell, dtype: Any = object):
    """The table with one other cell."""
    out = X.astype(object)
    out[7, 1] = cell
    return out.astype(dtype)


def of_dask(table, chunks: Any = (10, 2)):
    return da.from_array(table, chunks=chunks)


def cells(cell):
    return changed(cell).tolist()


def column(values, **options):
    return pd.DataFrame({"a": X[:, 0], "b": pd.Series(values, **options)})


def of_polars(values, dtype=None):
    return pl.DataFrame({"a": X[:, 0], "b": pl.Series(values, dtype=dtype)})


WORDS = [WORD] * M
DAYS = pd.date_range("1987-06-05", periods=M)
SPARSE = sp.csr_array(X)
HOLDS_TEXT = {
    "text in a list": lambda: cells(WORD),
    "text in an array": lambda: changed(WORD, str),
    "text as objects": lambda: changed(WORD),
    "bytes": lambda: changed(WORD.encode(), "S"),
    "bytes as objects": lambda: changed(WORD.encode()),
    "a mapping": lambda: changed({"secret": WORD}),
    "a list in a cell": lambda: changed([NUMBER, WORD]),
    "ragged": lambda: [[NUMBER], [NUMBER, 1.0]] * (M // 2),
    "dates": lambda: np.full((M, 2), np.datetime64("1987-06-05")),
    "dates and numbers": lambda: [[np.datetime64("1987-06-05"), NUMBER]] * M,
    "times": lambda: np.full((M, 2), np.timedelta64(987654321, "s")),
    "complex": lambda: np.full((M, 2), NUMBER + 1j),
    "complex in a list": lambda: cells(NUMBER + 1j),
    "complex as objects": lambda: changed(np.complex128(NUMBER + 1j)),
    "one column as a vector": lambda: np.full(M, NUMBER),
    "a list of numbers": lambda: [NUMBER] * M,
    "three dimensions": lambda: np.full((M, 2, 1), NUMBER),
    "a number": lambda: NUMBER,
    "nothing": lambda: None,
    "a set": lambda: {NUMBER},
    "a dictionary": lambda: {"a": X[:, 0], "b": WORDS},
    "a structured array": lambda: np.array([(NUMBER, WORD)] * M, dtype="f8,U20"),
    "no rows": lambda: X[:0],
    "no columns": lambda: X[:, :0],
    "pandas, text": lambda: column(WORDS),
    "pandas, text as objects": lambda: column(WORDS, dtype=object),
    "pandas, categories": lambda: column(WORDS, dtype="category"),
    "pandas, categories of numbers": lambda: column([NUMBER] * M, dtype="category"),
    "pandas, dates": lambda: column(DAYS),
    "pandas, dates with a zone": lambda: column(DAYS.tz_localize("UTC")),
    "pandas, mixed": lambda: column([NUMBER, WORD] * (M // 2), dtype=object),
    "pandas, bytes": lambda: column([WORD.encode()] * M),
    "pandas, complex": lambda: column([NUMBER + 1j] * M),
    "pandas, text of arrow": lambda: column(WORDS, dtype="string[pyarrow]"),
    "pandas, sparse text": lambda: column(WORDS, dtype=pd.SparseDtype(object, "")),
    "pandas, one series": lambda: pd.Series(WORDS),
    "polars, text": lambda: of_polars(WORDS),
    "polars, categories": lambda: of_polars(WORDS, pl.Categorical),
    "polars, dates": lambda: of_polars(list(DAYS)),
    "polars, lists": lambda: of_polars([[NUMBER]] * M),
    "polars, structs": lambda: of_polars([{"x": NUMBER}] * M),
    "polars, bytes": lambda: of_polars([WORD.encode()] * M),
    "polars, objects": lambda: of_polars([{WORD}] * M, pl.Object),
    "polars, lazy": lambda: of_polars([NUMBER] * M).lazy(),
    "polars, one series": lambda: pl.Series(WORDS),
    "sparse, complex": lambda: SPARSE.astype(complex) * NUMBER,
    "sparse, objects": lambda: sp.csr_array(
        (changed(WORD).ravel(), SPARSE.indices, SPARSE.indptr), shape=X.shape
    ),
    "Dask, objects": lambda: of_dask(changed(WORD)),
    "Dask, text": lambda: of_dask(changed(WORD, str)),
    "Dask, a frame with text": lambda: dd.from_pandas(column(WORDS), npartitions=2),
    "Dask, a frame with objects": lambda: dd.from_pandas(
        column([WORD, 1.0] * (M // 2), dtype=object), npartitions=2
    ),
}  # fmt: skip
#: Refused as covariates that are public, and in predictions; in a private record, a missing cell.
NOT_FINITE = {
    "NaN": lambda: np.where(np.arange(M)[:, None] == 3, np.nan, NUMBER * X),
    "a huge whole number": lambda: cells(987654321 * 10**400),
    "infinity": lambda: np.where(np.arange(M)[:, None] == 3, -np.inf, NUMBER * X),
    "missing in a list": lambda: [[NUMBER, None]] * M,
    "pandas, missing": lambda: column([987654321, None] * (M // 2), dtype="Int64"),
    "polars, missing": lambda: of_polars([NUMBER, None] * (M // 2)),
    "masked": lambda: np.ma.array(np.full((M, 2), NUMBER), mask=X > 0.5),
    "sparse, NaN": lambda: SPARSE * np.nan,
}


def refused(call, *names, kinds: Any = (ValueError, TypeError)):
    """Check that a call is refused in a sentence of ours that holds nothing of the data."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        with pytest.raises(kinds) as caught:
            call()
    error = caught.value
    shown = ["".join(traceback.format_exception(error)), *(str(one.message) for one in heard)]
    behind: BaseException | None = error
    while behind is not None:
        shown += [str(behind), repr(behind)]
        behind = behind.__cause__ or behind.__context__
    for mark in MARKS:
        assert not any(mark in text for text in shown), (names, shown)
    place = traceback.extract_tb(error.__traceback__)[-1].filename
    assert place.startswith(OURS), (names, shown[0])
    said = str(error)
    assert "\n" not in said
    assert 20 < len(said) < 400, said


@pytest.fixture(scope="module")
def all_fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pv.PrivacyWarning)
        found: dict[str, Any] = {
            name: pv.PrivateLasso(random_state=0, **KINDS[name]).fit(X, Y)
            for name in ("labels", "records", "statistics")
        }
        found["classes"] = pv.PrivateLogisticLasso(privacy=LABELS, random_state=0).fit(X, B)
    return found


@pytest.fixture(scope="module")
def plans():
    return {name: plan_for(X, FitOptions(**options)) for name, options in KINDS.items()}


@pytest.mark.parametrize("what", HOLDS_TEXT)
def test_covariates_of_a_fit(what):
    bad = HOLDS_TEXT[what]
    for name, options in KINDS.items():
        refused(lambda o=options: pv.PrivateLasso(**o).fit(bad(), Y), what, name)
        if "Dask" in what:
            continue
        settings = FitOptions(**options)
        refused(lambda s=settings: plan_for(bad(), s).release(Y), what, name, "plan_for")
        if name == "labels":
            refused(lambda s=settings: plan_fit(bad(), s), what, "plan_fit")
    for name in ("labels", "records"):
        est = pv.PrivateLogisticLasso(**KINDS[name])
        refused(lambda e=est: e.fit(bad(), B), what, name, "classes")


@pytest.mark.parametrize("what", {**HOLDS_TEXT, **NOT_FINITE})
def test_covariates_after_a_fit(what, all_fitted):
    bad = {**HOLDS_TEXT, **NOT_FINITE}[what]
    for name, est in all_fitted.items():
        labels = B if name == "classes" else Y
        refused(lambda e=est: e.predict(bad()), what, name, "predict")
        refused(lambda e=est, y=labels: e.score(bad(), y), what, name, "score")
        refused(lambda e=est: e.released_model().predict(bad()), what, name, "model")
    for name in ("labels", "classes"):
        est = all_fitted[name]
        refused(lambda e=est: e.refit(bad(), 1.0), what, name, "refit")
        refused(lambda e=est: e.path(bad(), [1.0]), what, name, "path")
        refused(lambda e=est: e.release_.open(bad()), what, name, "open")
    refused(lambda: all_fitted["classes"].predict_proba(bad()), what)


@pytest.mark.parametrize("what", NOT_FINITE)
def test_public_covariates_that_are_not_finite(what):
    bad = NOT_FINITE[what]
    for name in ("labels", "labels, chosen columns"):
        refused(lambda n=name: pv.PrivateLasso(**KINDS[n]).fit(bad(), Y), what, name)
        settings = FitOptions(**KINDS[name])
        refused(lambda s=settings: plan_for(bad(), s), what, name, "plan_for")
    est = pv.PrivateLogisticLasso(privacy=LABELS)
    refused(lambda: est.fit(bad(), B), what)


def test_a_named_table_tells_columns_and_no_cells():
    message = (
        "X must hold numbers, and column 'b' holds something else; turn it into numbers by rules "
        "that do not depend on the data, as TableEncoder does with a data dictionary, or leave it "
        "out"
    )
    for table in (column(WORDS), of_polars(WORDS)):
        with pytest.raises(ValueError, match=f"^{message}$"):
            pv.PrivateLasso(privacy=LABELS).fit(table, Y)


BAD_LABELS = {
    "text": lambda: WORDS,
    "an array of text": lambda: np.array(WORDS),
    "objects": lambda: np.array([WORD, 1.0] * (M // 2), dtype=object),
    "bytes": lambda: np.array([WORD.encode()] * M),
    "dates": lambda: np.full(M, np.datetime64("1987-06-05")),
    "complex": lambda: np.full(M, NUMBER + 1j),
    "complex as objects": lambda: np.array([np.complex128(NUMBER + 1j)] * M, dtype=object),
    "ragged": lambda: [[NUMBER], [NUMBER, 2.0]] * (M // 2),
    "two columns": lambda: np.full((M, 2), NUMBER),
    "another length": lambda: np.full(M + 1, NUMBER),
    "nothing": lambda: None,
    "a number": lambda: NUMBER,
    "a word": lambda: WORD,
    "a mapping": lambda: {WORD: NUMBER},
    "a set": lambda: {NUMBER},
    "pandas, text": lambda: pd.Series(WORDS),
    "pandas, categories": lambda: pd.Series(WORDS, dtype="category"),
    "pandas, dates": lambda: pd.Series(DAYS),
    "pandas, a frame": lambda: pd.DataFrame({"y": WORDS}),
    "polars, text": lambda: pl.Series(WORDS),
    "polars, lists": lambda: pl.Series([[NUMBER]] * M),
    "polars, a frame": lambda: pl.DataFrame({"y": WORDS}),
    "Dask": lambda: of_dask(np.array([WORD, 1.0] * (M // 2), dtype=object), 10),
}
#: Cells of any type, each of which is a missing label where the classes are given.
PER_CELL = {
    "objects", "complex as objects", "pandas, text", "pandas, categories", "pandas, a frame",
    "polars, lists", "polars, a frame", "Dask",
}  # fmt: skip
#: Missing labels, which are refused where nothing is said of them.
MISSING_LABELS = {
    "NaN": lambda: np.where(np.arange(M) == 3, np.nan, NUMBER),
    "infinity": lambda: np.where(np.arange(M) == 3, np.inf, NUMBER),
    "a huge whole number": lambda: [987654321 * 10**400] * M,
    "masked": lambda: np.ma.array(np.full(M, NUMBER), mask=Y > 0.5),
    "pandas, missing": lambda: pd.Series([987654321, None] * (M // 2), dtype="Int64"),
}


@pytest.mark.parametrize("what", BAD_LABELS)
def test_labels(what, all_fitted, plans):
    bad = BAD_LABELS[what]
    for name, options in KINDS.items():
        refused(lambda o=options: pv.PrivateLasso(**o).fit(X, bad()), what, name)
        refused(lambda n=name: plans[n].release(bad()), what, name, "plan")
    for name in ("labels", "records"):
        for classes in ((0, 1), "observed"):
            est = pv.PrivateLogisticLasso(classes=classes, **KINDS[name])
            if classes == "observed" or what not in PER_CELL:
                refused(lambda e=est: e.fit(X, bad()), what, name, "classes")
    refused(lambda: all_fitted["labels"].score(X, bad()), what, "score")
    if what not in {*PER_CELL, "another length"}:
        refused(lambda: Classes().coded(bad()), what, "coded")


@pytest.mark.parametrize("what", MISSING_LABELS)
def test_missing_labels(what, all_fitted):
    bad = MISSING_LABELS[what]
    refused(lambda: all_fitted["labels"].score(X, bad()), what)
    refused(lambda: pv.PrivateLasso(privacy=pv.OnAverage(1.0), lam=1.0).fit(X, bad()), what)
    refused(lambda: audit(LABELS, X, bad()), what)


def test_weights(all_fitted):
    for bad in ([WORD] * M, np.array([NUMBER, WORD] * (M // 2), dtype=object), [NUMBER]):
        refused(lambda b=bad: pv.PrivateLasso(privacy=LABELS).fit(X, Y, sample_weight=b))
        refused(lambda b=bad: all_fitted["labels"].score(X, Y, b))


@pytest.mark.parametrize("engine", ["Dask", "mapped"])
def test_labels_of_blocks(engine, tmp_path):
    table = of_dask(X)
    if engine == "mapped":
        table = np.memmap(tmp_path / "X", dtype=float, mode="w+", shape=X.shape)
    for what, bad in BAD_LABELS.items():
        est = pv.PrivateLasso(**KINDS["records"])
        refused(lambda e=est, b=bad: e.fit(table, b()), what, engine)


def test_a_graph_of_dask_that_fails_with_a_cell_in_its_message():
    def broken(block):
        if block.size:
            float(WORD)
        return block

    graph = of_dask(X).map_blocks(broken, dtype=float)
    frame = dd.from_pandas(pd.DataFrame(X, columns=["a", "b"]), npartitions=2)
    unknown = frame.map_partitions(lambda part: part if part.empty else broken(part), meta=frame)
    for table in (graph, unknown):
        est = pv.PrivateLasso(**KINDS["records"])
        refused(lambda e=est, t=table: e.fit(t, Y), kinds=WorkersLostError)


def test_a_mapped_table_of_text(tmp_path):
    table = np.memmap(tmp_path / "X", dtype="U20", mode="w+", shape=X.shape)
    table[:] = WORD
    refused(lambda: pv.PrivateLasso(**KINDS["records"]).fit(table, Y))


def test_numbers_of_every_kind_are_still_read():
    whole = np.rint(4 * X)
    frame = pd.DataFrame(whole)
    tables = [
        whole.tolist(), whole.astype(int), whole.astype(object), whole.astype(np.float32),
        frame.astype(int), frame.astype("Int8"), frame.astype({0: "Int64", 1: "float32"}),
        frame.astype({1: object}), pl.DataFrame(whole, schema=["a", "b"]), np.ma.array(whole),
        pl.DataFrame(whole, {"a": pl.Int8, "b": pl.Int64}), of_dask(whole),
    ]  # fmt: skip
    for table in tables:
        np.testing.assert_array_equal(covariates(table), whole)
    sparse = frame.astype(pd.SparseDtype(float, 0.0))
    for table in (sparse, sp.coo_array(whole), sp.lil_array(whole.astype(int))):
        found: Any = covariates(table)
        assert found.format == "csr"
        np.testing.assert_array_equal(found.toarray(), whole)
    for gaps in (pd.Series([1, None, 3], dtype="Int64"), pl.Series([1, None, 3])):
        library = pd if isinstance(gaps, pd.Series) else pl
        table = library.DataFrame({"a": gaps, "b": [True, False, True]})
        np.testing.assert_array_equal(
            covariates(table, finite=False), [[1, 1], [np.nan, 0], [3, 1]]
        )
    single = whole.astype(np.float32)
    assert covariates(single) is single
    assert covariates(pd.DataFrame(single)).dtype == np.float32


def holds_nothing(est, y):
    """Neither a number of the table or the labels nor a residual is in what the fit left."""
    residuals = y - np.ravel(est.predict(X))
    secrets = np.concatenate([X.ravel(), Y if est.coef_.ndim == 1 else residuals, residuals])
    secrets = secrets[(secrets != 0.0) & (np.abs(secrets) != 1.0)]
    dump, shown = pickle.dumps(est), f"{est!r} {est.get_params()} {vars(est)}"
    for number in secrets:
        for kind in (np.float64, np.float32):
            assert kind(number).tobytes() not in dump
        assert f"{abs(number):.8f}"[:-1] not in shown


def test_a_fitted_estimator_holds_no_data(all_fitted):
    for name, est in all_fitted.items():
        holds_nothing(est, B if name == "classes" else Y)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
@pytest.mark.parametrize("name", KINDS)
def test_no_kind_of_fit_holds_data(name):
    holds_nothing(pv.PrivateLasso(random_state=0, **KINDS[name]).fit(X, Y), Y)
