"""A record of a binary file has no effect on how any other is read, whatever it holds.

Types are stated by the file, and public: what a record may hold is what its types allow.
"""

import random

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from bed_reader import to_bed

from hostile import LARGE, SPACES, hostile, number, same
from privasso.blocks import open_files
from privasso.encoding import Dictionary, LevelEntry, Levels, NumberEntry, Numbers
from privasso.tables import BedTable, open_table

FEW_OR_MANY = pytest.mark.parametrize(
    "count", [40, pytest.param(500, marks=pytest.mark.slow)], ids=["few", "many"]
)
WARDS = ("1", "2", "a", "b")
ENTRIES = [NumberEntry(name, 0, 9) for name in ("float", "single", "integer", "flag", "text")]
KNOWN = Dictionary((*ENTRIES, LevelEntry("ward", WARDS), LevelEntry("kind", WARDS)))
TYPES = {"float": pl.Float64, "single": pl.Float32, "integer": pl.Int64, "flag": pl.Boolean,
         "text": pl.String, "ward": pl.String, "kind": pl.Categorical, "y": pl.Float64}  # fmt: skip
EXTREME = [np.nan, np.inf, -np.inf, 1e308, -5e-324, -0.0, 1e38, 2.0**60, None]
SINGLE = [np.nan, np.inf, -np.inf, 1e38, 1e-45, -0.0, None]
INTEGERS = [2**63 - 1, -(2**63), 2**53 + 1, 0, None]
RECORDS = 15


def rows():
    return [
        [k / 3, k / 4, 7 * k, k % 2 == 0, f" {k}.5", "ab12c"[k % 5], "b1"[k % 2], -k]
        for k in range(RECORDS)
    ]


