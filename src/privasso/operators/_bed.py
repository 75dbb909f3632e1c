"""PLINK .bed files: checks of the header and the size, and the bytes mapped into memory."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np

#: The first bytes of a .bed file, and the third if it is stored variant by variant.
_MAGIC = b"\x6c\x1b"
_BY_VARIANT = b"\x01"
_HEADER = 3


def read_bed(
    path: str | PathLike[str], shape: tuple[int, int] | None = None
) -> tuple[np.ndarray, int]:
    """Map the genotypes of a .bed file: one line of bytes per variant; and the number of people.

    Raises
    ------
    ValueError
        If the file is not a .bed file stored variant by variant, or its size does not fit.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "tiny.bed")
    ...     _ = path.write_bytes(bytes([0x6C, 0x1B, 0x01, 0b00_10_11, 0b11_01_00]))
    ...     packed, n_rows = read_bed(path, shape=(3, 2))
    ...     packed.tolist(), n_rows
    ([[11], [52]], 3)
    """
    bed = Path(path)
    with bed.open("rb") as file:
        header = file.read(_HEADER)
    if len(header) < _HEADER or header[:2] != _MAGIC:
        raise ValueError(f"{bed} is not a PLINK .bed file: its first two bytes are not 6c 1b")
    if header[2:] != _BY_VARIANT:
        raise ValueError(
            f"{bed} is stored person by person or damaged (third byte {header[2]:02x}, not 01); "
            "write it again with plink --make-bed"
        )
    if shape is None:
        n_rows, n_columns = (_lines(bed.with_suffix(suffix)) for suffix in (".fam", ".bim"))
    else:
        n_rows, n_columns = (int(k) for k in shape)
    if n_rows < 1 or n_columns < 1:
        raise ValueError(f"{bed} has {n_rows} people and {n_columns} variants; both must be there")
    line = -(-n_rows // 4)
    expected, found = _HEADER + line * n_columns, bed.stat().st_size
    if found != expected:
        raise ValueError(
            f"{bed} has {found} bytes, but {n_rows} people and {n_columns} variants take "
            f"{expected}: it is not complete, or belongs to other .fam and .bim files"
        )
    packed = np.memmap(bed, np.uint8, mode="r", offset=_HEADER, shape=(n_columns, line))
    return packed.view(np.ndarray), n_rows


def _lines(path: Path) -> int:
    """Number of lines of a text file that are not empty."""
    if not path.is_file():
        raise ValueError(f"{path} is not there; put it beside the .bed file or pass shape=(M, N)")
    with path.open("rb") as file:
        return sum(1 for line in file if line.strip())
