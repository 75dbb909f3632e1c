"""The process that reads tables: what it answers, and what becomes of a caller when it dies."""

import io
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from privasso import _apart
from privasso._apart import Reader, ReadFailedError, serve
from privasso.encoding import _files, file_columns, file_schema
from privasso.tables import open_table

FRAME = pl.DataFrame(
    {
        "number": [1.5, 2.5, -3.0],
        "flag": [True, False, True],
        "hole": [1, None, 3],
        "empty": [None, None, None],
        "text": ["1", "two", None],
        "digits": ["1", "2", "3"],
        "mixed": ["1", "2", "x"],
        "kind": pl.Series(["u", "v", "u"], dtype=pl.Categorical),
        "day": pl.Series(["2020-01-01"] * 3).str.to_date(),
        "list": [[1], [2], [3]],
    }
)
NAN = float("nan")
NUMBERS = {"flag": [1.0, 0.0, 1.0], "number": [1.5, 2.5, -3.0], "hole": [1.0, NAN, 3.0],
           "empty": [NAN] * 3}  # fmt: skip
LEVELS = {"text": (["1", "two"], [0, 1, -1]), "kind": (["u", "v"], [0, 1, 0])}
WRONG = {
    "digits": {"wrong": "digits", "row": None, "count": None},
    "mixed": {"wrong": "mixed", "row": 2, "count": None},
    "day": {"wrong": "dates", "row": None, "count": None},
    "list": {"wrong": "values", "row": None, "count": None},
}


#: What a request leaves open.
PLAIN = {"categorical": [], "labels": False, "levels": None, "classes": None}


def answers(*requests):
    """What the process answers to functions with their requests."""
    out = io.BytesIO()
    named = [{**PLAIN, **request, "does": ["privasso.encoding._files", does.__name__]}
             for does, request in requests]  # fmt: skip
    serve(io.BytesIO("".join(json.dumps(one) + "\n" for one in named).encode()), out)
    out.seek(0)
    return out


@pytest.fixture(autouse=True)
def _without_limits(monkeypatch):
    """This process reads more than one file."""
    monkeypatch.setattr("privasso.encoding._files.limit_memory", lambda size: None)


@pytest.fixture
def own(monkeypatch):
    """Processes that no other test has used."""
    monkeypatch.setattr(_apart, "_IDLE", idle := {})
    return lambda: idle[os.getpid()]


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_answers(tmp_path, form):
    path = str(tmp_path / "data")
    (FRAME.write_parquet if form == "parquet" else FRAME.write_ipc)(path)
    ask = {"form": form, "path": path}
    names = [*NUMBERS, *WRONG, *LEVELS]  # what is wrong with one column does not hide the next
    found = answers((file_schema, ask), (file_columns, {**ask, "columns": names}))
    assert json.loads(found.readline())["names"] == FRAME.columns
    assert json.loads(found.readline()) == {"rows": 3}
    for values in NUMBERS.values():
        assert json.loads(found.readline()) == {"bytes": 24}
        np.testing.assert_array_equal(np.frombuffer(found.read(24)), values)
    for wrong in WRONG.values():
        assert json.loads(found.readline()) == wrong
    for levels, codes in LEVELS.values():
        assert json.loads(found.readline()) == {"bytes": 12, "levels": levels}
        assert np.frombuffer(found.read(12), dtype=np.int32).tolist() == codes
    assert not found.read()


def test_labels_are_numbers_cell_by_cell(tmp_path):
    path = str(tmp_path / "data")
    FRAME.write_parquet(path)
    ask = {"form": "parquet", "path": path, "labels": True}
    expected = {"kind": [NAN] * 3, "mixed": [1.0, 2.0, NAN], "digits": [1.0, 2.0, 3.0], **NUMBERS}
    for name, values in expected.items():
        found = answers((file_columns, {**ask, "columns": [name]}))
        assert found.readline() + found.readline() == b'{"rows": 3}\n{"bytes": 24}\n'
        np.testing.assert_array_equal(np.frombuffer(found.read()), values)
    found = answers((file_columns, {**ask, "columns": ["day"]}))
    assert found.getvalue() == b'{"rows": 3}\n{"wrong": "dates", "row": null, "count": null}\n'


