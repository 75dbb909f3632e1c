"""Records that are made to disturb the reading of others, and what a cell of them is."""

import random
import re

import numpy as np

#: Pieces of which hostile records are made; none ends a line.
PIECES = [
    b"", b"1", b"-2.5", b"1e5", b"NA", b"nan", b"inf", b"-Infinity", b"1e400", b"-1e-400",
    b"9" * 400, b"0x10", b"1_0", b"true", b"FALSE", b"None", b"a", b"b", b"heart", b" b ",
    b",", b";", b"\t", b"|", b" ", b",,,,,,", b";;;;", b"\t\t\t", b'"', b'""', b'"""', b'","',
    b'"a', b'b"', b'"a"b', b'"1"', b'"1,5"', b"'", b"\\", b"#", b"%", b"%%", b"//", b"--", b"\r",
    b"\r\r", b"\x00", b"\x00\x00\x00\x00", b"\x0b", b"\x0c", b"\x1a", b"\x1c", b"\x7f", b"\x85",
    b"\xff", b"\xfe\xff", b"\xed\xa0\x80", b"\xc3", b"\xef\xbb\xbf", b"\xc2\x85", b"\xc2\xa0",
    b"\xe2\x80\xa8", b"\xe2\x80\xa9", b"=1+1", b"1,5", b"1.5", b"1,5,5", b"SECRET", b"\x1b[31m",
]  # fmt: skip
#: Single cells of five megabytes, and lines of many fields.
LARGE = [b"7" * 5_000_000, b'"' + b"x" * 5_000_000, b"\xff" * 5_000_000, b"1,2;3\t" * 100_000]

#: What a space is in Unicode; Python takes four controls more for one.
SPACES = "".join(c for c in map(chr, range(0x110000)) if c.isspace() and not "\x1c" <= c <= "\x1f")
#: A number as it is written; `float` takes more.
NUMERAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?(inf|infinity|nan)", re.I | re.A)


def hostile(count, seed=0, large=True):
    """So many records; the last ones are large."""
    rng = random.Random(seed)
    made = [
        b"".join(rng.choice(PIECES) for _ in range(rng.choice([1, 1, 2, 3, 5, 9, 20])))
        for _ in range(count - large * len(LARGE))
    ]
    return [*made, *(LARGE if large else [])]


def number(cell, separator=","):
    """The number that a cell of text holds, or NaN."""
    cell = cell.strip(SPACES)
    if separator == ";" and re.fullmatch(r"[+-]?(\d+(,\d*)?|,\d+)(e[+-]?\d+)?", cell, re.I | re.A):
        cell = cell.replace(",", ".")
    if cell.lower() in ("true", "false"):
        return float(cell.lower() == "true")
    return float(cell) if NUMERAL.fullmatch(cell) else np.nan


def same(found, known):
    """Bit by bit, whichever NaN it is."""
    found, known = (np.where(np.isnan(x), -777.25, x) for x in (found, np.asarray(known)))
    return found.dtype == known.dtype and found.tobytes() == known.tobytes()
