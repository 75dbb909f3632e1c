"""PLINK .bed files: their bytes, names of variants, phenotypes of people."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from privasso._files import fits_memory, open_regular, read_lines
from privasso._text import escaped

#: The first bytes of a .bed file, and the third if it is stored variant by variant.
_MAGIC = b"\x6c\x1b"
_BY_VARIANT = b"\x01"
_HEADER = 3
#: The value of a phenotype that is missing, beside whatever is no number.
_MISSING = -9.0


def bed_lines(
    path: str | PathLike[str],
    shape: tuple[int, int] | None = None,
    variants: Sequence[int] | None = None,
) -> tuple[np.ndarray, int]:
    """Read genotypes of a .bed file: one line of bytes per variant; and the number of people.

    All variants, or only some by their places. All variants of a file that takes more than half of
    the memory of the machine are mapped instead: such a file must not be cut while it is used.

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
    ...     packed, n_rows = bed_lines(path, shape=(3, 2))
    ...     packed.tolist(), n_rows
    ([[11], [52]], 3)
    """
    bed = Path(path)
    with open_regular(bed) as file:
        header, found = file.read(_HEADER), os.fstat(file.fileno()).st_size
    if len(header) < _HEADER or header[:2] != _MAGIC:
        raise ValueError(
            f"{escaped(bed)} is not a PLINK .bed file: its first two bytes are not 6c 1b"
        )
    if header[2:] != _BY_VARIANT:
        raise ValueError(
            f"{escaped(bed)} is stored person by person or damaged (third byte {header[2]:02x}, "
            "not 01); write it again with plink --make-bed"
        )
    if shape is None:
        n_rows, n_columns = (len(_words(bed.with_suffix(suffix))) for suffix in (".fam", ".bim"))
    else:
        n_rows, n_columns = (int(k) for k in shape)
    if n_rows < 1 or n_columns < 1:
        raise ValueError(
            f"{escaped(bed)} has {n_rows} people and {n_columns} variants; both must be there"
        )
    line = -(-n_rows // 4)
    expected = _HEADER + line * n_columns
    if found != expected:
        raise ValueError(
            f"{escaped(bed)} has {found} bytes, but {n_rows} people and {n_columns} variants take "
            f"{expected}: it is not complete, or belongs to other .fam and .bim files"
        )
    if variants is None and not fits_memory(2 * expected):
        packed = np.memmap(bed, np.uint8, mode="r", offset=_HEADER, shape=(n_columns, line))
        return packed.view(np.ndarray), n_rows
    places = [(0, n_columns)] if variants is None else [(k, 1) for k in variants]
    packed = np.empty((sum(count for _, count in places), line), dtype=np.uint8)
    rest = packed.reshape(-1)
    with open_regular(bed) as file:
        for start, count in places:
            file.seek(_HEADER + start * line)
            if file.readinto(rest[: count * line].data) < count * line:
                raise ValueError(f"{escaped(bed)} was cut while it was being read")
            rest = rest[count * line :]
    return packed, n_rows


def bed_names(path: str | PathLike[str]) -> tuple[str, ...]:
    r"""Names of the variants of a .bed file, from the .bim file beside it; each must be there once.

    Names and the alleles that are counted are taken to be public.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "tiny.bim")
    ...     _ = path.write_text("1 rs12 0 100 A G\n1 rs7 0 250 C T\n")
    ...     bed_names(path.with_suffix(".bed"))
    ('rs12', 'rs7')
    """
    bim = Path(path).with_suffix(".bim")
    lines = _words(bim)
    for number, words in enumerate(lines, start=1):
        if len(words) < 6:
            raise ValueError(f"{escaped(bim)}: line {number} has {len(words)} columns, not 6")
    names = tuple(words[1] for words in lines)
    if len(set(names)) < len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))
        raise ValueError(
            f"{escaped(bim)} names two variants {twice!r}; give each a name of its own, for "
            "instance with plink2 --set-all-var-ids @:#:$r:$a"
        )
    return names


def bed_people(path: str | PathLike[str]) -> tuple[list[tuple[str, str]], np.ndarray]:
    r"""Family and own identifiers of the people of a .bed file, and their phenotypes.

    Both are in the .fam file beside it, of which each line that is not blank is a person. The
    identifiers are public. A phenotype that is -9, no number or not there is NaN, each for itself,
    whatever the others are.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "tiny.fam")
    ...     _ = path.write_text("a 1 0 0 2 1.5\na 2 0 0 1 -9\nb 1 0 0\n")
    ...     bed_people(path.with_suffix(".bed"))
    ([('a', '1'), ('a', '2'), ('b', '1')], array([1.5, nan, nan]))
    """
    lines = [[*words, *[""] * (6 - len(words))] for words in _words(Path(path).with_suffix(".fam"))]
    return [(words[0], words[1]) for words in lines], phenotypes([words[5] for words in lines])


def phenotypes(cells: list[str]) -> np.ndarray:
    """Numbers of a column of phenotypes; -9 and what is no number is NaN.

    >>> phenotypes(["1.5", "-9", "NA", "2"])
    array([1.5, nan, nan, 2. ])
    """
    found = np.full(len(cells), np.nan)
    for k, cell in enumerate(cells):
        with contextlib.suppress(ValueError):
            found[k] = float(cell)
    found[found == _MISSING] = np.nan
    return found


def _words(path: Path) -> list[list[str]]:
    """The words of each line of a text file that is not blank."""
    if not path.exists():
        raise ValueError(
            f"{escaped(path)} is not there; put it beside the .bed file or pass shape=(M, N)"
        )
    return [[word.decode("utf-8", "replace") for word in line.split()] for line in read_lines(path)]
