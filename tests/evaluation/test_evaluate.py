"""Evaluations: the right numbers without much noise, from every storage, and what they cost."""

import json
from functools import partial
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

import privasso as pv
from privasso.accounting._composed import compose_losses
from privasso.blocks import RowBlocks, of_dask, open_files
from privasso.encoding import Encoding, LevelCode, NumberCode
from privasso.evaluation._evaluate import _names, _program
from privasso.evaluation._linear import least_excess
from privasso.evaluation._rows import released
from privasso.evaluation._sums import halved, joined
from privasso.queries import Answering, bit_source, declared
from privasso.queries._query import Replaying, same_question

pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")

N, BOUNDS = 3, [(0.0, 1.0), (0.0, 10.0), (0.0, 1.0)]
LINEAR = ("r2", "mae", "mse", "rmse", "calibration", "prediction-interval")
CLASSES = ("auc", "log-loss", "accuracy", "calibration")
NAMES = ("a", "b", "c")


def table(n_rows=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n_rows, N)) * [1.0, 10.0, 1.0]
    return X, X @ [0.5, 0.03, 0.0] + 0.1 * rng.standard_normal(n_rows)


def classes(y):
    return (y > np.median(y)).astype(float)


def linear_model(coef=(0.45, 0.02, 0.0), intercept=0.1):
    statement = pv.Guarantee(None, released=("coefficients",))
    return pv.ReleasedModel(np.array(coef), intercept, 1.0, statement, None, feature_names=NAMES)


def two_classes():
    statement = pv.Guarantee(None, released=("coefficients",))
    return pv.ReleasedModel(np.array([3.0, 0.2, 0.0]), -2.2, 1.0, statement, None, classes=(0, 1))


def labels(epsilon=1.0, **settings):
    return pv.LabelDP(epsilon, 1e-5, **{"y_bounds": (-0.2, 1.2), **settings})


def records(epsilon=1.0, **settings):
    return pv.RecordDP(epsilon, 1e-5, **{"bounds": BOUNDS, "y_bounds": (-0.2, 1.2), **settings})


PRIVACY = {
    "labels": labels,
    "emptied labels": partial(labels, neighbours="emptied"),
    "records": records,
    "replaced records": partial(records, neighbours="replaced"),
}
each_kind = pytest.mark.parametrize("kind", PRIVACY)


def of_classes(kind, epsilon):
    return PRIVACY[kind](epsilon, y_bounds=(0.0, 1.0))


@each_kind
def test_numbers_of_a_linear_model_without_much_noise(kind):
    X, y = table(30000)
    y[:3000] = np.nan if "replaced" not in kind and kind != "labels" else y[:3000]
    found = pv.evaluate(
        linear_model(), X, y, privacy=PRIVACY[kind](50.0), metrics=LINEAR, random_state=0
    )
    X, y = X[~np.isnan(y)], np.clip(y[~np.isnan(y)], -0.2, 1.2)
    p = X @ [0.45, 0.02, 0.0] + 0.1
    r = y - p
    slope = np.polyfit(p, y, 1)[0]
    expected = {
        "r2": 1.0 - np.mean(r**2) / np.var(y), "mae": np.mean(abs(r)), "mse": np.mean(r**2),
        "rmse": np.sqrt(np.mean(r**2)), "calibration intercept": np.mean(r),
        "calibration slope": slope, "prediction-interval": np.quantile(abs(r), 0.9),
    }  # fmt: skip
    assert found.values.keys() == expected.keys()
    for name, value in expected.items():
        assert found.values[name] == pytest.approx(value, rel=0.03, abs=0.003), name
        low, high = found.intervals[name]
        assert low <= value <= high
        assert high - low < 0.15 * max(value, 0.1)


@each_kind
def test_numbers_of_a_logistic_regression_without_much_noise(kind):
    X, y = table(30000)
    y = classes(y)
    found = pv.evaluate(
        two_classes(), X, y, privacy=of_classes(kind, 50.0), metrics=CLASSES, random_state=0
    )
    odds = X @ [3.0, 0.2, 0.0] - 2.2
    q = 1.0 / (1.0 + np.exp(-odds))
    free = LogisticRegression(C=1e12, tol=1e-10).fit(odds[:, None], y)
    expected = {
        "auc": roc_auc_score(y, q), "log-loss": log_loss(y, q), "accuracy": np.mean((q > 0.5) == y),
        "calibration slope": free.coef_[0, 0],
    }  # fmt: skip
    for name, value in expected.items():
        assert found.values[name] == pytest.approx(value, rel=0.02), name
        low, high = found.intervals[name]
        assert low <= value <= high
    # The intercept beside a slope of 1 is where the mean of the probabilities is that of y.
    level = found.values["calibration intercept"]
    assert np.mean(1.0 / (1.0 + np.exp(-odds - level))) == pytest.approx(np.mean(y), abs=0.004)


