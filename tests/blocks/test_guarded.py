"""Files that are no files, point elsewhere or are damaged: one sentence, soon, in little memory."""

import gzip
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from scipy.io import mmwrite

import privasso as pv
from cell_tables import counts
from damage import mutated
from privasso import _apart
from privasso.blocks import open_files, read_sparse
from privasso.tables import BedTable

CELLS = Path(__file__).with_name("cells.h5ad")
#: What may be said about a file, and nothing else.
SENTENCE = re.compile(
    "|".join(
        [
            r"file cannot be read as \w+: the file is damaged, of another kind, or too large for "
            "this machine",
            "file is damaged: it has other rows than it says",
            "file changed or vanished while it was being read, so nothing was released; .*",
            r"file has no (column '\w+'.*|matrix X)",
            "(file|column .* of file) (must hold|does not hold) (numbers|integers).*",
            "file has more rows or columns than a file of its size may",
            "file must be a general matrix of .*",
            "file has two columns of the same name; rename one of them",
            "the files have no rows",
            "file: the (sparse matrix is damaged|matrix does not hold numbers)",
            r"file: \d+ and \d+ names for \d+ rows and \d+ columns",
        ]
    )
)


@pytest.fixture(autouse=True)
def no_hang():
    """A reader that hangs fails the test."""

    def hangs(*_):
        pytest.fail("no answer in time")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(60)
    yield lambda: signal.alarm(20)
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def everything(path):
    """All rows of a table that is read in blocks."""

    def task(chunks, state):
        return {"rows": np.array([sum(len(y) for _, y in chunks)])}

    return open_files([path], "y", jobs=1).sum(task, None)["rows"][0]


def bed(path):
    read = {".bed": lambda: BedTable(path), ".txt": lambda: BedTable(path.with_name("g.bed"), path)}
    return read.get(path.suffix, lambda: BedTable(path.with_suffix(".bed")))()


READERS = {
    "t.parquet": everything,
    "t.arrow": everything,
    "c.h5ad": read_sparse,
    "c.mtx": read_sparse,
    "c.mtx.gz": read_sparse,
    "g.bed": bed,
    "g.bim": bed,
    "g.fam": bed,
    "labels.txt": bed,
}
KINDS = {os.mkfifo: "a pipe", lambda name: os.symlink("/dev/zero", name): "a device"}


def genotypes(folder):
    folder.joinpath("g.bed").write_bytes(bytes([0x6C, 0x1B, 0x01, 0b00_10_11, 0b11_01_00]))
    folder.joinpath("g.bim").write_text("1 rs12 0 100 A G\n1 rs7 0 250 C T\n")
    folder.joinpath("g.fam").write_text("a 1 0 0 2 1.5\na 2 0 0 1 -9\nb 1 0 0 1 2.0\n")


@pytest.mark.parametrize("name", READERS)
def test_only_regular_files_are_read(tmp_path, name):
    genotypes(tmp_path)
    path = tmp_path / name
    for make, kind in KINDS.items():
        path.unlink(missing_ok=True)
        make(path)
        with pytest.raises(ValueError, match=f"is {kind}, not a file"):
            READERS[name](path)


