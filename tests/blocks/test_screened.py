"""Columns of blocks of rows are chosen and fitted as those of an array, to the last bit."""

import numpy as np
import polars as pl
import pytest

import privasso as pv
from block_tables import local_cluster
from privasso.blocks import DataChangedError, RowBlocks, on_dask, open_files
from privasso.blocks._part import Local
from privasso.fit import AfterReleaseError

pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
M, N = 900, 150
NAMES = tuple(f"x{j}" for j in range(N))


def table():
    """Covariates that float32 holds exactly, in bounds that differ, and labels."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.1, 1.1, (M, N)).astype(np.float32).astype(np.float64)
    y = np.clip(0.3 * X[:, 7] - 0.3 * X[:, 70] + 0.05 * rng.standard_normal(M), -1, 1)
    return X, y


def estimator(screen=3, alike=False, **options):
    high = np.ones(N) if alike else np.linspace(0.8, 1.2, N)
    privacy = pv.RecordDP(5.0, 1e-6, bounds=np.stack([-high, high], axis=1), y_bounds=(-1, 1))
    return pv.PrivateLasso(privacy=privacy, screen=screen, random_state=2, **options)


def model(X, y=None, **options):
    est = estimator(**options).fit(X, y)
    return np.append(est.coef_, est.intercept_).tobytes(), est.screened_.tolist(), est.guarantee_


def files(folder):
    """Seven files with rows in any order, some of single precision, one in another order."""
    X, y = table()
    paths = []
    for k, rows in enumerate(np.array_split(np.random.default_rng(1).permutation(M), 7)):
        frame = pl.DataFrame(X[rows], schema=list(NAMES))
        frame = frame.with_columns(pl.all().cast(pl.Float32 if k % 2 else pl.Float64))
        frame = frame.with_columns(y=pl.Series(y[rows]))
        paths.append(folder / f"{k}.parquet")
        frame.select(frame.columns[:: -1 if k == 2 else 1]).write_parquet(
            paths[-1], row_group_size=50
        )
    return paths


@pytest.fixture(scope="module")
def expected():
    return model(*table())


@pytest.mark.parametrize(("parts", "jobs"), [(1, 1), (13, 2)])
def test_blocks_of_an_array(expected, parts, jobs):
    X, y = table()
    order = np.random.default_rng(5).permutation(M)
    assert set(expected[1]) > {7, 70}
    assert model(RowBlocks.of_arrays(X, y, n_parts=parts, jobs=jobs)) == expected
    assert model(RowBlocks.of_arrays(X[order].astype(np.float32), y[order])) == expected


@pytest.mark.parametrize("options", [{"fit_intercept": False}, {"alike": True}], ids=str)
def test_other_settings(options):
    blocks = RowBlocks.of_arrays(*table(), n_parts=3)
    assert model(blocks, **options) == model(*table(), **options)


def test_further_rounds(monkeypatch):
    """With residuals of a first fit, which are the same in any block."""
    rounds = []
    from privasso.programs import ScreenedObjective

    program = ScreenedObjective.__call__

    def counted(self, ask, lam):
        rounds.append(len(self.rounds))
        return program(self, ask, lam)

    monkeypatch.setattr(ScreenedObjective, "__call__", counted)
    blocks = RowBlocks.of_arrays(*table(), n_parts=4)
    assert model(blocks, screen=12) == model(*table(), screen=12)
    assert rounds[0] >= 1


def test_seven_files_of_which_chosen_columns_are_read_alone(expected, tmp_path, monkeypatch):
    from privasso.blocks._files import FilePart

    chunks, widths = FilePart.chunks, []

    def counted(self):
        widths.append(len(self.columns))
        yield from chunks(self)

    monkeypatch.setattr(FilePart, "chunks", counted)
    assert model(files(tmp_path), "y") == expected
    parts = len(open_files(files(tmp_path), "y").engine.parts)  # pyright: ignore
    assert set(widths) == {N, 0, len(expected[1])}
    assert widths.count(N) == 2 * parts  # to open them, and for the choice
    assert widths.count(0) == 2 * parts  # for the centre of the labels


def test_dask_without_a_cluster(expected):
    da = pytest.importorskip("dask.array")
    X, y = table()
    assert model(da.from_array(X, chunks=(173, 40)), da.from_array(y, chunks=500)) == expected


@pytest.mark.slow
def test_a_cluster_of_two_workers(expected, tmp_path):
    distributed = pytest.importorskip("distributed")
    da = pytest.importorskip("dask.array")
    X, y = table()
    with local_cluster(2) as cluster, distributed.Client(cluster) as client:
        assert model(on_dask(open_files(files(tmp_path), "y"), client)) == expected
        assert model(da.from_array(X, chunks=(15, N)), y) == expected  # 60 partitions


@pytest.mark.parametrize("screen", [3, 12])
def test_missing_and_infinite_numbers_are_those_of_the_table_in_memory(screen):
    X, y = table()
    X[444, 3], X[445, 7], X[446, 70], y[447] = np.nan, np.inf, np.nan, np.nan
    assert model(RowBlocks.of_arrays(X, y, n_parts=5), screen=screen) == model(X, y, screen=screen)


class Shifty(Local):
    """Rows that change at one of the passes, in a way that no file would tell."""

    count = 0

    def __init__(self, parts, at, what):
        super().__init__(parts, jobs=1)
        self.at, self.what = at, what
        self.in_memory = False  # so that they are read in each pass

    def sum(self, task, state, read):
        Shifty.count += 1
        if Shifty.count == self.at:
            X, y = self.parts[1].X.copy(), self.parts[1].y.copy()  # pyright: ignore
            if self.what == "label":
                y[3] *= 0.5
            else:
                X[3, 9] *= 0.5
            self.parts = (self.parts[0], type(self.parts[1])(X, y), *self.parts[2:])  # pyright: ignore
        return super().sum(task, state, read)

    def select(self, columns):
        inner = super().select(columns)
        outer = self

        class Counted(Local):
            def sum(self, task, state, read):
                Shifty.count += 1
                return super().sum(task, state, read)

        return Counted(inner.parts, outer.jobs)


@pytest.mark.parametrize("what", ["label", "entry"])
def test_data_that_change_before_the_choice_are_noticed(what):
    """The fourth pass, after the centre was found, reads all columns again."""
    blocks = RowBlocks.of_arrays(*table(), n_parts=4)
    assert isinstance(blocks.engine, Local)
    Shifty.count = 0
    ledger = pv.Ledger(20.0, 1e-5)
    est = estimator(ledger=ledger)
    with pytest.raises(AfterReleaseError, match="nothing was released"):
        est.fit(RowBlocks(blocks.shape, Shifty(blocks.engine.parts, 4, what)))
    assert not hasattr(est, "coef_")
    assert len(ledger.book.entries) == 1
    Shifty.count = 0
    lost = RowBlocks((M + 1, N), Local(blocks.engine.parts))
    with pytest.raises(DataChangedError):
        estimator().fit(lost)


def test_labels_over_blocks_are_screened_as_in_memory():
    X, y = table()
    privacy = pv.LabelDP(1.0, 1e-6, y_bounds=(-1, 1))
    one, two = (
        pv.PrivateLasso(privacy=privacy, screen=3, random_state=0).fit(*data).coef_
        for data in ((X, y), (RowBlocks.of_arrays(X, y, n_parts=5), None))
    )
    np.testing.assert_array_equal(one, two)