def test_what_an_empty_record_holds_and_where_cells_are_missing():
    X, y = table()
    y[::3] = np.nan
    given = {"privacy": records(), "metrics": LINEAR, "random_state": 0}
    one = pv.evaluate(linear_model(), X, y, **given)
    other = X.copy()
    other[::3] = np.nan
    assert pv.evaluate(linear_model(), other, y, **given).values == one.values
    X[1], other[1] = [np.nan, np.inf, -np.inf], [0.5, 10.0, 0.0]
    changed = pv.evaluate(linear_model(), X, y, **given).values
    assert pv.evaluate(linear_model(), other, y, **given).values == changed != one.values
    # Where one label becomes another one, a missing one is the middle.
    given["privacy"] = labels()
    X, filled = table()[0], np.where(np.isnan(y), 0.5, y)
    missing = pv.evaluate(linear_model(), X, y, **given)
    assert missing.values == pv.evaluate(linear_model(), X, filled, **given).values


def stored(storage, X, y, folder):
    if storage == "by columns":
        return np.asfortranarray(X), y
    if storage == "sparse":
        return sp.csr_array(X), y
    if storage == "sparse, by columns":
        return sp.csc_array(X), y
    if storage == "polars":
        return pl.DataFrame(X, schema=list(NAMES)).select("c", "a", "b"), pl.Series(y)
    if storage == "pandas":
        return pd.DataFrame(X, columns=list(NAMES))[["b", "a"]], pd.Series(y)
    if storage == "parts":
        return RowBlocks.of_arrays(X, y, n_parts=3), None
    if storage == "mapped":
        np.save(folder / "X.npy", X)
        return np.load(folder / "X.npy", mmap_mode="r"), y
    if storage == "files":
        for k, rows in enumerate(np.array_split(np.arange(len(y)), 3)):
            frame = pl.DataFrame({name: X[rows, j] for j, name in enumerate(NAMES)})
            frame.with_columns(y=y[rows]).write_parquet(folder / f"{k}.parquet")
        return open_files(sorted(folder.glob("*.parquet")), "y"), None
    da = pytest.importorskip("dask.array")
    return of_dask(da.from_array(X, chunks=(700, N)), da.from_array(y, chunks=700)), None


@pytest.mark.parametrize("kind", ["labels", "records"])
@pytest.mark.parametrize("binary", [False, True], ids=["linear", "classes"])
def test_the_same_from_every_storage_to_the_last_bit(kind, binary, tmp_path):
    X, y = table()
    y = classes(y) if binary else y
    privacy = of_classes(kind, 1.0) if binary else PRIVACY[kind]()
    model = two_classes() if binary else linear_model()
    metrics = CLASSES if binary else LINEAR

    def found(data, y):
        one = pv.evaluate(model, data, y, privacy=privacy, metrics=metrics, random_state=3)
        return one.values, one.intervals

    expected = found(X, y)
    storages = ["by columns", "sparse", "sparse, by columns", "parts", "mapped", "files", "dask"]
    for storage in storages + ([] if binary else ["polars", "pandas"]):
        np.testing.assert_equal(found(*stored(storage, X, y, tmp_path)), expected, storage)


def test_genotypes_of_which_the_model_needs_some(tmp_path):
    rng = np.random.default_rng(0)
    copies = rng.integers(0, 3, (40, 5))
    codes = np.array([0, 2, 3])[copies]  # of PLINK, least significant bits first
    packed = np.zeros((5, 10), dtype=np.uint8)
    for k in range(4):
        packed |= (codes[k::4].T << (2 * k)).astype(np.uint8)
    (tmp_path / "s.bed").write_bytes(bytes([0x6C, 0x1B, 0x01]) + packed.tobytes())
    lines = [f"1 rs{j} 0 {j} A G" for j in range(5)]
    (tmp_path / "s.bim").write_text("\n".join(lines) + "\n")
    y = 0.1 * copies[:, 1] + 0.02 * rng.standard_normal(40) + 0.3
    lines = [f"f{i} i{i} 0 0 0 {value!r}" for i, value in enumerate(y.tolist())]
    (tmp_path / "s.fam").write_text("\n".join(lines) + "\n")
    table = pv.blocks.read_bed(tmp_path / "s.bed", "pheno")
    X, y = table.gathered()
    statement = pv.Guarantee(None, released=("coefficients",))
    assert table.names is not None
    names = (table.names[3], table.names[1])
    model = pv.ReleasedModel(np.array([0.0, 0.1]), 0.3, 1.0, statement, None, feature_names=names)
    privacy = pv.RecordDP(1.0, 1e-5, bounds=(0, 2), y_bounds=(0, 1))
    given = {"privacy": privacy, "metrics": LINEAR, "random_state": 0}
    found = pv.evaluate(model, tmp_path / "s.bed", "pheno", **given)
    np.testing.assert_equal(found.values, pv.evaluate(model, X[:, [3, 1]], y, **given).values)