def test_other_libraries_read_in_a_process_of_their_own(tmp_path):
    code = (
        "import sys, pathlib, privasso as pv\n"
        "from privasso.cli import main\n"
        "from privasso.blocks import read_sparse\n"
        "dp = '--target y --record-dp --epsilon 3 --delta 1e-6 --y-bounds -4 4 --bounds b.csv'\n"
        "for words in ('t-*.parquet', 't-*.arrow', 't-0.parquet --memory 2GB'):\n"
        "    assert main(['fit', *words.split(), *dp.split(), '--out', 'm.json']) == 0\n"
        "read_sparse(sys.argv[1])\n"
        "assert not {'pyarrow', 'h5py'} & set(sys.modules)\n"
    )
    for name, file in (("t.parquet", "t-0.parquet"), ("t.arrow", "t-0.arrow")):
        (tmp_path / file).write_bytes(next(wholes(tmp_path, name)))
    names = ("x0", "x1", "x2", "x3", "flag")
    bounds = "".join(f"{name},-4,4\n" for name in names)
    (tmp_path / "b.csv").write_text(f"name,low,high\n{bounds}")
    words = [sys.executable, "-c", code, CELLS]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_rows_that_are_kept_stay_as_they_are(tmp_path, monkeypatch, form, shared):
    """The memory in which they came is used again only when they are gone."""
    if not shared:
        monkeypatch.delattr("os.memfd_create", raising=False)
    monkeypatch.setattr(_apart, "_IDLE", {})
    path = tmp_path / f"t.{form}"
    path.write_bytes(next(wholes(tmp_path, path.name)))
    table = pq.read_table(path) if form == "parquet" else pa.ipc.open_file(path).read_all()
    engine: Any = open_files([path], "y", exclude=["flag"], jobs=1, entries=100).engine
    kept = [chunk for part in engine.parts for chunk in part.chunks()]
    assert len(kept) > 5
    np.testing.assert_array_equal(np.concatenate([y for _, y in kept]), table["y"])
    columns = np.column_stack([table[f"x{j}"] for j in range(4)])
    np.testing.assert_array_equal(np.vstack([X for X, _ in kept]), columns)
    for _ in engine.parts[0].chunks():  # reads again over what is gone only
        pass
    np.testing.assert_array_equal(np.vstack([X for X, _ in kept]), columns)


def soft(file, folder):
    file["layers/soft"] = file["X"]
    del file["X"]
    file["X"] = h5py.SoftLink("/layers/soft")


def external(file, folder):
    with h5py.File(folder / "secret.h5", "w") as other:
        file.copy("X", other)
    del file["X"]
    file["X"] = h5py.ExternalLink(str(folder / "secret.h5"), "X")


def outside(file, folder):
    folder.joinpath("raw").write_bytes(bytes(8 * 1200))
    del file["X"]
    file.create_dataset("X", (60, 20), "f8", external=[(str(folder / "raw"), 0, 9600)])


def virtual(file, folder):
    with h5py.File(folder / "secret.h5", "w") as other:
        other["X"] = np.ones((60, 20))
    layout = h5py.VirtualLayout((60, 20), "f8")
    layout[:] = h5py.VirtualSource(str(folder / "secret.h5"), "X", (60, 20))
    del file["X"]
    file.create_virtual_dataset("X", layout)


def bomb(file, folder):
    """Six gigabytes of zeros in some kilobytes."""
    del file["X"]
    shape = 300_000_000, 20
    file.create_dataset("X", shape, "u1", chunks=(1 << 20, 20), compression="gzip")


@pytest.mark.parametrize("change", [soft, external, outside, virtual, bomb])
def test_cells_are_in_the_file_itself_and_fit_its_size(tmp_path, change):
    path = Path(shutil.copy(CELLS, tmp_path))
    with h5py.File(path, "r+") as opened:
        change(opened, tmp_path)
    with pytest.raises(
        ValueError, match=r"cells\.h5ad cannot be read as h5ad: the file is damaged"
    ):
        read_sparse(path)


