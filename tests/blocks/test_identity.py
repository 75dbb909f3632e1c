"""The same model to the last bit, however the rows are stored, cut, ordered and distributed."""

from dataclasses import replace

import numpy as np
import pytest

import privasso as pv
from block_tables import PRIVACY, local_cluster, model, table, write
from privasso.blocks import Dask, RowBlocks, on_dask, open_files
from privasso.blocks._part import Local

pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")


@pytest.fixture
def files(tmp_path):
    return write(tmp_path, *table())


@pytest.fixture(scope="module")
def expected():
    return model(*table())


def test_order_and_precision_of_an_array_do_not_matter(expected):
    X, y = table()
    order = np.random.default_rng(5).permutation(len(y))
    assert model(X[order], y[order]) == expected
    assert model(X.astype(np.float32), y) == expected
    assert model(np.asfortranarray(X), y) == expected


def test_the_model_depends_on_the_data(expected):
    X, y = table()
    y[17] += 0.01
    assert model(X, y) != expected


@pytest.mark.parametrize("parts", [1, 3, 64])
@pytest.mark.parametrize("jobs", [1, 3])
def test_blocks_of_an_array(expected, parts, jobs):
    assert model(RowBlocks.of_arrays(*table(), n_parts=parts, jobs=jobs)) == expected


def test_a_mapped_array(expected, tmp_path):
    X, y = table()
    mapped = np.memmap(tmp_path / "X", dtype=np.float64, mode="w+", shape=X.shape)
    mapped[:] = X
    assert model(mapped, y) == expected


def test_seven_files(expected, files):
    assert model(files, "y") == expected
    assert model(open_files(files[::-1], "y", jobs=2, entries=500)) == expected


FOUND_WITH_NOISE = {
    "bounds": {"bounds": "private"},
    "scales": {"scales": "private"},
    "statistics": {"mechanism": "statistics"},
    "all": {"bounds": "private", "scales": "private", "mechanism": "statistics"},
}


@pytest.mark.parametrize(
    "settings",
    [
        # Bounds alone, and all of them together, are quick.
        pytest.param(one, id=name, marks=[pytest.mark.slow] * (name in ("scales", "statistics")))
        for name, one in FOUND_WITH_NOISE.items()
    ],
)
def test_what_is_found_with_noise_is_the_same_from_anywhere(settings, files):
    privacy = replace(PRIVACY, **settings)
    X, y = table()
    expected = model(X, y, privacy=privacy)
    assert model(files[::-1], "y", privacy=privacy) == expected
    assert model(RowBlocks.of_arrays(X[::-1], y[::-1], n_parts=64), privacy=privacy) == expected
    da = pytest.importorskip("dask.array")
    D, Y = da.from_array(X, chunks=(173, 4)), da.from_array(y, chunks=1000)
    assert model(D, Y, privacy=privacy) == expected
    assert model(D, y, privacy=privacy) == expected


def test_parts_of_many_files_are_grouped(expected, tmp_path):
    pytest.importorskip("dask")
    blocks = open_files(write(tmp_path, *table(), parts=40), "y")
    grouped = on_dask(blocks)
    assert isinstance(grouped.engine, Dask)
    assert isinstance(blocks.engine, Local)
    assert len(grouped.engine.parts) == 16 < len(blocks.engine.parts)
    assert sum(part.rows for part in grouped.engine.parts) == len(table()[1])
    assert model(grouped) == expected


def test_dask_without_a_cluster(expected):
    da = pytest.importorskip("dask.array")
    X, y = table()
    # Cut along the columns too, and the labels in another way.
    D, Y = da.from_array(X, chunks=(173, 4)), da.from_array(y, chunks=1000)
    assert model(D, Y) == expected
    assert model(D, y) == expected


def cut(pieces):
    """The table in shuffled partitions of Dask."""
    da = pytest.importorskip("dask.array")
    X, y = table()
    order = np.random.default_rng(9).permutation(pieces)
    rows = np.array_split(np.arange(len(y)), pieces)
    D = da.concatenate([da.from_array(X[rows[k]]) for k in order])
    return D, da.concatenate([da.from_array(y[rows[k]]) for k in order])


@pytest.fixture
def cluster(request):
    """Processes on this machine, as many as the test asks for."""
    distributed = pytest.importorskip("distributed")
    cluster = local_cluster(request.param)
    with cluster, distributed.Client(cluster) as client:
        yield client


@pytest.mark.slow
@pytest.mark.parametrize("cluster", [2], indirect=True)
def test_files_read_by_the_workers_of_a_cluster(expected, files, cluster):
    assert model(on_dask(open_files(files, "y"), cluster)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("cluster", [1, 2, 4], indirect=True)
def test_any_number_of_workers_and_64_shuffled_partitions(expected, files, cluster):
    import dask.dataframe as dd

    D, Y = cut(64)
    assert model(*cluster.persist([D, Y])) == expected
    assert model(D, Y) == expected
    frame = dd.from_dask_array(D, columns=[f"x{j}" for j in range(6)])
    frame["y"] = dd.from_dask_array(Y)
    assert model(frame, "y") == expected
    parquet = [path for path in files if path.suffix == ".parquet"]
    assert model(dd.read_parquet(parquet), "y") == model(parquet, "y")


def test_names_and_shape_come_from_the_files(files):
    est = pv.PrivateLasso(privacy=PRIVACY, random_state=3).fit(files, "y")
    assert est.feature_names_in_.tolist() == [f"x{j}" for j in range(6)]
    assert est.guarantee_["epsilon"] == 1.0
    assert est.released_model().feature_names == tuple(est.feature_names_in_)
    assert est.n_features_in_ == 6
