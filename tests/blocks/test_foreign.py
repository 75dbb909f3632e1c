"""What the process that reads with other libraries answers, asked without a process."""

import io
import json

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privasso._foreign import _room, about, data, rows, schema

N = 25
COLUMNS = {
    "a": pa.array(np.arange(N) / 4.0),
    "b": pa.array([None, *range(1, N)], type=pa.int32()),
    "c": pa.array(np.arange(N) % 2 == 0),
    "d": pa.array(np.arange(N), type=pa.float32()),
    "e": pa.array(["x"] * N),
}
EXPECTED = np.array(
    [np.arange(N) / 4.0, np.append(np.nan, np.arange(1, N)), np.arange(N) % 2 == 0, np.arange(N)]
)


@pytest.fixture(autouse=True)
def _without_limits(monkeypatch):
    """This process reads more than one file."""
    monkeypatch.setattr("privasso._foreign.limit_memory", lambda size: None)


@pytest.fixture(params=["parquet", "arrow"])
def table(request, tmp_path):
    """A file with two groups of rows, and its form."""
    path, whole = tmp_path / f"t.{request.param}", pa.table(COLUMNS)
    if request.param == "parquet":
        pq.write_table(whole, path, row_group_size=15)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, whole.schema) as writer:
            writer.write_table(whole, max_chunksize=15)
    return str(path), request.param


def asked(does, **request):
    """The answer as numbers and names, and the bytes after it."""
    answers = io.BytesIO()
    does(request, answers)
    line, _, rest = answers.getvalue().partition(b"\n")
    return json.loads(line), rest


def test_the_schema(table):
    path, form = table
    found, _ = asked(schema, path=path, form=form)
    assert found["names"] == list(COLUMNS)
    assert found["types"] == ["double", "integer", "flag", "single", "other"]
    assert [rows for rows, _ in found["groups"]] == [15, 10]


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("step", [4, 100])
def test_rows_of_a_group_some_at_a_time(table, whole, step):
    path, form = table
    names = ["a", "b", "c", "d"]
    request = {"path": path, "form": form, "columns": names, "group": 1}
    request |= {"step": step, "whole": whole, "memory": None, "at": 0}
    parts, more = [], False
    for _ in range(20):
        found, rest = asked(rows, **request, more=more)
        more = True
        if found["rows"] == 0:
            break
        assert found["rows"] <= step
        parts.append(np.frombuffer(rest).reshape(4, -1))
    np.testing.assert_array_equal(np.hstack(parts), EXPECTED[:, 15:])


def test_no_more_rows_than_there_is_room_for():
    with pytest.raises(ValueError, match="more rows than there is room for"):
        _room({"columns": ["a"], "memory": 0, "at": 0, "step": 3}, 15)


@pytest.fixture
def cells(tmp_path):
    path = tmp_path / "c.h5ad"
    with h5py.File(path, "w") as file:
        group = file.create_group("X")
        group.attrs["encoding-type"], group.attrs["shape"] = "csr_matrix", [3, 2]
        group["data"] = np.array([1.5, 2.5, 3.5])
        file["names"] = np.array(["g1", "g2"], dtype=h5py.string_dtype())
        file["odd"] = np.array([1j])
        file["away"] = h5py.ExternalLink("other.h5", "/X")
    return str(path)


def test_what_a_file_of_cells_holds(cells):
    found, _ = asked(about, path=cells, name="X")
    assert found["kind"] == "group"
    assert found["attrs"] == {"encoding-type": "csr_matrix", "shape": [3, 2]}
    assert asked(about, path=cells, name="X/data")[0]["shape"] == [3]
    assert asked(about, path=cells, name="nothing")[0]["kind"] is None
    _, rest = asked(data, path=cells, name="X/data", start=1, stop=3, text=False)
    assert np.frombuffer(rest).tolist() == [2.5, 3.5]
    texts, _ = asked(data, path=cells, name="names", start=0, stop=2, text=True)
    assert texts["texts"] == ["g1", "g2"]


def test_links_and_other_types_are_refused(cells):
    with pytest.raises(ValueError, match="a link"):
        asked(about, path=cells, name="away")
    with pytest.raises(TypeError, match="no numbers"):
        asked(data, path=cells, name="odd", start=0, stop=1, text=False)