def test_a_table_that_is_cut_while_it_is_read(tmp_path):
    """Blocks of an Arrow file, which was mapped to memory; and genotypes, which were too."""
    path = tmp_path / "t.arrow"
    table = pa.table({"a": np.ones(10**6), "y": np.ones(10**6)})
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table)

    def cutting(chunks, state):
        for _ in chunks:
            os.truncate(path, 5000)
        return {}

    with pytest.raises(RuntimeError, match="changed or vanished"):
        open_files([path], "y", jobs=1, entries=1000).sum(cutting, None)
    m, n = 40_000, 500
    bed = tmp_path / "g.bed"
    bed.write_bytes(b"\x6c\x1b\x01" + bytes(n * m // 4))
    code = (
        "import os, sys, numpy as np, privasso as pv\n"
        f"F = pv.operators.Genotypes.open(sys.argv[1], shape=({m}, {n}), scaling='none')\n"
        "os.truncate(sys.argv[1], 3)\n"
        f"print(F.matvec(np.ones({n})).sum())"
    )
    done = subprocess.run([sys.executable, "-c", code, bed], capture_output=True, text=True)
    assert done.returncode == 0, done.returncode
    assert float(done.stdout) == 2.0 * m * n


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("damage", ["far", "back", "index", "negative", "start"])
def test_sparse_matrices_that_point_outside(form, damage):
    X = form(counts().astype(float))
    if damage == "far":
        X.indptr[-1] = 10**8
    elif damage == "back":
        X.indptr[3], X.indptr[4] = 10**8, 0
    elif damage == "start":
        X.indptr[0] = -(10**6)
    else:
        X.indices[5] = 10**8 if damage == "index" else -(10**8)
    y = np.ones(X.shape[0])
    label = pv.LabelDP(1.0, 1e-6, y_bounds=(0, 3))
    record = pv.RecordDP(1.0, 1e-6, bounds=(0, 4), y_bounds=(0, 3))
    for fit in (
        lambda: pv.solve(X, y, 1.0),
        lambda: pv.PrivateLasso(privacy=label).fit(X, y),
        lambda: pv.PrivateLasso(privacy=record, screen=2).fit(X, y),
    ):
        with pytest.raises(ValueError, match="the sparse matrix is damaged"):
            fit()


def wholes(folder, name):
    """Whole files of a kind."""
    rng, path = np.random.default_rng(0), folder / name
    columns: dict[str, Any] = {f"x{j}": rng.standard_normal(200) for j in range(4)}
    table = pa.table({**columns, "flag": rng.random(200) < 0.5, "y": rng.standard_normal(200)})
    if name == "t.parquet":
        for kind in ("none", "snappy", "zstd", "gzip"):
            pq.write_table(table, path, row_group_size=70, compression=kind)
            yield path.read_bytes()
    elif name == "t.arrow":
        for kind in (None, "lz4", "zstd"):
            options = pa.ipc.IpcWriteOptions(compression=kind)
            with pa.ipc.new_file(path, table.schema, options=options) as file:
                file.write_table(table, max_chunksize=70)
            yield path.read_bytes()
    elif name == "c.h5ad":
        yield CELLS.read_bytes()
    else:
        mmwrite(folder / "c.mtx", sp.coo_array(counts()))
        text = (folder / "c.mtx").read_bytes()
        yield text if name == "c.mtx" else gzip.compress(text)


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "c.h5ad", "c.mtx", "c.mtx.gz"])
@pytest.mark.parametrize(
    "count", [25, pytest.param(2500, marks=pytest.mark.slow)], ids=["few", "many"]
)
@pytest.mark.timeout(3600)
def test_damaged_files(tmp_path, no_hang, name, count):
    whole, path, said = list(wholes(tmp_path, name)), tmp_path / name, []
    for content in whole:
        path.write_bytes(content)
        READERS[name](path)
    before = peaks()
    for seed in range(count):
        path.write_bytes(mutated(whole[seed % len(whole)], seed))
        no_hang()
        try:
            READERS[name](path)
        except (ValueError, RuntimeError) as error:
            said.append(error)
    for error in said:
        assert SENTENCE.fullmatch(str(error).replace(str(path), "file")), str(error)
        assert error.__cause__ is None
        assert error.__suppress_context__ or error.__context__ is None
    assert said or name == "c.mtx"
    for then, now in zip(before, peaks(), strict=True):
        assert now - then < 10**6  # kilobytes


def peaks():
    """The most memory that this process took, its children that ended, and those that have not."""
    own, ended = (
        resource.getrusage(of).ru_maxrss for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    pids = [reader._process.pid for reader in _apart._IDLE.get(os.getpid(), ())]
    texts = [Path(f"/proc/{pid}/status").read_text() for pid in pids if Path("/proc").exists()]
    living = [int(text.split("VmHWM:")[1].split()[0]) for text in texts]
    return own, max(ended, *living, 0)


def test_a_zero_byte_in_a_matrix(tmp_path):
    path = tmp_path / "c.mtx"
    path.write_bytes(b"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 \0 5\n2 \0 2 7\n")
    assert read_sparse(path).X.nnz == 0


def test_a_small_file_that_holds_much_text(tmp_path, monkeypatch):
    monkeypatch.setattr("privasso.blocks._market._ROOM", 10**5)
    path = tmp_path / "c.mtx.gz"
    head = b"%%MatrixMarket matrix coordinate real general\n2 2 2\n"
    for body in (b"1 1 5\n" * 10**6, b"1" * 10**7):
        path.write_bytes(gzip.compress(head + body))
        with pytest.raises(ValueError, match="too large"):
            read_sparse(path)