def test_a_panic_ends_the_process_and_an_error_does_not(monkeypatch):
    class Panic(BaseException):
        pass

    def panic(*_):
        raise Panic("a cell of the file")

    ask = file_schema, {"form": "parquet", "path": "nowhere"}
    assert answers(ask, ask).getvalue() == b'{"failed": "file"}\n' * 2
    monkeypatch.setattr(_files, "_schema", panic)
    assert answers(ask, ask).getvalue() == b'{"failed": "process"}\n'


def test_a_library_that_is_missing_is_not_an_unreadable_file(tmp_path, own, monkeypatch):
    path = tmp_path / "data.parquet"
    FRAME.write_parquet(path)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "polars.py").write_text("import no_such_library")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "broken"), *sys.path])  # of the process
    with pytest.raises(OSError, match="is all that privasso needs installed"):
        open_table(path)


def test_a_process_that_dies_is_an_unreadable_file(tmp_path, own, monkeypatch):
    path = tmp_path / "data.parquet"
    FRAME.write_parquet(path)
    table = open_table(path)
    (reader,) = own()
    ask = Reader.ask

    def killed(self, *given, **request):
        self._process.kill()
        return ask(self, *given, **request)

    with monkeypatch.context() as patch:
        patch.setattr(Reader, "ask", killed)
        with pytest.raises(ValueError, match="cannot be read as parquet: the file is damaged"):
            table.matrix(["number"])
    assert not reader.runs
    assert not own()
    assert table.matrix(["number"]).tolist() == [[1.5], [2.5], [-3.0]]
    own()[0]._process.kill()  # while nobody asks it anything
    own()[0]._process.wait()
    assert table.matrix(["number"]).tolist() == [[1.5], [2.5], [-3.0]]


def test_a_process_that_does_not_start(tmp_path, own, monkeypatch):
    path = tmp_path / "data.parquet"
    FRAME.write_parquet(path)
    monkeypatch.setattr("sys.executable", shutil.which("true"))
    with pytest.raises(OSError, match="did not start"):
        open_table(path)


def test_an_answer_that_is_cut_short(tmp_path):
    path = tmp_path / "data.parquet"
    pl.DataFrame({"a": np.zeros(1_000_000)}).write_parquet(path)
    reader = Reader()
    found = reader.ask(file_columns, path, form="parquet", columns=["a"], **PLAIN)
    assert found == {"rows": 1_000_000}
    assert reader.next() == {"bytes": 8_000_000}
    reader._process.kill()
    with pytest.raises(ReadFailedError):
        reader.numbers(np.empty(1_000_000))


def test_a_half_read_answer_is_not_taken_for_the_next(tmp_path):
    for name, bad in (("a.parquet", 0), ("b.parquet", 1)):
        x = [np.inf if k == bad else 3.0 for k in range(2)]
        pl.DataFrame({"x": x, "y": [1, 1], "z": [2, 2]}).write_parquet(tmp_path / name)
        table = open_table(tmp_path / name)
        for _ in range(2):
            with pytest.raises(ValueError, match=f"is infinite in row {bad + 1}"):
                table.matrix(["x", "y", "z"])
        assert table.matrix(["y", "z"]).tolist() == [[1.0, 2.0]] * 2


def test_an_answer_that_is_left_ends_its_process(tmp_path, own):
    path = tmp_path / "data.parquet"
    FRAME.write_parquet(path)
    table = open_table(path)
    (reader,) = own()
    with pytest.raises(ValueError, match="'day' does not hold numbers by its type"):
        table.columns_and_labels(["number"], "day")
    assert not reader.runs
    assert table.matrix(["number"]).tolist() == [[1.5], [2.5], [-3.0]]


@pytest.mark.skipif(sys.platform != "linux", reason="looks for the process in /proc")
def test_the_process_ends_with_the_one_that_asks(tmp_path):
    path = tmp_path / "data.parquet"
    FRAME.write_parquet(path)
    code = (
        "import os, sys\nfrom privasso import _apart\nfrom privasso.tables import open_table\n"
        "open_table(sys.argv[1])\nprint(_apart._IDLE[os.getpid()][0]._process.pid)"
    )
    words = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert not os.path.exists(f"/proc/{int(done.stdout)}")


def test_modules_of_the_working_folder_are_not_run(tmp_path, monkeypatch, own):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "polars.py").write_text("open('ran', 'w')")
    FRAME.write_parquet("data.parquet")
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    assert open_table("data.parquet").names == tuple(FRAME.columns)
    assert not (tmp_path / "ran").exists()