def questions(privacy, metrics, model, n_rows=500):
    one = released(model)
    return _program(one, one, privacy, _names(metrics, one), 0.9), n_rows


@each_kind
@pytest.mark.parametrize(
    "metrics",
    [LINEAR, ("mae",), ("r2",), ("prediction-interval",), ("calibration",)],
    ids=str,
)
def test_the_questions_cost_what_is_stated_and_follow_from_answers(kind, metrics):
    model, privacy = linear_model(), PRIVACY[kind](2.0)
    program, n_rows = questions(privacy, metrics, model)
    X, y = table(n_rows)
    losses = [query.loss for query in declared(program, n_rows) if query.loss is not None]
    assert 0.98e-5 < compose_losses(losses).delta(2.0) < 1.01e-5
    ask = Answering(RowBlocks.of_arrays(X, y), bit_source(np.random.default_rng(0)), losses)
    found = program(ask)(0.95)
    replay = Replaying([answer for _, answer in ask.transcript], n_rows)
    np.testing.assert_equal(program(replay)(0.95), found)
    assert all(
        same_question(one, two)
        for (one, _), (two, _) in zip(ask.transcript, replay.transcript, strict=True)
    )
    assert all(query.neighbours == privacy.pair for query, _ in ask.transcript)
    assert len(ask.transcript) == len(losses)


def test_the_ledger_is_charged_before_a_random_bit_is_drawn(tmp_path):
    X, y = table()
    pv.Ledger.create(tmp_path / "ledger.json", 1.5, 1e-5)
    ledger = pv.Ledger.open(tmp_path / "ledger.json")
    given = {"privacy": records(), "metrics": ("mae",), "ledger": ledger}
    found = pv.evaluate(linear_model(), X, y, **given)
    (entry,) = ledger.entries
    assert entry.guarantee == found.guarantee
    assert "evaluation of a model on 3000 rows" in entry.what
    no_bits = mock.patch("privasso.evaluation._evaluate.bit_source")
    with no_bits as source, pytest.raises(pv.BudgetError):
        pv.evaluate(linear_model(), X, y, **given)
    source.return_value.assert_not_called()
    assert len(ledger.entries) == 1


def test_the_statement_and_what_is_printed():
    X, y = table()
    metrics = ("r2", "prediction-interval")
    found = pv.evaluate(linear_model(), X, y, privacy=records(3.0), metrics=metrics)
    assert found.guarantee.for_release
    assert found.guarantee.kind == "record-dp"
    assert found.guarantee["epsilon"] == 3.0
    assert "the model is public" in found.guarantee.assumptions[-1]
    assert "r2, prediction-interval of a model" in found.guarantee.released
    radius = f"{found.values['prediction-interval']:.3g}"
    assert found.sentences[1].startswith(
        f"y lies within ± {radius} of the prediction for 90 % of new rows"
    )
    assert str(found).startswith("metric ")
    assert json.loads(json.dumps(found.to_dict()))["metrics"]["r2"]["value"] == found.values["r2"]
    assert not pv.evaluate(
        linear_model(), X, y, privacy=records(), metrics=metrics, random_state=0
    ).guarantee.for_release


def test_what_noise_hides_is_said():
    X, y = table(60)
    found = pv.evaluate(linear_model(), X, y, privacy=records(), metrics=("r2",), random_state=0)
    assert np.isnan(found.values["r2"])
    assert found.intervals["r2"] == (-np.inf, 1.0)
    assert "cannot be told: noise hides it" in found.sentences[0]


