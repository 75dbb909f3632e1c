"""Prior scales of the columns from a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def scales_from_file(path: Path, names: list[str]) -> np.ndarray:
    r"""Return one scale per column from lines ``name,scale``, in any order.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "scales.csv")
    ...     _ = file.write_text("weight,12\nage,15.5\n")
    ...     scales_from_file(file, ["age", "weight"])
    array([15.5, 12. ])
    """
    import csv

    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = [line for line in csv.reader(file) if line]
        found = {line[0].strip(): float(line[1]) for line in lines if len(line) == 2}
    except (UnicodeDecodeError, csv.Error, ValueError):
        found, lines = {}, [[]]
    if len(found) != len(lines):
        raise ValueError(f"--scales {path} must have lines NAME,SCALE, each name once")
    for name in names:
        if name not in found:
            raise ValueError(f"--scales {path} has no line for the column {name!r}")
    return np.array([found[name] for name in names])
