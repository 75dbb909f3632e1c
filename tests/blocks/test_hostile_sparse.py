"""A record of a sparse table has no effect on how any other is read, whatever it holds."""

import gzip
import random
import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from cell_tables import M, N, counts
from hostile import LARGE, NUMERAL, hostile, same
from privasso.blocks import _market, read_sparse

FEW_OR_MANY = pytest.mark.parametrize(
    "count", [40, pytest.param(500, marks=pytest.mark.slow)], ids=["few", "many"]
)
CELLS = Path(__file__).with_name("cells.h5ad")
EXTREME = [np.nan, np.inf, -np.inf, 1e308, -1e-308, 5e-324, 0.0, -0.0, 2.0**53 + 2, 1e38]
PLACES = [-1, N, N + 1, 2**31 - 1, -(2**31), 0, 1, 1, N - 1]


def market_lines(seed=0):
    """A matrix of 12 × 5 with several entries in each row, line by line."""
    rng = random.Random(seed)
    rows = [(r, rng.randint(1, 5), rng.choice(["1", "-2.5", "3e-3", "0.1"])) for r in range(1, 13)]
    rows += [(r, c, "7") for r, c, _ in rows] + [(r, 6 - c, "2.25") for r, c, _ in rows]
    return sorted(rows)


def entry(line, pattern):
    """Row, column and value of a line by the rule; None if there is none."""
    words = line.split()
    if len(words) != 3 - pattern or not all(word.isdigit() for word in words[:2]):
        return None
    row, column = int(words[0][-19:]), int(words[1][-19:])
    value = "1" if pattern else words[2].decode("latin-1")
    if max(map(len, words[:2])) > 18 or not (1 <= row <= 12 and 1 <= column <= 5):
        return None
    return (row - 1, column - 1, float(value)) if NUMERAL.fullmatch(value) else None


@FEW_OR_MANY
@pytest.mark.parametrize("kind", ["real", "pattern", "packed"])
def test_market_files(tmp_path, monkeypatch, kind, count):
    monkeypatch.setattr(_market, "_TOGETHER", 200)  # several blocks
    path = tmp_path / ("some.mtx.gz" if kind == "packed" else "some.mtx")
    pattern, lines = kind == "pattern", market_lines()
    head = b"%%MatrixMarket matrix coordinate " + (b"pattern" if pattern else b"real")
    head += b" general\n% a comment\n12 5 36\n"
    body = {r: [f"{r} {c} {v}"[: -len(v) - 1 if pattern else None].encode()
                for row, c, v in lines if row == r] for r in range(1, 13)}  # fmt: skip

    def read(body):
        text = head + b"\n".join(line for lines in body.values() for line in lines) + b"\n"
        path.write_bytes(gzip.compress(text, 1) if kind == "packed" else text)
        return read_sparse(path).X.toarray()

    known = read(body)
    for k, record in enumerate(hostile(count, seed=len(kind), large=False)):
        r = (1, 6, 12)[k % 3]
        tries = [record, b"%d %d %s" % (r, k % 7, record), b"%d %s" % (r, record), b"%d 2 " % r]
        tries += [b"%d 3 1e5" % r, b"\t%d\x0b4  .5\r" % r]
        tries = [
            line for line in tries if (found := entry(line, pattern)) is None or found[0] == r - 1
        ]
        expected = np.zeros(5)
        with np.errstate(invalid="ignore"):
            for found in filter(None, (entry(line, pattern) for line in tries)):
                expected[found[1]] += found[2]
        found = read({**body, r: tries})
        others = np.arange(12) != r - 1
        assert same(found[others], known[others])
        np.testing.assert_allclose(found[r - 1], expected, rtol=1e-12, err_msg=str(record[:80]))


def test_lines_of_megabytes_are_ignored(tmp_path):
    path = tmp_path / "some.mtx"
    head = b"%%MatrixMarket matrix coordinate real general\n3 2 9\n1 1 5\n"
    for record in [*LARGE, b" " * 5_000_000 + b"2 2 1", b"2 2 " + b"0" * 5_000_000 + b"1"]:
        path.write_bytes(head + b"2 1 " + record + b"\n" + record + b"\n3 2 7\n")
        assert read_sparse(path).X.toarray().tolist() == [[5, 0], [0, 0], [0, 7]]


@FEW_OR_MANY
@pytest.mark.parametrize("layer", ["double", "csc", "dense"])
def test_cells(tmp_path, layer, count):
    path, rng = tmp_path / "cells.h5ad", random.Random(0)
    known = counts().astype(np.float64 if layer == "double" else np.float32)
    for k in range(count):
        r = (0, M // 2, M - 1)[k % 3]
        shutil.copy(CELLS, path)
        expected = np.zeros(N)
        with h5py.File(path, "r+") as opened, np.errstate(invalid="ignore", over="ignore"):
            stored: Any = opened[f"layers/{layer}"]
            if layer == "dense":
                stored[r] = [rng.choice(EXTREME) for _ in range(N)]
                expected = stored[r]
            elif layer == "double":  # by rows
                part = slice(*stored["indptr"][r : r + 2])
                places = [rng.choice(PLACES) for _ in range(part.stop - part.start)]
                values = [rng.choice(EXTREME) for _ in places]
                stored["indices"][part], stored["data"][part] = places, values
                for place, value in zip(places, values, strict=True):
                    if 0 <= place < N:
                        expected[place] += value
            else:  # by columns: the entries of a record lie apart
                for at in np.flatnonzero(stored["indices"][:] == r):
                    value, gone = rng.choice(EXTREME), rng.random() < 0.5
                    stored["data"][at] = value
                    if gone:
                        stored["indices"][at] = rng.choice([-1, M, 2**31 - 1])
                    else:
                        column = np.searchsorted(stored["indptr"][:], at, side="right") - 1
                        expected[column] = stored["data"][at]
        found = read_sparse(path, layer=layer).X
        assert found.has_canonical_format
        others = np.arange(M) != r
        assert same(found.toarray()[others], known[others])
        np.testing.assert_allclose(found.toarray()[r], expected, rtol=1e-12)