def test_public_estimators_and_tables_by_name():
    X, y = table()
    given = {"metrics": ("mae", "r2"), "random_state": 0}
    public = LinearRegression().fit(X[:100], y[:100])
    model = linear_model(public.coef_, public.intercept_)
    one = pv.evaluate(public, X, y, privacy=records(), **given).values
    assert one == pv.evaluate(model, X, y, privacy=records(), **given).values
    privacy = labels(5.0)
    est = pv.PrivateLasso(privacy=privacy, random_state=0).fit(X[:500], y[:500])
    whole = pv.evaluate(est, X, y, privacy=privacy, **given).values
    assert whole == pv.evaluate(est.released_model(), X, y, privacy=privacy, **given).values
    private = labels(5.0, y_bounds=(0, 1))
    yes = pv.PrivateLogisticLasso(privacy=private, classes=("no", "yes"), random_state=0).fit(
        X[:500], np.where(y[:500] > 0.4, "yes", "no")
    )
    found = pv.evaluate(yes, X, np.where(y > 0.4, "yes", "no"), privacy=private)
    assert set(found.values) == {"auc", "log-loss"}
    assert found.values["auc"] > 0.6
    # A model of levels encodes a data frame as in its fit.
    encoding = Encoding((LevelCode("region", ("n", "s"), "n"), NumberCode("a")))
    statement = pv.Guarantee(None, released=("coefficients",))
    encoded = pv.ReleasedModel(
        np.array([0.1, 0.5]), 0.1, 1.0, statement, None, ("region=s", "a"), encoding=encoding
    )
    south = X[:, 1] > 5.0
    frame = pl.DataFrame({"a": X[:, 0], "region": np.where(south, "s", "n")})
    found = pv.evaluate(encoded, frame, y, privacy=labels(), **given).values
    assert found == pv.evaluate(encoded, np.c_[south, X[:, 0]], y, privacy=labels(), **given).values
    with pytest.raises(ValueError, match="encode private records first"):
        pv.evaluate(encoded, frame, y, privacy=records(bounds=(0, 1)), **given)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"privacy": pv.OnAverage(0.1)}, "evaluate needs LabelDP or RecordDP"),
        ({"privacy": records(bounds="private")}, "bounds='private' are found in the data"),
        ({"metrics": ("auc",)}, "metrics of a linear model are r2, mae"),
        ({"metrics": ()}, "metrics is empty"),
        ({"model": two_classes(), "metrics": ("r2",)}, "metrics of a model of two classes are auc"),
        ({"model": two_classes(), "metrics": ("auc",)}, "their bounds are 0 and 1"),
        ({"model": 3}, "model must be a ReleasedModel"),
        ({"model": LinearRegression()}, "model must be a ReleasedModel"),
        ({"X": np.zeros((9, 2))}, "X must have 3 columns, not 2"),
        ({"X": pl.DataFrame({"a": np.zeros(9)}), "y": np.zeros(9)}, "lacks the column 'b'"),
        ({"y": None}, "needs the labels y"),
        ({"y": np.zeros(8)}, "one label for each of the 9 rows"),
        ({"y": ["high"] * 9}, "one column of finite numbers"),
        ({"level": 1.0}, "level is a probability"),
        ({"coverage": 0.0}, "coverage must be positive"),
        ({"ledger": "budget.json"}, "ledger must be a Ledger"),
        ({"privacy": labels(), "X": np.full((9, 3), np.nan)}, "NaN or infinity"),
    ],
)
def test_refusals_are_one_sentence_without_a_datum(change, said):
    given = {
        "model": linear_model(), "X": np.full((9, 3), 0.123), "y": np.full(9, 0.456),
        "privacy": records(), "metrics": None, **change,
    }  # fmt: skip
    model, X, y = (given.pop(name) for name in ("model", "X", "y"))
    with pytest.raises(ValueError, match=said) as caught:
        pv.evaluate(model, X, y, **given)
    assert "0.123" not in str(caught.value)
    assert "0.456" not in str(caught.value)
    assert "high" not in str(caught.value)


def test_a_model_of_zeros_needs_no_column():
    _, y = table()
    found = [
        pv.evaluate(linear_model((0.0, 0.0, 0.0), 0.4), X, y, privacy=labels(), random_state=0)
        for X in (pl.DataFrame({"d": y}), np.zeros((y.size, 3)))
    ]
    np.testing.assert_equal(found[0].values, found[1].values)
    assert found[0].values["r2"] < 0.3


def test_cells_are_halved_and_joined():
    cells = np.random.default_rng(0).integers(0, 100, 64)
    np.testing.assert_array_equal(joined(halved(cells)), cells)


@pytest.mark.parametrize(("n", "low", "high"), [(50, 1.0, 1.0), (400, 2.0, 9.0), (5, 3.0, 3.0)])
def test_ranks_are_corrected_upward_so_that_new_labels_are_covered(n, low, high):
    """By simulation: ranks of a new label among others, and edges anywhere between."""
    m = least_excess(n, 0.9, low, high)
    rng, missed, repetitions = np.random.default_rng(0), [], 4000
    for _ in range(repetitions):
        old, new = rng.exponential(size=n), rng.exponential()
        edges = np.sort(rng.exponential(size=8))
        noise = np.sort(rng.uniform(low, high, 8))[::-1]
        excess = 0.1 * n - (old[:, None] > edges).sum(axis=0) + noise * rng.standard_normal(8)
        failed = np.flatnonzero(excess < m)
        at = failed[-1] + 1 if failed.size else 0
        missed.append(new > edges[at] if at < 8 else False)
    assert np.mean(missed) < 0.1 + 3.0 * 0.3 / np.sqrt(repetitions)
