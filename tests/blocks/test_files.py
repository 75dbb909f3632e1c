"""Row groups of Parquet files, read some rows at a time in either way."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privasso.blocks import open_files


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {
        f"x{j}": rng.standard_normal(1000).astype(np.float32) for j in range(11)
    }
    columns["count"] = rng.integers(0, 9, 1000)
    columns["flag"] = rng.random(1000) < 0.5
    frame = pa.table({**columns, "y": rng.standard_normal(1000)})
    gaps = pa.array([None if u < 0.1 else 2.5 for u in rng.random(1000)], pa.float64())
    return frame.append_column("gaps", gaps)


def read(part):
    blocks = list(part.chunks())
    return np.concatenate([X for X, _ in blocks]), np.concatenate([y for _, y in blocks])


@pytest.mark.parametrize("compression", ["none", "snappy"])
def test_both_ways_read_the_same(tmp_path, table, compression):
    path = tmp_path / "some.parquet"
    pq.write_table(table, path, compression=compression, row_group_size=400)
    fill = {name: -1.0 for name in table.column_names if name != "y"}
    blocks = open_files([path], "y", entries=700, fill=fill)
    names = [name for name in table.column_names if name != "y"]
    expected = table.select(names).to_pandas().fillna(-1.0).to_numpy(dtype=float)
    parts = blocks.engine.parts  # pyright: ignore[reportAttributeAccessIssue]
    assert [part.rows for part in parts] == [400, 400, 200]
    for whole in (False, True):
        found = [read(replace(part, whole=whole)) for part in parts]
        np.testing.assert_array_equal(np.concatenate([X for X, _ in found]), expected)
        y = np.concatenate([y for _, y in found])
        np.testing.assert_array_equal(y, table["y"].to_numpy())
        assert all(len(y) <= 50 for _, y in replace(parts[0], whole=whole).chunks())


def test_large_row_groups_are_counted(tmp_path):
    rng = np.random.default_rng(0)
    table = pa.table({name: rng.random(5000) for name in ("a", "b", "y")})
    path = tmp_path / "some.parquet"
    pq.write_table(table, path)
    one = open_files([path], "y")
    assert one.held == 8 * 3 * 5000  # less than dictionaries and compressed pages
    assert one.engine.parts[0].whole  # pyright: ignore[reportAttributeAccessIssue]
    pq.write_table(table, path, row_group_size=500)
    assert open_files([path], "y").held == one.held // 10
    # Few different values take fewer bytes as they are encoded.
    few = pa.table({name: rng.integers(0, 4, 5000).astype(float) for name in ("a", "b", "y")})
    pq.write_table(few, path, compression="none")
    small = open_files([path], "y")
    assert small.held < one.held / 5
    assert not small.engine.parts[0].whole  # pyright: ignore[reportAttributeAccessIssue]
