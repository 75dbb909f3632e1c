"""Sparse tables in long form against the matrices that scipy makes of the same triplets."""

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

import privasso as pv
from privasso.blocks import DataChangedError, _entries, read_triplets

M, N = 90, 100_000


def triplets(size=3000, seed=0):
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(0, M - 2, size), rng.integers(0, N, size)
    columns[:50], rows[:50] = columns[50:100], rows[50:100]  # twice in one place
    return rows, columns, rng.integers(1, 9, size).astype(float)


def written(folder, parts, dtype=pl.Float64, **options):
    for k, part in enumerate(parts):
        frame = pl.DataFrame(dict(zip(("row", "column", "value"), part, strict=True)))
        frame = frame.with_columns(pl.col("value").cast(dtype), pl.col("row").cast(pl.UInt16))
        frame.write_parquet(folder / f"{k}.parquet", **options)
    return sorted(folder.glob("*.parquet"))


@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32, pl.Int32])
def test_the_matrix_is_that_of_scipy(tmp_path, monkeypatch, dtype):
    monkeypatch.setattr(_entries, "_CHUNK", 170)  # several chunks in each file
    rows, columns, values = triplets()
    cuts = np.split(np.arange(rows.size), [1000, 1000, 2100])  # one of them is empty
    parts = [(rows[cut], columns[cut], values[cut]) for cut in cuts]
    paths = written(tmp_path, parts, dtype, row_group_size=400)
    expected = sp.coo_array((values, (rows, columns)), shape=(M, N)).tocsr()
    for given in (paths, paths[::-1]):
        found = read_triplets(given, (M, N))
        assert found.shape == (M, N)
        assert found.dtype == (np.float32 if dtype == pl.Float32 else np.float64)
        assert found.has_canonical_format
        assert found.nnz == expected.nnz < rows.size
        assert (found != expected).nnz == 0


@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
def test_a_fit_of_chosen_columns(tmp_path):
    rng = np.random.default_rng(1)
    X = sp.random_array((800, 5000), density=0.01, rng=rng, format="coo")
    X.data[:] = 1.0
    signal = sp.coo_array((rng.random((800, 2)) < 0.5).astype(float))
    X = sp.coo_array(sp.hstack([signal, X]))
    y = X @ np.concatenate([[1.0, -1.0], np.zeros(5000)])
    paths = written(tmp_path, [(*X.coords, X.data)])
    names = ("row", "column", "value")
    privacy = pv.RecordDP(4.0, 1e-6, bounds=(0, 1), y_bounds=(-1, 1))
    fits = [
        pv.PrivateLasso(privacy=privacy, screen=2, random_state=0).fit(given, y)
        for given in (X.tocsr(), read_triplets(paths, (800, 5002), names))
    ]
    assert fits[0].screened_.tolist() == [0, 1]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"row": [0.0, 1.0]}, "must hold integers"),
        ({"column": ["a", "b"]}, "must hold integers"),
        ({"value": ["1", "2"]}, "must hold numbers"),
        ({"value": None}, "has no column 'value'"),
    ],
)
def test_wrong_triplets_are_refused(tmp_path, change, sentence):
    lines = {"row": [0, 1], "column": [3, 4], "value": [1.0, 2.0], **change}
    path = tmp_path / "some.parquet"
    pl.DataFrame({k: v for k, v in lines.items() if v is not None}).write_parquet(path)
    with pytest.raises(ValueError, match=sentence):
        read_triplets(path, (M, N))


def test_files_that_are_missing_damaged_or_change(tmp_path, monkeypatch):
    (path,) = written(tmp_path, [triplets()])
    with pytest.raises(FileNotFoundError, match="none"):
        read_triplets([path, tmp_path / "none.parquet"], (M, N))
    with pytest.raises(ValueError, match="no files"):
        read_triplets([], (M, N))
    with pytest.raises(ValueError, match="rows and columns"):
        read_triplets(path, (0, N))
    read, passes = _entries._File.read, []

    def changing(self, names, shape):
        passes.append(names)
        if len(passes) == 2:
            written(tmp_path, [triplets(2990, seed=1)])
        yield from read(self, names, shape)

    with monkeypatch.context() as patch:
        patch.setattr(_entries._File, "read", changing)
        with pytest.raises(DataChangedError, match="changed"):
            read_triplets(path, (M, N))
    content = path.read_bytes()
    for damaged in (b"", content[: len(content) // 2], b"row,column,value\n"):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"0\.parquet"):
            read_triplets(path, (M, N))
    middle = bytearray(content)
    middle[8 : len(content) // 2] = bytes(len(content) // 2 - 8)
    path.write_bytes(bytes(middle))
    with pytest.raises(ValueError, match=r"0\.parquet"):
        read_triplets(path, (M, N))
