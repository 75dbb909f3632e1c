"""Sparse tables of Matrix Market, a line for each entry."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import scipy.sparse as sp
from numba import njit

from privasso._fields import OTHER, SPACES, decimal
from privasso._files import fits_memory, open_regular, unreadable
from privasso._text import escaped

#: Bytes that are read at a time, and those of the longest line.
_TOGETHER, _LONGEST = 1 << 24, 1 << 20
#: Bytes of text that a compressed file may hold, and those for each of its bytes.
_ROOM, _PER_BYTE = 10**8, 32
#: Rows or columns that a file may have, however few entries it holds.
_SIZE = 10**8
_PLAIN = re.compile(rb"[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|inf(inity)?|nan)", re.IGNORECASE)


def read_market(path: Path) -> sp.csr_array:
    r"""Read a sparse matrix; the head of the file is public, and each other line an entry or none.

    A line that is not a row, a column and a number, or whose place is outside of the matrix, is
    ignored, and so is the number of entries that the file states. Values in one place are added up.
    """
    with open_regular(path) as raw:
        try:
            packed = path.suffix.lower() == ".gz"
            with gzip.GzipFile(fileobj=raw) if packed else raw as file:
                most = _ROOM + _PER_BYTE * os.fstat(raw.fileno()).st_size
                return _matrix(path, file, most)
        except (EOFError, OSError, zlib.error):
            raise unreadable(path) from None


def _matrix(path: Path, file: gzip.GzipFile | BinaryIO, most: int) -> sp.csr_array:
    """The matrix, if it takes at most so many bytes of text."""
    m, n, pattern = _head(path, file)
    parts, count, read = [], 0, 0
    for lines in _lines(file):
        part = _entries(lines, m, n, pattern)
        parts.append(part)
        count, read = count + part[0].size, read + len(lines)
        if file.tell() > most or not fits_memory(64 * count):
            raise unreadable(path)
    if max(m, n) > max(_SIZE, read) or not fits_memory(16 * m):
        raise ValueError(f"{escaped(path)} has more rows or columns than a file of its size may")
    rows, columns, values = (np.concatenate(some) for some in zip(*parts, strict=True))
    return sp.coo_array((values, (rows, columns)), shape=(m, n)).tocsr()


def _head(path: Path, file: gzip.GzipFile | BinaryIO) -> tuple[int, int, bool]:
    """Rows, columns, and whether every entry is one, from the first lines."""
    words = file.readline(_LONGEST).lower().split()
    if words[:2] != [b"%%matrixmarket", b"matrix"] or len(words) != 5:
        raise unreadable(path)
    kinds = (b"real", b"double", b"integer", b"pattern")
    if words[2] != b"coordinate" or words[3] not in kinds or words[4] != b"general":
        raise ValueError(
            f"{escaped(path)} must be a general matrix of real numbers in coordinates; write it "
            "with scipy.io.mmwrite(path, scipy.sparse.coo_array(X), symmetry='general')"
        )
    line = b"%"
    while line.startswith(b"%") or line.isspace():  # ends with the file
        line = file.readline(_LONGEST)
    sizes = re.fullmatch(rb"\s*0*([1-9]\d{0,17})\s+0*([1-9]\d{0,17})\s+\d{1,18}\s*", line)
    if sizes is None:
        raise unreadable(path)
    return int(sizes[1]), int(sizes[2]), words[3] == b"pattern"


def _lines(file: gzip.GzipFile | BinaryIO) -> Iterator[bytes]:
    """Whole lines, some at a time; one that is too long has lost its beginning."""
    rest = b""
    while block := file.read(_TOGETHER):
        block = rest + block
        cut = block.rfind(b"\n") + 1
        rest = block[cut:] if len(block) - cut <= _LONGEST else b"x"
        yield block[:cut]
    yield rest


def _entries(lines: bytes, m: int, n: int, pattern: bool) -> tuple[np.ndarray, ...]:
    """Rows, columns and values of the lines that fit."""
    data = np.frombuffer(lines, dtype=np.uint8)
    most = lines.count(b"\n") + 1
    rows, columns, values = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
    cells = np.empty((most, 2), dtype=np.int64)
    count = _read(data, m, n, pattern, rows, columns, values, cells)
    keep = np.ones(count, dtype=bool)
    for k in np.flatnonzero(cells[:count, 1]):  # numbers that take a closer look
        word = lines[slice(*cells[k].tolist())]
        keep[k] = _PLAIN.fullmatch(word) is not None
        values[k] = float(word) if keep[k] else 0.0
    return rows[:count][keep], columns[:count][keep], values[:count][keep]


@njit(cache=True, nogil=True)
def _word(data, at, end):
    """Where the next word of a line begins and ends."""
    while at < end and SPACES[data[at]]:
        at += 1
    begin = at
    while at < end and not SPACES[data[at]]:
        at += 1
    return begin, at


@njit(cache=True, nogil=True)
def _place(data, begin, end, size):
    """The place that a word stands for, counted from 0; −1 for one that is none, or outside."""
    if begin == end or end - begin > 18:
        return -1
    found = 0
    for k in range(begin, end):
        if not 48 <= data[k] <= 57:
            return -1
        found = 10 * found + np.int64(data[k] - 48)
    return found - 1 if found <= size else -1


@njit(cache=True, nogil=True)
def _read(data, m, n, pattern, rows, columns, values, cells):
    """Read the entries, and return how many there are.

    Where a number needs a closer look is written to `cells`, zeros otherwise.
    """
    count, start = 0, 0
    for end in range(data.size + 1):
        if end < data.size and data[end] != 10:
            continue
        first, at = _word(data, start, end)
        row = _place(data, first, at, m)
        second, at = _word(data, at, end)
        column = _place(data, second, at, n)
        third, stop = _word(data, at, end)
        after, _ = _word(data, stop, end)
        whole = after == end and (third == stop) == pattern and end - start <= _LONGEST
        if whole and row >= 0 and column >= 0:
            rows[count], columns[count], values[count] = row, column, 1.0
            cells[count] = 0, 0
            if not pattern:
                kind, values[count], _ = decimal(data, third, stop, False)
                if kind == OTHER:
                    cells[count] = third, stop
            count += 1
        start = end + 1
    return count
