"""Scales of the columns from a text file."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from privasso._files import read_bounded
from privasso._text import escaped

#: Bytes beyond which a file is refused.
_MAX_BYTES = 256 * 1024 * 1024


def scales_by_name(path: Path, names: list[str]) -> np.ndarray:
    r"""Return one scale per column from lines ``name,scale``, in any order.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "scales.csv")
    ...     _ = file.write_text("weight,12\nage,15.5\n")
    ...     scales_by_name(file, ["age", "weight"])
    array([15.5, 12. ])
    """
    text = _text(path)
    try:
        lines = [line for line in csv.reader(io.StringIO(text, newline="")) if line]
        found = {line[0].strip(): float(line[1]) for line in lines if len(line) == 2}
    except (csv.Error, ValueError):
        found, lines = {}, [[]]
    if len(found) != len(lines):
        raise ValueError(f"--scales {escaped(path)} must have lines NAME,SCALE, each name once")
    for name in names:
        if name not in found:
            raise ValueError(f"--scales {escaped(path)} has no line for the column {name!r}")
    return np.array([found[name] for name in names])


def scales_in_order(path: Path) -> np.ndarray:
    r"""Return all numbers of a text file, separated by commas, spaces or line breaks.

    Lines that start with ``#`` are comments.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "scales.txt")
    ...     _ = file.write_text("# of all columns\n12\n15.5\n")
    ...     scales_in_order(file)
    array([12. , 15.5])
    """
    words = [
        word
        for line in _text(path).splitlines()
        for word in line.partition("#")[0].replace(",", " ").split()
    ]
    try:
        return np.array([float(word) for word in words])
    except ValueError:
        raise ValueError(f"--scales {escaped(path)} must hold numbers alone") from None


def _text(path: Path) -> str:
    try:
        return read_bounded(path, _MAX_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"--scales {escaped(path)} is not a text file in UTF-8") from None