def record(rng, text):
    """A record that is all that its types allow."""
    texts = [text, text[: len(text) // 2], None, "a", " b "]
    return [rng.choice(EXTREME), rng.choice(SINGLE), rng.choice(INTEGERS),
            rng.choice([True, False, None]), *(rng.choice(texts) for _ in range(3)),
            rng.choice(EXTREME)]  # fmt: skip


def expected(row):
    *plain, text, ward, kind, y = row
    cells = [np.nan if cell is None else float(cell) for cell in (*plain, y)]
    cells[1] = float(np.float32(cells[1]))
    cells.insert(4, np.nan if text is None else number(text))
    levels = [None if cell is None else cell.strip(SPACES) for cell in (ward, kind)]
    return cells, [WARDS.index(level) if level in WARDS else -1 for level in levels]


def read(path):
    columns, labels = open_table(path).declared(KNOWN, "y")
    numbers = [one.values for one in columns.columns if isinstance(one, Numbers)]
    codes = [one.codes for one in columns.columns if isinstance(one, Levels)]
    return np.column_stack([*numbers, labels]), np.column_stack(codes)


@FEW_OR_MANY
@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_frames(tmp_path, form, count):
    path, rng = tmp_path / f"data.{form}", random.Random(len(form))

    def written(rows):
        frame = pl.DataFrame(rows, TYPES, orient="row", strict=False)
        if form == "parquet":
            frame.write_parquet(path, row_group_size=4)
        else:
            frame.write_ipc(path, record_batch_size=4)
        return read(path)

    known, codes = written(rows())
    records = hostile(count, seed=3, large=False)
    records += [LARGE[0]] if count > 40 or form == "parquet" else []
    for k, raw in enumerate(records):
        at, row = (0, RECORDS // 2, RECORDS - 1)[k % 3], record(rng, raw.decode("utf-8", "replace"))
        found, levels = written([*rows()[:at], row, *rows()[at + 1 :]])
        others = np.arange(RECORDS) != at
        assert same(found[others], known[others])
        assert np.array_equal(levels[others], codes[others])
        cells, level = expected(row)
        assert same(found[at], cells)
        assert levels[at].tolist() == level


@FEW_OR_MANY
@pytest.mark.parametrize("form", ["npz", "blocks", "batches"])
def test_numbers(tmp_path, form, count):
    """Arrays, and tables that are read in blocks of rows."""
    rng, path = random.Random(0), tmp_path / ("data.npz" if form == "npz" else "data.parquet")
    path = path.with_suffix(".arrow") if form == "batches" else path
    table = np.random.default_rng(0).standard_normal((RECORDS, 4))
    names = ["a", "b", "c", "y"]

    def read(table, gaps=()):
        if form == "npz":
            np.savez(path, X=table[:, :3], y=table[:, 3], feature_names=np.array(names[:3]))
            known = Dictionary(tuple(NumberEntry(name, 0, 1) for name in names[:3]))
            columns, labels = open_table(path).declared(known, "y")
            assert columns.block is not None
            return np.column_stack([columns.block, labels])
        frame = pl.DataFrame(dict(zip(names, table.T, strict=True)))
        for column in gaps:  # null in place of NaN
            frame = frame.with_columns(pl.col(column).fill_nan(None))
        if form == "blocks":
            frame.write_parquet(path, row_group_size=4)
        else:
            with pa.ipc.new_file(path, frame.to_arrow().schema) as file:
                file.write_table(frame.to_arrow(), max_chunksize=4)
        parts: list = open_files([path], "y", entries=9).engine.parts  # pyright: ignore
        chunks = [chunk for part in parts for chunk in part.chunks()]
        return np.concatenate([np.column_stack([X, y]) for X, y in chunks])

    known = read(table)
    for k in range(count):
        at, hostile = (0, RECORDS // 2, RECORDS - 1)[k % 3], table.copy()
        hostile[at] = [rng.choice(EXTREME[:-1]) for _ in names]
        found = read(hostile, gaps=names[: k % 5])
        others = np.arange(RECORDS) != at
        assert same(found[others], known[others])
        assert same(found[at], hostile[at])


PEOPLE = [(f"f{k // 4}", f"p{k}") for k in range(RECORDS)]


def people(path, raw):
    names = [f"rs{k}" for k in range(raw.shape[1])]
    ids = {"fid": [f for f, _ in PEOPLE], "iid": [p for _, p in PEOPLE], "sid": names}
    to_bed(path, raw, properties={**ids, "pheno": [k / 2 for k in range(RECORDS)]})


def phenotype(cell):
    value = number(cell.decode("utf-8", "replace"))
    return np.nan if value == -9 or cell.lower() in (b"true", b"false") else value


@FEW_OR_MANY
@pytest.mark.parametrize("form", ["fam", "labels.txt", "labels.csv"])
def test_genotypes(tmp_path, form, count):
    path, rng = tmp_path / "study.bed", np.random.default_rng(0)
    raw = rng.integers(0, 3, (RECORDS, 7)).astype(float)
    people(path, raw)
    between, lines = b"," if form == "labels.csv" else b" ", []
    if form == "fam":
        lines, labels = path.with_suffix(".fam").read_bytes().splitlines(), None
    else:
        lines = [
            between.join([f.encode(), p.encode(), b"%d" % k]) for k, (f, p) in enumerate(PEOPLE)
        ]
        labels = tmp_path / form
    head = [] if labels is None else [between.join([b"#FID", b"IID", b"pheno"])]

    def read(lines):
        file = path.with_suffix(".fam") if labels is None else labels
        file.write_bytes(b"\n".join([*head, *lines]) + b"\n")
        table = BedTable(path, labels)
        columns, found = table.columns_and_labels([f"rs{k}" for k in range(7)], "pheno")
        assert columns.block is not None
        return np.column_stack([columns.block, found])

    known = read(lines)
    assert same(known[:, :7], raw)
    for k, record in enumerate(hostile(count, seed=5, large=count > 40)):
        at = (0, RECORDS // 2, RECORDS - 1)[k % 3]
        start = [word.encode() for word in PEOPLE[at]]  # which is public
        wholly = labels is not None and k % 2 and record.strip()  # without it, a line is ignored
        line = record if wholly else between.join([*start, record])
        words = [word.strip() for word in line.strip().split(between.strip() or None)]
        if labels is None:
            label = phenotype(words[5]) if len(words) > 5 else np.nan
        else:
            fits = len(words) == 3 and words[:2] == start
            label = phenotype(words[2]) if fits else np.nan
        found = read([*lines[:at], line, *lines[at + 1 :]])
        others = np.arange(RECORDS) != at
        assert same(found[others], known[others])
        assert same(found[at], [*raw[at], label]), record[:80]


def test_each_genotype_is_for_itself(tmp_path):
    path, rng = tmp_path / "study.bed", np.random.default_rng(0)
    raw = rng.integers(0, 3, (RECORDS, 7)).astype(float)
    for at in (0, RECORDS // 2, RECORDS - 1):
        for copies in ([np.nan] * 7, [0, 1, 2, np.nan, 2, 1, 0]):
            raw[at] = copies
            people(path, raw)
            found = BedTable(path).columns([f"rs{k}" for k in range(7)]).block
            assert found is not None
            assert same(found, raw)
